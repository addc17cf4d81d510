package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// endOfLog remembers where the log ended at which time of the source's clock.
type endOfLog struct {
	mu     sync.Mutex
	seen   []logEnd // ascending
	latest time.Time
}

type logEnd struct {
	lsn  catalog.LSN
	time time.Time
}

// add notes that the log ended at lsn, or before it, at the time.
func (e *endOfLog) add(lsn catalog.LSN, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.seen); n > 0 {
		last := e.seen[n-1]
		if lsn <= last.lsn || at.Sub(last.time) < 20*time.Millisecond {
			if lsn == last.lsn && at.After(last.time) {
				e.seen[n-1].time = at
			}
			return
		}
	}
	e.seen = append(e.seen, logEnd{lsn, at})
}

// at returns the newest time at which the log ended at or before the position;
// zero when none is known. It forgets older ones.
func (e *endOfLog) at(through catalog.LSN) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for n < len(e.seen) && e.seen[n].lsn <= through {
		n++
	}
	if n > 0 {
		if t := e.seen[n-1].time; t.After(e.latest) {
			e.latest = t
		}
		e.seen = append(e.seen[:0], e.seen[n-1:]...)
	}
	return e.latest
}

const pulseEvery = time.Second

// pulse asks where the log ends, every second, which makes the freshness of idle
// tables known, and writes the heartbeat, which moves the slot where nothing else
// is written. It runs until the context ends.
func (s *Source) pulse(ctx context.Context, beat string, str *stream) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	interval := s.cfg.Source.Heartbeat.Interval
	var beaten time.Time
	failing := false
	for {
		err := s.askLogEnd(ctx, str)
		if now := s.cfg.Clock(); err == nil && interval > 0 && beat != "" && now.Sub(beaten) >= interval {
			beaten = now
			err = s.beat(ctx, beat)
		}
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failing {
			failing = err != nil
			if failing {
				s.log.WarnContext(ctx, "the source's clock or heartbeat does not answer", "source", s.cfg.Source.Name, "error", serverMessage(err))
			} else {
				s.log.InfoContext(ctx, "the source's clock and heartbeat answer again", "source", s.cfg.Source.Name)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Source) askLogEnd(ctx context.Context, str *stream) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.ConnectTimeout)
	defer cancel()
	var lsn, sees string
	var micros int64
	// The clock first: what was durable then lies before the flushed end read after it.
	err := s.pool.QueryRow(ctx, `WITH c AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS t)
SELECT c.t, pg_current_wal_flush_lsn()::text, pg_current_snapshot()::text FROM c`).Scan(&micros, &lsn, &sees)
	if err != nil {
		return err
	}
	visible, err := change.ParseVisibility(sees)
	if err != nil {
		return err
	}
	s.visible.Store(&visible)
	at, err := catalog.ParseLSN(lsn)
	if err != nil {
		return err
	}
	s.ends.add(at, time.UnixMicro(micros))
	str.askEnd()
	return nil
}

func (s *Source) beat(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.ConnectTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, sql)
	return err
}

// heartbeatSQL makes the heartbeat's table where the role may, and returns the
// statement of one beat.
func (s *Source) heartbeatSQL(ctx context.Context) string {
	h := s.cfg.Source.Heartbeat
	if h.Interval <= 0 {
		return ""
	}
	message := "SELECT pg_logical_emit_message(true, 'lakeweir heartbeat', '')"
	if h.Table.Name == "" {
		return message
	}
	name := quoteName(h.Table)
	var exists bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", name).Scan(&exists); err != nil {
		s.noHeartbeat(ctx, name, err)
		return message
	}
	if !exists {
		for _, sql := range []string{
			"CREATE SCHEMA IF NOT EXISTS " + quoteIdent(h.Table.Schema),
			"CREATE TABLE IF NOT EXISTS " + name + " (source text PRIMARY KEY, beat_at timestamptz NOT NULL, beats bigint NOT NULL)",
		} {
			if _, err := s.pool.Exec(ctx, sql); err != nil && sqlState(err) != stateDuplicateTable && sqlState(err) != stateUniqueViolation {
				s.noHeartbeat(ctx, name, err)
				return message
			}
		}
	}
	beat := "INSERT INTO " + name + " AS h (source, beat_at, beats) VALUES (" + quoteLiteral(s.cfg.Source.Name) + ", clock_timestamp(), 1)" +
		" ON CONFLICT (source) DO UPDATE SET beat_at = excluded.beat_at, beats = h.beats + 1"
	if err := s.beat(ctx, beat); err != nil {
		s.noHeartbeat(ctx, name, err)
		return message
	}
	return beat
}

// noHeartbeat says that the table is of no use. The slot moves without it, by what the
// server tells when it is asked; only that the source can be written is not proved.
func (s *Source) noHeartbeat(ctx context.Context, table string, err error) {
	s.log.InfoContext(ctx, "the heartbeat table cannot be written, a logical message is written instead; the slot moves all the same",
		"source", s.cfg.Source.Name, "table", table, "error", serverMessage(err))
}
