package fold

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Current folds the batches into the current layer. found is what the layer holds
// of TouchedCurrent's keys, cursor how far it has come: changes up to there change
// nothing. It fills unavailable cells of the batches in place, so save them to
// bronze first.
func Current(t *catalog.Table, cursor catalog.Position, batches []*change.Batch, found []CurrentFound) CurrentResult {
	room := max(len(found), changesIn(batches))
	f := currentFold{table: t, index: make(map[string]int, room), keys: make([]currentKey, 0, room)}
	for i := range found {
		k := f.key(found[i].Key)
		k.before = append(k.before, found[i].Place)
		k.rows = append(k.rows, currentEntry{row: found[i].Row, held: true})
	}
	for _, b := range batches {
		for i := range b.Changes {
			if b.Changes[i].Position.Compare(cursor) > 0 { // I3: what was folded changes nothing
				f.apply(b, &b.Changes[i])
			}
		}
	}
	return f.result()
}

type currentFold struct {
	table *catalog.Table
	index map[string]int
	keys  []currentKey
	// moved is the row that the first half of a key move has just taken away.
	moved change.Ref
}

// currentKey is what is known of one key. It holds one row, save inside a
// transaction that moves rows through an occupied key: then the rows stand in the
// order in which they came (see leaver).
type currentKey struct {
	before []change.Place // where its rows lie in the layer
	rows   []currentEntry
	dirty  bool
}

type currentEntry struct {
	row  CurrentRow
	held bool // as the layer holds it
}

func (f *currentFold) key(key []byte) *currentKey {
	i, ok := f.index[string(key)]
	if !ok {
		i = len(f.keys)
		f.index[string(key)] = i
		f.keys = append(f.keys, currentKey{})
	}
	return &f.keys[i]
}

func (f *currentFold) apply(b *change.Batch, ch *change.Change) {
	switch ch.Op {
	case change.Truncate:
		for i := range f.keys {
			f.truncate(&f.keys[i], ch)
		}
	case change.Delete:
		f.remove(f.key(ch.Key), b, ch)
	case change.Create, change.Update, change.Read:
		f.put(f.key(ch.Key), b, ch)
	}
}

func (f *currentFold) put(k *currentKey, b *change.Batch, ch *change.Change) {
	k.settle(ch.Position)
	if k.applied(ch.Position) {
		return // I3: an equal or older change changes nothing
	}
	row := CurrentRow{Image: change.Ref{Rows: b.Rows, Row: ch.After}, Stamp: stampOf(ch), FromSnapshot: ch.Op == change.Read}
	live := k.newestLive()
	if ch.Op == change.Update {
		live = nil
		if i := k.leaving(b, ch); i >= 0 {
			live = &k.rows[i]
		}
	}
	switch {
	case ch.MovedIn():
		fillUnavailable(b.Rows, ch.After, f.moved)
	case live != nil:
		fillUnavailable(b.Rows, ch.After, live.row.Image)
	}
	f.moved = change.Ref{}
	if ch.Op == change.Read && live != nil && !live.row.Image.IsZero() && identical(live.row.Image, row.Image) {
		return // a repeated read repairs nothing
	}
	k.dirty = true
	switch {
	case live == nil && ch.Op == change.Update && k.newestLive() != nil:
		// The row was here before those that came in this transaction; the lake has
		// not seen it yet.
		k.rows = slices.Insert(k.rows, 0, currentEntry{row: row})
	case live == nil:
		k.rows = append(k.rows[:0], currentEntry{row: row})
	case ch.Op == change.Create:
		// The key is still taken: the row there leaves later in this transaction.
		k.rows = append(k.rows, currentEntry{row: row})
	default:
		*live = currentEntry{row: row}
	}
}

func (f *currentFold) remove(k *currentKey, b *change.Batch, ch *change.Change) {
	k.settle(ch.Position)
	f.moved = change.Ref{}
	if k.applied(ch.Position) {
		return
	}
	i := k.leaving(b, ch)
	if i < 0 {
		return
	}
	if ch.MovedAway() {
		f.moved = k.rows[i].row.Image
	}
	k.dirty = true
	if f.table.SoftDelete && len(k.rows) == 1 && !k.rows[i].row.Image.IsZero() {
		k.rows[i].row.Deleted = true
		k.rows[i].row.Stamp = stampOf(ch)
		k.rows[i].row.FromSnapshot = false
		k.rows[i].held = false
		return
	}
	k.rows = slices.Delete(k.rows, i, i+1)
}

// leaving returns which live row a Delete or an Update is of, or -1. A deleted row
// is the key's only one.
func (k *currentKey) leaving(b *change.Batch, ch *change.Change) int {
	if len(k.rows) == 0 || k.rows[0].row.Deleted {
		return -1
	}
	return leaver(b, ch, len(k.rows), func(i int) candidate {
		return candidate{k.rows[i].row.Image, k.rows[i].row.Stamp.Position}
	})
}

// truncate takes away what is below the floor in order, and nothing newer.
func (f *currentFold) truncate(k *currentKey, ch *change.Change) {
	kept := k.rows[:0]
	for _, e := range k.rows {
		below := e.row.Stamp.Position.Compare(ch.Position) < 0
		switch {
		case !below || e.row.Deleted:
			kept = append(kept, e)
		case f.table.SoftDelete && !e.row.Image.IsZero():
			k.dirty = true
			e.row.Deleted, e.row.FromSnapshot, e.row.Stamp, e.held = true, false, stampOf(ch), false
			kept = append(kept, e)
		default:
			k.dirty = true
		}
	}
	k.rows = kept
}

// settle leaves one row when a new transaction begins: the one that came last.
func (k *currentKey) settle(p catalog.Position) {
	if n := len(k.rows); n > 1 && !SameTransaction(k.rows[n-1].row.Stamp.Position, p) {
		k.rows = append(k.rows[:0], k.rows[n-1])
		k.dirty = true
	}
}

func (k *currentKey) applied(p catalog.Position) bool {
	for i := range k.rows {
		if k.rows[i].row.Stamp.Position.Compare(p) >= 0 {
			return true
		}
	}
	return false
}

func (k *currentKey) newestLive() *currentEntry {
	for i := len(k.rows) - 1; i >= 0; i-- {
		if !k.rows[i].row.Deleted {
			return &k.rows[i]
		}
	}
	return nil
}

func (f *currentFold) result() CurrentResult {
	r := CurrentResult{Write: make([]CurrentRow, 0, len(f.keys))}
	for i := range f.keys {
		k := &f.keys[i]
		n := len(k.rows)
		if !k.dirty || n > 0 && k.rows[n-1].held && len(k.before) == 1 {
			continue // what moved here has left again
		}
		r.Remove = append(r.Remove, k.before...)
		if n > 0 {
			last := k.rows[n-1].row
			r.Write = append(r.Write, last)
			if hasUnavailable(last.Image.Rows, last.Image.Row) {
				r.Unavailable++
			}
		}
	}
	return r
}

func stampOf(ch *change.Change) Stamp {
	return Stamp{Position: ch.Position, LSN: ch.LSN, CommitTime: ch.CommitTime}
}
