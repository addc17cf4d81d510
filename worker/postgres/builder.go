package postgres

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// builder collects changes of one table and one schema.
type builder struct {
	rows    *change.Rows
	changes []change.Change
	keys    change.Keys
	masked  map[int][]string // as Batch.Masked
	remake  bool             // as Batch.Remake
}

func newBuilder(schema *catalog.Schema) *builder { return &builder{rows: change.NewRows(schema)} }

func (b *builder) size() int { return b.rows.Size() + change.Weight*len(b.changes) }

// key returns a lasting copy of a row's key, empty for a table without one.
func (b *builder) key(row int) ([]byte, error) { return b.keys.Of(b.rows, row) }
