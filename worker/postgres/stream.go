package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lakeweir/lakeweir/catalog"
)

// stream receives the log and answers the server, in a goroutine of its own, so
// that the connection lives however long its reader takes. A broken connection is
// made again; what the server sends twice then, its reader must recognise.
type stream struct {
	source      string
	dsn         catalog.Secret
	slot        string
	publication string
	epoch       catalog.Epoch
	limits      Limits
	statusEvery time.Duration
	messages    bool // logical messages are wanted, in which the DDL log is
	log         *slog.Logger
	clock       func() time.Time

	packets chan *packet
	// held is how many bytes were received and are not worked off; freed tells that it
	// has fallen.
	held    atomic.Int64
	freed   chan struct{}
	flushed atomic.Uint64 // what the server may forget
	asked   atomic.Bool   // a status shall be sent now
	ping    atomic.Bool   // and the server answer it
	conn    atomic.Pointer[replicationConn]
}

// packet is a run of messages. A packet with broken or err holds none.
type packet struct {
	restarted bool  // the connection is a new one
	err       error // the stream cannot go on as it is
	down      bool  // err is that there has been no connection for long; it still tries
	buf       []byte
	messages  []frame
}

// frame is one message of the stream: a keepalive, or a pgoutput message.
type frame struct {
	at         catalog.LSN // of the message's record; of a keepalive, the end of what was sent
	start, end int         // in buf; equal for a keepalive
}

const (
	packetSize = 256 << 10
	// largeMessage is from where on a message's buffer is let go at once instead of
	// with the next message, which may be long in coming.
	largeMessage = 1 << 20
)

func newStream(s *Source, statusEvery time.Duration) *stream {
	return &stream{
		source: s.cfg.Source.Name, dsn: s.cfg.DSN, slot: s.cfg.Source.Slot, publication: s.cfg.Source.Publication,
		epoch: s.epoch, limits: s.cfg.Limits, statusEvery: statusEvery, messages: s.cfg.Park, log: s.log, clock: s.cfg.Clock,
		packets: make(chan *packet, max(1, s.cfg.Limits.BufferSize/packetSize)), freed: make(chan struct{}, 1),
	}
}

