package reconcile

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// rereads is what bronze says of keys that were read again, by key. A row that was
// damaged in current, and not in bronze, is put right by such a reading, and says so
// in its own columns; bronze folded anew finds that the reading changed nothing. Both
// are right.
type rereads map[digest][]rereadEvent

type rereadEvent struct {
	gone     bool // the source did not have the key
	position catalog.Position
	lsn      catalog.LSN
	time     int64
}

// own is what a row of current says of itself when the reading wrote it, behind
// whether it is deleted.
func (e *rereadEvent) own() []int64 {
	p := e.position
	return []int64{bit(!e.gone), int64(p.Generation), int64(p.Commit), int64(p.Ordinal), int64(e.lsn), e.time, e.time}
}

// learn notes what a batch that was just folded reads again without a change.
func (r *rereads) learn(b *change.Batch, folded *fold.Derivation, forms []typemap.KeyForm) {
	d := digester{forms: forms}
	for i := range b.Changes {
		c := &b.Changes[i]
		if !c.WasRead() {
			continue
		}
		if v, ok := folded.Row(c.Key); ok && v.Stamp.Position == c.Position {
			continue // as most are: the reading of a new table
		}
		if *r == nil {
			*r = rereads{}
		}
		key := d.key(b.Rows, max(c.After, c.Before), b.Rows.Schema().Key)
		(*r)[key] = append((*r)[key], rereadEvent{gone: c.Op == change.Delete, position: c.Position, lsn: c.LSN, time: c.CommitTime})
	}
}

// tookAway reports whether a row that bronze does not fold to, of a table that keeps
// deleted rows, is there as deleted because the source was found not to have it.
func (r rereads) tookAway(key digest, own []int64) bool {
	return len(own) > 0 && own[0] == 1 && slices.ContainsFunc(r[key], func(e rereadEvent) bool {
		return e.gone && slices.Equal(own[1:], e.own())
	})
}
