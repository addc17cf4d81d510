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

// ChangeState is how far a schema change has come.
type ChangeState string

// The states. What is pending, held or quarantined waits for a word; what is evolving
// or approved waits for the worker; a table whose change was rejected goes on when its
// source has changed back.
const (
	ChangePending     ChangeState = "pending"     // found; nobody has judged it
	ChangeEvolving    ChangeState = "evolving"    // the policies let the lake follow
	ChangeHeld        ChangeState = "held"        // a person is to approve it
	ChangeQuarantined ChangeState = "quarantined" // the policies say no
	ChangeApproved    ChangeState = "approved"    // a person lets the lake follow
	ChangeRejected    ChangeState = "rejected"    // a person says no
	ChangeApplied     ChangeState = "applied"     // the lake has followed
	ChangeSuperseded  ChangeState = "superseded"  // the source has changed again, or back
)

// Ended reports whether nothing happens any more to a change in this state.
func (s ChangeState) Ended() bool { return s == ChangeApplied || s == ChangeSuperseded }

// Allowed reports whether the lake is to follow a change in this state.
func (s ChangeState) Allowed() bool { return s == ChangeEvolving || s == ChangeApproved }

// SchemaChange is what changed of a table at its source, at one place of its log. The
// lake follows all of it or none.
type SchemaChange struct {
	ID      int64  // set by RecordSchemaChange
	Source  string // set by reads
	Table   string // catalog.TableName.String()
	FoundAt time.Time
	// At is the place of the first change of a row that may be of the new shape.
	At catalog.Place
	// Before is nil when it is not known, After when the table is gone.
	Before, After *catalog.Definition
	Changes       []catalog.SchemaChange
	Evidence      Evidence
	State         ChangeState
	Since         time.Time        // of the state
	AppliedAt     time.Time        // zero until the lake has followed
	Decisions     []SchemaDecision // the oldest first; lists have the newest alone
}

// Evidence says what shows a change or a fault. It has no place for a value of a row.
type Evidence struct {
	FoundBy string         `json:"foundBy,omitempty"` // the means, such as relation, ddl_log or envelope
	Columns []string       `json:"columns,omitempty"` // concerned
	Places  []string       `json:"places,omitempty"`  // as catalog.Place prints them
	Codes   []catalog.Code `json:"codes,omitempty"`
}

// RecordSchemaChange keeps a change that was found, as pending, and returns it as it is
// kept. One that leads to the same definition and was found at the same place before is
// returned as it is by now, unless it was superseded: a worker that starts again learns
// what was decided. Another open one at that place is superseded. It is durable when it
// returns, and fails with table.not_found when the registry does not know the table.
func (r *Registry) RecordSchemaChange(ctx context.Context, source string, c SchemaChange) (*SchemaChange, error) {
	if c.Changes == nil {
		c.Changes = []catalog.SchemaChange{}
	}
	docs, err := texts(c.At, c.Changes, c.Evidence)
	if err != nil {
		return nil, err
	}
	before, err := textUnlessNil(c.Before)
	if err != nil {
		return nil, err
	}
	after, err := textUnlessNil(c.After)
	if err != nil {
		return nil, err
	}
	err = r.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		table, err := lockTable(ctx, tx, source, c.Table)
		if err != nil {
			return err
		}
		known, err := knownAt(ctx, tx, table, c.At.String(), c.After)
		if err != nil || known != 0 {
			c.ID = known
			return err
		}
		err = tx.QueryRow(ctx, `insert into lakeweir.schema_changes (table_id, place, at, before, after, changes, evidence)
			values ($1, $2, $3::text::jsonb, $4::text::jsonb, $5::text::jsonb, $6::text::jsonb, $7::text::jsonb) returning id`,
			table, c.At.String(), docs[0], before, after, docs[1], docs[2]).Scan(&c.ID)
		if err != nil {
			return fmt.Errorf("keep a schema change of %s/%s: %w", source, c.Table, err)
		}
		lines := make([]string, len(c.Changes))
		for i := range c.Changes {
			lines[i] = c.Changes[i].String()
		}
		return addEvent(ctx, tx, table, SchemaChanged, map[string]any{"id": c.ID, "to": ChangePending, "changes": lines})
	})
	if err != nil {
		return nil, err
	}
	return r.SchemaChange(ctx, c.ID)
}

