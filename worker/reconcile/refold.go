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
	current *memoryLayer[fold.CurrentRow]
	history *memoryLayer[fold.Version]
	cursor  catalog.Position
	reads   rereads
	forms   []typemap.KeyForm
}

func newRefold(table *catalog.Table, schema *catalog.Schema, forms []typemap.KeyForm) *refold {
	r := &refold{table: table, forms: forms}
	if table.Current {
		r.current = newMemoryLayer(schema, func(v *fold.CurrentRow) *change.Ref { return &v.Image })
	}
	if table.History {
		r.history = newMemoryLayer(schema, func(v *fold.Version) *change.Ref { return &v.Image })
	}
	return r
}

// apply folds the next batch of bronze.
func (r *refold) apply(b *change.Batch) error {
	batches := []*change.Batch{b}
	if l := r.current; l != nil {
		touched := fold.TouchedCurrent(r.table, batches)
		var found []fold.CurrentFound
		l.find(touched, func(key []byte, place change.Place, v *fold.CurrentRow) {
			found = append(found, fold.CurrentFound{Key: key, Place: place, Row: *v})
		})
		result := fold.Current(r.table, r.cursor, batches, found)
		if err := l.write(result.Remove, result.Write); err != nil {
			return err
		}
		r.reads.learn(b, l, r.forms)
	}
	if l := r.history; l != nil {
		touched := fold.TouchedHistory(batches)
		var found []fold.VersionFound
		add := func(key []byte, place change.Place, v *fold.Version) {
			found = append(found, fold.VersionFound{Key: key, Place: place, Row: *v})
		}
		l.find(touched, func(key []byte, place change.Place, v *fold.Version) {
			if v.To == fold.Open {
				add(key, place, v)
			}
		})
		for _, key := range fold.WholeHistory(r.cursor, batches, found) {
			l.findKey(key, func(place change.Place, v *fold.Version) {
				if v.To != fold.Open {
					add(key, place, v)
				}
			})
		}
		result := fold.History(r.table, r.cursor, batches, found)
		if err := l.write(result.Remove, result.Write); err != nil {
			return err
		}
	}
	if n := len(b.Changes); n > 0 {
		r.cursor = b.Changes[n-1].Position
	}
	return nil
}

// fits reports whether the rows take no more than so many bytes, for which it may
// forget removed ones.
func (r *refold) fits(most int) bool {
	if r.size() <= most {
		return true
	}
	if r.current != nil {
		r.current.compact()
	}
	if r.history != nil {
		r.history.compact()
	}
	return r.size() <= most
}

// size returns about how many bytes the rows take.
func (r *refold) size() int {
	n := 0
	if r.current != nil {
		n += r.current.size()
	}
	if r.history != nil {
		n += r.history.size()
	}
	return n
}

// memoryLayer is a layer in memory: rows by number, and their numbers by key.
type memoryLayer[R any] struct {
	image  func(*R) *change.Ref
	rows   *change.Rows // the images; those of removed rows stay until it is compacted
	list   []R
	gone   []bool
	live   int
	byKey  map[string][]int32
	keyBuf []byte
}

func newMemoryLayer[R any](schema *catalog.Schema, image func(*R) *change.Ref) *memoryLayer[R] {
	return &memoryLayer[R]{image: image, rows: change.NewRows(schema), byKey: map[string][]int32{}}
}

func (l *memoryLayer[R]) size() int { return l.rows.Size() + 250*len(l.list) }

func (l *memoryLayer[R]) find(touched fold.Touched, f func(key []byte, place change.Place, v *R)) {
	if touched.All {
		for key, numbers := range l.byKey {
			for _, n := range numbers {
				f([]byte(key), change.Place{Row: int64(n)}, &l.list[n])
			}
		}
		return
	}
	for _, key := range touched.Keys {
		l.findKey(key, func(place change.Place, v *R) { f(key, place, v) })
	}
}

func (l *memoryLayer[R]) findKey(key []byte, f func(place change.Place, v *R)) {
	for _, n := range l.byKey[string(key)] {
		f(change.Place{Row: int64(n)}, &l.list[n])
	}
}

func (l *memoryLayer[R]) write(remove []change.Place, add []R) error {
	// Images first: a row that is written again points into what is removed.
	first := len(l.list)
	for i := range add {
		v := add[i]
		ref := l.image(&v)
		*ref = change.Ref{Rows: l.rows, Row: l.rows.CopyRow(ref.Rows, ref.Row)}
		l.list, l.gone = append(l.list, v), append(l.gone, false)
	}
	for _, place := range remove {
		n := int32(place.Row)
		key, err := l.key(n)
		if err != nil {
			return err
		}
		left := l.byKey[string(key)][:0]
		for _, other := range l.byKey[string(key)] {
			if other != n {
				left = append(left, other)
			}
		}
		if len(left) == 0 {
			delete(l.byKey, string(key))
		} else {
			l.byKey[string(key)] = left
		}
		l.gone[n] = true
		l.live--
	}
	for n := first; n < len(l.list); n++ {
		key, err := l.key(int32(n))
		if err != nil {
			return err
		}
		l.byKey[string(key)] = append(l.byKey[string(key)], int32(n))
		l.live++
	}
	if len(l.list) > 2*l.live+1000 {
		l.compact()
	}
	return nil
}

func (l *memoryLayer[R]) key(n int32) ([]byte, error) {
	ref := l.image(&l.list[n])
	var err error
	l.keyBuf, err = ref.Rows.AppendKey(l.keyBuf[:0], ref.Row)
	return l.keyBuf, err
}

// compact forgets removed rows.
func (l *memoryLayer[R]) compact() {
	rows := change.NewRows(l.rows.Schema())
	list := make([]R, 0, l.live)
	moved := make([]int32, len(l.list))
	for n := range l.list {
		if l.gone[n] {
			continue
		}
		v := l.list[n]
		ref := l.image(&v)
		*ref = change.Ref{Rows: rows, Row: rows.CopyRow(ref.Rows, ref.Row)}
		moved[n] = int32(len(list))
		list = append(list, v)
	}
	for _, numbers := range l.byKey {
		for i := range numbers {
			numbers[i] = moved[numbers[i]]
		}
	}
	l.rows, l.list, l.gone = rows, list, make([]bool, len(list))
}

// each calls f with every row that is there.
func (l *memoryLayer[R]) each(f func(v *R)) {
	for n := range l.list {
		if !l.gone[n] {
			f(&l.list[n])
		}
	}
}
