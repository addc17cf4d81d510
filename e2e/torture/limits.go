package torture

import (
	"slices"
	"strings"
)

// Limits are what a way of capturing cannot take. The zero value has none.
type Limits struct {
	Without []Without
	// Full says of which columns the table must have REPLICA IDENTITY FULL; nil: none.
	Full func(Column) bool
	// Whole says in which columns no array may have NULL among its elements; nil: in all
	// it may.
	Whole func(Column) bool
}

// Without is something that is not made.
type Without struct {
	Type   string   // as Type.SQL
	Kinds  string   // those of its columns, as Column.Kind; "*" for all, and the type itself
	Values []string // with no Kinds: these of its values, in every column
	Why    string
}

// apply takes away from a type what is not to be made of it, and notes why. It returns
// the kinds of columns that are left out.
func (l Limits) apply(t *Type, p *Plan) string {
	var kinds []string
	for _, w := range l.Without {
		if w.Type != t.SQL {
			continue
		}
		kinds = append(kinds, w.Kinds)
		p.Left = append(p.Left, t.SQL+": "+w.Why)
		t.Values = slices.DeleteFunc(slices.Clone(t.Values), func(v string) bool { return slices.Contains(w.Values, v) })
	}
	return strings.Join(kinds, "")
}

// part tells the columns whose tables must have REPLICA IDENTITY FULL from the others.
func (l Limits) part(columns []Column) (either, full []Column) {
	for _, c := range columns {
		if l.Full != nil && l.Full(c) {
			full = append(full, c)
		} else {
			either = append(either, c)
		}
	}
	return either, full
}
