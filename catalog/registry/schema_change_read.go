package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	mostOpen = 1_000 // changes or quarantines that are open, of all tables
	mostPast = 100   // of one table
)

const selectSchemaChanges = `
select c.id, t.source, t.name, c.found_at, c.at::text, coalesce(c.before::text, 'null'), coalesce(c.after::text, 'null'),
	c.changes::text, c.evidence::text, c.state, c.since, c.applied_at,
	coalesce(d.at, 'epoch'), coalesce(d.verdict, ''), coalesce(d.rule, ''), coalesce(d.judged::text, 'null'), d.input::text,
	coalesce(d.actor, ''), coalesce(d.reason, ''), coalesce(d.mappings::text, 'null')
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
		if out.Decisions == nil {
			return nil
		}
		rows, err = tx.Query(ctx, `select at, verdict, rule, coalesce(judged::text, 'null'), input::text, actor, reason, coalesce(mappings::text, 'null')
			from lakeweir.schema_decisions where change_id = $1 order by id`, id)
		if err != nil {
			return fmt.Errorf("read the decisions on schema change %d: %w", id, err)
		}
		out.Decisions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (SchemaDecision, error) {
			var d decisionRow
			if err := row.Scan(d.into()...); err != nil {
				return SchemaDecision{}, err
			}
			return d.decision()
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

func scanSchemaChange(row pgx.CollectableRow) (c SchemaChange, err error) {
	var place, before, after, changes, evidence string
	var applied *time.Time
	var d decisionRow
	err = row.Scan(append([]any{
		&c.ID, &c.Source, &c.Table, &c.FoundAt, &place, &before, &after, &changes, &evidence, &c.State, &c.Since, &applied,
	}, d.into()...)...)
	if err != nil {
		return c, err
	}
	c.AppliedAt = at(applied)
	err = unmarshal(docInto{place, &c.At}, docInto{before, &c.Before}, docInto{after, &c.After}, docInto{changes, &c.Changes}, docInto{evidence, &c.Evidence})
	if err == nil && d.Verdict != "" {
		c.Decisions = make([]SchemaDecision, 1)
		c.Decisions[0], err = d.decision()
	}
	if err != nil {
		return c, fmt.Errorf("read schema change %d: %w", c.ID, err)
	}
	return c, nil
}

// decisionRow is a SchemaDecision on its way from SQL.
type decisionRow struct {
	SchemaDecision

	judged, mappings string
	input            *string
}

func (d *decisionRow) into() []any {
	return []any{&d.At, &d.Verdict, &d.Rule, &d.judged, &d.input, &d.Actor, &d.Reason, &d.mappings}
}

func (d *decisionRow) decision() (SchemaDecision, error) {
	if d.input != nil {
		d.Input = json.RawMessage(*d.input)
	}
	err := unmarshal(docInto{d.judged, &d.Judged}, docInto{d.mappings, &d.Mappings})
	return d.SchemaDecision, err
}

// docInto is a document, and where it goes.
type docInto struct {
	text string
	into any
}

func unmarshal(docs ...docInto) error {
	for _, d := range docs {
		if err := json.Unmarshal([]byte(d.text), d.into); err != nil {
			return err
		}
	}
	return nil
}
