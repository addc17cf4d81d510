package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Next returns the next stretch of the log.
func (s *Source) Next(ctx context.Context) (pipeline.Slice, error) {
	if err := s.obey(ctx, false); err != nil {
		s.log.WarnContext(ctx, "confirmed position not noted, trying again", "source", s.cfg.Source.Name, "error", err)
	}
	wait := time.NewTimer(s.cfg.Limits.NextWait)
	defer wait.Stop()
	if s.idle {
		select {
		case <-ctx.Done():
			return pipeline.Slice{}, ctx.Err()
		case <-wait.C:
			return pipeline.Slice{}, nil
		}
	}
	for {
		s.collect()
		s.takeReplays()
		if err := s.replayParked(ctx); err != nil {
			return pipeline.Slice{}, err
		}
		if s.full() {
			return s.cut()
		}
		s.openWindows()
		if err := s.decode(ctx); err != nil {
			return pipeline.Slice{}, err
		}
		s.collect()
		if s.anyLate {
			s.raiseLate()
		}
		if s.full() || s.ready() {
			return s.cut()
		}
		if timedOut, err := s.waitForMore(ctx, wait.C); err != nil {
			return pipeline.Slice{}, err
		} else if timedOut {
			return s.cut()
		}
	}
}

// waitForMore waits for a packet, a chunk, or the time.
func (s *Source) waitForMore(ctx context.Context, wait <-chan time.Time) (timedOut bool, err error) {
	packets := s.packets()
	var soon <-chan time.Time
	if s.waiting {
		if now := s.cfg.Clock(); now.Sub(s.askedEnd) >= 20*time.Millisecond && s.stream != nil {
			s.askedEnd = now
			s.stream.askEnd()
		}
		timer := time.NewTimer(20 * time.Millisecond)
		defer timer.Stop()
		soon = timer.C
	}
	select {
	case p, ok := <-packets:
		if !ok {
			return false, s.ended(ctx)
		}
		return false, s.take(p)
	case <-s.arrived:
	case <-soon:
	case <-wait:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return false, nil
}

// packets returns where the log comes from, or nil while it has to wait.
func (s *Source) packets() <-chan *packet {
	if s.stream == nil || s.packet != nil || s.blocked {
		return nil
	}
	return s.stream.packets
}

// ended is the error of a stream that is over.
func (s *Source) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.stream = nil
	if s.gaveUp.Load() {
		s.idle = true
		return nil
	}
	return catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable, "start the source again", "source %s: the stream has ended", s.cfg.Source.Name)
}

func (s *Source) take(p *packet) error {
	switch {
	case p.err != nil:
		return p.err
	case p.restarted:
		s.restarted()
	default:
		s.packet, s.at = p, 0
	}
	return nil
}

// restarted prepares for a new connection, which begins again with transactions
// that were decoded before; they are known by their places. A chunk whose place
// the log has not reached is given up: after a crash of the server, its log may
// have gone another way.
func (s *Source) restarted() {
	if s.tx.open && s.tx.changes > 0 {
		s.torn = max(s.torn, s.tx.commit)
	}
	s.tx = transaction{}
	clear(s.relations)
	for _, t := range s.order {
		if n := t.shape.told; n != nil && t.park == nil { // it is sent again
			t.shape.told = nil
			t.shape.heard = ddlPlace{n.tx.commit, n.first - 1}
		}
		if t.window != nil && !t.window.streaming {
			s.closeWindow(t)
		}
	}
}

// decode works off packets until the slice is full, a chunk can be placed, or
// nothing more is there.
func (s *Source) decode(ctx context.Context) error {
	for !s.blocked {
		if s.packet == nil {
			select {
			case p, ok := <-s.packets():
				if !ok {
					return s.ended(ctx)
				}
				if err := s.take(p); err != nil {
					return err
				}
				continue
			default:
				return nil
			}
		}
		for s.at < len(s.packet.messages) {
			f := s.packet.messages[s.at]
			s.at++
			moved := f.start == f.end // the log's known end may have moved
			if !moved {
				data := s.packet.buf[f.start:f.end]
				if err := s.message(ctx, f.at, data); err != nil {
					if _, again := errors.AsType[*againError](err); again {
						s.at--
					}
					return err
				}
				moved = data[0] == 'B' || data[0] == 'C'
			} else if !s.tx.open {
				s.reached(f.at)
			}
			if s.full() || s.blocked || moved && s.placeable() {
				return nil
			}
		}
		if s.stream != nil {
			s.stream.done(s.packet)
		}
		s.packet = nil
	}
	return nil
}

// reached notes that everything that committed before the position was decoded.
func (s *Source) reached(through catalog.LSN) {
	if through > s.through {
		s.through = through
	}
}

// passed reports whether every transaction that committed before the position was
// decoded.
func (s *Source) passed(at catalog.LSN) bool {
	return s.through >= at || s.tx.open && s.tx.commit >= at
}

// placeable reports whether the log has reached the place of a waiting chunk.
func (s *Source) placeable() bool {
	if !s.waiting {
		return false
	}
	for _, t := range s.order {
		if t.window != nil && t.window.result != nil && t.batch == nil && s.passed(t.window.result.at) {
			return true
		}
	}
	return false
}

