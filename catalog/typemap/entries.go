package typemap

import (
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Entry is one line of the documented table.
type Entry struct {
	Source string             // as people write it
	Sample catalog.SourceType // what the lake type is computed from
	Unfit  string             // the legal values that become NULL and are counted; empty: none
	Note   string
}

// Entries lists the Postgres types with a lake type of their own, and some of
// those that become text, in the order of the documentation.
func Entries() []Entry {
	base := func(name string) catalog.SourceType { return catalog.SourceType{Base: name, Modifier: -1} }
	numeric := func(precision, scale int32) catalog.SourceType {
		return catalog.SourceType{Base: "numeric", Modifier: precision<<16 | scale&0x7ff + 4}
	}
	array := func(elem catalog.SourceType) catalog.SourceType {
		return catalog.SourceType{Base: "array", Modifier: -1, Elem: &elem}
	}
	declared := func(elem catalog.SourceType, dims int) catalog.SourceType {
		return catalog.SourceType{Base: "array", Modifier: -1, Elem: &elem, Dims: dims}
	}
	const (
		notFinite  = "`NaN`"
		infinite   = "`infinity`, `-infinity`"
		dimensions = "arrays of several dimensions or that do not start at 1; arrays with an element that does not fit"
		asPrinted  = "as the server prints it"
	)
	return []Entry{
		{Source: "boolean", Sample: base("bool")},
		{Source: "smallint", Sample: base("int2")},
		{Source: "integer", Sample: base("int4")},
		{Source: "bigint", Sample: base("int8")},
		{Source: "real", Sample: base("float4"), Note: "bit for bit: `NaN`, the infinities, `-0` and subnormals are kept"},
		{Source: "double precision", Sample: base("float8"), Note: "the same"},
		{Source: "numeric(12,2)", Sample: numeric(12, 2), Unfit: notFinite, Note: "any precision up to 38"},
		{Source: "numeric(5,-2)", Sample: numeric(5, -2), Unfit: notFinite, Note: "a negative scale adds digits"},
		{Source: "numeric(3,5)", Sample: numeric(3, 5), Unfit: notFinite, Note: "a scale above the precision becomes the precision"},
		{Source: "numeric", Sample: base("numeric"), Note: "no bound is declared, so the exact text is kept, `NaN` and infinities too"},
		{Source: "numeric(40,2)", Sample: numeric(40, 2), Note: "Iceberg's decimal ends at 38 digits"},
		{Source: "money", Sample: base("money"), Note: asPrinted + ", in the format of the database's `lc_monetary`"},
		{Source: `text, varchar(n), name, "char", citext`, Sample: base("text")},
		{Source: "char(n)", Sample: base("bpchar"), Note: "padded with spaces, as the server prints it"},
		{Source: "date", Sample: base("date"), Unfit: infinite, Note: "from 4714-11-24 BC to 5874897 AD, proleptic Gregorian"},
		{Source: "time", Sample: base("time"), Unfit: "`24:00:00`", Note: "microseconds; Spark refuses tables with a column of this type"},
		{Source: "timestamp", Sample: base("timestamp"), Unfit: infinite + ", after 294247-01-10 04:00:54.775807", Note: "microseconds, no zone; from 4714-11-24 BC"},
		{Source: "timestamp with time zone", Sample: base("timestamptz"), Unfit: infinite + ", after 294247-01-10 04:00:54.775807", Note: "microseconds, UTC"},
		{Source: "time with time zone", Sample: base("timetz"), Note: "`24:00:00-15:59`"},
		{Source: "interval, with or without fields", Sample: base("interval"), Note: "in the `postgres` style: `1 mon -2 days +03:04:05`"},
		{Source: "uuid", Sample: base("uuid")},
		{Source: "json", Sample: base("json"), Note: "byte by byte"},
		{Source: "jsonb, jsonpath, xml", Sample: base("jsonb"), Note: asPrinted},
		{Source: "bytea", Sample: base("bytea")},
		{Source: "bit(n), bit varying", Sample: base("bit"), Note: "the digits: `0101`"},
		{Source: "inet, cidr, macaddr, macaddr8", Sample: base("inet"), Note: asPrinted},
		{Source: "point, line, lseg, box, path, polygon, circle", Sample: base("point"), Note: asPrinted},
		{Source: "tsvector, tsquery", Sample: base("tsvector"), Note: asPrinted},
		{Source: "ranges and multiranges, also made ones", Sample: base("range"), Note: asPrinted + ": `[2026-01-01,2026-02-01)`, `empty`"},
		{Source: "oid, xid, xid8, cid, tid, pg_lsn, pg_snapshot, int2vector, oidvector, aclitem", Sample: base("oid"), Note: asPrinted},
		{Source: "regclass, regtype and the like", Sample: base("regclass"), Note: "the name that the object has when the value is read, or its number when it is gone"},
		{Source: "an enum", Sample: base("enum"), Note: "the label that the value has when it is read"},
		{Source: "a composite", Sample: base("composite"), Note: asPrinted + ": `(1,\"x y\",)`"},
		{Source: "hstore, ltree, cube and other extensions' types", Sample: base("hstore"), Note: asPrinted},
		{Source: "a domain", Note: "as the type it is over, also when that is a domain or an array"},
		{Source: "integer[]", Sample: array(base("int4")), Unfit: dimensions, Note: "NULL elements are kept; `[1:2]={3,4}` is `{3,4}`"},
		{Source: "numeric(12,2)[]", Sample: array(numeric(12, 2)), Unfit: dimensions},
		{Source: "text[]", Sample: array(base("text")), Unfit: dimensions},
		{Source: "an array of any other type", Sample: array(base("inet")), Unfit: dimensions, Note: "each element as its type is above, else as the server prints it"},
		{Source: "integer[][] and what else is declared with several dimensions", Sample: declared(base("int4"), 2), Note: "whatever it holds, as the server prints it: `{{1,2},{3,4}}`, `[0:1]={1,2}`"},
		{Source: "box[], and arrays of types whose elements are not parted by commas", Sample: array(base("box")), Note: asPrinted},
		{Source: "anything else", Sample: base("a type of tomorrow"), Note: asPrinted},
	}
}

// Markdown returns the documentation's page of types.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Types

What each Postgres type is in the lake. The table is generated from the code (` + "`go test ./catalog/typemap -update`" + `).

A value either fits exactly, or it is kept as the text the server prints, or it is NULL, counted
(` + "`unfit`" + ` in batches and reconciliations, ` + "`_unfit_columns`" + ` in bronze) and never silently changed. The
snapshot and the stream give the same value for the same row. Text is what the type's output function prints
with DateStyle ISO, IntervalStyle postgres, TimeZone UTC, bytea_output hex and the shortest exact form of floats.
Text that is not UTF-8 (from a database in SQL_ASCII) is NULL and counted. From a database in any other encoding the
server converts; a character that it cannot convert to UTF-8 it refuses to send, and the source waits there.

| Postgres | Iceberg | NULL and counted | Note |
| --- | --- | --- | --- |
`)
	for _, e := range Entries() {
		lake := "as its base"
		if e.Sample.Base != "" {
			lake = "`" + Postgres(e.Sample).String() + "`"
		}
		b.WriteString("| " + strings.Join([]string{e.Source, lake, e.Unfit, e.Note}, " | ") + " |\n")
	}
	b.WriteString(`
Generated columns are left out, since Postgres does not send them (from version 18 on it does when the
publication says so). ` + "`lakeweir run --check`" + ` names them.
Postgres 18 refuses updates of a published table that has one under REPLICA IDENTITY FULL; the check says so
and keeps such a table out of the publication.

A tokenized or redacted column is ` + "`string`" + `, whatever its type at the source.

## To know

- Postgres notes how many dimensions an array column is declared with and does not enforce it. A column that is
  declared ` + "`integer[]`" + ` and holds ` + "`{{1,2},{3,4}}`" + ` is NULL there, counted. pg_dump and pg_upgrade forget
  the declaration: afterwards the column is ` + "`list<int>`" + `, another type, and the table stops.
- The text of enums and of regclass and the like depends on the catalog, not on the row alone. Renaming a label
  or a table changes what the source shows for old rows without a change of those rows; the lake keeps the old
  name, and reconciliation reports those rows. So does ` + "`lc_monetary`" + ` for money.
- History opens no version for a change between two values that both have no place: both are NULL.

## What readers show

` + "`make e2e`" + ` reads all three layers, in both format versions, with every type above and its odd values, by PyIceberg
and by Spark, and compares each value with what the source says. They see every value as written. But:

- Spark has no ` + "`time`" + ` and refuses to read a table that has a column of that type, also inside a list.
- PyIceberg finds no row of a ` + "`float`" + ` column by ` + "`= inf`" + `; every other value is found by filters.
- Spark shows ` + "`uuid`" + ` as a string, ` + "`timestamp`" + ` as TIMESTAMP_NTZ, ` + "`timestamptz`" + ` in the session's zone.
- Python's ` + "`date`" + ` and ` + "`datetime`" + ` hold the years 1 to 9999, in Spark too: what is before or after has to be
  read as the integer underneath: ` + "`column.cast(\"int64\")`" + ` (` + "`int32`" + ` for dates) of the Arrow table that
  PyIceberg's ` + "`to_arrow()`" + ` and PySpark's ` + "`toArrow()`" + ` give.
`)
	return b.String()
}