// done notes that a packet has been worked off.
func (s *stream) done(p *packet) {
	s.held.Add(-int64(len(p.buf)))
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// room waits until less is held than may be, however long that takes, and keeps the
// connection alive meanwhile: a message may be large, so none is read before. It
// returns false when the context has ended.
func (s *stream) room(ctx context.Context, conn *replicationConn) bool {
	if s.held.Load() < int64(s.limits.BufferSize) {
		return true
	}
	alive := time.NewTicker(s.statusEvery)
	defer alive.Stop()
	for s.held.Load() >= int64(s.limits.BufferSize) {
		select {
		case <-s.freed:
		case <-ctx.Done():
			return false
		case <-alive.C:
			_ = s.status(conn, false) // a broken connection shows at the next read
		}
	}
	return true
}

// confirm lets the server forget what is before the position.
func (s *stream) confirm(through catalog.LSN) {
	s.flushed.Store(uint64(through))
	s.wake()
}

// askEnd makes the server say how far it has sent.
func (s *stream) askEnd() {
	s.ping.Store(true)
	s.wake()
}

// wake interrupts the read; the reader looks at its flags after it has set a
// deadline, so that none is missed.
func (s *stream) wake() {
	s.asked.Store(true)
	if c := s.conn.Load(); c != nil {
		_ = c.Conn().SetReadDeadline(time.Unix(1, 0))
	}
}

// run reads until the context ends, from a connection that is already streaming.
func (s *stream) run(ctx context.Context, conn *replicationConn) {
	defer close(s.packets)
	stop := context.AfterFunc(ctx, s.wake)
	defer stop()
	for {
		s.conn.Store(conn)
		err := s.receive(ctx, conn)
		s.conn.Store(nil)
		pid := conn.PID()
		s.hangUp(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		s.log.WarnContext(ctx, "replication connection lost", "source", s.source, "error", serverMessage(err))
		if conn, err = s.reconnect(ctx, pid); err != nil {
			s.send(ctx, nil, &packet{err: err})
			return
		}
		if !s.send(ctx, conn, &packet{restarted: true}) {
			s.hangUp(ctx, conn)
			return
		}
	}
}

// hangUp tells the server a last time what it may forget and closes.
func (s *stream) hangUp(ctx context.Context, conn *replicationConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if !conn.IsClosed() {
		_ = conn.Conn().SetDeadline(time.Now().Add(2 * time.Second)) //nolint:forbidigo // the socket's own clock
		_ = s.status(conn, false)
	}
	_ = conn.Close(ctx)
}

func (s *stream) status(conn *replicationConn, reply bool) error {
	lsn := pglogrepl.LSN(s.flushed.Load())
	// The write position stays that low so that the server, once idle, tells its end.
	return pglogrepl.SendStandbyStatusUpdate(context.Background(), conn.PgConn, pglogrepl.StandbyStatusUpdate{ //nolint:forbidigo // it only writes, and the socket has a deadline
		WALWritePosition: lsn, WALFlushPosition: lsn, WALApplyPosition: lsn, ReplyRequested: reply,
	})
}

// receive reads one connection until it breaks.
func (s *stream) receive(ctx context.Context, conn *replicationConn) error {
	p := &packet{}
	var due time.Time
	for {
		if !s.room(ctx, conn) {
			return ctx.Err()
		}
		if now := s.clock(); s.asked.Swap(false) || !now.Before(due) {
			if err := s.status(conn, s.ping.Swap(false)); err != nil {
				return fmt.Errorf("send status: %w", err)
			}
			due = now.Add(s.statusEvery)
		}
		_ = conn.Conn().SetReadDeadline(time.Now().Add(s.statusEvery)) //nolint:forbidigo // the socket's own clock
		if s.asked.Load() && ctx.Err() == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for len(p.buf) < packetSize && (len(p.messages) == 0 || conn.buffered()) {
			done, err := s.one(conn, p)
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
		if len(p.buf) >= largeMessage {
			if err := s.letGo(conn, p); err != nil {
				return err
			}
		}
		if len(p.messages) > 0 {
			s.held.Add(int64(len(p.buf)))
			if !s.send(ctx, conn, p) {
				return ctx.Err()
			}
			p = &packet{buf: make([]byte, 0, packetSize+packetSize/8), messages: make([]frame, 0, len(p.messages)+16)}
		}
	}
}

// letGo has the connection give up the buffer of a large message, which it does when
// it begins to read the next one; the read itself gets nothing, or what was there
// already.
func (s *stream) letGo(conn *replicationConn, p *packet) error {
	_ = conn.Conn().SetReadDeadline(time.Unix(1, 0))
	_, err := s.one(conn, p)
	return err
}

// one reads one message into the packet. It returns true when the read was
// interrupted or an answer is due.
func (s *stream) one(conn *replicationConn, p *packet) (bool, error) {
	message, err := conn.ReceiveMessage(context.Background()) //nolint:forbidigo // the read deadline bounds it, for less than a watched context costs
	if err != nil {
		if pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded) {
			return true, nil
		}
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			return true, nil
		}
		return false, err
	}
	switch m := message.(type) {
	case *pgproto3.CopyData:
		return s.frame(p, m.Data)
	case *pgproto3.ErrorResponse:
		return false, pgconn.ErrorResponseToPgError(m)
	case *pgproto3.CopyDone, *pgproto3.CommandComplete, *pgproto3.ReadyForQuery:
		return false, errors.New("the server ended the stream")
	}
	return false, nil
}

func (s *stream) frame(p *packet, data []byte) (bool, error) {
	switch {
	case len(data) >= 18 && data[0] == 'k':
		p.messages = append(p.messages, frame{at: catalog.LSN(binary.BigEndian.Uint64(data[1:])), start: len(p.buf), end: len(p.buf)})
		if data[17] != 0 {
			s.asked.Store(true)
			return true, nil
		}
	case len(data) > 25 && data[0] == 'w':
		start := len(p.buf)
		p.buf = append(p.buf, data[25:]...)
		p.messages = append(p.messages, frame{at: catalog.LSN(binary.BigEndian.Uint64(data[1:])), start: start, end: len(p.buf)})
	default:
		return false, fmt.Errorf("%w: copy data of kind %q", errMalformed, data[:min(1, len(data))])
	}
	return false, nil
}

// send hands a packet over, however long that takes, and keeps the connection
// alive meanwhile. It returns false when the context has ended.
func (s *stream) send(ctx context.Context, conn *replicationConn, p *packet) bool {
	select {
	case s.packets <- p:
		return true
	default:
	}
	alive := time.NewTicker(s.statusEvery)
	defer alive.Stop()
	for {
		select {
		case s.packets <- p:
			return true
		case <-ctx.Done():
			return false
		case <-alive.C:
			if conn != nil {
				_ = s.status(conn, false) // a broken connection shows at the next read
			}
		}
	}
}

// begin starts streaming from what the slot has kept.
func (s *stream) begin(ctx context.Context, conn *replicationConn) error {
	name := quoteLiteral(quoteIdent(s.publication))
	args := []string{"proto_version '1'", "publication_names " + name}
	if s.messages {
		args = append(args, "messages 'true'")
	}
	return pglogrepl.StartReplication(ctx, conn.PgConn, quoteIdent(s.slot), 0, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication, PluginArgs: args,
	})
}
