package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// snapshot is the reading of one table's existing rows, until it is done.
type snapshot struct {
	// progress is as of everything put up for handing over; changed says that it
	// has to go out with the next batch.
	progress catalog.SnapshotProgress
	changed  bool
	bound    []string   // the key of the last row read
	read     bool       // every range was read; keys may remain
	keys     [][]string // to be read again

	each     int    // bytes of a row of the last chunk, or 0
	limit    int    // rows of the next chunk
	most     int    // of any chunk
	waitFor  uint64 // the first transaction that need not have ended before the first chunk
	waited   bool   // it was said that it waits
	notUntil time.Time
	failures int
}

// window is open while a chunk is read: the table's changes are held.
type window struct {
	held    *builder
	results chan *chunk // one place: a reader of pieces waits until its last was taken
	result  *chunk      // read, but the log has not come to its place yet
	cancel  context.CancelFunc
	asked   int     // keys asked for; 0 for a range
	reread  *reread // rows are read again on request; else the table is being read
	// streaming says that the first piece of a table without a key was handed over.
	streaming bool
}

// maxKeys bounds the keys to be read again; with more, the table is read anew from
// its start, which brings them too.
const maxKeys = 10_000

// chunkFailures in a row stop a table.
const chunkFailures = 10

// firstOrdinal is that of a chunk's first row; chunks read at one place of the log
// go on counting.
func (t *table) firstOrdinal(c *chunk) uint64 {
	if t.read.commit == c.readAt() {
		return t.read.ordinal/2*2 + 2
	}
	return 0
}

// advance notes the newest of changes put up for handing over.
func (t *table) advance(changes []change.Change) {
	for i := len(changes) - 1; i >= 0; i-- {
		p := changes[i].Position
		here := place{p.Commit, p.Ordinal}
		if here.after(t.last) {
			t.last = here
		}
		if changes[i].WasRead() {
			t.read = here
			return
		}
	}
}

// advance counts a chunk of a range.
func (n *snapshot) advance(c *chunk, rows int) {
	if n.progress.StartedAt == 0 {
		n.progress.StartedAt = c.time
	}
	n.progress.Rows += int64(rows)
	n.progress.Chunks++
	n.each = c.bytes / max(rows, 1)
	if c.bound != nil {
		n.bound = c.bound
	}
	n.read = n.read || c.last
	n.limit = min(2*n.limit, n.most)
}

// finish marks what has to be told, and the end.
func (n *snapshot) finish() {
	n.failures = 0
	n.changed = true
	n.waitFor = 0
	n.progress.Done = n.read && len(n.keys) == 0
}

// restartKeyless begins a reading anew, as the next generation: one that is cut
// short cannot be continued.
func (t *table) restartKeyless() {
	t.generation++
	t.snap.progress = catalog.SnapshotProgress{Generation: t.generation, Estimate: t.snap.progress.Estimate}
	t.snap.read = false
}

// again notes the keys of rows that moved in with values that nobody sent: no
// chunk may bring them, since the row may have come out of a range not yet read
// into one that was.
func (t *table) again(b *builder) {
	snap := t.snap
	if snap == nil || !t.cfg.HasKey() {
		return
	}
	for i := range b.changes {
		if c := &b.changes[i]; c.MovedIn() && hasUnavailable(b.rows, c.After) {
			snap.keys = append(snap.keys, keyTexts(b.rows, c.After))
			snap.changed = true
		}
	}
	if len(snap.keys) > maxKeys {
		snap.keys, snap.bound, snap.read = nil, nil, false
	}
	snap.progress.Done = snap.read && len(snap.keys) == 0 && snap.progress.Chunks > 0
}

func hasUnavailable(rows *change.Rows, row int) bool {
	for col := range rows.Schema().Columns {
		if rows.Mark(row, col) == change.Unavailable {
			return true
		}
	}
	return false
}

// keyTexts prints a row's key as the server does.
func keyTexts(rows *change.Rows, row int) []string {
	schema := rows.Schema()
	out := make([]string, len(schema.Key))
	for i, col := range schema.Key {
		out[i] = string(appendValue(nil, rows, row, col))
	}
	return out
}

// handedOver returns the progress to go with a batch.
func (s *Source) handedOver(t *table) (*catalog.SnapshotProgress, error) {
	p := t.snap.progress
	var err error
	if p.Bound, err = s.sealKey(t, t.snap.bound); err != nil {
		return nil, err
	}
	p.Keys = make([]string, 0, len(t.snap.keys))
	for _, k := range t.snap.keys {
		sealed, err := s.sealKey(t, k)
		if err != nil {
			return nil, err
		}
		p.Keys = append(p.Keys, sealed)
	}
	if len(p.Keys) == 0 {
		p.Keys = nil
	}
	t.snap.changed = false
	return &p, nil
}

// sealKey encodes the texts of a key, hidden when a column of it is masked.
func (s *Source) sealKey(t *table, texts []string) (string, error) {
	if texts == nil {
		return "", nil
	}
	plain, err := json.Marshal(texts)
	if err != nil {
		return "", err
	}
	if !keyIsMasked(t.cfg) {
		return string(plain), nil
	}
	if s.cfg.Seal == nil {
		return "", fmt.Errorf("table %s: its key is masked and there is nothing to seal it with", t.name)
	}
	return s.cfg.Seal(t.name, plain), nil
}

func (s *Source) unsealKey(t *table, sealed string) ([]string, error) {
	if sealed == "" {
		return nil, nil
	}
	plain := []byte(sealed)
	if keyIsMasked(t.cfg) {
		if s.cfg.Unseal == nil {
			return nil, fmt.Errorf("table %s: its key is masked and there is nothing to unseal it with", t.name)
		}
		var err error
		if plain, err = s.cfg.Unseal(t.name, sealed); err != nil {
			return nil, fmt.Errorf("table %s: unseal the snapshot's progress: %w", t.name, err)
		}
	}
	var texts []string
	if err := json.Unmarshal(plain, &texts); err != nil {
		return nil, fmt.Errorf("table %s: the snapshot's progress cannot be read", t.name) // the cause may quote it
	}
	if len(texts) != len(t.schema.Key) {
		return nil, fmt.Errorf("table %s: the snapshot's progress is of another key", t.name)
	}
	return texts, nil
}

func keyIsMasked(t *catalog.Table) bool {
	for _, name := range t.PrimaryKey {
		if _, masked := t.PII[name]; masked {
			return true
		}
	}
	return false
}
