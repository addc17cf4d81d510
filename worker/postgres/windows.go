package postgres

import (
	"context"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// openWindows starts chunks for tables that have some to read, a few at a time.
func (s *Source) openWindows() {
	free := s.cfg.Source.Snapshot.Parallel
	for _, t := range s.order {
		if t.window != nil {
			free--
		}
	}
	now := s.cfg.Clock()
	for _, t := range s.order {
		if free <= 0 {
			return
		}
		if t.stopped || t.park != nil || t.window != nil || t.batch != nil || t.snap != nil && t.snap.changed {
			continue
		}
		reads, again := t.snap != nil && !now.Before(t.snap.notUntil), t.rereads.due(now)
		switch {
		case again && (!reads || !t.rereads.before): // they take turns
			t.rereads.before = true
			s.openReread(t)
		case reads:
			t.rereads.before = false
			s.openWindow(t)
		default:
			continue
		}
		free--
	}
}

// openWindow holds the table's changes from here on, and only then lets the
// chunk's transaction begin.
func (s *Source) openWindow(t *table) {
	q := request{bound: t.snap.bound, limit: t.snap.limit, waitFor: t.snap.waitFor, keyless: !t.cfg.HasKey(), each: t.snap.each}
	w := &window{held: newBuilder(t.schema)}
	if t.snap.read || len(t.snap.keys) >= maxKeys/2 {
		w.asked = min(len(t.snap.keys), 200)
		q.keys = t.snap.keys[:w.asked:w.asked]
	}
	s.startReading(t, w, q)
}

func (s *Source) startReading(t *table, w *window, q request) {
	w.results = make(chan *chunk, 1)
	t.window = w
	reader := &reader{source: s, table: &table{cfg: t.cfg, name: t.name, oid: t.oid, schema: t.schema, fields: t.fields, shape: t.shape}, request: q, results: w.results}
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
		switch {
		case w.reread != nil:
			s.placeReread(t)
		case t.cfg.HasKey():
			s.place(t)
		default:
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
	waitFor, notUntil := &t.rereads.waitFor, &t.rereads.notUntil
	if t.window.reread == nil {
		waitFor, notUntil = &t.snap.waitFor, &t.snap.notUntil
	}
	if c.sees.Xmin < *waitFor {
		if t.window.reread == nil && !t.snap.waited {
			t.snap.waited = true
			s.log.Info("the table's rows are read once the transactions that were open when it was published have ended", "table", t.cfg.ID(), "oldest", c.sees.Xmin)
		}
		s.closeWindow(t)
		*notUntil = s.cfg.Clock().Add(time.Second)
		return false
	}
	if t.seen.hidden(c.sees) { // handed over before the window, but not seen by the chunk: it comes too late
		s.closeWindow(t)
		*notUntil = s.cfg.Clock().Add(100 * time.Millisecond)
		return false
	}
	return true
}

// windowTooLong has the next chunk be smaller and later: more was held back for the
// last than may be.
func (s *Source) windowTooLong(t *table, w *window) {
	later := s.cfg.Clock().Add(200 * time.Millisecond)
	switch {
	case w.reread == nil:
		t.snap.limit = max(t.snap.limit/2, min(100, t.snap.most))
		t.snap.notUntil = later
	case w.reread.masked: // it cannot be smaller
		t.rereads.notUntil = s.cfg.Clock().Add(30 * time.Second)
		s.log.Warn("rows not read again, trying later: too much of the table changes while it is looked through", "table", t.cfg.ID())
	default:
		t.rereads.limit = max(t.rereads.limit/2, rereadLeast)
		t.rereads.notUntil = later
	}
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
		t.seen.add(t.window.held.changes[i].TxID)
	}
	t.window.cancel()
	t.window = nil
}

// chunkFailed decides what a failure means: later, smaller, or the end.
func (s *Source) chunkFailed(t *table, err error) {
	seen := asShapeError(err)
	if seen != nil {
		failures := &t.rereads.failures
		if t.window.reread == nil {
			failures = &t.snap.failures
		}
		if s.shapeSeen(s.life, t, seen, *failures) {
			return
		}
	}
	if t.window.reread != nil {
		s.rereadFailed(t, err)
		return
	}
	s.closeWindow(t)
	if seen != nil {
		s.laterChunk(t, err)
		return
	}
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
	s.waitAfter(t, err)
}

// laterChunk tries a chunk again later.
func (s *Source) laterChunk(t *table, err error) {
	t.snap.failures++
	s.waitAfter(t, err)
}

func (s *Source) waitAfter(t *table, err error) {
	snap := t.snap
	wait := min(time.Second<<min(snap.failures-1, 5), 30*time.Second)
	snap.notUntil = s.cfg.Clock().Add(wait)
	s.log.Warn("chunk not read, trying again", "table", t.cfg.ID(), "failures", snap.failures, "wait", wait, "error", serverMessage(err))
}
