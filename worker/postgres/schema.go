package postgres

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// querier is a pool or a connection of ordinary SQL.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// attribute is a column as the catalog describes it.
type attribute struct {
	wireColumn
	number    int
	notNull   bool
	generated bool
	spelled   bool // its collation holds different texts equal
	dims      int  // of an array, as declared
}

const attributesSQL = `SELECT attrelid, attname::text, attnum::int, atttypid, atttypmod, attnotnull, attgenerated <> '',
 coalesce((SELECT NOT collisdeterministic FROM pg_collation c WHERE c.oid = attcollation), false), attndims::int
FROM pg_attribute WHERE attrelid = ANY($1::oid[]) AND attnum > 0 AND NOT attisdropped ORDER BY attrelid, attnum`

// targets are the scan targets of attributesSQL behind the table.
func (a *attribute) targets() []any {
	return []any{&a.name, &a.number, &a.oid, &a.modifier, &a.notNull, &a.generated, &a.spelled, &a.dims}
}

func readAttributes(ctx context.Context, q querier, oid uint32) ([]attribute, error) {
	rows, err := q.Query(ctx, attributesSQL, []uint32{oid})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (attribute, error) {
		var a attribute
		var table uint32
		err := row.Scan(append([]any{&table}, a.targets()...)...)
		return a, err
	})
}

// typeRow is what pg_type says of a type.
type typeRow struct {
	oid, base, elem uint32
	baseModifier    int32
	dims            int // of a domain over an array, as declared
	name, schema    string
	kind            string
}

// typeSQL looks through domains and arrays. An array type is one that its element
// names as its array; oidvector and its like are not. Nor is one whose elements are
// not parted by commas (box, and types of extensions): the lake has its text.
const typeSQL = `WITH RECURSIVE need(oid) AS (
  SELECT DISTINCT u.oid FROM unnest($1::oid[]) u(oid)
  UNION
  SELECT u.oid FROM need n JOIN pg_type t ON t.oid = n.oid, LATERAL (VALUES (t.typbasetype), (t.typelem)) u(oid) WHERE u.oid <> 0)
SELECT t.oid, t.typbasetype, CASE WHEN e.typarray = t.oid AND e.typdelim = ',' THEN t.typelem ELSE 0 END, t.typtypmod, t.typname, s.nspname, t.typtype::text, t.typndims
FROM need n JOIN pg_type t ON t.oid = n.oid JOIN pg_namespace s ON s.oid = t.typnamespace LEFT JOIN pg_type e ON e.oid = t.typelem`

const formatSQL = `SELECT format_type(o, m) FROM unnest($1::oid[], $2::int4[]) WITH ORDINALITY u(o, m, n) ORDER BY n`

// columnType is a column's type, and how a result describes it.
type columnType struct {
	source catalog.SourceType
	field  wireColumn
}

// readTypes describes the type of each column, in order.
func readTypes(ctx context.Context, q querier, columns []wireColumn) ([]columnType, error) {
	oids, modifiers := make([]uint32, len(columns)), make([]int32, len(columns))
	for i, c := range columns {
		oids[i], modifiers[i] = c.oid, c.modifier
	}
	rows, err := q.Query(ctx, typeSQL, oids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t typeRow, err error) {
		err = row.Scan(&t.oid, &t.base, &t.elem, &t.baseModifier, &t.name, &t.schema, &t.kind, &t.dims)
		return t, err
	})
	if err != nil {
		return nil, err
	}
	types := maps.Collect(func(yield func(uint32, typeRow) bool) {
		for _, t := range list {
			if !yield(t.oid, t) {
				return
			}
		}
	})
	rows, err = q.Query(ctx, formatSQL, oids, modifiers)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	out := make([]columnType, len(columns))
	for i, c := range columns {
		out[i] = columnType{source: sourceType(types, c.oid, c.modifier, 0), field: c}
		out[i].source.Name = names[i]
		out[i].field.modifier = out[i].source.Modifier
		for t := types[c.oid]; t.kind == "d"; t = types[t.base] {
			out[i].field.oid = t.base
		}
	}
	return out, nil
}

// sourceType describes one type from the rows of typeSQL. A type that is gone
// counts as one that Lakeweir has no type for.
func sourceType(types map[uint32]typeRow, oid uint32, modifier int32, depth int) catalog.SourceType {
	t, ok := types[oid]
	if !ok || depth > 8 {
		name := "type " + strconv.FormatUint(uint64(oid), 10)
		return catalog.SourceType{Name: name, Base: name, OID: oid, Modifier: modifier}
	}
	s := catalog.SourceType{Name: t.name, OID: oid, Modifier: modifier}
	if t.schema != "pg_catalog" {
		s.Name = t.schema + "." + t.name
	}
	switch {
	case t.kind == "d":
		inner := sourceType(types, t.base, t.baseModifier, depth+1)
		s.Base, s.Modifier, s.Elem, s.Dims = inner.Base, inner.Modifier, inner.Elem, max(inner.Dims, t.dims)
	case t.elem != 0:
		elem := sourceType(types, t.elem, -1, depth+1)
		s.Base, s.Elem = "array", &elem
	case t.kind == "e":
		s.Base = "enum"
	case t.kind == "c":
		s.Base = "composite"
	case t.kind == "r":
		s.Base = "range"
	case t.kind == "m":
		s.Base = "multirange"
	default:
		s.Base = s.Name
	}
	return s
}

// buildSchema turns columns with their types into a schema; attributes give what
// the stream does not tell.
func buildSchema(table *catalog.Table, types []columnType, attributes []attribute) (*catalog.Schema, error) {
	schema := columnsOf(types, attributes)
	for _, name := range table.PrimaryKey {
		i := schema.Index(name)
		if i < 0 {
			return nil, catalog.Errorf(catalog.Invalid, catalog.CodeSourceColumn, "name a column of the table under primary_key",
				"table %s has no column %q", table.Name, name)
		}
		schema.Key = append(schema.Key, i)
	}
	return schema, nil
}

// columnsOf is buildSchema without the key.
func columnsOf(types []columnType, attributes []attribute) *catalog.Schema {
	schema := &catalog.Schema{Columns: make([]catalog.Column, len(types))}
	for i, t := range types {
		column := catalog.Column{Name: t.field.name, Source: t.source, Nullable: true}
		if j := slices.IndexFunc(attributes, func(a attribute) bool { return a.name == column.Name }); j >= 0 {
			column.Number, column.Nullable = attributes[j].number, !attributes[j].notNull
			column.Source.Dims = max(column.Source.Dims, attributes[j].dims)
		}
		column.Type = typemap.Postgres(column.Source)
		schema.Columns[i] = column
	}
	return schema
}
