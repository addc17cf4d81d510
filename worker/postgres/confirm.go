package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

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

const statusSQL = `SELECT pg_current_wal_lsn()::text, coalesce(confirmed_flush_lsn::text, ''),
coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(wal_status, ''), active
FROM pg_replication_slots WHERE slot_name = $1`

// Status asks the server about the slot.
func (s *Source) Status(ctx context.Context) (pipeline.SourceStatus, error) {
	var end, confirmed string
	var status pipeline.SourceStatus
	if s.pool == nil {
		return status, unreachable(s.cfg.Source.Name, errors.New("not connected"))
	}
	rows, err := s.pool.Query(ctx, statusSQL, s.cfg.Source.Slot)
	if err != nil {
		return status, unreachable(s.cfg.Source.Name, err)
	}
	found := false
	_, err = pgx.ForEachRow(rows, []any{&end, &confirmed, &status.Retained, &status.SlotState, &status.Active}, func() error {
		found = true
		return nil
	})
	if err != nil {
		return status, unreachable(s.cfg.Source.Name, err)
	}
	if !found {
		status.SlotState = "missing"
		if err := s.pool.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&end); err != nil {
			return status, unreachable(s.cfg.Source.Name, err)
		}
	}
	if status.End, err = catalog.ParseLSN(end); err != nil {
		return status, err
	}
	if confirmed != "" {
		status.Confirmed, err = catalog.ParseLSN(confirmed)
	}
	return status, err
}
