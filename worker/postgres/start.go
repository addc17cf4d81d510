package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Start connects, checks and prepares the source, and begins to read. When no
// table can start, Next has nothing to hand over, ever.
func (s *Source) Start(ctx context.Context, resumes []pipeline.Resume) ([]pipeline.Fault, error) {
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	faults, err := s.start(ctx, resumes)
	if err != nil {
		s.end()
	}
	return faults, err
}

func (s *Source) start(ctx context.Context, resumes []pipeline.Resume) ([]pipeline.Fault, error) {
	name := s.cfg.Source.Name
	var err error
	if s.pool, err = openPool(ctx, s.cfg.DSN, name, s.cfg.Limits.ConnectTimeout, max(s.cfg.Source.Snapshot.Parallel, 1)+2); err != nil {
		return nil, err
	}
	s.lookups = s.pool
	conn, err := connectReplication(ctx, s.cfg.DSN, name, s.cfg.Limits.ConnectTimeout)
	if err != nil {
		return nil, s.connectError(ctx, err)
	}
	b := &beginning{Source: s, conn: conn, resumes: resumes, failed: map[string]pipeline.Fault{}}
	if err := b.run(ctx); err != nil {
		if b.conn != nil {
			_ = b.conn.Close(ctx)
		}
		return b.faults(), asError(name, err)
	}
	return b.faults(), nil
}

// connectError explains a refused replication connection: usually it is the role.
func (s *Source) connectError(ctx context.Context, cause error) *catalog.Error {
	if sqlState(cause) != "" {
		if f, err := gather(ctx, s.pool, s.cfg.Source, nil); err == nil {
			if found := blocking(judgeServerOnly(s.cfg.Source, f)); len(found) > 0 {
				return findingError(found[0])
			}
		}
	}
	return unreachable(s.cfg.Source.Name, cause)
}

func judgeServerOnly(source *catalog.Source, f facts) []catalog.Finding {
	out := &findings{source: source.Name}
	judgeServer(out, source, f)
	return out.list
}

func blocking(list []catalog.Finding) []catalog.Finding {
	var out []catalog.Finding
	for _, f := range list {
		if f.Severity == catalog.Blocks {
			out = append(out, f)
		}
	}
	return out
}

func findingError(f catalog.Finding) *catalog.Error {
	at := f.Source
	if f.Table != "" {
		at = "" // the message names it
	}
	kind := catalog.Invalid
	if f.Code == catalog.CodeSourceGrant {
		kind = catalog.Denied
	}
	return &catalog.Error{Kind: kind, Code: f.Code, Message: f.Message, Hint: f.Fix, At: at}
}

// beginning is the work of Start.
type beginning struct {
	*Source
	conn    *replicationConn
	resumes []pipeline.Resume
	failed  map[string]pipeline.Fault
	facts   facts
	history forks
	end     catalog.LSN       // of the log, once the tables were published
	now     change.Visibility // then
	newSlot bool
}

func (b *beginning) faults() []pipeline.Fault {
	var out []pipeline.Fault
	for _, r := range b.resumes {
		if f, failed := b.failed[r.Table.Name.String()]; failed {
			out = append(out, f)
		}
	}
	return out
}

func (b *beginning) fail(t *catalog.Table, state catalog.State, err *catalog.Error) {
	name := t.Name.String()
	if _, already := b.failed[name]; !already {
		b.failed[name] = pipeline.Fault{Table: name, State: state, Err: err}
	}
}

// going returns the tables that nothing has stopped yet.
func (b *beginning) going() []*catalog.Table {
	var out []*catalog.Table
	for _, r := range b.resumes {
		if _, failed := b.failed[r.Table.Name.String()]; !failed {
			out = append(out, r.Table)
		}
	}
	return out
}

// noneLeft reports whether no table can start. Then nothing is read.
func (b *beginning) noneLeft(ctx context.Context) bool {
	if len(b.failed) < len(b.resumes) {
		return false
	}
	b.idle = true
	_ = b.conn.Close(ctx)
	return true
}

