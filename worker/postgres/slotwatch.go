package postgres

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// SlotWatch asks a source's server about the source's slot, which somebody else reads.
// It needs no right but to connect, and keeps one connection. Safe for concurrent use.
type SlotWatch struct {
	cfg Config

	mu   sync.Mutex
	pool *pgxpool.Pool
}

// NewSlotWatch returns a SlotWatch; it does no I/O.
func NewSlotWatch(cfg Config) *SlotWatch { return &SlotWatch{cfg: cfg.withDefaults()} }

// Status says where the log and the slot stand.
func (w *SlotWatch) Status(ctx context.Context) (pipeline.SourceStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pool == nil {
		pool, err := openPool(ctx, w.cfg.DSN, w.cfg.Source.Name, w.cfg.Limits.ConnectTimeout, 1)
		if err != nil {
			return pipeline.SourceStatus{}, err
		}
		w.pool = pool
	}
	return slotStatus(ctx, w.pool, w.cfg.Source)
}

// Close ends the connection; the next Status makes another.
func (w *SlotWatch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pool != nil {
		w.pool.Close()
		w.pool = nil
	}
}

// Status asks the server about the slot.
func (s *Source) Status(ctx context.Context) (pipeline.SourceStatus, error) {
	if s.pool == nil {
		return pipeline.SourceStatus{}, unreachable(s.cfg.Source.Name, errors.New("not connected"))
	}
	return slotStatus(ctx, s.pool, s.cfg.Source)
}

const statusSQL = `SELECT pg_current_wal_lsn()::text, coalesce(confirmed_flush_lsn::text, ''),
coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(wal_status, ''), active
FROM pg_replication_slots WHERE slot_name = $1`

func slotStatus(ctx context.Context, q querier, source *catalog.Source) (pipeline.SourceStatus, error) {
	var end, confirmed string
	var status pipeline.SourceStatus
	rows, err := q.Query(ctx, statusSQL, source.Slot)
	if err != nil {
		return status, unreachable(source.Name, err)
	}
	found := false
	_, err = pgx.ForEachRow(rows, []any{&end, &confirmed, &status.Retained, &status.SlotState, &status.Active}, func() error {
		found = true
		return nil
	})
	if err != nil {
		return status, unreachable(source.Name, err)
	}
	if !found {
		status.SlotState = "missing"
		if err := q.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&end); err != nil {
			return status, unreachable(source.Name, err)
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
