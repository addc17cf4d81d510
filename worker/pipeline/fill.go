package pipeline

import "github.com/lakeweir/lakeweir/catalog"

// Fill is what a table's rows got when a column was added with a constant default: the
// source writes nothing of it into its log.
type Fill struct {
	// Column is the column, by its name of today.
	Column string
	// Value is the constant as the lake shows it: the text that the source prints, or
	// what a masked column shows in place of it.
	Value string
	// At is the place of the change of columns: rows that changed before it got the value
	// there. CommitTime is its transaction's, in microseconds since 1970 UTC.
	At         catalog.Position
	CommitTime int64
}

// Shower is an optional ability of a layer whose rows got values by a Fill: what is folded
// from bronze has them also in rows that ended before, and is shown without.
type Shower[Row any] interface {
	// Shown returns a row as the layer has it once it is written.
	Shown(row Row) Row
}

// Shown returns a row of current or history, folded from bronze, as the layer has it.
func Shown[Row any](layer any, row Row) Row {
	if s, ok := layer.(Shower[Row]); ok {
		return s.Shown(row)
	}
	return row
}
