package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

const (
	mostOpen = 1_000 // changes or quarantines that are open, of all tables
	mostPast = 100   // of one table
)

const selectSchemaChanges = `
select c.id, t.source, t.name, c.found_at, c.at::text, c.before_version, c.before::text, c.after::text, c.diff::text, c.evidence::text,
	c.state, c.since, c.applied_at, d.at, d.verdict, d.rule, d.input::text, d.actor, d.reason, d.mapping::text
from lakeweir.schema_changes c join lakeweir.tables t on t.id = c.table_id
left join lateral (select * from lakeweir.schema_decisions d where d.change_id = c.id order by d.id desc limit 1) d on true `

// PendingSchemaChanges returns the changes that nobody has judged, of a source or, when
// it is empty, of all; the oldest first.
func (r *Registry) PendingSchemaChanges(ctx context.Context, source string) ([]SchemaChange, error) {
	return r.schemaChanges(ctx, `where c.state = 'pending' and ($1 = '' or t.source = $1) order by c.id limit $2`, source, mostOpen)
}

// OpenSchemaChanges returns the changes that are neither applied nor superseded, of a
// source or, when it is empty, of all; the oldest first.
func (r *Registry) OpenSchemaChanges(ctx context.Context, source string) ([]SchemaChange, error) {
	return r.schemaChanges(ctx, `where c.state not in ('applied', 'superseded') and ($1 = '' or t.source = $1) order by c.id limit $2`, source, mostOpen)
}

// SchemaChanges returns the newest 100 changes of a table, the newest first.
func (r *Registry) SchemaChanges(ctx context.Context, source, table string) ([]SchemaChange, error) {
	return r.schemaChanges(ctx, `where t.source = $1 and t.name = $2 order by c.id desc limit $3`, source, table, mostPast)
}

// SchemaChange returns one change with every decision on it, or fails with
// schema_change.not_found.
func (r *Registry) SchemaChange(ctx context.Context, id int64) (*SchemaChange, error) {
	var out SchemaChange
	err := r.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectSchemaChanges+`where c.id = $1`, id)
		if err != nil {
			return fmt.Errorf("read schema change %d: %w", id, err)
		}
		out, err = pgx.CollectExactlyOneRow(rows, scanSchemaChange)
		if errors.Is(err, pgx.ErrNoRows) {
			return noSchemaChange(id)
		}
		if err != nil {
			return fmt.Errorf("read schema change %d: %w", id, err)
		}
		rows, err = tx.Query(ctx, `select at, verdict, rule, input::text, actor, reason, mapping::text
			from lakeweir.schema_decisions where change_id = $1 order by id`, id)
		if err != nil {
			return fmt.Errorf("read the decisions on schema change %d: %w", id, err)
		}
		out.Decisions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Decision, error) {
			var d decisionRow
			err := row.Scan(&d.at, &d.verdict, &d.rule, &d.input, &d.actor, &d.reason, &d.mapping)
			return d.decision(), err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func (r *Registry) schemaChanges(ctx context.Context, where string, args ...any) ([]SchemaChange, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, selectSchemaChanges+where, args...)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out, err := pgx.CollectRows(rows, scanSchemaChange)
	return out, r.fault(ctx, err)
}

// decisionRow is a Decision as it comes from SQL; NULLs where there is none.
type decisionRow struct {
	at                                           *time.Time
	verdict, rule, input, actor, reason, mapping *string
}

func (d *decisionRow) decision() Decision {
	out := Decision{At: at(d.at), Input: raw(d.input), Mapping: raw(d.mapping)}
	if d.verdict != nil {
		out.Verdict, out.Rule, out.Actor, out.Reason = Verdict(*d.verdict), *d.rule, *d.actor, *d.reason
	}
	return out
}

func scanSchemaChange(row pgx.CollectableRow) (c SchemaChange, err error) {
	var place, diff, evidence string
	var version int
	var before, after *string
	var applied *time.Time
	var d decisionRow
	err = row.Scan(&c.ID, &c.Source, &c.Table, &c.FoundAt, &place, &version, &before, &after, &diff, &evidence,
		&c.State, &c.Since, &applied, &d.at, &d.verdict, &d.rule, &d.input, &d.actor, &d.reason, &d.mapping)
	if err != nil {
		return c, err
	}
	c.Diff, c.AppliedAt = json.RawMessage(diff), at(applied)
	if d.verdict != nil {
		c.Decisions = []Decision{d.decision()}
	}
	if err := errors.Join(json.Unmarshal([]byte(place), &c.At), json.Unmarshal([]byte(evidence), &c.Evidence)); err != nil {
		return c, fmt.Errorf("read schema change %d: %w", c.ID, err)
	}
	for _, s := range []struct {
		text    *string
		version int
		into    **catalog.Schema
	}{{before, version, &c.Before}, {after, 0, &c.After}} {
		if s.text == nil {
			continue
		}
		if *s.into, err = readSchema(s.version, *s.text); err != nil {
			return c, fmt.Errorf("read schema change %d: %w", c.ID, err)
		}
	}
	return c, nil
}
