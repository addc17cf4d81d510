package fold

import (
	"cmp"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// History folds the batches into the history layer. found is what the layer holds
// of TouchedHistory's keys: the open versions, all versions of WholeHistory's keys,
// and what is known of Returning's (see Closed). cursor is how far the layer had
// come. It fills unavailable cells of the batches and of found in place, so fold the
// batches into bronze first.
//
// The changes of one transaction count as one step from the state before it to the
// state after it. When the layer holds a part of the first transaction already, use
// RedoHistory.
func History(t *catalog.Table, cursor catalog.Position, batches []*change.Batch, found []VersionFound) HistoryResult {
	room := max(len(found), changesIn(batches))
	f := historyFold{table: t, index: make(map[string]int, room), keys: make([]historyKey, 0, room)}
	for i := range found {
		k := f.key(found[i].Key)
		if found[i].Row.Image.IsZero() {
			k.closed = max(k.closed, found[i].Row.To)
			continue
		}
		k.versions = append(k.versions, versionEntry{Version: found[i].Row, was: found[i].Row, place: found[i].Place, stored: true})
	}
	for i := range f.keys {
		slices.SortFunc(f.keys[i].versions, func(a, b versionEntry) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), a.Stamp.Position.Compare(b.Stamp.Position))
		})
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

type historyFold struct {
	table *catalog.Table
	index map[string]int
	keys  []historyKey
	moved change.Ref // the row that the first half of a key move has just taken away
}

// historyKey is the known timeline of one key and, inside a transaction, the rows
// that the key holds so far (several only while rows move through it).
type historyKey struct {
	versions []versionEntry // in order of time; only the last may be open
	closed   int64          // when the last version that is not among them ended, if it may matter
	within   bool           // a transaction is being applied
	at       catalog.Position
	time     int64 // of that transaction, clamped
	rows     []historyRow
}

type versionEntry struct {
	Version
	was    Version // as it is stored
	place  change.Place
	stored bool
	filled bool // values that were never sent have been put into its image
}

type historyRow struct {
	image change.Ref
	stamp Stamp
	op    change.Op // of the change that brought the row, or 0 when it was there before
}

func (f *historyFold) key(key []byte) *historyKey {
	i, ok := f.index[string(key)]
	if !ok {
		i = len(f.keys)
		f.index[string(key)] = i
		f.keys = append(f.keys, historyKey{})
	}
	return &f.keys[i]
}

func (f *historyFold) apply(b *change.Batch, ch *change.Change) {
	if ch.Op == change.Truncate {
		for i := range f.keys {
			k := &f.keys[i]
			if len(k.versions) == 0 && len(k.rows) == 0 {
				continue
			}
			f.enter(k, ch)
			k.rows = slices.DeleteFunc(k.rows, func(r historyRow) bool { return r.stamp.Position.Compare(ch.Position) < 0 })
		}
		return
	}
	k := f.key(ch.Key)
	f.enter(k, ch)
	switch ch.Op {
	case change.Delete:
		f.moved = change.Ref{}
		i := k.leaving(b, ch)
		if i < 0 {
			return
		}
		if ch.MovedAway() {
			f.moved = k.rows[i].image
		}
		k.rows = slices.Delete(k.rows, i, i+1)
	case change.Create, change.Update, change.Read:
		f.put(k, b, ch)
	case change.Truncate:
	}
}

func (f *historyFold) put(k *historyKey, b *change.Batch, ch *change.Change) {
	row := historyRow{image: change.Ref{Rows: b.Rows, Row: ch.After}, stamp: stampOf(ch), op: ch.Op}
	at := len(k.rows) - 1
	if ch.Op == change.Update {
		at = k.leaving(b, ch)
	}
	switch {
	case ch.MovedIn():
		fillUnavailable(b.Rows, ch.After, f.moved)
	case at >= 0:
		fillUnavailable(b.Rows, ch.After, k.rows[at].image)
	}
	f.moved = change.Ref{}
	switch {
	case ch.Op == change.Create:
		k.rows = append(k.rows, row)
	case at < 0:
		// A row that the lake has not seen yet was here before those that came in this
		// transaction, if any did.
		k.rows = slices.Insert(k.rows, 0, row)
	default:
		if ch.Op == change.Update && k.rows[at].op != 0 {
			row.op = k.rows[at].op // a row made and changed in one transaction was made by it
		}
		k.rows[at] = row
	}
}