func (b *beginning) run(ctx context.Context) error {
	id, err := pglogrepl.IdentifySystem(ctx, b.conn.PgConn)
	if err != nil {
		return err
	}
	b.epoch = catalog.Epoch{System: id.SystemID, Timeline: uint32(id.Timeline)}
	if err := b.readHistory(ctx); err != nil {
		return err
	}
	if err := b.checkSource(ctx); err != nil {
		return err
	}
	if err := b.recallGaps(ctx); err != nil {
		return err
	}
	beat := b.heartbeatSQL(ctx)
	b.publishHeartbeat(ctx)
	if err := b.checkSlot(ctx, catalog.LSN(id.XLogPos)); err != nil {
		return err
	}
	if b.noneLeft(ctx) {
		return nil
	}
	if err := b.readEnd(ctx); err != nil {
		return err
	}
	if err := b.rememberRelations(ctx); err != nil {
		return err
	}
	if err := b.openTables(ctx); err != nil {
		return err
	}
	if b.noneLeft(ctx) {
		return nil
	}
	return b.read(ctx, beat)
}

// readHistory learns where earlier timelines were left, when a cursor is of one.
func (b *beginning) readHistory(ctx context.Context) error {
	older := false
	for _, r := range b.resumes {
		older = older || !r.Cursor.IsZero() && r.Cursor.Epoch.Timeline < b.epoch.Timeline
	}
	if !older {
		return nil
	}
	file, err := pglogrepl.TimelineHistory(ctx, b.conn.PgConn, int32(b.epoch.Timeline))
	if err != nil {
		return err
	}
	b.history, err = parseForks(file.Content)
	return err
}

// checkSource stops on what keeps every table from being read, stops the tables
// that cannot be read, and publishes the others.
func (b *beginning) checkSource(ctx context.Context) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	for _, f := range blocking(judge(b.cfg.Source, b.going(), b.facts)) {
		switch {
		case f.Table == "" && f.Code != catalog.CodeSourceSlot:
			return findingError(f)
		case f.Table != "" && !b.toldByLog(f):
			b.failFinding(f)
		}
	}
	going := b.going()
	if b.cfg.Source.CreateSlot && len(going) > 0 {
		if err := b.look(ctx); err != nil {
			return err
		}
		for table, err := range b.publish(ctx, b.facts, going) {
			if i := slices.IndexFunc(going, func(t *catalog.Table) bool { return t.Name.String() == table }); i >= 0 && b.facts.tables[i].oid == 0 {
				continue // the table was read before; the log tells what became of it
			}
			b.failed[table] = pipeline.Fault{Table: table, State: catalog.Quarantined, Err: err}
		}
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	for i, t := range b.going() {
		if b.facts.publication != nil && (b.facts.tables[i].published || b.facts.tables[i].oid == 0) {
			continue
		}
		e := catalog.Errorf(catalog.Invalid, catalog.CodeSourcePublication, "ALTER PUBLICATION "+quoteIdent(b.cfg.Source.Publication)+" ADD TABLE "+quoteName(t.Name),
			"table %s is not in publication %s", t.Name, b.cfg.Source.Publication)
		b.fail(t, catalog.Quarantined, e)
	}
	return b.look(ctx)
}

// look gathers facts of the tables that are still going, in their order.
func (b *beginning) look(ctx context.Context) error {
	var err error
	b.facts, err = gather(ctx, b.pool, b.cfg.Source, b.going())
	return err
}

// toldByLog reports whether a finding is about an alteration of a table that was read
// before: the log comes to it, and the table parks there.
func (b *beginning) toldByLog(f catalog.Finding) bool {
	switch f.Code { //nolint:exhaustive // the others are no alterations
	case catalog.CodeSourceTable, catalog.CodeSourceColumn, catalog.CodeSourceKey, catalog.CodeSourceIdentity:
	default:
		return false
	}
	return slices.ContainsFunc(b.resumes, func(r pipeline.Resume) bool { return r.Table.Name.String() == f.Table && b.known(r) })
}