// knownAt returns the change of a table that was found at a place and leads to the
// definition, 0 when there is none; open ones that lead elsewhere are superseded.
func knownAt(ctx context.Context, tx pgx.Tx, table int64, place string, after *catalog.Definition) (known int64, err error) {
	rows, err := tx.Query(ctx, `select id, state, coalesce(after::text, 'null') from lakeweir.schema_changes
		where table_id = $1 and place = $2 and state <> 'superseded' order by id desc`, table, place)
	if err != nil {
		return 0, fmt.Errorf("look for the schema change: %w", err)
	}
	type found struct {
		id    int64
		state ChangeState
		after string
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		return f, row.Scan(&f.id, &f.state, &f.after)
	})
	if err != nil {
		return 0, fmt.Errorf("look for the schema change: %w", err)
	}
	for _, f := range all {
		same, err := sameJSON([]byte(f.after), after)
		if err != nil {
			return 0, err
		}
		switch {
		case same:
			return f.id, nil
		case !f.state.Ended():
			if err := supersede(ctx, tx, f.id, table, f.state, "another change was found at its place"); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// MarkSchemaApplied says that the lake has followed a change that it was allowed to. It
// may be repeated, and fails with schema_change.state when the change is not, or no
// longer, allowed.
func (r *Registry) MarkSchemaApplied(ctx context.Context, id int64) error {
	return r.changeState(ctx, id, func(ctx context.Context, tx pgx.Tx, c *changeHead) error {
		switch {
		case c.state == ChangeApplied:
			return nil
		case !c.state.Allowed():
			return c.refuse("be applied")
		}
		if _, err := tx.Exec(ctx, `update lakeweir.schema_changes set state = 'applied', since = now(), applied_at = now() where id = $1`, id); err != nil {
			return fmt.Errorf("mark schema change %d as applied: %w", id, err)
		}
		return addEvent(ctx, tx, c.table, SchemaChanged, map[string]any{"id": id, "from": c.state, "to": ChangeApplied})
	})
}

// SupersedeSchemaChange ends a change that the source has made pointless. It may be
// repeated, and fails with schema_change.state when the change was applied.
func (r *Registry) SupersedeSchemaChange(ctx context.Context, id int64, reason string) error {
	return r.changeState(ctx, id, func(ctx context.Context, tx pgx.Tx, c *changeHead) error {
		switch c.state { //nolint:exhaustive // the others are open
		case ChangeSuperseded:
			return nil
		case ChangeApplied:
			return c.refuse("be superseded")
		}
		return supersede(ctx, tx, id, c.table, c.state, reason)
	})
}

func supersede(ctx context.Context, tx pgx.Tx, id, table int64, from ChangeState, reason string) error {
	if _, err := tx.Exec(ctx, `update lakeweir.schema_changes set state = 'superseded', since = now() where id = $1`, id); err != nil {
		return fmt.Errorf("supersede schema change %d: %w", id, err)
	}
	return addEvent(ctx, tx, table, SchemaChanged, map[string]any{"id": id, "from": from, "to": ChangeSuperseded, "message": storable(reason)})
}

// changeHead is what a step depends on.
type changeHead struct {
	id, table int64
	name      string
	state     ChangeState
}

func (c *changeHead) refuse(what string) error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeSchemaChangeState, "look at it again: lakeweir schema show",
		"schema change %d of %s is %s and cannot %s", c.id, c.name, c.state, what)
}

// changeState runs do with a change locked, in one durable transaction.
func (r *Registry) changeState(ctx context.Context, id int64, do func(ctx context.Context, tx pgx.Tx, c *changeHead) error) error {
	return r.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c := changeHead{id: id}
		err := tx.QueryRow(ctx, `select c.table_id, t.source || '/' || t.name, c.state from lakeweir.schema_changes c
			join lakeweir.tables t on t.id = c.table_id where c.id = $1 for update of c`, id).Scan(&c.table, &c.name, &c.state)
		if errors.Is(err, pgx.ErrNoRows) {
			return noSchemaChange(id)
		}
		if err != nil {
			return fmt.Errorf("find schema change %d: %w", id, err)
		}
		return do(ctx, tx, &c)
	})
}

func noSchemaChange(id int64) error {
	return catalog.Errorf(catalog.NotFound, catalog.CodeNoSchemaChange, "lakeweir schema list shows those it knows",
		"the registry knows no schema change %d", id)
}

// texts writes values as JSON texts, for parameters that are cast to jsonb.
func texts(values ...any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out[i] = string(b)
	}
	return out, nil
}

func textUnlessNil[T any](v *T) (*string, error) {
	if v == nil {
		return nil, nil //nolint:nilnil // NULL
	}
	doc, err := texts(v)
	if err != nil {
		return nil, err
	}
	return &doc[0], nil
}
