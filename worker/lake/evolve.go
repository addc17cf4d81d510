package lake

import (
	"context"
	"errors"
	"fmt"

	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
)

// Evolve brings the columns of a table's layers from one schema to the next, by field
// id: columns are added (bronze's inside its structs), widened, renamed, and kept when
// the source has dropped them. Both schemas are the table's after masking.
//
// What a layer has already is left as it is, so a call that failed half-way, or whose
// answer was lost, is made again. It fails with lake.schema before anything is written
// when one of the layers cannot follow. No row is written, and no layer's state changes:
// whoever has layers open opens them again, see Reopen.
func (l *Lake) Evolve(ctx context.Context, source *catalog.Source, t *catalog.Table, from, to *catalog.Schema) error {
	var layers []*layer
	var errs []error
	for _, kind := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
		ly, err := l.evolving(ctx, source, t, kind)
		if err == nil && ly != nil {
			_, err = ly.planEvolution(from, to)
			layers = append(layers, ly)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, ly := range layers {
		if err := ly.evolve(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}

// Evolve is the lake's, for this source.
func (s sourceLake) Evolve(ctx context.Context, t *catalog.Table, from, to *catalog.Schema) error {
	return s.lake.Evolve(ctx, s.source, t, from, to)
}

// evolving loads a layer that the lake has of a table, also one that is not kept up any
// more; nil when there is none.
func (l *Lake) evolving(ctx context.Context, source *catalog.Source, t *catalog.Table, kind catalog.Layer) (*layer, error) {
	ident := source.LakeName(t.Name, kind)
	ly := &layer{lake: l, kind: kind, source: t, ident: ident, name: dotted(ident)}
	if source.Connector != nil {
		ly.topic = source.Connector.Topic(t.Name)
	}
	tbl, err := l.cat.LoadTable(ctx, ident)
	if errors.Is(err, icecat.ErrNoSuchTable) || errors.Is(err, icecat.ErrNoSuchNamespace) {
		return nil, nil //nolint:nilnil // said above
	}
	if err != nil {
		return nil, l.unavailable(err, "the lake's table "+ly.name+" cannot be opened")
	}
	if err := checkOurs(tbl, t, kind, ly.name); err != nil {
		kept := kind == catalog.Bronze || t.HasKey() && (kind == catalog.Current && t.Current || kind == catalog.History && t.History)
		if kept {
			return nil, err
		}
		return nil, nil //nolint:nilnil // another's
	}
	return ly, ly.use(ctx, tbl)
}

// evolutionPlan is what a commit does to a table's columns; zero when there is nothing
// to do.
type evolutionPlan struct {
	updates      []table.Update
	requirements []table.Requirement
}

// planEvolution computes it from the table as it was last loaded.
func (l *layer) planEvolution(from, to *catalog.Schema) (evolutionPlan, error) {
	var p evolutionPlan
	md := l.tbl.Metadata()
	was := readLineage(md.Properties())
	if was == nil {
		if from == nil {
			return p, fmt.Errorf("evolve %s: its schema so far is not given", l.name)
		}
		was = lineageOf(from)
	}
	e := &evolution{layer: l.kind, was: was, to: to, last: md.LastColumnID(), table: l.name}
	cur := md.CurrentSchema()
	next, err := e.next(cur)
	if err != nil {
		return p, err
	}
	props, err := lineageOf(to).properties()
	if err != nil {
		return p, fmt.Errorf("evolve %s: %w", l.name, err)
	}
	if !next.Equals(cur) {
		p.updates = append(p.updates, table.NewAddSchemaUpdate(next), table.NewSetCurrentSchemaUpdate(-1))
	}
	if len(p.updates) == 0 && md.Properties()[propColumns] == props[propColumns] {
		return p, nil
	}
	p.updates = append(p.updates, table.NewSetPropertiesUpdate(props))
	// A column that another writer added meanwhile may have taken the ids.
	p.requirements = []table.Requirement{table.AssertTableUUID(md.TableUUID()), table.AssertCurrentSchemaID(cur.ID), table.AssertLastAssignedFieldID(md.LastColumnID())}
	if _, err := table.UpdateTableMetadata(md, p.updates, l.tbl.MetadataLocation()); err != nil {
		return p, e.refused("see the message, and change the column at the source or leave it out", "%v", err)
	}
	return p, nil
}

// evolve commits what planEvolution says, again while others commit first. Whatever a
// commit's answer is, the table then shows what is left to do.
func (l *layer) evolve(ctx context.Context, from, to *catalog.Schema) error {
	var cause error
	for attempt := 0; ; attempt++ {
		p, err := l.planEvolution(from, to)
		if err != nil || len(p.updates) == 0 {
			return err
		}
		if attempt >= l.lake.retry.attempts {
			return l.lake.unavailable(cause, "the columns of "+l.name+" cannot be changed")
		}
		if attempt > 0 {
			if err := l.lake.retry.wait(ctx, attempt-1); err != nil {
				return err
			}
		}
		before := l.tbl.Metadata()
		md, loc, err := l.lake.cat.CommitTable(ctx, l.ident, p.requirements, p.updates)
		if err == nil {
			l.adopt(md, loc)
			l.pruneMetadata(before, md)
			continue
		}
		if cause = err; ctx.Err() != nil {
			return ctx.Err()
		}
		l.lake.logger.DebugContext(ctx, "schema change not confirmed", "table", l.name, "attempt", attempt+1, "error", l.lake.redact(err.Error()))
		if err := l.reload(ctx); err != nil {
			return err
		}
	}
}
