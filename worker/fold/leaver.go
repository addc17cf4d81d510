package fold

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// A key holds one row, save inside a transaction under a deferred constraint: there a
// row may move to a key whose row leaves later. Such a table's replica identity is
// not its key, so the old image tells which of the rows a change is of. And it tells
// of a row that the lake has never seen that it is none of those.

// candidate is one of the rows at a key, in the order in which they came.
type candidate struct {
	image change.Ref
	at    catalog.Position // of the change that made the row what it is
}

// leaver returns which of the rows at a key a Delete or an Update is of, or -1 for a
// row that the lake does not know. Of the rows that came in the same transaction, as
// which they are known exactly, the old image names one; else it is the row that was
// there before. An old image that has only the key does not tell: then the first to
// come is the first to leave, and the last to come is the one that is updated.
func leaver(b *change.Batch, ch *change.Change, n int, row func(i int) candidate) int {
	last := n - 1
	if n == 0 || n == 1 && !SameTransaction(row(0).at, ch.Position) {
		return last
	}
	if !tells(b.Rows, ch.Before) {
		if ch.Op == change.Update {
			return last
		}
		return 0
	}
	standing := -1
	for i := range n {
		r := row(i)
		if !SameTransaction(r.at, ch.Position) {
			standing = i
		} else if shows(r.image, b.Rows, ch.Before) {
			return i
		}
	}
	return standing
}

// tells reports whether an old image has more than the key.
func tells(rows *change.Rows, before int) bool {
	if before < 0 {
		return false
	}
	schema := rows.Schema()
	for col := range schema.Columns {
		if rows.Mark(before, col) != change.Absent && !schema.IsKey(col) {
			return true
		}
	}
	return false
}

// shows reports whether a row is as the old image says, as far as both are known.
func shows(image change.Ref, rows *change.Rows, before int) bool {
	if image.IsZero() {
		return false
	}
	for col := range rows.Schema().Columns {
		switch m := rows.Mark(before, col); {
		case m == change.Absent, m == change.Unavailable, image.Rows.Mark(image.Row, col) == change.Unavailable:
		case !change.Equal(image.Rows, image.Row, rows, before, col):
			return false
		}
	}
	return true
}
