package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// SchemaView is one version of a table's columns, with when it was first seen.
type SchemaView struct {
	Schema *catalog.Schema
	SeenAt time.Time
}

// schemaDoc is a schema as it is stored; its form is part of the database's.
type schemaDoc struct {
	Columns []columnDoc `json:"columns"`
	Key     []int       `json:"key"`
	// Schemas that were stored before definitions were known have neither.
	Definition *catalog.Definition `json:"definition,omitempty"`
	At         *catalog.Place      `json:"at,omitempty"`
}

type columnDoc struct {
	Name     string             `json:"name"`
	Number   int                `json:"number"`
	Source   catalog.SourceType `json:"source"`
	Type     typeDoc            `json:"type"`
	Nullable bool               `json:"nullable"`
	// Schemas that were stored before columns could be dropped or renamed have neither.
	Dropped bool     `json:"dropped,omitempty"`
	Was     []string `json:"was,omitempty"`
}

type typeDoc struct {
	Kind      string   `json:"kind"`
	Precision int      `json:"precision,omitempty"`
	Scale     int      `json:"scale,omitempty"`
	Elem      *typeDoc `json:"elem,omitempty"`
}

// RecordSchema keeps the table's columns and returns them with their version: the
// newest known when they are the same in every respect, else one more. The schema
// that was passed is not changed. It fails with table.not_found when SyncConfig does
// not know the table.
func (r *Registry) RecordSchema(ctx context.Context, source, table string, schema *catalog.Schema) (*catalog.Schema, error) {
	out := *schema
	err := r.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		id, err := lockTable(ctx, tx, source, table)
		if err != nil {
			return err
		}
		doc := docOf(schema)
		var version int
		var stored string
		var old schemaDoc
		err = tx.QueryRow(ctx, `select version, columns::text from lakeweir.column_schemas where table_id = $1 order by version desc limit 1`, id).
			Scan(&version, &stored)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return fmt.Errorf("read the schema of %s/%s: %w", source, table, err)
		default:
			same, err := sameJSON([]byte(stored), doc)
			if err != nil {
				return fmt.Errorf("compare the schema of %s/%s: %w", source, table, err)
			}
			if same {
				out.Version = version
				return nil
			}
			if err := json.Unmarshal([]byte(stored), &old); err != nil {
				return fmt.Errorf("read the schema of %s/%s: %w", source, table, err)
			}
		}
		out.Version = version + 1
		if _, err := tx.Exec(ctx, `insert into lakeweir.column_schemas (table_id, version, columns) values ($1, $2, $3)`, id, out.Version, doc); err != nil {
			return fmt.Errorf("store the schema of %s/%s: %w", source, table, err)
		}
		return addEvent(ctx, tx, id, SchemaVersion, difference(&old, &doc, out.Version))
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// Schema returns the newest columns known of the table, or nil when there are none.
func (r *Registry) Schema(ctx context.Context, source, table string) (*catalog.Schema, error) {
	var version int
	var stored string
	err := r.query(ctx, `select s.version, s.columns::text from lakeweir.column_schemas s join lakeweir.tables t on t.id = s.table_id
		where t.source = $1 and t.name = $2 order by s.version desc limit 1`, []any{source, table}, &version, &stored)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readSchema(version, stored)
}

func readSchema(version int, stored string) (*catalog.Schema, error) {
	var doc schemaDoc
	if err := json.Unmarshal([]byte(stored), &doc); err != nil {
		return nil, fmt.Errorf("read schema version %d: %w", version, err)
	}
	s := &catalog.Schema{Version: version, Key: doc.Key, Definition: doc.Definition}
	if doc.At != nil {
		s.At = *doc.At
	}
	for _, c := range doc.Columns {
		t, err := c.Type.value()
		if err != nil {
			return nil, fmt.Errorf("read schema version %d, column %s: %w", version, c.Name, err)
		}
		s.Columns = append(s.Columns, catalog.Column{Name: c.Name, Number: c.Number, Source: c.Source, Type: t, Nullable: c.Nullable, Dropped: c.Dropped, Was: c.Was})
	}
	return s, nil
}

func docOf(s *catalog.Schema) schemaDoc {
	d := schemaDoc{Columns: []columnDoc{}, Key: slices.Clone(s.Key), Definition: s.Definition}
	if !s.At.IsZero() {
		d.At = &s.At
	}
	if d.Key == nil {
		d.Key = []int{}
	}
	for _, c := range s.Columns {
		d.Columns = append(d.Columns, columnDoc{Name: c.Name, Number: c.Number, Source: c.Source, Type: typeDocOf(c.Type), Nullable: c.Nullable, Dropped: c.Dropped, Was: c.Was})
	}
	return d
}

func typeDocOf(t catalog.Type) typeDoc {
	d := typeDoc{Precision: t.Precision, Scale: t.Scale}
	switch t.Kind { //nolint:exhaustive // the others are named as they print
	case catalog.Decimal:
		d.Kind = "decimal"
	case catalog.List:
		d.Kind = "list"
	default:
		d.Kind = catalog.Type{Kind: t.Kind}.String()
	}
	if t.Elem != nil {
		e := typeDocOf(*t.Elem)
		d.Elem = &e
	}
	return d
}

func (d typeDoc) value() (catalog.Type, error) {
	t := catalog.Type{Precision: d.Precision, Scale: d.Scale}
	for k := catalog.Text; k <= catalog.List; k++ {
		if typeDocOf(catalog.Type{Kind: k}).Kind == d.Kind {
			t.Kind = k
		}
	}
	if t.Kind == 0 {
		return t, fmt.Errorf("unknown type %q", d.Kind)
	}
	if d.Elem != nil {
		e, err := d.Elem.value()
		if err != nil {
			return t, err
		}
		t.Elem = &e
	}
	return t, nil
}

// difference says for the event which columns a new version added, dropped and
// changed, by name.
func difference(old, doc *schemaDoc, version int) map[string]any {
	byName := map[string]columnDoc{}
	for _, c := range old.Columns {
		byName[c.Name] = c
	}
	var added, dropped, changed []string
	for _, c := range doc.Columns {
		was, ok := byName[c.Name]
		delete(byName, c.Name)
		switch {
		case version == 1:
		case !ok:
			added = append(added, c.Name)
		case was.Source.Name != c.Source.Name || was.Nullable != c.Nullable || was.Number != c.Number:
			changed = append(changed, c.Name)
		}
	}
	for _, c := range old.Columns {
		if _, gone := byName[c.Name]; gone {
			dropped = append(dropped, c.Name)
		}
	}
	out := map[string]any{"version": version, "columns": len(doc.Columns)}
	for word, names := range map[string][]string{"added": added, "dropped": dropped, "changed": changed} {
		if len(names) > 0 {
			out[word] = names
		}
	}
	return out
}

func noTable(source, table string) *catalog.Error {
	return catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "lakeweir get tables lists those it knows",
		"the registry knows no table %s/%s", source, table)
}
