package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// check compares a table with how the stream describes it from here on. It
// returns a fault when the lake would have to know of the difference, and an error
// when the source could not be asked.
func (s *Source) check(ctx context.Context, t *table, r *relation, at catalog.LSN) (*pipeline.Fault, error) {
	if r.name != t.cfg.Name {
		return &pipeline.Fault{State: catalog.Quarantined, Err: schemaChanged(t.at(at), "it is now called "+r.name.String())}, nil
	}
	if r.id != t.oid {
		e := remade()
		e.At = t.at(at)
		if err := s.noteGap(ctx, t.name, t.generation, e); err != nil {
			return nil, err
		}
		return &pipeline.Fault{State: catalog.Gap, Err: e}, nil
	}
	if !r.again && sameWire(r.relationMessage.columns, t.wire) {
		return nil, nil
	}
	types, attributes, err := s.describe(ctx, t, r.relationMessage.columns)
	if err != nil && (ctx.Err() != nil || isConnectionError(err)) {
		return nil, err
	}
	if err != nil { // the catalog may not be read
		return &pipeline.Fault{State: catalog.Quarantined, Err: asError(s.cfg.Source.Name, err)}, nil
	}
	then := columnsOf(types, attributes)
	if difference := shapeDifference(t.schema, then); difference != "" {
		if undone(t.schema, then, attributes) {
			r.undone = true
			return nil, nil
		}
		return &pipeline.Fault{State: catalog.Quarantined, Err: schemaChanged(t.at(at), difference)}, nil
	}
	t.wire = r.relationMessage.columns // a varchar grew: the lake has text as before
	return nil, nil
}

func remade() *catalog.Error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeGap, anew,
		"the table was dropped and made again: its rows went without a trace in the log")
}

// describe builds a schema from the stream's columns, asking the catalog for
// their types. It tries for a while, since the stream cannot go on without.
func (s *Source) describe(ctx context.Context, t *table, columns []wireColumn) (types []columnType, attributes []attribute, err error) {
	err = s.askCatalog(ctx, func(ctx context.Context) error {
		if attributes, err = readAttributes(ctx, s.lookups, t.oid); err != nil {
			return err
		}
		types, err = readTypes(ctx, s.lookups, columns)
		return err
	})
	return types, attributes, err
}

// askCatalog asks the catalog, and again for a while where no connection is to be had.
func (s *Source) askCatalog(ctx context.Context, what func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.ConnectTimeout)
		defer cancel()
		return what(ctx)
	}
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		err := once()
		if err == nil || sqlState(err) != "" || !isConnectionError(err) || wait >= 10*time.Second {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// undone reports whether a shape that the log tells of was taken back since: the
// catalog's columns are the lake's again, by number and type, so that each of them
// was there all the time. Then the log's columns are those, in their order, some
// under names that nobody has now, and behind them others that came and went
// meanwhile. A type that was changed and changed back is none of this: the table was
// rewritten, and the log does not tell what became of the values.
func undone(lake, then *catalog.Schema, attributes []attribute) bool {
	known := func(name string) bool {
		return slices.ContainsFunc(attributes, func(a attribute) bool { return a.name == name })
	}
	if len(then.Columns) < len(lake.Columns) {
		return false
	}
	for i, c := range lake.Columns {
		now := slices.IndexFunc(attributes, func(a attribute) bool { return a.name == c.Name })
		if now < 0 || c.Number == 0 || attributes[now].number != c.Number || !then.Columns[i].Type.Equal(c.Type) {
			return false
		}
		if name := then.Columns[i].Name; name != c.Name && (known(name) || then.Index(c.Name) >= 0) {
			return false
		}
	}
	return !slices.ContainsFunc(then.Columns[len(lake.Columns):], func(c catalog.Column) bool { return known(c.Name) })
}
