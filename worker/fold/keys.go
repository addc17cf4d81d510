package fold

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// TouchedCurrent returns what Current needs to know of the current layer before it
// folds the batches.
func TouchedCurrent(t *catalog.Table, batches []*change.Batch) Touched {
	c := newCollector(changesIn(batches))
	for _, b := range batches {
		for i := range b.Changes {
			ch := &b.Changes[i]
			switch ch.Op {
			case change.Truncate:
				c.touched.All = true
				c.touched.ImageAll = t.SoftDelete
				continue
			case change.Read:
				// Compared with what is there, so that a repeated read writes nothing.
				c.add(ch.Key, true)
				continue
			case change.Delete:
				c.add(ch.Key, t.SoftDelete)
				continue
			case change.Create, change.Update:
			}
			missing := hasUnavailable(b.Rows, ch.After)
			if ch.MovedIn() {
				c.add(ch.OtherKey, missing)
			}
			c.add(ch.Key, missing && !ch.MovedIn())
		}
	}
	return c.touched
}

// TouchedHistory returns what History needs to know of the history layer before
// it folds the batches.
func TouchedHistory(batches []*change.Batch) Touched {
	c := newCollector(changesIn(batches))
	for _, b := range batches {
		for i := range b.Changes {
			ch := &b.Changes[i]
			if ch.Op == change.Truncate {
				c.touched.All, c.touched.ImageAll = true, true
				continue
			}
			c.add(ch.Key, true)
			if ch.MovedIn() {
				c.add(ch.OtherKey, true)
			}
		}
	}
	return c.touched
}

// WholeHistory returns the keys of which History needs every version, closed ones
// too, given the open versions that were found: keys read again whose open version
// lacks values that were never sent, since closed versions may lack the same ones.
func WholeHistory(batches []*change.Batch, found []VersionFound) [][]byte {
	lacking := map[string]bool{}
	for i := range found {
		if f := &found[i]; hasUnavailable(f.Row.Image.Rows, f.Row.Image.Row) {
			lacking[string(f.Key)] = true
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	c := newCollector(0)
	for _, b := range batches {
		for i := range b.Changes {
			if ch := &b.Changes[i]; ch.Op == change.Read && lacking[string(ch.Key)] {
				c.add(ch.Key, true)
			}
		}
	}
	return c.touched.Keys
}

// Returning returns the keys that have no open version among those found and get one
// at a commit time below the newest that the layer holds, and the least of those
// times. A version of such a key may have ended later than the new one would begin:
// give History what Closed makes of it. Clocks seldom run backwards that far, so
// there is seldom any.
func Returning(newest int64, batches []*change.Batch, found []VersionFound) (keys [][]byte, since int64) {
	c := newCollector(0)
	var open map[string]bool
	for _, b := range batches {
		for i := range b.Changes {
			ch := &b.Changes[i]
			if ch.CommitTime >= newest || ch.After < 0 {
				continue
			}
			if open == nil {
				open = make(map[string]bool, len(found))
				for i := range found {
					if found[i].Row.To == Open {
						open[string(found[i].Key)] = true
					}
				}
			}
			if open[string(ch.Key)] {
				continue
			}
			if len(c.touched.Keys) == 0 || ch.CommitTime < since {
				since = ch.CommitTime
			}
			c.add(ch.Key, false)
		}
	}
	return c.touched.Keys, since
}

// Closed is all that History needs of the versions of one of Returning's keys: when
// the last of them ended.
func Closed(key []byte, to int64) VersionFound { return VersionFound{Key: key, Row: Version{To: to}} }

type collector struct {
	index   map[string]int
	touched Touched
}

// newCollector makes one with room for so many keys.
func newCollector(room int) *collector {
	return &collector{index: make(map[string]int, room), touched: Touched{Keys: make([][]byte, 0, room), Image: make([]bool, 0, room)}}
}

// changesIn is how many changes batches have, and so how many keys at most.
func changesIn(batches []*change.Batch) int {
	n := 0
	for _, b := range batches {
		n += len(b.Changes)
	}
	return n
}

func (c *collector) add(key []byte, image bool) {
	if len(key) == 0 {
		return
	}
	i, ok := c.index[string(key)]
	if !ok {
		i = len(c.touched.Keys)
		c.index[string(key)] = i
		c.touched.Keys = append(c.touched.Keys, key)
		c.touched.Image = append(c.touched.Image, false)
	}
	if image {
		c.touched.Image[i] = true
	}
}

func hasUnavailable(rows *change.Rows, row int) bool {
	if rows == nil || row < 0 {
		return false
	}
	for col := range rows.Schema().Columns {
		if rows.Mark(row, col) == change.Unavailable {
			return true
		}
	}
	return false
}

// SameTransaction reports whether two positions are of one transaction or chunk.
func SameTransaction(a, b catalog.Position) bool {
	return a.Generation == b.Generation && a.Commit == b.Commit
}

// fillUnavailable gives a row the values that held at its predecessor where its
// own were not sent.
func fillUnavailable(rows *change.Rows, row int, from change.Ref) {
	if from.IsZero() {
		return
	}
	for col := range rows.Schema().Columns {
		if rows.Mark(row, col) == change.Unavailable {
			rows.Fill(row, col, from.Rows, from.Row, col)
		}
	}
}

// identical reports whether two rows show the same in every column, and lack the
// same values.
func identical(a, b change.Ref) bool {
	for col := range a.Rows.Schema().Columns {
		if !sameCell(a, b, col) {
			return false
		}
	}
	return true
}

func sameCell(a, b change.Ref, col int) bool {
	if (a.Rows.Mark(a.Row, col) == change.Unavailable) != (b.Rows.Mark(b.Row, col) == change.Unavailable) {
		return false
	}
	return change.Equal(a.Rows, a.Row, b.Rows, b.Row, col)
}