// leaving returns which of the key's rows a Delete or an Update is of, or -1.
func (k *historyKey) leaving(b *change.Batch, ch *change.Change) int {
	return leaver(b, ch, len(k.rows), func(i int) candidate {
		return candidate{k.rows[i].image, k.rows[i].stamp.Position}
	})
}

// enter begins the change's transaction for the key, once.
func (f *historyFold) enter(k *historyKey, ch *change.Change) {
	if k.within && SameTransaction(k.at, ch.Position) {
		return
	}
	f.settle(k)
	k.within, k.at, k.time = true, ch.Position, k.clamp(ch.CommitTime)
	if last := k.last(); last != nil && last.To == Open {
		k.rows = append(k.rows, historyRow{image: last.Image, stamp: last.Stamp})
	}
}

// settle turns what a transaction did to the key into one step of its timeline.
func (f *historyFold) settle(k *historyKey) {
	if !k.within {
		return
	}
	var final *historyRow
	if n := len(k.rows); n > 0 {
		final = &k.rows[n-1]
	}
	base := k.last()
	if base != nil && base.To != Open {
		base = nil
	}
	switch {
	case final == nil && base == nil:
	case final == nil:
		base.To = k.time
	case base == nil:
		k.open(final)
	default:
		if final.op == change.Read {
			k.fillBack(final.image)
		}
		switch {
		case !f.sameTracked(base.Image, final):
			base.To = k.time
			k.open(final)
		case !identical(base.Image, final.image):
			base.Image = final.image // untracked columns follow the source
		}
	}
	k.within, k.rows = false, k.rows[:0]
}

func (k *historyKey) open(r *historyRow) {
	op := r.op
	if op == 0 {
		op = change.Update
	}
	k.versions = append(k.versions, versionEntry{Version: Version{Image: r.image, Stamp: r.stamp, From: k.time, To: Open, Op: op}})
}

// fillBack puts values that were never sent, and have now been read, into the
// versions that lack them: an unsent value is an unchanged one, so it held since
// the version that first lacked it. Versions at a key from which the row has moved
// away since keep lacking it.
func (k *historyKey) fillBack(read change.Ref) {
	for col := range read.Rows.Schema().Columns {
		for i := len(k.versions) - 1; i >= 0; i-- {
			v := &k.versions[i]
			if v.Image.Rows.Mark(v.Image.Row, col) != change.Unavailable {
				break
			}
			v.Image.Rows.Fill(v.Image.Row, col, read.Rows, read.Row, col)
			v.filled = true
			if v.Op == change.Create {
				break // it moved here; what was here before is another row
			}
		}
	}
}

// last returns the newest version, or nil.
func (k *historyKey) last() *versionEntry {
	if n := len(k.versions); n > 0 {
		return &k.versions[n-1]
	}
	return nil
}

// clamp keeps time from running backwards along the key (rule 6).
func (k *historyKey) clamp(t int64) int64 {
	t = max(t, k.closed)
	switch last := k.last(); {
	case last == nil:
		return t
	case last.To == Open:
		return max(t, last.From)
	default:
		return max(t, last.To)
	}
}

func (f *historyFold) sameTracked(base change.Ref, r *historyRow) bool {
	for col, c := range base.Rows.Schema().Columns {
		if !f.table.Tracks(c.Name) {
			continue
		}
		// A row that moved here without a value that the lake does not know need not
		// have the unknown value of the row that was here.
		foreign := r.op == change.Create && r.image.Rows.Mark(r.image.Row, col) == change.Unavailable
		if foreign || !sameCell(base, r.image, col) {
			return false
		}
	}
	return true
}

func (f *historyFold) result() HistoryResult {
	var r HistoryResult
	for i := range f.keys {
		k := &f.keys[i]
		f.settle(k)
		for j := range k.versions {
			v := &k.versions[j]
			switch {
			case !v.stored:
				r.Write = append(r.Write, v.Version)
			case v.filled || v.Version != v.was:
				r.Remove = append(r.Remove, v.place)
				r.Write = append(r.Write, v.Version)
			}
		}
	}
	return r
}
