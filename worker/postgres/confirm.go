package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Confirm lets the server forget what is before the position. The note is written
// before the server is told, so that a slot is never further than it; positions
// that follow each other quickly are noted together, at the latest at the next
// call of Next after Limits.ConfirmEvery.
func (s *Source) Confirm(ctx context.Context, through catalog.LSN) error {
	if through <= s.wanted {
		return nil
	}
	s.wanted = through
	return s.confirmWanted(ctx)
}

func (s *Source) confirmWanted(ctx context.Context) error {
	now := s.cfg.Clock()
	if s.wanted <= s.confirmed || s.stream == nil || now.Sub(s.notedAt) < s.cfg.Limits.ConfirmEvery {
		return nil
	}
	if s.cfg.Notes != nil {
		if err := s.cfg.Notes.WriteFlushed(ctx, s.wanted); err != nil {
			return fmt.Errorf("note the confirmed position of source %s: %w", s.cfg.Source.Name, err)
		}
	}
	s.notedAt, s.confirmed = now, s.wanted
	s.stream.confirm(s.confirmed)
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
		return status, unreachable(s.cfg.Source.Name, fmt.Errorf("not connected"))
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
		return status, catalog.Errorf(catalog.NotFound, catalog.CodeSourceSlot, "start the source again to see what is missing",
			"source %s has no slot %s", s.cfg.Source.Name, s.cfg.Source.Slot)
	}
	if status.End, err = catalog.ParseLSN(end); err != nil {
		return status, err
	}
	if confirmed != "" {
		status.Confirmed, err = catalog.ParseLSN(confirmed)
	}
	return status, err
}
