package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// NoteGap notes durably that changes are missing for a table of the generation. The
// note stays until a later generation is noted or ForgetGap is called: unlike the
// positions that prove the gap, nothing that other tables do overwrites it.
func (r *Registry) NoteGap(ctx context.Context, source, table string, generation uint32, fault Fault) error {
	var written int
	err := r.query(ctx, durable+`, put as (
		insert into lakeweir.table_gaps (table_id, generation, code, message, hint)
		select t.id, $3, $4, $5, $6 from durable, lakeweir.tables t where t.source = $1 and t.name = $2
		on conflict (table_id) do update set generation = excluded.generation, code = excluded.code, message = excluded.message,
			hint = excluded.hint, found_at = now() where excluded.generation > lakeweir.table_gaps.generation
		returning 1)
		select count(*) from put`,
		[]any{source, table, int64(generation), string(fault.Code), storable(fault.Message), storable(fault.Hint)}, &written)
	return err
}

// ReadGap returns the noted gap of a table and the generation that it is of; nil when
// there is none.
func (r *Registry) ReadGap(ctx context.Context, source, table string) (*Fault, uint32, error) {
	var f Fault
	var generation int64
	err := r.query(ctx, `select g.generation, g.code, g.message, g.hint from lakeweir.table_gaps g
		join lakeweir.tables t on t.id = g.table_id where t.source = $1 and t.name = $2`, []any{source, table},
		&generation, &f.Code, &f.Message, &f.Hint)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return &f, uint32(generation), nil
}

// ForgetGap removes the note of a table's gap, once the lake has nothing of the table
// that it could be a hole in.
func (r *Registry) ForgetGap(ctx context.Context, source, table string) error {
	return r.exec(ctx, `delete from lakeweir.table_gaps where table_id in
		(select id from lakeweir.tables where source = $1 and name = $2)`, source, table)
}

// ReadRelations returns the relations that the table's rows in the lake come from, as
// they were written last; nil when they never were.
func (r *Registry) ReadRelations(ctx context.Context, source, table string) ([]catalog.Relation, error) {
	var doc string
	err := r.query(ctx, `select g.relations::text from lakeweir.table_relations g
		join lakeweir.tables t on t.id = g.table_id where t.source = $1 and t.name = $2`, []any{source, table}, &doc)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := []catalog.Relation{}
	if err := json.Unmarshal([]byte(doc), &out); err != nil {
		return nil, fmt.Errorf("read the relations of table %s/%s: %w", source, table, err)
	}
	return out, nil
}

// WriteRelations replaces them. It is durable when it returns nil.
func (r *Registry) WriteRelations(ctx context.Context, source, table string, relations []catalog.Relation) error {
	doc, err := json.Marshal(relations)
	if err != nil {
		return err
	}
	var written int
	return r.query(ctx, durable+`, put as (
		insert into lakeweir.table_relations (table_id, relations)
		select t.id, $3::text::jsonb from durable, lakeweir.tables t where t.source = $1 and t.name = $2
		on conflict (table_id) do update set relations = excluded.relations, updated_at = now()
		returning 1)
		select count(*) from put`, []any{source, table, string(doc)}, &written)
}
