package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/lakeweir/lakeweir/catalog"
)

// reconnect makes the connection again, for as long as it takes. It returns an
// error when that would not be the same log any more, or the slot is gone.
func (s *stream) reconnect(ctx context.Context, oldPID uint32) (*replicationConn, error) {
	since, said := s.clock(), s.clock()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		conn, final, err := s.connectAgain(ctx, oldPID)
		if err == nil {
			s.log.InfoContext(ctx, "replication connection is back", "source", s.source, "after", s.clock().Sub(since).Round(time.Millisecond))
			return conn, nil
		}
		if final {
			return nil, err
		}
		if now := s.clock(); now.Sub(said) >= s.limits.Unreachable {
			said = now
			if !s.send(ctx, nil, &packet{err: unreachable(s.source, err), down: true}) {
				return nil, ctx.Err()
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// connectAgain tries once. A final error is one that trying again cannot help.
func (s *stream) connectAgain(ctx context.Context, oldPID uint32) (conn *replicationConn, final bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.ConnectTimeout)
	defer cancel()
	conn, err = connectReplication(ctx, s.dsn, s.source, s.limits.ConnectTimeout)
	if err != nil {
		return nil, false, err
	}
	if final, err := s.sameLog(ctx, conn); err != nil {
		_ = conn.Close(ctx)
		return nil, final, err
	}
	err = s.begin(ctx, conn)
	if err == nil {
		return conn, false, nil
	}
	_ = conn.Close(ctx)
	switch sqlState(err) {
	case stateObjectInUse: // by the session that we lost and the server has not
		s.endOwn(ctx, oldPID)
	case stateUndefinedObject, stateNotInState:
		e := catalog.Errorf(catalog.Conflict, catalog.CodeSourceSlot, "start the source again to see what is missing",
			"source %s: slot %s cannot be read any more: %s", s.source, s.slot, serverMessage(err))
		e.Err = err
		return nil, true, e
	}
	return nil, false, err
}

func (s *stream) sameLog(ctx context.Context, conn *replicationConn) (final bool, err error) {
	id, err := pglogrepl.IdentifySystem(ctx, conn.PgConn)
	if err != nil {
		return false, err
	}
	if now := (catalog.Epoch{System: id.SystemID, Timeline: uint32(id.Timeline)}); now != s.epoch {
		return true, catalog.Errorf(catalog.Conflict, catalog.CodeSourceSlot, "start the source again: it then checks what of the old log it has",
			"source %s: another log answers now: system and timeline %s instead of %s", s.source, now, s.epoch)
	}
	return false, nil
}

// endOwn ends the walsender that served our lost connection, and only that.
func (s *stream) endOwn(ctx context.Context, pid uint32) {
	conn, err := connectReplication(ctx, s.dsn, s.source, s.limits.ConnectTimeout)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	_, _ = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = "+strconv.FormatUint(uint64(pid), 10)+
		" AND backend_type = 'walsender' AND application_name = "+quoteLiteral(applicationName(s.source))).ReadAll()
}
