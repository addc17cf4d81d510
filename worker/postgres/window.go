package postgres

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// chunk is rows of one table, read at one point of the log.
type chunk struct {
	sees change.Visibility // of its transaction
	at   catalog.LSN       // P: the end of the log, noted after the snapshot was taken
	time int64             // when it was read, by the server's clock
	rows *change.Rows
	keys [][]byte // by row; nil for a table without a key
	// bound is the key of the last row as texts; nil when there is no row.
	bound []string
	last  bool // there is nothing behind it
	bytes int
	err   error

	// gone is how many of the rows, which stand last, have the key alone: they were
	// asked for and are not there.
	gone int
	// asked names the asked key of each row; impossible are names of asked keys that
	// no row can have. Of a reading by key alone.
	asked      map[int]string
	impossible []string
	// masked are those of the rows that are gone whose key is known only as the lake
	// shows it; of them, those of dropped have come meanwhile.
	masked  map[int][]string
	dropped map[int]bool
}

// readAt is the Commit of the rows' positions: odd, so that it is no commit
// record's, above every one before P and below every one from P on.
func (c *chunk) readAt() catalog.LSN { return c.at - 1 }

// merge puts a chunk among the changes that were held back while it was read,
// which begin before the chunk's snapshot was taken, and returns all in order and
// how many rows of the chunk are among them. next is the ordinal of the chunk's
// first row. It consumes both.
//
// What committed before P goes first. The chunk has seen it, or else it overtook
// the chunk: then the chunk's row of that key is out of date and is left out, but
// the values that the change did not send again are taken from it, since nobody
// else has them. A row lock makes the unseen changes of a key later than the seen
// ones.
func merge(held *builder, c *chunk, generation uint32, next uint64) (*builder, int) {
	split := len(held.changes)
	for i := range held.changes {
		if held.changes[i].Position.Commit >= c.at {
			split = i
			break
		}
	}
	out := &builder{rows: c.rows, masked: c.masked}
	offset := appendRows(c.rows, held)
	overtaken := overtake(c, held.changes[:split], offset)

	out.changes = make([]change.Change, 0, len(held.changes)+len(c.keys))
	out.changes = append(out.changes, held.changes[:split]...)
	reads := appendReads(out, c, generation, next, overtaken)
	out.changes = append(out.changes, held.changes[split:]...)
	return out, reads
}

// appendRows copies the images of changes behind others and points the changes at
// them. It returns by how much the row numbers grew.
func appendRows(rows *change.Rows, b *builder) int {
	offset := rows.Len()
	for i := range b.rows.Len() {
		rows.CopyRow(b.rows, i)
	}
	for i := range b.changes {
		c := &b.changes[i]
		for _, row := range []*int{&c.Before, &c.After, &c.Other} {
			if *row >= 0 {
				*row += offset
			}
		}
	}
	return offset
}

// overtake finds the rows of the chunk that changes unseen by it have overtaken,
// and gives what those and the seen changes before them did not carry. It returns
// nil when there is none.
func overtake(c *chunk, changes []change.Change, read int) []bool {
	var overtaken []bool
	var byKey map[string]int
	for i := range changes {
		ch := &changes[i]
		if c.sees.Sees(ch.TxID) {
			continue
		}
		if overtaken == nil {
			overtaken = make([]bool, read)
			byKey = make(map[string]int, len(c.keys))
			for row, key := range c.keys {
				byKey[string(key)] = row
			}
		}
		if ch.Op == change.Truncate {
			for row := range overtaken {
				overtaken[row] = true
			}
			clear(byKey)
			continue
		}
		row, found := byKey[string(ch.Key)]
		if !found {
			continue
		}
		overtaken[row] = true
		if ch.Op == change.Create {
			continue // another row moves in; the one that was read leaves later
		}
		delete(byKey, string(ch.Key))
		fill(c.rows, row, ch.After)
		if ch.MovedAway() {
			fill(c.rows, row, ch.Other)
		}
	}
	if overtaken != nil {
		fillBack(c, changes, overtaken)
	}
	return overtaken
}

// fillBack gives the seen changes of overtaken rows the values that they did not
// send: of a row that is handed over, whoever folds history does that. A value that
// was not sent again is the one that was read.
func fillBack(c *chunk, changes []change.Change, overtaken []bool) {
	byKey := map[string]int{}
	for row, key := range c.keys {
		if overtaken[row] {
			byKey[string(key)] = row
		}
	}
	known := map[int][]bool{} // by row, the columns that a later change has sent
	for i := len(changes) - 1; i >= 0; i-- {
		ch := &changes[i]
		if !c.sees.Sees(ch.TxID) {
			continue
		}
		if ch.Op == change.Truncate {
			return
		}
		row, found := byKey[string(ch.Key)]
		if !found {
			continue
		}
		if ch.After < 0 { // what was here before is another row
			delete(byKey, string(ch.Key))
			continue
		}
		if known[row] == nil {
			known[row] = make([]bool, len(c.rows.Schema().Columns))
		}
		for col, sent := range known[row] {
			switch {
			case c.rows.Mark(ch.After, col) != change.Unavailable:
				known[row][col] = true
			case !sent && c.rows.Mark(row, col) != change.Absent:
				c.rows.Copy(ch.After, col, c.rows, row, col)
			}
		}
		if ch.Op == change.Create {
			delete(byKey, string(ch.Key))
		}
	}
}

// fill gives a row the values that its change did not send.
func fill(rows *change.Rows, from, to int) {
	if to < 0 {
		return
	}
	for col := range rows.Schema().Columns {
		if rows.Mark(to, col) == change.Unavailable && rows.Mark(from, col) != change.Absent {
			rows.Copy(to, col, rows, from, col)
		}
	}
}

func appendReads(out *builder, c *chunk, generation uint32, next uint64, overtaken []bool) int {
	reads := 0
	n := len(c.keys)
	for row := range n {
		if overtaken != nil && overtaken[row] || c.dropped[row] {
			continue
		}
		op, before, after := change.Read, -1, row
		if row >= n-c.gone {
			op, before, after = change.Delete, row, -1
		}
		out.changes = append(out.changes, change.Change{
			Op: op, Before: before, After: after, Other: -1, Key: c.keys[row],
			Position: catalog.Position{Generation: generation, Commit: c.readAt(), Ordinal: next + 2*uint64(reads)},
			LSN:      c.at, CommitTime: c.time,
		})
		reads++
	}
	return reads
}

// mergeKeyless begins the reading of a table without a key: of the held changes
// before P, those that the reading has seen are part of it and are dropped; the
// others go first. What committed from P on stays held.
func mergeKeyless(held *builder, c *chunk, generation uint32, next uint64) (out, rest *builder) {
	rest = &builder{rows: held.rows, keys: held.keys}
	before := &builder{rows: held.rows}
	for i := range held.changes {
		switch ch := held.changes[i]; {
		case ch.Position.Commit >= c.at:
			rest.changes = append(rest.changes, ch)
		case !c.sees.Sees(ch.TxID):
			before.changes = append(before.changes, ch)
		}
	}
	out = &builder{rows: c.rows}
	if len(before.changes) > 0 {
		appendRows(c.rows, before)
		out.changes = append(out.changes, before.changes...)
	}
	appendReads(out, c, generation, next, nil)
	return out, rest
}
