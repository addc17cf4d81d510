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
	const (
		notFinite  = "`NaN`"
		infinite   = "`infinity`, `-infinity`"
		dimensions = "arrays of several dimensions or that do not start at 1; arrays with an element that does not fit"
	)
	return []Entry{
		{Source: "boolean", Sample: base("bool")},
		{Source: "smallint", Sample: base("int2")},
		{Source: "integer", Sample: base("int4")},
		{Source: "bigint", Sample: base("int8")},
		{Source: "real", Sample: base("float4"), Note: "`NaN`, the infinities and `-0` are kept"},
		{Source: "double precision", Sample: base("float8"), Note: "the same"},
		{Source: "numeric(12,2)", Sample: numeric(12, 2), Unfit: notFinite, Note: "any precision up to 38"},
		{Source: "numeric(5,-2)", Sample: numeric(5, -2), Unfit: notFinite, Note: "a negative scale adds digits"},
		{Source: "numeric(3,5)", Sample: numeric(3, 5), Unfit: notFinite, Note: "a scale above the precision becomes the precision"},
		{Source: "numeric", Sample: base("numeric"), Note: "no bound is declared, so the exact text is kept, `NaN` and infinities too"},
		{Source: "numeric(40,2)", Sample: numeric(40, 2), Note: "Iceberg's decimal ends at 38 digits"},
		{Source: "text, varchar, name, citext", Sample: base("text")},
		{Source: "char(n)", Sample: base("bpchar"), Note: "padded with spaces, as the server prints it"},
		{Source: "date", Sample: base("date"), Unfit: infinite, Note: "from 4713 BC to 5874897 AD"},
		{Source: "time", Sample: base("time"), Unfit: "`24:00:00`"},
		{Source: "timestamp", Sample: base("timestamp"), Unfit: infinite + ", after 294247-01-10 04:00:54", Note: "microseconds, no zone"},
		{Source: "timestamp with time zone", Sample: base("timestamptz"), Unfit: infinite + ", after 294247-01-10 04:00:54", Note: "microseconds, UTC"},
		{Source: "interval", Sample: base("interval"), Note: "in the `postgres` style: `1 mon 2 days 03:04:05`"},
		{Source: "time with time zone", Sample: base("timetz")},
		{Source: "uuid", Sample: base("uuid")},
		{Source: "json, jsonb", Sample: base("jsonb"), Note: "json byte by byte; jsonb as the server prints it"},
		{Source: "bytea", Sample: base("bytea")},
		{Source: "an enum", Sample: base("enum"), Note: "the label"},
		{Source: "a domain", Note: "as the type it is over"},
		{Source: "integer[]", Sample: array(base("int4")), Unfit: dimensions, Note: "NULL elements are kept"},
		{Source: "numeric(12,2)[]", Sample: array(numeric(12, 2)), Unfit: dimensions},
		{Source: "text[]", Sample: array(base("text")), Unfit: dimensions},
		{Source: "an array of any other type", Sample: array(base("inet")), Unfit: dimensions, Note: "each element as the server prints it"},
		{Source: "box[]", Sample: array(base("box")), Note: "its elements are parted by semicolons"},
		{Source: "money, inet, cidr, macaddr, bit, xml, tsvector, point and the like, ranges, composites, oid, anything else", Sample: base("inet"), Note: "as the server prints it"},
	}
}

// Markdown returns the documentation's page of types.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Types

What each Postgres type is in the lake. The table is generated from the code (` + "`go test ./catalog/typemap -update`" + `).

A value either fits exactly, or it is kept as the text the server prints, or it is NULL, counted
(` + "`unfit`" + ` in batches and reconciliations) and never silently changed. The snapshot and the stream give the same
value for the same row. Text is what the server prints with DateStyle ISO, IntervalStyle postgres, TimeZone UTC,
bytea_output hex and the shortest exact form of floats. Text that is not UTF-8 (from a database in SQL_ASCII) is NULL and
counted.

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
A tokenized or redacted column is ` + "`string`" + `, whatever its type at the source.
`)
	return b.String()
}
