package keyindex

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Entry is what an index knows of a key's live row.
type Entry struct {
	Place        change.Place
	Position     catalog.Position // of the change that made the row what it is
	Deleted      bool             // the row is soft-deleted
	FromSnapshot bool             // the row was read by a snapshot and not changed since
}

// Index maps keys, as change.Rows.AppendKey encodes them, to their live rows. A key
// has at most one. Not safe for concurrent use.
type Index interface {
	// Find returns the entry of a key.
	Find(key []byte) (Entry, bool)
	// Put sets the entry of a key. It returns where the row lay whose entry it
	// replaced; false when there was none.
	Put(key []byte, e Entry) (change.Place, bool)
	// Remove forgets a key; one that is not there is ignored.
	Remove(key []byte)
	// Len returns how many keys there are.
	Len() int
	// Size returns about how many bytes of memory it takes.
	Size() int64
}
