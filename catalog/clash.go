package catalog

import (
	"slices"
	"strings"
)

// ClashKind says why two names are one to some reader of the lake.
type ClashKind string

// The kinds.
const (
	ClashReserved ClashKind = "reserved" // the lake's tables have a column of that name themselves
	ClashCase     ClashKind = "case"     // they differ in case alone, which does not count in Spark
	ClashElement  ClashKind = "element"  // the elements of a list are called so in Iceberg
)

// Clash is a column whose name the lake cannot take.
type Clash struct {
	Column string
	With   string // the name that it is one with
	Kind   ClashKind
}

// reservedColumns are those that current and history have beside the source's.
var reservedColumns = []string{
	"_lsn", "_updated_at", "_is_deleted", "_source_ts", "_from_snapshot", "_op", "valid_from", "valid_to", "is_current",
	"_generation", "_commit_lsn", "_ordinal", "_tx_id", "_unavailable_columns",
}

// Clashes returns the columns whose names the lake cannot take, in order. Of columns
// only name and type are looked at.
func Clashes(columns []Column) []Clash {
	fold := func(s string) string { return strings.ToLower(strings.ToUpper(s)) }
	var out []Clash
	seen := map[string]string{}
	for _, c := range columns {
		folded := fold(c.Name)
		if slices.Contains(reservedColumns, folded) {
			out = append(out, Clash{c.Name, folded, ClashReserved})
		}
		if other, taken := seen[folded]; taken {
			out = append(out, Clash{c.Name, other, ClashCase})
		}
		seen[folded] = c.Name
	}
	for _, c := range columns {
		if other, taken := seen[fold(c.Name+".element")]; taken && c.Type.Kind == List {
			out = append(out, Clash{other, c.Name, ClashElement})
		}
	}
	return out
}
