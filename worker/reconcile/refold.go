package reconcile

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// refold folds bronze anew, in memory, from its beginning, with the same pure
// rules as the pipeline and none of its storage.
type refold struct {
	table   *catalog.Table
	derived *fold.Derivation
	reads   rereads
	forms   []typemap.KeyForm
}

func newRefold(table *catalog.Table, forms []typemap.KeyForm) *refold {
	return &refold{table: table, derived: fold.NewDerivation(table), forms: forms}
}

// apply folds the next batch of bronze, which may end anywhere.
func (r *refold) apply(b *change.Batch) {
	r.derived.Add(b)
	if r.table.Current {
		r.reads.learn(b, r.derived, r.forms)
	}
}

// fits reports whether the rows take no more than so many bytes, for which it may
// forget superseded ones.
func (r *refold) fits(most int) bool {
	if r.derived.Size() <= most {
		return true
	}
	r.derived.Compact()
	return r.derived.Size() <= most
}
