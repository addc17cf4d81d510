package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

var _ pipeline.SlotDropper = (*Source)(nil)

// DropSlot notes the gap of every table, ends the stream and drops the slot.
func (s *Source) DropSlot(ctx context.Context, why *catalog.Error) error {
	for table, generation := range s.generations {
		if err := s.noteGap(ctx, table, generation, why); err != nil {
			return err
		}
	}
	s.gaveUp.Store(true)
	if s.endStream != nil {
		s.endStream()
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.ConnectTimeout)
	defer cancel()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		// Its walsender needs a moment to see that the connection is closed.
		_, err := s.pool.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", s.cfg.Source.Slot)
		if err == nil || sqlState(err) == stateUndefinedObject {
			return nil
		}
		if sqlState(err) != stateObjectInUse {
			return fmt.Errorf("drop slot %s: %w", s.cfg.Source.Slot, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drop slot %s: %w", s.cfg.Source.Slot, err)
		case <-time.After(wait):
		}
	}
}
