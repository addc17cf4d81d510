package lake

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// A row that a commit removes stays in its file; only a delete file hides it. So what
// a layer held before its last commits is read from the same files: the rows that are
// still there, and those that only the delete files since hide.

// base finds the snapshot that the layer had before the first commit with a part of
// the transaction that its cursor stands in; nil when the layer was empty.
func (k *keyed) base() (*table.Snapshot, pipeline.LayerState, error) {
	md := k.tbl.Metadata()
	var now *pipeline.LayerState
	for s := md.CurrentSnapshot(); s != nil; {
		if s.Summary != nil && s.Summary.Properties[propCursor] != "" {
			st, err := parseState(s.Summary.Properties, k.name)
			if err != nil {
				return nil, st, err
			}
			if now == nil {
				now = &st
			}
			switch {
			case st.Remade != now.Remade:
				return nil, st, pipeline.ErrNoBefore
			case !fold.SameTransaction(st.Cursor.Position, now.Cursor.Position):
				return s, st, nil
			case s.Summary.Properties[propRebuilt] != "":
				return nil, st, pipeline.ErrNoBefore // what was before it counted no more
			}
		}
		if s.ParentSnapshotID == nil {
			return nil, pipeline.LayerState{}, nil
		}
		s = md.SnapshotByID(*s.ParentSnapshotID)
	}
	return nil, pipeline.LayerState{}, pipeline.ErrNoBefore
}

// Before returns the cursor of the state that FindBefore looks at.
func (k *keyed) Before(context.Context) (catalog.Position, error) {
	_, st, err := k.base()
	return st.Cursor.Position, err
}

// ledgerOf returns the ledger of an older snapshot, keeping the last one.
func (k *keyed) ledgerOf(ctx context.Context, s *table.Snapshot) (*ledger, error) {
	if s == nil {
		return newLedger(), nil
	}
	if k.past != nil && k.pastID == s.SnapshotID {
		return k.past, nil
	}
	manifests, err := s.Manifests(k.fs)
	var lg *ledger
	if err == nil {
		lg, err = k.readLedger(ctx, manifests)
	}
	if err != nil {
		return nil, k.lake.unavailable(err, "the files that "+k.name+" had before cannot be read")
	}
	k.past, k.pastID = lg, s.SnapshotID
	return lg, nil
}

// held is a row that the layer held before.
type held struct {
	key   []byte
	place change.Place // as it is now; in the file fold.Gone when it is not there any more
	file  *dataFile
	row   int64
}

// before finds the rows of the touched keys that the layer held before, of those with
// the flag set if there is one, and the places of all their rows that came since.
func (k *keyed) before(ctx context.Context, now *ledger, touched fold.Touched, flag string) (cursor catalog.Position, rows []held, since []change.Place, err error) {
	snapshot, st, err := k.base()
	if err != nil {
		return cursor, nil, nil, err
	}
	then, err := k.ledgerOf(ctx, snapshot)
	if err != nil {
		return cursor, nil, nil, err
	}
	for path := range then.byPath {
		if now.byPath[path] == nil {
			return cursor, nil, nil, pipeline.ErrNoBefore // another writer has rewritten it
		}
	}
	clear(k.found)
	keys := fold.NewKeySet(touched.Keys...)
	if touched.All {
		keys = fold.AllKeys()
	}
	gone := int64(0)
	s := keyScan{keyed: k, flag: flag, filter: newKeyFilter(k.schema, keys), wanted: func(key []byte, set bool) bool {
		return (set || flag == "") && keys.Has(key)
	}}
	for _, file := range then.inOrder() {
		today := now.byPath[file.path]
		s.take = func(_ *dataFile, row int64, key []byte, _ bool) int {
			h := held{key: key, file: today, row: row, place: change.Place{File: today.number, Row: row}}
			if today.isDeleted(row) {
				h.place = change.Place{File: fold.Gone, Row: gone}
				gone++
			} else {
				k.place(h.place, key)
			}
			rows = append(rows, h)
			return 0
		}
		hidden := today.deleted != nil && (file.deleted == nil || today.deleted.Cardinality() > file.deleted.Cardinality())
		switch {
		case touched.All:
			err = s.live(ctx, file) // it knows the row as it was then
		case hidden:
			err = s.file(ctx, file, func(row int64) bool { return today.isDeleted(row) && !file.isDeleted(row) })
		}
		if err != nil {
			return cursor, nil, nil, err
		}
	}
	if !touched.All {
		for _, key := range touched.Keys {
			e, ok := now.index.Find(key)
			if !ok {
				continue
			}
			if file := now.files[e.Place.File]; file != nil && then.byPath[file.path] != nil {
				k.place(e.Place, key)
				rows = append(rows, held{key: key, place: e.Place, file: file, row: e.Place.Row})
			}
		}
	}
	s.wanted = func(key []byte, _ bool) bool { return keys.Has(key) }
	s.take = func(file *dataFile, row int64, key []byte, set bool) int {
		p := change.Place{File: file.number, Row: row}
		since = append(since, p)
		if set || flag == "" {
			k.place(p, key)
		}
		return 0
	}
	for _, file := range now.inOrder() {
		if then.byPath[file.path] == nil {
			if err := s.live(ctx, file); err != nil {
				return cursor, nil, nil, err
			}
		}
	}
	return st.Cursor.Position, rows, since, nil
}

