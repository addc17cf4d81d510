package postgres

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// builder collects changes of one table and one schema.
type builder struct {
	rows    *change.Rows
	changes []change.Change
	keys    arena
	masked  map[int][]string // as Batch.Masked
	remake  bool             // as Batch.Remake
}

func newBuilder(schema *catalog.Schema) *builder { return &builder{rows: change.NewRows(schema)} }

func (b *builder) size() int { return b.rows.Size() + 160*len(b.changes) }

// key returns a lasting copy of a row's key, empty for a table without one.
func (b *builder) key(row int) ([]byte, error) {
	if len(b.rows.Schema().Key) == 0 {
		return nil, nil
	}
	var err error
	b.keys.scratch, err = b.rows.AppendKey(b.keys.scratch[:0], row)
	if err != nil {
		return nil, err
	}
	return b.keys.keep(b.keys.scratch), nil
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
