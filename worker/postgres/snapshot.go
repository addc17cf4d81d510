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

	limit    int // rows of the next chunk
	most     int // of any chunk
	seen     seenXIDs
	waitFor  uint64 // the first transaction that need not have ended before the first chunk
	waited   bool // it was said that it waits
	notUntil time.Time
	failures int
}

// window is open while a chunk is read: the table's changes are held.
type window struct {
	held    *builder
	results chan *chunk // one place: a reader of pieces waits until its last was taken
	result  *chunk      // read, but the log has not come to its place yet
	cancel  context.CancelFunc
	asked   int // keys asked for; 0 for a range
	// streaming says that the first piece of a table without a key was handed over.
	streaming bool
}

// maxKeys bounds the keys to be read again; with more, the table is read anew from
// its start, which brings them too.
const maxKeys = 10_000

// chunkFailures in a row stop a table.
const chunkFailures = 10

// openWindows starts chunks for tables that have some to read, a few at a time.
func (s *Source) openWindows() {
	free := s.cfg.Source.Snapshot.Parallel
	for _, t := range s.order {
		if t.window != nil {
			free--
		}
	}
	for _, t := range s.order {
		if free <= 0 {
			return
		}
		if t.snap == nil || t.snap.changed || t.window != nil || t.batch != nil || s.cfg.Clock().Before(t.snap.notUntil) {
			continue
		}
		s.openWindow(t)
		free--
	}
}

// openWindow holds the table's changes from here on, and only then lets the
// chunk's transaction begin.
func (s *Source) openWindow(t *table) {
	q := request{bound: t.snap.bound, limit: t.snap.limit, waitFor: t.snap.waitFor, keyless: !t.cfg.HasKey()}
	w := &window{held: newBuilder(t.schema), results: make(chan *chunk, 1)}
	if t.snap.read || len(t.snap.keys) >= maxKeys/2 {
		w.asked = min(len(t.snap.keys), 200)
		q.keys = t.snap.keys[:w.asked:w.asked]
	}
	t.window = w
	reader := &reader{source: s, table: &table{cfg: t.cfg, name: t.name, schema: t.schema, fields: t.fields}, request: q, results: w.results}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(s.life)
	s.running.Go(func() { reader.run(ctx) })
}

// collect takes finished chunks and puts those among the changes whose place the
// log has reached.
func (s *Source) collect() {
	s.waiting = false
	defer s.count()
	for _, t := range s.order {
		w := t.window
		if w == nil {
			continue
		}
		if w.result == nil {
			select {
			case w.result = <-w.results:
			default:
				continue
			}
			if !s.usable(t, w.result) {
				continue
			}
		}
		if t.batch != nil {
			continue
		}
		if !s.passed(w.result.at) {
			s.waiting = true
			continue
		}
		if t.cfg.HasKey() {
			s.place(t)
		} else {
			s.placePiece(t)
		}
	}
}

// usable looks at a chunk as it arrives. A chunk that cannot be used ends its
// window.
func (s *Source) usable(t *table, c *chunk) bool {
	if c.err != nil {
		s.chunkFailed(t, c.err)
		return false
	}
	if t.window.streaming { // a further piece of the transaction that was found usable
		return true
	}
	if c.sees.xmin < t.snap.waitFor {
		if !t.snap.waited {
			t.snap.waited = true
			s.log.Info("the table's rows are read once the transactions that were open when it was published have ended", "table", t.cfg.ID(), "oldest", c.sees.xmin)
		}
		s.closeWindow(t)
		t.snap.notUntil = s.cfg.Clock().Add(time.Second)
		return false
	}
	if t.snap.seen.hidden(c.sees) { // handed over before the window, but not seen by the chunk: it comes too late
		s.closeWindow(t)
		t.snap.notUntil = s.cfg.Clock().Add(100 * time.Millisecond)
		return false
	}
	return true
}

// place puts a chunk among the held changes and closes its window.
func (s *Source) place(t *table) {
	c, w, snap := t.window.result, t.window, t.snap
	size := c.rows.Len()
	batch, _ := merge(w.held, c, t.generation, t.firstOrdinal(c))
	s.finishWindow(t)
	if len(batch.changes) > 0 {
		t.batch = batch
	}
	t.advance(batch.changes)
	if w.asked > 0 {
		snap.keys = snap.keys[min(w.asked, len(snap.keys)):]
	} else {
		snap.advance(c, size)
	}
	snap.finish()
}

// placePiece hands over a piece of a table without a key; the changes from its
// place in the log on stay held until the last one.
func (s *Source) placePiece(t *table) {
	w, snap := t.window, t.snap
	c := w.result
	w.result = nil
	size := c.rows.Len()
	var out *builder
	if !w.streaming {
		w.streaming = true
		out, w.held = mergeKeyless(w.held, c, t.generation, t.firstOrdinal(c))
	} else {
		out = &builder{rows: c.rows}
		appendReads(out, c, t.generation, t.firstOrdinal(c), nil)
	}
	t.advance(out.changes)
	snap.advance(c, size)
	if c.last {
		appendRows(out.rows, w.held)
		out.changes = append(out.changes, w.held.changes...)
		s.finishWindow(t)
		t.advance(out.changes)
	}
	if len(out.changes) > 0 {
		t.batch = out
	}
	snap.finish()
}

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
		if changes[i].Op == change.Read {
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

// closeWindow gives a chunk up: what was held goes on as if there had been none.
func (s *Source) closeWindow(t *table) {
	w := t.window
	s.finishWindow(t)
	if !t.cfg.HasKey() {
		// The next reading holds what these changes did, so they are not handed over.
		if w.streaming {
			t.restartKeyless()
		}
		return
	}
	if len(w.held.changes) > 0 {
		t.batch = w.held // a window opens only when nothing is waiting
	}
}

// finishWindow ends a window; what it held comes before the next chunk.
func (s *Source) finishWindow(t *table) {
	for i := range t.window.held.changes {
		t.snap.seen.add(t.window.held.changes[i].TxID)
	}
	t.window.cancel()
	t.window = nil
}

// restartKeyless begins a reading anew, as the next generation: one that is cut
// short cannot be continued.
func (t *table) restartKeyless() {
	t.generation++
	t.snap.progress = catalog.SnapshotProgress{Generation: t.generation, Estimate: t.snap.progress.Estimate}
	t.snap.read = false
}

// chunkFailed decides what a failure means: later, smaller, or the end.
func (s *Source) chunkFailed(t *table, err error) {
	s.closeWindow(t)
	if fault, ok := asFault(t, err); ok {
		s.fault(t, catalog.Quarantined, fault)
		return
	}
	snap := t.snap
	switch sqlState(err) {
	case stateQueryCanceled, stateLockTimeout:
		snap.limit = max(snap.limit/2, min(100, snap.most))
	}
	snap.failures++
	if snap.failures >= chunkFailures && sqlState(err) != "" {
		e := catalog.Errorf(catalog.Unavailable, catalog.CodeSnapshot,
			"see what holds the table at the source (pg_locks, pg_stat_activity), then release the table",
			"a chunk of table %s could not be read %d times: %s", t.name, snap.failures, serverMessage(err))
		e.Err = err
		s.fault(t, catalog.Quarantined, e)
		return
	}
	wait := min(time.Second<<min(snap.failures-1, 5), 30*time.Second)
	snap.notUntil = s.cfg.Clock().Add(wait)
	s.log.Warn("chunk not read, trying again", "table", t.cfg.ID(), "failures", snap.failures, "wait", wait, "error", serverMessage(err))
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
