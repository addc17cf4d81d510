package postgres

import (
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// relation is a table as the stream describes it at present.
type relation struct {
	relationMessage
	table *table // nil for one that we do not read
	// again says that the stream had described the table before on this connection:
	// something was altered, even when names and types are the same.
	again bool
	// bound says that it was compared with the table, and that columns and covers
	// are set. A description from before the table's reading began is not, until a
	// row comes that the reading does not hold.
	bound bool
	// undone says that the columns are the table's in its order, whatever they were
	// called then, and what is behind them is gone.
	undone bool
	// columns are, for each column of a row message, the index in the table's
	// schema, or -1.
	columns []int
	// covers reports that the replica identity carries the configured key, so that
	// a change without an old row did not change the key.
	covers bool

	// body is the message itself, definition how the table is declared with it, nil
	// until that was found out, and lacking the columns of the table's schema that it does
	// not have. Where the source parks.
	body       []byte
	definition *definition
	lacking    []int
}

// bind maps the relation's columns to the schema's by name. With deferred, only
// whole old rows do.
func (r *relation) bind(schema *catalog.Schema, deferred bool) {
	r.bound = true
	r.columns = make([]int, len(r.relationMessage.columns))
	carried := 0
	for i, c := range r.relationMessage.columns {
		switch {
		case !r.undone:
			r.columns[i] = schema.Index(c.name)
		case i < len(schema.Columns):
			r.columns[i] = i
		default:
			r.columns[i] = -1
		}
		if c.identity && r.columns[i] >= 0 && schema.IsKey(r.columns[i]) {
			carried++
		}
	}
	r.covers = r.identity == 'f' || r.identity != 'n' && carried == len(schema.Key) && !deferred
}

// sameWire reports whether both describe the same columns in the same order.
func sameWire(a, b []wireColumn) bool { return slices.EqualFunc(a, b, wireColumn.sameType) }

// shapeDifference says in words how the columns of two schemas differ; empty when
// the lake cannot tell them apart. A key in one of them only does not count.
func shapeDifference(from, to *catalog.Schema) string {
	typed := func(c catalog.Column) string { return c.Name + " " + c.Source.Name }
	var added, dropped, renamed, retyped, remade []string
	moved := map[string]bool{}
	for _, c := range to.Columns {
		i := from.Index(c.Name)
		if i < 0 {
			if was := numbered(from, c.Number); was >= 0 && to.Index(from.Columns[was].Name) < 0 {
				moved[from.Columns[was].Name] = true
				renamed = append(renamed, typed(from.Columns[was])+" to "+typed(c))
				continue
			}
			added = append(added, typed(c))
			continue
		}
		was := from.Columns[i]
		switch {
		case was.Number != c.Number && was.Number != 0 && c.Number != 0 && !was.Type.Equal(c.Type):
			remade = append(remade, c.Name+" ("+was.Source.Name+" before, "+c.Source.Name+" now)")
		case was.Number != c.Number && was.Number != 0:
			// The values of the old column are gone without a row in the log.
			remade = append(remade, c.Name)
		case !was.Type.Equal(c.Type):
			retyped = append(retyped, c.Name+" from "+was.Source.Name+" to "+c.Source.Name)
		}
	}
	for _, c := range from.Columns {
		if to.Index(c.Name) < 0 && !moved[c.Name] {
			dropped = append(dropped, typed(c))
		}
	}
	var parts []string
	for _, p := range []struct {
		verb  string
		names []string
	}{{"renamed", renamed}, {"added", added}, {"dropped", dropped}, {"retyped", retyped}, {"dropped and added again", remade}} {
		if len(p.names) > 0 {
			parts = append(parts, p.verb+" "+strings.Join(p.names, ", "))
		}
	}
	same := func(a, b catalog.Column) bool { return a.Name == b.Name }
	if len(parts) == 0 && (!slices.EqualFunc(from.Columns, to.Columns, same) || len(to.Key) > 0 && !slices.Equal(from.Key, to.Key)) {
		return "the order of the columns or of the key's columns changed"
	}
	return strings.Join(parts, "; ")
}

// numbered returns the column with an attribute number, or -1.
func numbered(s *catalog.Schema, number int) int {
	if number == 0 {
		return -1
	}
	return slices.IndexFunc(s.Columns, func(c catalog.Column) bool { return c.Number == number })
}

func schemaChanged(at, difference string) *catalog.Error {
	e := catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged,
		"undo it and start the worker again, if columns were only added or renamed; else take the table's file away, so that the others' slot goes on",
		"the table has other columns than the lake: %s", difference)
	e.At = at
	return e
}
