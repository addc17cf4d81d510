package torture

import (
	"fmt"
	"slices"
	"strings"
)

// Server is what a Postgres server can make.
type Server struct {
	Major      int
	Extensions []string // that can be installed
}

// Column is one column of a torture table.
type Column struct {
	Name string
	// Kind is what the column is of its type: c itself, a an array of it, d a domain, e a
	// domain over the array, f an array of the domain, g an array that is declared with
	// two dimensions.
	Kind   byte
	Type   string   // as Type.SQL
	SQL    string   // its declared type
	Lake   string   // its documented type in the lake
	Values []string // SQL expressions; NULL is one of them
}

// Table is one torture table. Its key is id. Row i of the first half and row
// Rows/2+i hold the same values, so that what the snapshot reads of the former can
// be compared with what the stream brings of the latter.
type Table struct {
	Name    string
	Columns []Column // but id
	Rows    int
	// Full says that the table has REPLICA IDENTITY FULL.
	Full bool
	// Generated is a column that Postgres computes; empty in most.
	Generated string
}

// Plan is everything to be made on one server.
type Plan struct {
	Setup  []string // statements that make the types
	Tables []Table
	Left   []string // what this server cannot have, and why
}

// perTable is about how many columns a table gets.
const perTable = 60

// New plans the tables for a server. Columns that are times of a day, or hold
// some, stand in tables of their own, called clock: Spark refuses such a table.
func New(s Server, limits Limits) Plan {
	var p Plan
	seen := map[string]bool{}
	var all, clocks []Column
	for i, t := range Types() {
		switch {
		case t.Since > s.Major:
			p.Left = append(p.Left, fmt.Sprintf("%s: needs Postgres %d", t.SQL, t.Since))
			continue
		case t.Extension != "" && !slices.Contains(s.Extensions, t.Extension):
			p.Left = append(p.Left, fmt.Sprintf("%s: the extension %s is not installed on the server", t.SQL, t.Extension))
			continue
		case t.Extension != "" && !seen[t.Extension]:
			seen[t.Extension] = true
			p.Setup = append(p.Setup, "CREATE EXTENSION "+t.Extension)
		}
		p.Left = append(p.Left, limits.reasons(t.SQL)...)
		if limits.kinds(t.SQL) == "*" {
			continue
		}
		if t.Setup != "" {
			p.Setup = append(p.Setup, t.Setup)
		}
		if len(t.Values) == 0 { // nothing but NULL fits
			continue
		}
		columns, setup := columnsOf(t, i, limits)
		p.Setup = append(p.Setup, setup...)
		if isClock(t) {
			clocks = append(clocks, columns...)
		} else {
			all = append(all, columns...)
		}
	}
	if s.Major < 17 {
		p.Left = append(p.Left, "infinite intervals: need Postgres 17")
	} else {
		for i := range all {
			if all[i].SQL == "interval" {
				all[i].Values = append(all[i].Values, "'infinity'::interval", "'-infinity'::interval")
			}
		}
	}
	// Columns with many values stand together, so that rows are not filled in vain.
	slices.SortStableFunc(all, func(a, b Column) int { return len(b.Values) - len(a.Values) })
	add := func(columns []Column, full bool) {
		for part := range slices.Chunk(columns, perTable) {
			p.Tables = append(p.Tables, newTable(fmt.Sprintf("torture_%d", len(p.Tables)+1), part, full || len(p.Tables)%2 == 0))
		}
	}
	either, full := limits.part(all)
	add(either, false)
	add(full, true)
	p.Tables[1].Generated = "doubled" // Postgres 18 does not take one under REPLICA IDENTITY FULL
	p.Tables = append(p.Tables, newTable("clock", clocks, true))
	return p
}

// isClock reports a type whose columns are times of a day, or hold some.
func isClock(t Type) bool {
	return strings.Contains(t.Lake, "time") && !strings.Contains(t.Lake, "timestamp")
}

func newTable(name string, columns []Column, full bool) Table {
	most := 0
	for _, c := range columns {
		most = max(most, len(c.Values))
	}
	return Table{Name: name, Columns: columns, Rows: 2 * most, Full: full}
}

