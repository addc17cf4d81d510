package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// prepareSlot makes the slot or judges the one that is there. A slot is made only
// when no table has been read: a new one would start with a hole nobody sees. It
// returns the reason why tables that were read before have a gap, if all of them
// have one, and whether the slot is new.
func (s *Source) prepareSlot(ctx context.Context, conn *replicationConn, f facts, anyRead bool) (gap string, made bool, err error) {
	source := s.cfg.Source
	switch {
	case f.slot == nil && anyRead:
		return "slot " + source.Slot + " is missing at the source", false, nil
	case f.slot == nil && !source.CreateSlot:
		return "", false, catalog.Errorf(catalog.NotFound, catalog.CodeSourceSlot, "let an owner run: SELECT pg_create_logical_replication_slot("+quoteLiteral(source.Slot)+", 'pgoutput')",
			"source %s has no slot %s and may not make one", source.Name, source.Slot)
	case f.slot == nil:
		return "", true, s.makeSlot(ctx, conn)
	case f.slot.lost() && anyRead:
		return fmt.Sprintf("slot %s is lost (%s)", source.Slot, f.slot.why()), false, nil
	}
	for _, finding := range judgeSlotOnly(source, f) {
		return "", false, &catalog.Error{Kind: catalog.Invalid, Code: finding.Code, Message: "source " + source.Name + ": " + finding.Message, Hint: finding.Fix}
	}
	s.confirmed = f.slot.confirmed
	return "", false, nil
}

func judgeSlotOnly(source *catalog.Source, f facts) []catalog.Finding {
	out := &findings{source: source.Name}
	judgeSlot(out, source, f)
	return blocking(out.list)
}

// makeSlot waits for the transactions that are running to end: the slot holds
// whole transactions only.
func (s *Source) makeSlot(ctx context.Context, conn *replicationConn) error {
	s.log.InfoContext(ctx, "making the slot; this waits for open transactions to end", "source", s.cfg.Source.Name, "slot", s.cfg.Source.Slot)
	slot, err := pglogrepl.CreateReplicationSlot(ctx, conn.PgConn, quoteIdent(s.cfg.Source.Slot), "pgoutput", pglogrepl.CreateReplicationSlotOptions{
		Mode: pglogrepl.LogicalReplication, SnapshotAction: "NOEXPORT_SNAPSHOT",
	})
	if err != nil {
		e := catalog.Errorf(catalog.Denied, catalog.CodeSourceSlot, "see that the role may replicate and that max_replication_slots leaves room",
			"source %s: slot %s cannot be made: %s", s.cfg.Source.Name, s.cfg.Source.Slot, serverMessage(err))
		e.Err = err
		return e
	}
	if s.confirmed, err = catalog.ParseLSN(slot.ConsistentPoint); err != nil {
		return err
	}
	return nil
}

// moved returns how far somebody else moved the slot, or zero.
func (s *Source) moved(ctx context.Context) (noted catalog.LSN, moved bool, err error) {
	if s.cfg.Notes == nil {
		return 0, false, nil
	}
	noted, known, err := s.cfg.Notes.ReadFlushed(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("read the noted position of source %s: %w", s.cfg.Source.Name, err)
	}
	if !known {
		return 0, false, nil
	}
	return noted, s.confirmed > noted, nil
}

// startStream begins to stream. A slot that is in use is waited for; a session of
// ours that is left on it is ended, since only one worker may read. The connection
// returned is the one to go on with, also with an error.
func (s *Source) startStream(ctx context.Context, conn *replicationConn, str *stream) (*replicationConn, error) {
	deadline := s.cfg.Clock().Add(s.cfg.Limits.SlotWait)
	for try := 0; ; try++ {
		err := str.begin(ctx, conn)
		if err == nil {
			return conn, nil
		}
		if sqlState(err) != stateObjectInUse {
			return conn, startError(s.cfg.Source, err)
		}
		if err := s.waitForSlot(ctx, try, deadline); err != nil {
			return conn, err
		}
		_ = conn.Close(ctx) // after a refusal it is of no more use
		if conn, err = connectReplication(ctx, s.cfg.DSN, s.cfg.Source.Name, s.cfg.Limits.ConnectTimeout); err != nil {
			return nil, err
		}
	}
}

func (s *Source) waitForSlot(ctx context.Context, try int, deadline time.Time) error {
	user := s.slotUser(ctx)
	switch {
	case s.cfg.Clock().After(deadline):
		return catalog.Errorf(catalog.Unavailable, catalog.CodeSourceSlot, "stop whoever reads it, or name another slot in source.yaml",
			"source %s: slot %s is in use by %s", s.cfg.Source.Name, s.cfg.Source.Slot, user)
	case try == 0:
		s.log.InfoContext(ctx, "the slot is in use, waiting", "source", s.cfg.Source.Name, "by", user.String())
	case user.application == applicationName(s.cfg.Source.Name):
		s.log.WarnContext(ctx, "ending a session of ours that is left on the slot", "source", s.cfg.Source.Name, "by", user.String())
		_, _ = s.pool.Exec(ctx, "SELECT pg_terminate_backend($1)", user.pid) // what stays in use is said at the deadline
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(50*time.Millisecond<<min(try, 3), 250*time.Millisecond)):
		return nil
	}
}

type slotUser struct {
	pid         int
	application string
}

func (u slotUser) String() string { return fmt.Sprintf("process %d (%s)", u.pid, u.application) }

func (s *Source) slotUser(ctx context.Context) slotUser {
	var u slotUser
	err := s.pool.QueryRow(ctx, "SELECT s.active_pid, coalesce(a.application_name, '') FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.active_pid IS NOT NULL AND s.slot_name = $1", s.cfg.Source.Slot).
		Scan(&u.pid, &u.application)
	if err != nil {
		return slotUser{application: "nobody any more"}
	}
	return u
}

func startError(source *catalog.Source, err error) *catalog.Error {
	e := catalog.Errorf(catalog.Invalid, catalog.CodeSourceSlot, "run lakeweir run DIR --check for what is missing",
		"source %s: slot %s cannot be read: %s", source.Name, source.Slot, serverMessage(err))
	switch sqlState(err) {
	case "":
		e.Kind, e.Code = catalog.Unavailable, catalog.CodeSourceUnreachable
	case stateUndefinedObject:
		// It was there a moment ago: a worker that was killed while it made the slot
		// takes the unfinished slot with it.
		e.Kind, e.Hint = catalog.Unavailable, "start the worker again"
	}
	e.Err = err
	return e
}

// gaps turns a reason into the faults of every table: a gap for those that were
// read, and for the others that they have to wait.
func gaps(resumes []pipeline.Resume, why, slot string) []pipeline.Fault {
	faults := make([]pipeline.Fault, 0, len(resumes))
	for _, r := range resumes {
		fault := pipeline.Fault{Table: r.Table.Name.String(), State: catalog.Gap, Err: gapError(r.Table, why)}
		if !wasRead(r) {
			fault.State = catalog.Quarantined
			fault.Err = catalog.Errorf(catalog.Conflict, catalog.CodeSourceSlot, "let the source's other tables be read anew first",
				"table %s cannot start: %s", r.Table.Name, why)
		} else {
			fault.Err.Hint = "slot " + slot + " is made anew once the lake has none of the source's tables: drop them there (their history goes with them) and start the worker; see docs/runbooks/slot-lost.md"
		}
		faults = append(faults, fault)
	}
	return faults
}