func (b *beginning) failFinding(f catalog.Finding) {
	for _, r := range b.resumes {
		if r.Table.Name.String() == f.Table {
			b.fail(r.Table, catalog.Quarantined, findingError(f))
		}
	}
}

// checkSlot prepares the slot and finds the tables of which something is missing.
func (b *beginning) checkSlot(ctx context.Context, end catalog.LSN) error {
	anyRead := false
	b.generations = map[string]uint32{}
	for _, r := range b.resumes {
		b.generations[r.Table.Name.String()] = max(r.Cursor.Position.Generation, 1)
		anyRead = anyRead || wasRead(r)
		if r.Cursor.IsZero() {
			continue
		}
		if ok, why := continues(r.Cursor, b.epoch, b.history, end); !ok {
			b.fail(r.Table, catalog.Gap, gapError(r.Table, why))
		}
	}
	gap, made, err := b.prepareSlot(ctx, b.conn, b.facts, anyRead)
	if err != nil {
		return err
	}
	if gap != "" {
		for _, f := range gaps(b.resumes, gap, b.cfg.Source.Slot) {
			if _, already := b.failed[f.Table]; !already {
				b.failed[f.Table] = f
			}
		}
		return nil
	}
	b.newSlot = made
	noted, moved, err := b.moved(ctx)
	if err != nil {
		return err
	}
	if moved && anyRead {
		for _, r := range b.resumes {
			if !wasRead(r) || r.Cursor.Position.Commit >= b.confirmed {
				continue // what the slot forgot, the lake has
			}
			err := b.gone(ctx, r, gapError(r.Table,
				"slot "+b.cfg.Source.Slot+" was moved to "+b.confirmed.String()+" or made anew by somebody else; it had been confirmed up to "+noted.String()))
			if err != nil {
				return err
			}
		}
	}
	if b.cfg.Notes != nil && (made || noted == 0) {
		if err := b.cfg.Notes.WriteFlushed(ctx, b.confirmed); err != nil {
			return err
		}
	}
	b.asked.confirm(b.confirmed)
	b.through = b.confirmed
	return nil
}

// wasRead reports whether the lake has the table as of some place in the log. One that
// was empty then has no cursor yet.
func wasRead(r pipeline.Resume) bool { return !r.Cursor.IsZero() || r.Snapshot != nil }

// readEnd notes what runs and where the log ends, now that the tables are
// published.
func (b *beginning) readEnd(ctx context.Context) error {
	var sees, end string
	err := b.pool.QueryRow(ctx, "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text").Scan(&sees, &end)
	if err != nil {
		return err
	}
	if b.now, err = change.ParseVisibility(sees); err != nil {
		return err
	}
	b.nearXID = b.now.Xmax
	b.end, err = catalog.ParseLSN(end)
	b.startedAt = b.end
	return err
}

// read starts the goroutines.
func (b *beginning) read(ctx context.Context, beat string) error {
	every := 10 * time.Second
	if ms := b.facts.number("wal_sender_timeout"); ms > 0 {
		every = min(every, max(time.Duration(ms)*time.Millisecond/3, 100*time.Millisecond))
	}
	str := newStream(b.Source, every)
	str.flushed.Store(uint64(b.confirmed))
	var err error
	if b.conn, err = b.startStream(ctx, b.conn, str); err != nil {
		return err
	}
	conn := b.conn
	b.stream = str
	streaming, end := context.WithCancel(b.life)
	b.endStream = end
	b.running.Go(func() { defer end(); str.run(streaming, conn) })
	b.running.Go(func() { b.pulse(b.life, beat, str) })
	if len(b.parts) > 0 {
		b.running.Go(func() { b.watchPartitions(b.life) })
	}
	return nil
}

// asError returns the error itself when it is one for people, and else takes it
// for a broken connection or a bug.
func asError(source string, err error) *catalog.Error {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return e
	}
	if isConnectionError(err) {
		return unreachable(source, err)
	}
	e := catalog.Errorf(catalog.Internal, catalog.CodeInternal, "please report it with the worker's log", "source %s: %s", source, serverMessage(err))
	e.Err = err
	return e
}
