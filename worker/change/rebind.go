package change

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// Rebind returns the same rows under another schema of as many columns: columns
// of fresh keep their marks and lose their values, which are to be set anew; the
// others are shared. r must not be used any more.
func (r *Rows) Rebind(schema *catalog.Schema, fresh []int) *Rows {
	out := &Rows{schema: schema, cols: slices.Clone(r.cols), n: r.n, size: r.size, each: r.each}
	for _, col := range fresh {
		old := &r.cols[col]
		c := cells{marks: slices.Clone(old.marks), isFixed: schema.Columns[col].Type.Fixed()}
		if schema.IsKey(col) {
			c.keyForm = keyForm(&schema.Columns[col])
		}
		if c.isFixed {
			c.fixed = make([]int64, r.n)
		} else {
			c.start, c.end = make([]uint64, r.n), make([]uint64, r.n)
		}
		out.size -= len(old.bytes)
		for _, v := range old.large {
			out.size -= len(v)
		}
		out.cols[col] = c
	}
	return out
}
