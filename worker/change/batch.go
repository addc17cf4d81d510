package change

import "github.com/lakeweir/lakeweir/catalog"

// Op is what a change did; the letters are those of bronze's op column.
type Op byte

// The operations.
const (
	Create   Op = 'c'
	Update   Op = 'u'
	Delete   Op = 'd'
	Read     Op = 'r' // the row was read by a snapshot
	Truncate Op = 't' // every row before it in order is gone; has no key and no images
)

// Change is one row event. An update of the key is two changes that follow each
// other: a Delete of the old key and a Create of the new one, each naming the
// other's key in OtherKey.
type Change struct {
	Op Op
	// Late says that the change may stand before others of its table that were handed
	// over earlier, and that it is not known to be one that was sent before. A source
	// whose order of reading is not key order sets it; see pipeline.Source.
	Late bool
	// Partition and Offset are where in its topic the change stood; of tables that are
	// read from a topic only.
	Partition int32
	Offset    int64
	// Before and After are rows of the batch's Rows, or -1. Before may hold key
	// columns only (the rest Absent). A Read and a Create have no Before.
	Before, After int
	// Other is the row that holds the other key of a key move (key columns at
	// least), or -1.
	Other int
	// Key and OtherKey are encoded by Rows.AppendKey; empty for a Truncate and for
	// tables without a key.
	Key, OtherKey []byte
	Position      catalog.Position
	LSN           catalog.LSN // of the change itself; of a Read, the end of the log when it was read
	TxID          uint64      // of the transaction; 0 for what was read
	CommitTime    int64       // microseconds since 1970 UTC; of what was read, when, by the source's clock
}

// WasRead reports whether c comes from reading the source rather than from its log:
// a Read, or the Delete of a key that was asked for and that the source did not
// have. LSN and CommitTime are then those of the reading.
func (c *Change) WasRead() bool { return c.Op == Read || c.Op == Delete && c.TxID == 0 }

// MovedAway reports whether c is the first half of a key move.
func (c *Change) MovedAway() bool { return c.Op == Delete && len(c.OtherKey) > 0 }

// MovedIn reports whether c is the second half of a key move.
func (c *Change) MovedIn() bool { return c.Op == Create && len(c.OtherKey) > 0 }

// Batch is changes of one table in order, all of one schema. It belongs to whoever
// received it; fold fills its unavailable cells in place.
type Batch struct {
	Table   *catalog.Table
	Rows    *Rows
	Changes []Change
	// Epoch is that of every change in the batch.
	Epoch catalog.Epoch
	// Snapshot is the table's snapshot progress once this batch is saved, or nil
	// when the batch does not move it. A batch may have Snapshot and no changes.
	Snapshot *catalog.SnapshotProgress
	// Offsets is where the reading of the table's topic stands once this batch is saved,
	// or nil when the table is not read from a topic. A batch may have Offsets and no
	// changes: then they are kept with the next changes, or after a while.
	Offsets *catalog.TopicOffsets
	// Whole reports that the batch ends where a transaction ends.
	Whole bool
	// Rereads are the requests of pipeline.Rereads that are answered once this batch
	// is saved. A batch may have Rereads and no changes.
	Rereads []int64
	// Remake asks that what the lake shows of the keys that were read in this batch is
	// made anew from bronze, once it is saved.
	Remake bool
	// Masked are rows of which only the key is known, and that only as the lake shows
	// it: the texts of the key columns, in key order. Masking puts in those of masked
	// columns; until then these cells hold nothing of meaning, and the change's Key
	// neither. Nil for almost every batch.
	Masked map[int][]string
}

// End returns the cursor that a layer has once it holds the batch, or start when
// the batch has no changes.
func (b *Batch) End(start catalog.Cursor) catalog.Cursor {
	if len(b.Changes) == 0 {
		return start
	}
	return catalog.Cursor{Epoch: b.Epoch, Position: b.Changes[len(b.Changes)-1].Position}
}

// Weight is about how many bytes a change takes in memory beside its rows.
const Weight = 160

// Size returns about how many bytes the batch takes in memory.
func (b *Batch) Size() int { return b.Rows.Size() + Weight*len(b.Changes) }

// Place is where a row lies in a layer: a file, by the number the layer gave it,
// and the row in that file from 0.
type Place struct {
	File int32
	Row  int64
}

// Ref points at one row image.
type Ref struct {
	Rows *Rows
	Row  int
}

// IsZero reports whether there is no image.
func (r Ref) IsZero() bool { return r.Rows == nil }
