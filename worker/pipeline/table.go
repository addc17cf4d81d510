package pipeline

import (
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// tableRun is one table's run: what waits to be saved, how far each layer is, and
// why it is stopped. The loop owns it, save the fields of keeper, which belong to
// the save that is under way while saving is true.
type tableRun struct {
	table *catalog.Table
	keeper

	state  catalog.State
	fault  *catalog.Error // why it is stopped
	ending *Fault         // stops the table once what waits before it is saved

	queue       []*change.Batch // handed over, not being saved yet
	queueBytes  int
	queueRows   int
	waiting     time.Time // when the oldest of queue came
	savedAt     time.Time // when the last save began
	saving      bool
	savingLow   catalog.LSN // the lowest commit of what is being saved
	savingTime  int64       // the commit time of the oldest change being saved
	savingBytes int

	// What was last reported, for a report during a save.
	shown                      *catalog.SnapshotProgress
	shownCurrent, shownHistory catalog.LSN

	answers []int64 // requests that bronze answers, and the layers do not yet

	// held is how far everything of a stopped table is saved; its source may not
	// forget anything from there on.
	held    catalog.LSN
	holds   bool
	retryAt time.Time // of a save that failed on something that may pass
	// abandoned says that the last save before the end failed: the queue is kept
	// only for what it holds back.
	abandoned bool
	tries     int
	failure   string // why the last save failed; empty after one that did not
	masks     map[*catalog.Schema]Mask
	// known is the masked schema of a table that was read before, or nil.
	known *catalog.Schema
}

// least is the shortest time between two saves of a table whose changes are late
// already: long enough for a backlog to gather into batches.
const least = time.Second

// unopened reports whether the layers are to be opened although nothing is to be
// saved.
func (t *tableRun) unopened() bool { return !t.opened && t.known != nil }

// take adds a batch to the queue.
func (t *tableRun) take(b *change.Batch, now time.Time) {
	if len(t.queue) == 0 {
		t.waiting = now
	}
	t.queue = append(t.queue, b)
	t.queueRows += len(b.Changes)
	t.queueBytes += b.Size()
}

// over notes that the transaction in which the queue ends is over, though no more of
// it came: the rest was of other tables, or there was none.
func (t *tableRun) over(through catalog.LSN) {
	n := len(t.queue)
	if n == 0 || t.queue[n-1].Whole {
		return
	}
	last := t.queue[n-1].Changes
	if len(last) > 0 && last[len(last)-1].Position.Commit < through {
		t.queue[n-1].Whole = true
	}
}

// due returns how many batches of the queue are to be saved now: as many as the bound
// allows, up to the last that ends a transaction. Where none of those does, the
// transaction is larger than the bound and may be split (rule 2).
func (t *tableRun) due(now time.Time, every time.Duration, limits Limits, force bool) int {
	if len(t.queue) == 0 || now.Before(t.retryAt) && !force {
		return 0
	}
	full := t.queueRows >= limits.BatchRows || t.queueBytes >= limits.BatchBytes
	if !full && !force && t.ending == nil && now.Sub(t.waiting) < every && !t.late(now, every) {
		return 0
	}
	whole, fit := 0, 0
	rows, size := 0, 0
	for n, b := range t.queue {
		rows, size = rows+len(b.Changes), size+b.Size()
		if n > 0 && (rows > limits.BatchRows || size > limits.BatchBytes) {
			break
		}
		if fit = n + 1; b.Whole {
			whole = fit
		}
	}
	switch {
	case whole > 0:
		return whole
	case full || t.ending != nil:
		return fit
	}
	return 0
}

// late reports whether changes have waited for their time before they even came,
// as after a restart: then they are saved soon, so that a worker that is killed
// again and again still gets on. Rows of a snapshot, and rows that were asked for
// again, are saved as soon.
func (t *tableRun) late(now time.Time, every time.Duration) bool {
	if now.Sub(t.savedAt) < min(least, every) {
		return false
	}
	_, committed, ok := lowest(t.queue)
	return t.queue[0].Snapshot != nil || hasRereads(t.queue) || ok && now.Sub(time.UnixMicro(committed)) >= every
}

// split takes the first n batches off the queue.
func (t *tableRun) split(n int, now time.Time) []*change.Batch {
	out := t.queue[:n:n]
	t.queue = append([]*change.Batch(nil), t.queue[n:]...)
	t.recount()
	t.waiting, t.savedAt = now, now
	return out
}

// putBack returns batches whose save failed to the front of the queue.
func (t *tableRun) putBack(batches []*change.Batch) {
	t.queue = append(batches, t.queue...)
	t.recount()
}

func (t *tableRun) recount() { t.queueRows, t.queueBytes = sizeOf(t.queue) }

func sizeOf(batches []*change.Batch) (rows, size int) {
	for _, b := range batches {
		rows += len(b.Changes)
		size += b.Size()
	}
	return rows, size
}

// low returns the commit of the oldest change that is not saved, and its commit
// time.
func (t *tableRun) low() (catalog.LSN, int64, bool) {
	if t.saving && t.savingLow != 0 {
		return t.savingLow, t.savingTime, true
	}
	return lowest(t.queue)
}

func lowest(batches []*change.Batch) (catalog.LSN, int64, bool) {
	for _, b := range batches {
		if len(b.Changes) > 0 {
			return b.Changes[0].Position.Commit, b.Changes[0].CommitTime, true
		}
	}
	return 0, 0, false
}

// stop ends the table's run here; what it has not saved is let go, and the source
// must keep it.
func (t *tableRun) stop(f Fault, through catalog.LSN) {
	t.held = t.needs(through, f.From)
	t.state, t.fault, t.ending = f.State, f.Err, nil
	t.queue, t.queueBytes, t.queueRows = nil, 0, 0
	// What a gap lacks at the source is gone already; only a new snapshot brings it
	// back.
	t.holds = f.State != catalog.Gap || f.Keep
}

// needs returns from where on the table still needs the source: the oldest change
// that is not saved, or the first one that a fault keeps out.
func (t *tableRun) needs(through, from catalog.LSN) catalog.LSN {
	if low, _, ok := t.low(); ok {
		through = min(through, low)
	}
	if from != 0 {
		through = min(through, from)
	}
	return through
}

// size returns about how many bytes of changes the table keeps in memory.
func (t *tableRun) size() int { return t.queueBytes + t.savingBytes }

// confirmable returns how far the source may forget: the lowest of what each table
// still needs (I9).
func confirmable(tables []*tableRun, through catalog.LSN) catalog.LSN {
	for _, t := range tables {
		switch {
		case t.state.Stopped() && !t.holds:
		case t.state.Stopped():
			through = min(through, t.held)
		case t.ending != nil:
			through = t.needs(through, t.ending.From)
		default:
			through = t.needs(through, 0)
		}
	}
	return through
}
