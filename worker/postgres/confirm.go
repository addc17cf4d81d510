package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// asked is what others than the reader want of it: how far the server may forget,
// which tables to read no more, and which rows once more. The reader looks at it at each call of Next.
type asked struct {
	mu      sync.Mutex
	through catalog.LSN
	drops   []string
	rereads []pipeline.Reread
	stops   []stop
	replays []replayRequest
}

// stop is a table that cannot go on, for a reason that is not in the log.
type stop struct {
	table string
	err   *catalog.Error
}

func (a *asked) stop(table string, err *catalog.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stops = append(a.stops, stop{table, err})
}

func (a *asked) takeStops() []stop {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.stops
	a.stops = nil
	return out
}

// saved is how far everything is in bronze, as the pipeline said last.
func (a *asked) saved() catalog.LSN {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.through
}

func (a *asked) confirm(through catalog.LSN) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.through = max(a.through, through)
}

func (a *asked) drop(table string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drops = append(a.drops, table)
}

func (a *asked) reread(q pipeline.Reread) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rereads = append(a.rereads, q)
}

func (a *asked) take() (through catalog.LSN, drops []string, rereads []pipeline.Reread) {
	a.mu.Lock()
	defer a.mu.Unlock()
	drops, a.drops = a.drops, nil
	rereads, a.rereads = a.rereads, nil
	return a.through, drops, rereads
}

// Confirm lets the server forget what is before the position, at the next call of
// Next or Close. The note is written before the server is told, so that a slot is
// never further than it; positions that follow each other quickly are noted
// together, once in Limits.ConfirmEvery.
func (s *Source) Confirm(_ context.Context, through catalog.LSN) error {
	s.asked.confirm(through)
	return nil
}

// Drop ends the reading of a table, from the next call of Next on.
func (s *Source) Drop(table string) { s.asked.drop(table) }

// obey does what was asked for since the last time.
func (s *Source) obey(ctx context.Context, last bool) error {
	through, drops, rereads := s.asked.take()
	for _, name := range drops {
		s.drop(name)
	}
	for _, q := range rereads {
		s.reread(q)
	}
	for _, stop := range s.asked.takeStops() {
		for _, t := range s.order {
			if t.name == stop.table && !t.stopped && t.park == nil { // else it is told again
				s.fault(t, catalog.Quarantined, stop.err)
			}
		}
	}
	if v := s.visible.Swap(nil); v != nil {
		for _, t := range s.order {
			t.seen.forget(*v)
		}
	}
	now := s.cfg.Clock()
	if through <= s.confirmed || s.stream == nil || !last && now.Sub(s.notedAt) < s.cfg.Limits.ConfirmEvery {
		return nil
	}
	if s.cfg.Notes != nil {
		if err := s.cfg.Notes.WriteFlushed(ctx, through); err != nil {
			return fmt.Errorf("note the confirmed position of source %s: %w", s.cfg.Source.Name, err)
		}
	}
	s.notedAt, s.confirmed = now, through
	s.stream.confirm(through)
	return nil
}
