package postgres

import (
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

var _ pipeline.Rereader = (*Source)(nil)

// rereads is what of one table is to be read again by key, also while its snapshot
// runs and when it is long done.
type rereads struct {
	queue    []*reread
	finished []int64 // answered by what is put up for handing over
	limit    int     // keys of the next chunk
	notUntil time.Time
	failures int
	before   bool   // the table's last window was one of these
	waitFor  uint64 // the first transaction that need not have ended before a chunk
}

// reread is a request that is under way.
type reread struct {
	id     int64
	keys   [][]string // still to be read
	masked bool
	remake bool
}

// rereadKeys is how many keys a chunk has at most, and the least it is cut down to.
const (
	rereadKeys  = 500
	rereadLeast = 20
)

// Reread implements pipeline.Rereader.
func (s *Source) Reread(q pipeline.Reread) { s.asked.reread(q) }

// reread takes a request up. One of a table that is not read is let go: the next
// source is asked again.
func (s *Source) reread(q pipeline.Reread) {
	for _, t := range s.order {
		if t.name != q.Table || t.stopped {
			continue
		}
		r := &reread{id: q.ID, masked: q.Masked && keyIsMasked(t.cfg), remake: q.Remake}
		for _, key := range q.Keys {
			if len(key) == len(t.schema.Key) && t.cfg.HasKey() {
				r.keys = append(r.keys, key)
			}
		}
		if len(r.keys) < len(q.Keys) {
			s.log.Warn("keys that the table cannot have are not read again", "table", t.cfg.ID(), "request", q.ID, "keys", len(q.Keys)-len(r.keys))
		}
		if len(r.keys) == 0 {
			t.rereads.finished = append(t.rereads.finished, q.ID)
			return
		}
		t.rereads.queue = append(t.rereads.queue, r)
		return
	}
}

// due reports whether there is something to read again now.
func (a *rereads) due(now time.Time) bool { return len(a.queue) > 0 && !now.Before(a.notUntil) }

// openReread holds the table's changes from here on and begins to read some of the
// wanted keys.
func (s *Source) openReread(t *table) {
	a := &t.rereads
	r := a.queue[0]
	if a.limit == 0 {
		a.limit = rereadKeys
	}
	n := min(len(r.keys), a.limit)
	if r.masked { // each chunk looks through the whole table
		n = len(r.keys)
	}
	w := &window{held: newBuilder(t.schema), reread: r}
	s.startReading(t, w, request{keys: r.keys[:n:n], masked: r.masked, again: true, waitFor: a.waitFor})
}

// placeReread puts what was read again among the held changes, and closes the window.
func (s *Source) placeReread(t *table) {
	c, w, a := t.window.result, t.window, &t.rereads
	overtaken, err := s.overtakenMasked(t, c, w.held)
	if err != nil {
		s.chunkFailed(t, err)
		return
	}
	c.forget(overtaken)
	batch, _ := merge(w.held, c, t.generation, t.firstOrdinal(c))
	batch.remake = w.reread.remake
	s.finishWindow(t)
	if len(batch.changes) > 0 {
		t.batch = batch
	}
	t.advance(batch.changes)
	a.failures = 0
	a.limit = min(2*max(a.limit, 1), rereadKeys)
	w.reread.keys = unanswered(w.reread.keys, c, batch.changes)
	if len(w.reread.keys) == 0 {
		a.queue = a.queue[1:]
		a.finished = append(a.finished, w.reread.id)
	} else if len(a.queue) > 1 { // the others have their turn
		a.queue = append(a.queue[1:], w.reread)
	}
}

// unanswered returns the keys that are still to be read: those that were not asked
// for yet, that the chunk had no room for, or that an unseen change has overtaken.
// The last are asked for again rather than left: that change may have come without
// values that the chunk could not lend it.
func unanswered(keys [][]string, c *chunk, changes []change.Change) [][]string {
	answered := map[string]bool{}
	for i := range changes {
		ch := &changes[i]
		if !ch.WasRead() || ch.Position.Commit != c.readAt() {
			continue
		}
		row := max(ch.After, ch.Before)
		if name, ok := c.asked[row]; ok {
			answered[name] = true
		}
	}
	for _, name := range c.impossible {
		answered[name] = true
	}
	var left [][]string
	for _, key := range keys {
		if !answered[keyName(key)] {
			left = append(left, key)
		}
	}
	return left
}

// keyName makes one text of the texts of a key.
func keyName(texts []string) string { return strings.Join(texts, "\x00") }

// rereadFailed tries again later. It never stops the table: its stream goes on, and
// what it may not read now stays as it is.
func (s *Source) rereadFailed(t *table, err error) {
	s.closeWindow(t)
	a := &t.rereads
	a.failures++
	a.limit = max(a.limit/2, rereadLeast)
	wait := min(time.Second<<min(a.failures-1, 5), 30*time.Second)
	a.notUntil = s.cfg.Clock().Add(wait)
	message := serverMessage(err)
	if isBadText(err) { // it quotes the value
		message = "the server refuses a value with " + sqlState(err)
	}
	s.log.Warn("rows not read again, trying later", "table", t.cfg.ID(), "failures", a.failures, "wait", wait, "error", message)
}

// overtakenMasked finds the asked keys, known only as the lake shows them and absent
// at the source, that a change unseen by the reading has brought: they are left to
// that change.
func (s *Source) overtakenMasked(t *table, c *chunk, held *builder) (map[string]bool, error) {
	if len(c.masked) == 0 {
		return nil, nil //nolint:nilnil // none is overtaken
	}
	out := map[string]bool{}
	for i := range held.changes {
		ch := &held.changes[i]
		if ch.Position.Commit >= c.at || c.sees.Sees(ch.TxID) {
			continue
		}
		for _, row := range [3]int{ch.Before, ch.After, ch.Other} {
			if row < 0 || !hasKey(held.rows, row) {
				continue
			}
			texts, err := s.maskKey(t.cfg, t.schema, keyTexts(held.rows, row))
			if err != nil {
				return nil, err
			}
			out[keyName(texts)] = true
		}
		if ch.Op == change.Truncate { // nothing is there any more, and nothing has to be said
			for _, texts := range c.masked {
				out[keyName(texts)] = true
			}
		}
	}
	return out, nil
}

func hasKey(rows *change.Rows, row int) bool {
	for _, col := range rows.Schema().Key {
		if !rows.HasValue(row, col) {
			return false
		}
	}
	return true
}

// maskKey returns the texts of a key as the lake shows them.
func (s *Source) maskKey(t *catalog.Table, schema *catalog.Schema, texts []string) ([]string, error) {
	out := make([]string, len(texts))
	for i, col := range schema.Key {
		out[i] = texts[i]
		if p := t.PII[schema.Columns[col].Name]; p != "" {
			masked, err := s.cfg.MaskText(p, texts[i])
			if err != nil {
				return nil, err
			}
			out[i] = masked
		}
	}
	return out, nil
}

// forget takes rows of masked keys out of a chunk. They stand last.
func (c *chunk) forget(names map[string]bool) {
	if len(names) == 0 {
		return
	}
	if c.dropped == nil {
		c.dropped = map[int]bool{}
	}
	for row, texts := range c.masked {
		if names[keyName(texts)] {
			c.dropped[row] = true
			delete(c.masked, row)
		}
	}
}
