package fold

import (
	"math"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// A transaction that is too large for one batch reaches a layer in parts. Whatever a
// later part touches is folded again from what the layer held before the transaction
// began, through all parts so far: only that state tells which row leaves an occupied
// key, what a version showed before it ended, and which version ended just then.

// Gone marks, as the file of a place, a row that a layer held before and holds no
// more.
const Gone int32 = -1

// Resumes reports whether a change goes on with the transaction that the cursor stands
// inside of. Rows that a snapshot reads are no transaction: each is a key of its own.
func Resumes(cursor catalog.Position, ch *change.Change) bool {
	return !ch.WasRead() && !cursor.IsZero() && SameTransaction(cursor, ch.Position)
}

// Begun returns a position that is before every change of the transaction in which p
// stands, and after all that is before it.
func Begun(p catalog.Position) catalog.Position {
	return catalog.Position{Generation: p.Generation, Commit: p.Commit - 1, Ordinal: math.MaxUint64}
}

// CurrentBefore is what the current layer held of some keys before a transaction, and
// what it holds now.
type CurrentBefore struct {
	Cursor catalog.Position // how far the layer had come
	// Found is what Find would have returned then. A row that is not there any more
	// has a place in the file Gone, no two the same.
	Found []CurrentFound
	// Since are the rows of the keys that the layer did not hold then.
	Since []change.Place
}

// RedoCurrent folds a transaction again, of which the layer holds a part: batches are
// all of its changes so far to some keys.
func RedoCurrent(t *catalog.Table, before CurrentBefore, batches []*change.Batch) CurrentResult {
	r := Current(t, before.Cursor, batches, before.Found)
	remove, gone := redone(r.Remove, before.Since)
	for i := range before.Found {
		if f := &before.Found[i]; f.Place.File == Gone && !gone[f.Place.Row] {
			r.Write = append(r.Write, f.Row)
		}
	}
	r.Remove = remove
	return r
}

// HistoryBefore is to the history layer what CurrentBefore is to current.
type HistoryBefore struct {
	Cursor catalog.Position
	Found  []VersionFound
	Since  []change.Place
}

// RedoHistory is RedoCurrent for the history layer.
func RedoHistory(t *catalog.Table, before HistoryBefore, batches []*change.Batch) HistoryResult {
	r := History(t, before.Cursor, batches, before.Found)
	remove, gone := redone(r.Remove, before.Since)
	for i := range before.Found {
		if f := &before.Found[i]; f.Place.File == Gone && !gone[f.Place.Row] {
			r.Write = append(r.Write, f.Row)
		}
	}
	r.Remove = remove
	return r
}

// redone returns what to remove of a layer as it is now, and which of the rows that
// are gone stay so.
func redone(remove, since []change.Place) (out []change.Place, gone map[int64]bool) {
	gone = map[int64]bool{}
	for _, p := range remove {
		if p.File == Gone {
			gone[p.Row] = true
			continue
		}
		out = append(out, p)
	}
	return append(out, since...), gone
}
