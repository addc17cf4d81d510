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
	keys    arena
	// moved says that offsets were passed; told, that the snapshot's progress moved.
	moved, told bool
}

func newBuilder(schema *catalog.Schema) *builder { return &builder{rows: change.NewRows(schema)} }

func (b *builder) size() int { return b.rows.Size() + changeSize*len(b.changes) }

const changeSize = 160

// key returns a lasting copy of a row's key, empty for a table without one.
func (b *builder) key(row int) ([]byte, error) {
	if row < 0 || len(b.rows.Schema().Key) == 0 {
		return nil, nil
	}
	var err error
	if b.keys.scratch, err = b.rows.AppendKey(b.keys.scratch[:0], row); err != nil {
		return nil, err
	}
	return b.keys.keep(b.keys.scratch), nil
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

// arena keeps many small byte slices in few allocations.
type arena struct {
	block   []byte
	scratch []byte
}

func (a *arena) keep(v []byte) []byte {
	if len(a.block)+len(v) > cap(a.block) {
		a.block = make([]byte, 0, max(4<<10, min(2*cap(a.block), 256<<10), len(v)))
	}
	n := len(a.block)
	a.block = append(a.block, v...)
	return a.block[n:len(a.block):len(a.block)]
}
