package pipeline

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
)

// Evolver is a Lake whose tables can follow changes of their columns. Evolve comes first,
// then Reopen, then a Fill for each column that was added with a constant default, before
// any change of after is saved. What was read under the older columns is appended to
// bronze before that; layers may lag, since bronze is read under the newest columns.
// Each may be called again, in that order, whatever became of it.
type Evolver interface {
	// Evolve brings the lake's tables from one schema to the next, both after masking. It
	// fails with lake.schema, and nothing has changed, when they cannot follow.
	Evolve(ctx context.Context, table *catalog.Table, from, to *catalog.Schema) error
	// Reopen is Lake.Open for a table whose layers are open under an older schema, which
	// are not used any more.
	Reopen(ctx context.Context, table *catalog.Table, schema *catalog.Schema, open Layers) (Layers, error)
	// Fill gives current's rows and the open versions the value of a new column.
	Fill(ctx context.Context, layers Layers, fill Fill) error
}

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
