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
	// columns are, for each column of a row message, the index in the table's
	// schema, or -1.
	columns []int
	// covers reports that the replica identity carries the configured key, so that
	// a change without an old row did not change the key.
	covers bool
}

// bind maps the relation's columns to the schema's by name. With deferred, only
// whole old rows do.
func (r *relation) bind(schema *catalog.Schema, deferred bool) {
	r.bound = true
	r.columns = make([]int, len(r.relationMessage.columns))
	carried := 0
	for i, c := range r.relationMessage.columns {
		r.columns[i] = schema.Index(c.name)
		if c.identity && r.columns[i] >= 0 && schema.IsKey(r.columns[i]) {
			carried++
		}
	}
	r.covers = r.identity == 'f' || r.identity != 'n' && carried == len(schema.Key) && !deferred
}

// sameWire reports whether both describe the same columns in the same order.
func sameWire(a, b []wireColumn) bool { return slices.EqualFunc(a, b, wireColumn.sameType) }

// shapeDifference says in words how the columns of two schemas differ; empty when
// the lake cannot tell them apart.
func shapeDifference(from, to *catalog.Schema) string {
	var added, dropped, retyped, remade []string
	for _, c := range to.Columns {
		switch i := from.Index(c.Name); {
		case i < 0:
			added = append(added, c.Name+" "+c.Source.Name)
		case !from.Columns[i].Type.Equal(c.Type):
			retyped = append(retyped, c.Name+" from "+from.Columns[i].Source.Name+" to "+c.Source.Name)
		case from.Columns[i].Number != c.Number && from.Columns[i].Number != 0:
			// The values of the old column are gone without a row in the log.
			remade = append(remade, c.Name)
		}
	}
	for _, c := range from.Columns {
		if to.Index(c.Name) < 0 {
			dropped = append(dropped, c.Name)
		}
	}
	var parts []string
	for _, p := range []struct {
		verb  string
		names []string
	}{{"added", added}, {"dropped", dropped}, {"retyped", retyped}, {"dropped and added again", remade}} {
		if len(p.names) > 0 {
			parts = append(parts, p.verb+" "+strings.Join(p.names, ", "))
		}
	}
	if len(parts) == 0 && !from.SameShape(to) {
		return "the order of the columns or of the key's columns changed"
	}
	return strings.Join(parts, "; ")
}

func schemaChanged(at, difference string) *catalog.Error {
	e := catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged,
		"undo the change and start the worker again, if no row was written after it and no column was dropped; else take the table's file away, so that the others' slot goes on",
		"the table has other columns than the lake: %s", difference)
	e.At = at
	return e
}
