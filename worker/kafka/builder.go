package kafka

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// builder collects changes of one table until they are handed over.
type builder struct {
	rows    *change.Rows
	changes []change.Change
	keys    change.Keys
	// moved says that offsets were passed; told, that the snapshot's progress moved.
	moved, told bool
	rereads     []int64 // requests that are answered
	remake      bool    // of rows that were read again, what the lake shows is made anew
}

func newBuilder(schema *catalog.Schema) *builder { return &builder{rows: change.NewRows(schema)} }

func (b *builder) size() int { return b.rows.Size() + change.Weight*len(b.changes) }

// key returns a lasting copy of a row's key, empty for a table without one and where
// there is no row.
func (b *builder) key(row int) ([]byte, error) {
	if row < 0 {
		return nil, nil
	}
	return b.keys.Of(b.rows, row)
}

// inOrder sorts the changes by position, and marks as late those that are not above
// high, the highest that was handed over before. It returns the highest now.
func (b *builder) inOrder(sort bool, high catalog.Position) catalog.Position {
	if sort {
		slices.SortStableFunc(b.changes, func(x, y change.Change) int { return x.Position.Compare(y.Position) })
	}
	for i := range b.changes {
		c := &b.changes[i]
		if c.Late = c.Position.Compare(high) <= 0; !c.Late {
			high = c.Position
		}
	}
	return high
}
