package fold

import (
	"cmp"
	"iter"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Derivation folds bronze anew, in memory, batch after batch from its beginning: what
// current and history must show, whatever they show now. A batch may end anywhere.
type Derivation struct {
	rows    *change.Rows // images, those of superseded rows too until they are compacted
	current *currentFold // nil when not wanted
	history *historyFold // nil when not wanted
	older   map[string][]VersionFound
	next    map[string]Version // the first version that is not older, by key
	// The last delete of each key and the last truncate, noted when bronze was cut.
	deletes   map[string]catalog.Position
	truncated catalog.Position
	added     int
	cut       bool // bronze does not hold every change
}

// NewDerivation returns a derivation of the layers that the table keeps.
func NewDerivation(t *catalog.Table) *Derivation {
	d := &Derivation{}
	if t.Current {
		d.current = &currentFold{table: t, index: map[string]int{}}
	}
	if t.History {
		d.history = &historyFold{table: t, index: map[string]int{}}
	}
	return d
}

// KeepOlder tells of rows that the layers hold of some keys. Of those that were made
// by changes below first, bronze's first, nothing in bronze tells any more: they are
// kept, in their place among the changes that come. A first of zero says that bronze
// holds every change: then nothing is kept. Call it before Add.
func (d *Derivation) KeepOlder(first catalog.Position, current []CurrentFound, versions []VersionFound) {
	if d.cut = !first.IsZero(); !d.cut {
		return
	}
	if d.current != nil {
		for i := range current {
			if f := &current[i]; f.Row.Stamp.Position.Compare(first) < 0 {
				k := d.current.key(f.Key)
				k.rows = append(k.rows, currentEntry{row: f.Row})
			}
		}
	}
	if d.history == nil {
		return
	}
	d.older, d.next = map[string][]VersionFound{}, map[string]Version{}
	for i := range versions {
		v := &versions[i]
		key := string(v.Key)
		if v.Row.Stamp.Position.Compare(first) < 0 {
			d.older[key] = append(d.older[key], *v)
		} else if next, ok := d.next[key]; !ok || v.Row.Stamp.Position.Compare(next.Stamp.Position) < 0 {
			d.next[key] = v.Row
		}
	}
	for _, list := range d.older {
		slices.SortFunc(list, func(a, b VersionFound) int {
			return cmp.Or(a.Row.Stamp.Position.Compare(b.Row.Stamp.Position), cmp.Compare(a.Row.From, b.Row.From))
		})
	}
}

// Add folds the next batch of bronze. The batch is left as it is.
func (d *Derivation) Add(b *change.Batch) {
	if d.rows == nil {
		d.rows = change.NewRows(b.Rows.Schema())
	}
	own := &change.Batch{Table: b.Table, Rows: d.rows}
	for i := range b.Changes {
		ch := b.Changes[i]
		ch.Other = -1
		if !tells(b.Rows, ch.Before) {
			ch.Before = -1
		}
		for _, row := range []*int{&ch.Before, &ch.After} {
			if *row >= 0 {
				*row = d.rows.CopyRow(b.Rows, *row)
				d.added++
			}
		}
		d.raise(&ch)
		if d.current != nil {
			d.noteDelete(&ch)
			d.current.apply(own, &ch)
		}
		if d.history != nil {
			d.history.apply(own, &ch)
		}
	}
	if d.added > 10_000 && d.added > d.rows.Len()/2 {
		d.compact()
	}
}

func (d *Derivation) noteDelete(ch *change.Change) {
	switch {
	case !d.cut:
	case ch.Op == change.Truncate:
		d.truncated = ch.Position
	case ch.Op == change.Delete:
		if d.deletes == nil {
			d.deletes = map[string]catalog.Position{}
		}
		d.deletes[string(ch.Key)] = ch.Position
	}
}

// raise puts back the older versions that stand before a change.
func (d *Derivation) raise(ch *change.Change) {
	if len(d.older) == 0 {
		return
	}
	if ch.Op == change.Truncate {
		for key := range d.older {
			d.raiseKey(key, ch)
		}
		return
	}
	d.raiseKey(string(ch.Key), ch)
	if ch.MovedIn() {
		d.raiseKey(string(ch.OtherKey), ch)
	}
}

func (d *Derivation) raiseKey(key string, ch *change.Change) {
	list := d.older[key]
	n := 0
	for n < len(list) && list[n].Row.Stamp.Position.Compare(ch.Position) < 0 {
		n++
	}
	if n == 0 {
		return
	}
	k := d.history.key([]byte(key))
	d.history.settle(k)
	for i := range n {
		d.history.keep(k, list[i].Row)
	}
	// What ended the last of them is among the changes to come, or was lost too.
	if last := k.last(); last != nil && last.To != Open {
		next, ok := d.next[key]
		opened := ok && SameTransaction(next.Stamp.Position, ch.Position)
		switch {
		case ch.Op == change.Read:
			ok = !opened // a read that opened no version was of the row that was here
		case !ok || next.From != last.To:
			ok = wasThere(ch, last.To)
		case opened: // and ended this one, else there would be one version of both
			ok = last.To == max(last.From, ch.CommitTime) && !d.history.sameTracked(last.Image, &historyRow{image: next.Image, op: next.Op})
		default: // what opened that one later ended this one
			ok = next.Stamp.Position.Compare(ch.Position) > 0
		}
		if ok {
			last.To = Open
		}
	}
	if last := k.last(); last != nil && last.To == Open {
		d.seed(key, last)
	}
	if d.older[key] = list[n:]; n == len(list) {
		delete(d.older, key)
	}
}

// seed puts the row of an open version into current, which has forgotten it since.
func (d *Derivation) seed(key string, v *versionEntry) {
	if d.current == nil {
		return
	}
	if k := d.current.key([]byte(key)); len(k.rows) == 0 {
		k.rows = append(k.rows, currentEntry{row: CurrentRow{Image: v.Image, Stamp: v.Stamp}})
	}
}

// wasThere reports whether a change found a row at its key whose version ended at a
// time. That of a row which a lost delete took away ended earlier.
func wasThere(ch *change.Change, to int64) bool {
	switch ch.Op {
	case change.Update, change.Delete:
		return true // else the change was of no row, and ends nothing
	case change.Create, change.Truncate, change.Read: // a row may move here before the one that was here leaves
		return to >= ch.CommitTime
	}
	return false
}

// keep appends a version as it is, ending the one before it.
func (f *historyFold) keep(k *historyKey, v Version) {
	if last := k.last(); last != nil && last.To > v.From {
		last.To = max(last.From, v.From)
	}
	v.From = k.clamp(v.From)
	v.To = max(v.From, v.To)
	k.versions = append(k.versions, versionEntry{Version: v})
}

// finish ends the transaction in which bronze ends.
func (d *Derivation) finish() {
	for key, list := range d.older {
		k := d.history.key([]byte(key))
		d.history.settle(k)
		for i := range list {
			d.history.keep(k, list[i].Row)
		}
	}
	d.older = nil
	if d.history != nil {
		for i := range d.history.keys {
			d.history.settle(&d.history.keys[i])
		}
	}
}

// Row returns current's row of a key as it is so far.
func (d *Derivation) Row(key []byte) (CurrentRow, bool) {
	i, ok := d.current.index[string(key)]
	if !ok || len(d.current.keys[i].rows) == 0 {
		return CurrentRow{}, false
	}
	rows := d.current.keys[i].rows
	return rows[len(rows)-1].row, true
}

// Rows yields current's row of each key that has one. Add no more afterwards.
func (d *Derivation) Rows() iter.Seq2[[]byte, CurrentRow] {
	return func(yield func([]byte, CurrentRow) bool) {
		if d.current == nil {
			return
		}
		for key, i := range d.current.index {
			if k := &d.current.keys[i]; len(k.rows) > 0 && !yield([]byte(key), k.rows[len(k.rows)-1].row) {
				return
			}
		}
	}
}

// Versions yields history's versions. Add no more afterwards.
func (d *Derivation) Versions() iter.Seq2[[]byte, Version] {
	return func(yield func([]byte, Version) bool) {
		if d.history == nil {
			return
		}
		d.finish()
		for key, i := range d.history.index {
			for _, v := range d.history.keys[i].versions {
				if !yield([]byte(key), v.Version) {
					return
				}
			}
		}
	}
}

// Size returns about how many bytes the rows take.
func (d *Derivation) Size() int {
	n := 0
	if d.rows != nil {
		n = d.rows.Size()
	}
	if d.current != nil {
		n += 300 * len(d.current.keys)
	}
	if d.history != nil {
		n += 250 * len(d.history.keys)
		for i := range d.history.keys {
			n += 160 * cap(d.history.keys[i].versions)
		}
	}
	return n
}

// Compact forgets the images that nothing shows any more.
func (d *Derivation) Compact() { d.compact() }

func (d *Derivation) compact() {
	if d.rows == nil {
		return
	}
	rows := change.NewRows(d.rows.Schema())
	moved := make(map[int]int)
	move := func(r *change.Ref) {
		if r.Rows != d.rows {
			return
		}
		to, ok := moved[r.Row]
		if !ok {
			to = rows.CopyRow(r.Rows, r.Row)
			moved[r.Row] = to
		}
		*r = change.Ref{Rows: rows, Row: to}
	}
	if f := d.current; f != nil {
		move(&f.moved)
		for i := range f.keys {
			for j := range f.keys[i].rows {
				move(&f.keys[i].rows[j].row.Image)
			}
		}
	}
	if f := d.history; f != nil {
		move(&f.moved)
		for i := range f.keys {
			for j := range f.keys[i].versions {
				move(&f.keys[i].versions[j].Image)
			}
			for j := range f.keys[i].rows {
				move(&f.keys[i].rows[j].image)
			}
		}
	}
	d.rows, d.added = rows, 0
}