// columnsOf makes a type's columns: itself, an array of it, a domain over it, a
// domain over the array, an array of the domain, and an array that is declared with
// two dimensions.
func columnsOf(t Type, n int, limits Limits) (columns []Column, setup []string) {
	without := limits.kinds(t.SQL)
	list := "list<" + t.Lake + ">"
	switch {
	case t.ArrayText:
		list = "string"
	case strings.HasPrefix(t.Lake, "list<"): // an array of a domain over an array
		list = "list<string>"
	}
	add := func(kind byte, typ, lake string) {
		if strings.IndexByte(without, kind) >= 0 {
			return
		}
		c := Column{Name: fmt.Sprintf("%c%d_%s", kind, n, slug(t.SQL)), Kind: kind, Type: t.SQL, SQL: typ, Lake: lake}
		t := t
		t.Values = limits.values(t, kind)
		switch {
		case kind == 'c' || kind == 'd':
			c.Values = scalarsOf(t)
		case limits.Whole != nil && limits.Whole(c):
			c.Values = arraysOf(t, quote(t.Values[0]))
		default:
			c.Values = arraysOf(t, "NULL")
		}
		if kind != 'c' && kind != 'a' {
			for i, v := range c.Values {
				c.Values[i] = "(" + v + ")::" + typ
			}
		}
		columns = append(columns, c)
	}
	dom, doms := fmt.Sprintf("dom%d", n), fmt.Sprintf("doms%d", n)
	if !strings.Contains(without, "d") || !strings.Contains(without, "f") {
		setup = append(setup, "CREATE DOMAIN "+dom+" AS "+t.SQL)
	}
	if !strings.Contains(without, "e") {
		setup = append(setup, "CREATE DOMAIN "+doms+" AS "+t.SQL+"[]")
	}
	add('c', t.SQL, t.Lake)
	add('a', t.SQL+"[]", list)
	add('d', dom, t.Lake)
	add('e', doms, list)
	add('f', dom+"[]", list)
	if t.Lake != "string" { // what is declared with several dimensions is text
		add('g', t.SQL+"[][]", "string")
	}
	return columns, setup
}

func scalarsOf(t Type) []string {
	out := []string{"NULL"}
	for _, v := range t.Values {
		out = append(out, quote(v)+"::"+t.SQL)
	}
	return out
}

// arraysOf are arrays of a type's values: none, NULL alone, each value beside a
// NULL, all of them, two dimensions, a lower bound that is not 1, and one that is
// said to be 1. What stands for NULL may be something else.
func arraysOf(t Type, null string) []string {
	elem := func(i int) string { return quote(t.Values[i%len(t.Values)]) }
	array := "::" + t.SQL + "[]"
	var every []string
	out := []string{"NULL", "'{}'" + array, "ARRAY[" + null + "]" + array}
	for i := range t.Values {
		every = append(every, elem(i))
		out = append(out, "ARRAY["+elem(i)+", "+null+", "+elem(i)+"]"+array)
	}
	return append(out, "ARRAY["+strings.Join(every, ", ")+"]"+array,
		"ARRAY[ARRAY["+elem(0)+", "+null+"], ARRAY["+elem(1)+", "+elem(0)+"]]"+array,
		"ARRAY[ARRAY[ARRAY["+elem(0)+"]]]"+array,
		"('[0:1]=' || ARRAY["+elem(0)+", "+null+"]"+array+"::text)"+array,
		"('[-2:-1][3:3]=' || ARRAY[ARRAY["+elem(0)+"], ARRAY["+elem(1)+"]]"+array+"::text)"+array,
		"('[1:2]=' || ARRAY["+elem(1)+", "+null+"]"+array+"::text)"+array)
}

// slug is a type's name as part of a column's.
func slug(sql string) string {
	var b strings.Builder
	for _, c := range sql {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0:
			b.WriteByte('_')
		}
	}
	return strings.TrimRight(b.String(), "_")
}

func quote(text string) string {
	return " E'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(text) + "'"
}
