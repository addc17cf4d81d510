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
	Type  string // as Type.SQL
	Kinds string // those of its columns, as Column.Kind; "*" for all, and the type itself
	// Values are left out of Kinds instead, or of all columns when there are none. In
	// arrays they are elements.
	Values []string
	Why    string
}

// kinds are those of a type's columns that are not made.
func (l Limits) kinds(typ string) string {
	var out []string
	for _, w := range l.Without {
		if w.Type == typ && len(w.Values) == 0 {
			out = append(out, w.Kinds)
		}
	}
	return strings.Join(out, "")
}

// values are those of a type that a kind of column may hold.
func (l Limits) values(t Type, kind byte) []string {
	out := slices.Clone(t.Values)
	for _, w := range l.Without {
		if w.Type == t.SQL && (w.Kinds == "" || strings.IndexByte(w.Kinds, kind) >= 0) {
			out = slices.DeleteFunc(out, func(v string) bool { return slices.Contains(w.Values, v) })
		}
	}
	return out
}

// reasons say what is left out of a type, and why.
func (l Limits) reasons(typ string) []string {
	var out []string
	for _, w := range l.Without {
		if w.Type == typ {
			out = append(out, typ+": "+w.Why)
		}
	}
	return out
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