// byFile calls f with the rows to read of each file.
func byFile(rows []held, f func(file *dataFile, want []wanted) error) error {
	files := map[*dataFile][]wanted{}
	for i, r := range rows {
		files[r.file] = append(files[r.file], wanted{r.row, i})
	}
	for file, want := range files {
		slices.SortFunc(want, func(a, b wanted) int { return int(min(1, max(-1, a.row-b.row))) })
		if err := f(file, want); err != nil {
			return err
		}
	}
	return nil
}

// FindBefore returns what the layer held of the touched keys before the transaction
// that its cursor stands in, with images.
func (c *current) FindBefore(ctx context.Context, touched fold.Touched) (fold.CurrentBefore, error) {
	var out fold.CurrentBefore
	lg, err := c.index(ctx)
	if err != nil {
		return out, err
	}
	var rows []held
	if out.Cursor, rows, out.Since, err = c.before(ctx, lg, touched, ""); err != nil {
		return out, err
	}
	for _, r := range rows {
		out.Found = append(out.Found, fold.CurrentFound{Key: r.key, Place: r.place})
	}
	images := change.NewRows(c.schema)
	err = byFile(rows, func(file *dataFile, want []wanted) error {
		return c.readImages(ctx, file, images, want, nil, out.Found)
	})
	if err != nil {
		return out, c.lake.unavailable(err, "the rows of "+c.name+" cannot be read")
	}
	snapshot, _, err := c.base()
	for i := range out.Found {
		if r := &out.Found[i].Row; !r.Deleted {
			c.fills.apply(c.filledAt(snapshot), images, r.Image.Row, r.Stamp.Position)
		}
	}
	return out, err
}

// FindBefore is as Current's, with open versions.
func (h *history) FindBefore(ctx context.Context, touched fold.Touched) (fold.HistoryBefore, error) {
	var out fold.HistoryBefore
	lg, err := h.index(ctx)
	if err != nil {
		return out, err
	}
	var rows []held
	if out.Cursor, rows, out.Since, err = h.before(ctx, lg, touched, colIsCurrent); err != nil {
		return out, err
	}
	for _, r := range rows {
		out.Found = append(out.Found, fold.VersionFound{Key: r.key, Place: r.place})
	}
	images := change.NewRows(h.schema)
	err = byFile(rows, func(file *dataFile, want []wanted) error {
		return h.readImages(ctx, file, images, want, nil, out.Found)
	})
	if err != nil {
		return out, h.lake.unavailable(err, "the rows of "+h.name+" cannot be read")
	}
	snapshot, _, err := h.base()
	for i := range out.Found {
		h.fills.apply(h.filledAt(snapshot), images, out.Found[i].Row.Image.Row, out.Found[i].Row.Stamp.Position)
	}
	return out, err
}