// count sums up what waits to be handed over, after a window has added to it.
func (s *Source) count() {
	s.rows, s.bytes, s.blocked = 0, 0, false
	for _, t := range s.order {
		if t.batch != nil {
			s.rows += len(t.batch.changes)
			s.bytes += t.batch.size()
		}
		if s.parkPending(t) {
			s.rows += t.park.run.events
			s.bytes += len(t.park.run.buf)
		}
		s.blocked = s.blocked || s.blocks(t)
	}
}

// split reports whether handing over now would split a transaction.
func (s *Source) split() bool { return s.tx.open && s.tx.changes > 0 || s.torn > 0 }

// full reports whether the slice has to go out. A transaction is waited for as
// long as it alone does not fill a slice.
func (s *Source) full() bool {
	limits := s.cfg.Limits
	if s.split() {
		return s.rows >= 2*limits.SliceRows || s.bytes >= 2*limits.SliceBytes
	}
	return s.rows >= limits.SliceRows || s.bytes >= limits.SliceBytes
}

// ready reports whether there is something to hand over that is whole.
func (s *Source) ready() bool {
	if s.split() {
		return false
	}
	if len(s.faults) > 0 || len(s.replayed) > 0 {
		return true
	}
	for _, t := range s.order {
		if s.parkPending(t) || t.batch != nil || len(t.rereads.finished) > 0 || t.snap != nil && t.snap.changed {
			return true
		}
	}
	return false
}

// blocks reports whether the log has to wait for a table without a key, which
// holds back too much until its reading is through. Until the place of the reading
// is reached the log has to go on.
func (s *Source) blocks(t *table) bool {
	w := t.window
	return w != nil && !t.cfg.HasKey() && (w.streaming || w.result == nil) && s.tooMuch(w.held)
}

func (s *Source) tooMuch(b *builder) bool {
	return len(b.changes) >= s.cfg.Limits.HeldRows || b.rows.Size() >= s.cfg.Limits.HeldBytes
}

// cut makes the slice of what is pending. When that would split a small
// transaction, the slice is empty and the transaction stays.
func (s *Source) cut() (pipeline.Slice, error) {
	slice := pipeline.Slice{}
	if !s.split() || s.full() {
		for _, t := range s.order {
			b, err := s.batch(t)
			if err != nil {
				return pipeline.Slice{}, err
			}
			if b != nil {
				slice.Batches = append(slice.Batches, b)
			}
			if s.parkPending(t) {
				slice.Parked = append(slice.Parked, s.takeRun(t))
			}
		}
		slice.Faults, s.faults = s.faults, nil
		slice.Replayed, s.replayed = s.replayed, nil
		s.rows, s.bytes = 0, 0
		for _, f := range slice.Faults {
			if !f.Parks {
				s.drop(f.Table)
			}
		}
	}
	// What a replay hands over came before, and is stored.
	s.handedTo = max(s.handedTo, s.handedThrough())
	slice.Through = s.handedTo
	slice.ReadAt = s.ends.at(slice.Through)
	s.openWindows()
	return slice, nil
}

// batch takes what a table has to hand over, or returns nil.
func (s *Source) batch(t *table) (*change.Batch, error) {
	if t.batch != nil {
		t.again(t.batch)
	}
	if t.batch == nil && len(t.rereads.finished) == 0 && (t.snap == nil || !t.snap.changed) {
		return nil, nil
	}
	b := &change.Batch{Table: t.cfg, Epoch: s.epoch, Whole: true, Rereads: s.answers(t.rereads.finished)}
	t.rereads.finished = nil
	if t.batch != nil {
		b.Rows, b.Changes, b.Masked, b.Remake = t.batch.rows, t.batch.changes, t.batch.masked, t.batch.remake
		t.batch = nil
	} else {
		b.Rows = change.NewRows(t.schema)
	}
	if n := len(b.Changes); n > 0 {
		last := b.Changes[n-1].Position.Commit
		b.Whole = !s.goesOn(last) && !t.replaysMore(last)
	}
	if t.snap != nil && t.snap.changed {
		progress, err := s.handedOver(t)
		if err != nil {
			return nil, err
		}
		b.Snapshot = progress
		if progress.Done {
			t.snap = nil
		}
	}
	return b, nil
}

// handedThrough is how far everything has been handed over.
func (s *Source) handedThrough() catalog.LSN {
	through := s.through
	for _, t := range s.order {
		if t.batch != nil {
			through = min(through, firstCommit(t.batch.changes, through))
		}
		if t.window != nil {
			through = min(through, firstCommit(t.window.held.changes, through))
		}
		if t.park != nil && t.park.run != nil {
			through = min(through, t.park.run.low)
		}
	}
	return through
}

// firstCommit is the commit of the first change that was not read, since what was
// read stands before its place in the log.
func firstCommit(changes []change.Change, none catalog.LSN) catalog.LSN {
	for i := range changes {
		if !changes[i].WasRead() {
			return changes[i].Position.Commit
		}
	}
	return none
}
