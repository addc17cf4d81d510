package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// lab is a source database and a plain store of what is read from it.
type lab struct {
	t      testing.TB
	dsn    string
	db     *pgx.Conn
	cfg    Config
	tables []*catalog.Table
	store  map[string]*stored
	notes  *noted
	source *Source
	faults map[string]pipeline.Fault
	parked map[string]pipeline.Fault // tables that park, which survives a crash
	// through and readAt are of the newest slice.
	through catalog.LSN
	readAt  time.Time
	// answered are the requests to read again whose answers are saved.
	answered map[int64]bool
}

// stored is what a table's bronze would hold, and what came but is not saved yet.
type stored struct {
	events   []event
	cursor   catalog.Cursor
	snapshot *catalog.SnapshotProgress
	pending  []*change.Batch
	// runs are those of a table that parks, schema is what was decided last, and replayed
	// what was said of the replay that is under way.
	runs     []pipeline.ParkedRun
	schema   *catalog.Schema
	replayed []pipeline.Replayed
}

// event is a change with its rows as texts.
type event struct {
	op                   change.Op
	key, other           string
	before, after, moved []string
	position             catalog.Position
	lsn                  catalog.LSN
	xid                  uint64
	time                 int64
}

const (
	cellNull        = "<null>"
	cellUnavailable = "<unavailable>"
	cellAbsent      = "<absent>"
	cellUnfit       = "<unfit>"
)

// noted keeps the confirmed position, as the registry would.
type noted struct {
	mu    sync.Mutex
	at    catalog.LSN
	known bool
}

func (n *noted) ReadFlushed(context.Context) (catalog.LSN, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at, n.known, nil
}

func (n *noted) WriteFlushed(_ context.Context, at catalog.LSN) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at, n.known = at, true
	return nil
}

func newLab(t testing.TB, ddl string) *lab {
	t.Helper()
	return labOn(t, localpgtest.Database(t), ddl)
}

func labOn(t testing.TB, dsn, ddl string) *lab {
	t.Helper()
	l := &lab{t: t, dsn: dsn, db: session(t, dsn), store: map[string]*stored{}, notes: &noted{}, answered: map[int64]bool{}, parked: map[string]pipeline.Fault{}}
	l.exec(ddl)
	var database string
	require.NoError(t, l.db.QueryRow(t.Context(), "select current_database()").Scan(&database))
	l.cfg = Config{
		Source: &catalog.Source{
			Name: "shop", Kind: catalog.Postgres, Capture: catalog.Direct, Slot: "slot_" + database, Publication: "lakeweir_shop",
			CreateSlot: true, WALBudget: 10 << 30, Snapshot: catalog.SnapshotOptions{ChunkRows: 10_000, Parallel: 2},
			Heartbeat: catalog.Heartbeat{Interval: 10 * time.Second, Table: catalog.TableName{Schema: "lakeweir", Name: "heartbeat"}},
		},
		DSN: catalog.Secret(dsn), Notes: l.notes,
		Limits: Limits{NextWait: 200 * time.Millisecond, ConfirmEvery: time.Millisecond},
	}
	if os.Getenv("LAKEWEIR_TEST_LOG") != "" {
		l.cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return l
}

// session opens a connection that prints values as the source does.
func session(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	maps.Copy(c.RuntimeParams, typemap.SessionSettings())
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func portOf(t testing.TB, dsn string) int {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return int(c.Port)
}

func (l *lab) exec(sql string, args ...any) {
	l.t.Helper()
	if sql == "" {
		return
	}
	if len(args) == 0 { // several statements, each in a transaction of its own unless it begins one
		for _, s := range split(sql) {
			_, err := l.db.Exec(l.t.Context(), s)
			require.NoError(l.t, err, s)
		}
		return
	}
	_, err := l.db.Exec(l.t.Context(), sql, args...)
	require.NoError(l.t, err, sql)
}

// split cuts a script at the semicolons that end lines.
func split(sql string) []string {
	var out []string
	for s := range strings.SplitSeq(sql, ";\n") {
		if s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), ";")); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// table configures a table of schema public.
func (l *lab) table(name string, key ...string) *catalog.Table {
	t := &catalog.Table{
		Source: "shop", Name: catalog.ParseTableName(name), Owner: "team", PrimaryKey: key, Current: len(key) > 0, History: len(key) > 0,
		Tier: catalog.Realtime, SoftDelete: true, ApplyTruncates: true,
	}
	l.tables = append(l.tables, t)
	l.store[t.Name.String()] = &stored{}
	return t
}

func (l *lab) resumes() []pipeline.Resume {
	var out []pipeline.Resume
	for _, t := range l.tables {
		s := l.store[t.Name.String()]
		r := pipeline.Resume{Table: t, Cursor: s.cursor, Snapshot: s.snapshot}
		if l.cfg.Park {
			r.Schema = s.schema
		}
		if _, stopped := l.parked[t.Name.String()]; stopped {
			r.Parked = &pipeline.ParkedThrough{Seq: uint64(len(s.runs))}
			if n := len(s.runs); n > 0 {
				r.Parked.Place = s.runs[n-1].To
			} else {
				r.Parked.Position = s.cursor.Position
			}
		}
		out = append(out, r)
	}
	return out
}

// begin starts a source from what is saved and returns Start's faults.
func (l *lab) begin() []pipeline.Fault {
	l.t.Helper()
	faults, err := l.tryBegin()
	require.NoError(l.t, err)
	return faults
}

func (l *lab) tryBegin() ([]pipeline.Fault, error) {
	l.t.Helper()
	l.source = New(l.cfg)
	l.through, l.readAt = 0, time.Time{}
	l.faults = map[string]pipeline.Fault{}
	for _, s := range l.store {
		s.pending = nil
	}
	source := l.source
	l.t.Cleanup(func() { closeSource(l.t, source) })
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	faults, err := l.source.Start(ctx, l.resumes())
	for _, f := range faults {
		l.faults[f.Table] = f
	}
	return faults, err
}

func closeSource(t testing.TB, s *Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// crash drops what was not saved.
func (l *lab) crash() { closeSource(l.t, l.source) }

// free waits until the server has noticed that nobody reads the slot any more.
func (l *lab) free() {
	l.t.Helper()
	l.poll("the slot is free", func() bool {
		var active bool
		err := l.db.QueryRow(l.t.Context(), "select coalesce(bool_or(active), false) from pg_replication_slots where slot_name = $1", l.cfg.Source.Slot).Scan(&active)
		require.NoError(l.t, err)
		return !active
	})
}

// next takes one slice and keeps it unsaved.
func (l *lab) next() pipeline.Slice {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 90*time.Second)
	defer cancel()
	slice, err := l.source.Next(ctx)
	require.NoError(l.t, err)
	seen := map[string]bool{}
	for _, b := range slice.Batches {
		name := b.Table.Name.String()
		require.False(l.t, seen[name], "two batches of one table in a slice")
		seen[name] = true
		require.NotContains(l.t, l.faults, name, "a batch of a table that has stopped")
		s := l.store[name]
		s.pending = append(s.pending, b)
		s.schema = b.Rows.Schema()
	}
	l.park(slice)
	for _, f := range slice.Faults {
		if !f.Parks {
			l.faults[f.Table] = f
		}
	}
	require.GreaterOrEqual(l.t, slice.Through, l.through, "Through fell")
	l.through = slice.Through
	if !slice.ReadAt.IsZero() {
		require.False(l.t, slice.ReadAt.Before(l.readAt), "ReadAt fell")
		l.readAt = slice.ReadAt
	}
	return slice
}

// save stores the pending batches of one table.
func (l *lab) save(name string) {
	l.t.Helper()
	s := l.store[name]
	for _, b := range s.pending {
		for i := range b.Changes {
			e := toEvent(b, &b.Changes[i])
			if n := len(s.events); n > 0 {
				require.Negative(l.t, s.events[n-1].position.Compare(e.position), "%s: %s after %s", name, e.position, s.events[n-1].position)
			}
			s.events = append(s.events, e)
		}
		s.cursor = b.End(s.cursor)
		if b.Snapshot != nil {
			s.snapshot = b.Snapshot
		}
		for _, id := range b.Rereads {
			l.answered[id] = true
		}
	}
	s.pending = nil
}

// confirm confirms what is saved of every table.
func (l *lab) confirm() {
	l.t.Helper()
	through := l.through
	for _, s := range l.store {
		for _, b := range s.pending {
			if len(b.Changes) > 0 {
				through = min(through, b.Changes[0].Position.Commit)
			}
		}
	}
	require.NoError(l.t, l.source.Confirm(l.t.Context(), through))
}

func (l *lab) saveAll() {
	l.t.Helper()
	for name := range l.store {
		l.save(name)
	}
	l.confirm()
}

// until takes and saves slices until the condition holds.
func (l *lab) until(what string, done func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain until %s; through %s", what, l.through)
		}
		l.next()
		l.saveAll()
	}
}

// end is the end of the log now, written out.
func (l *lab) end() catalog.LSN {
	l.t.Helper()
	var end string
	l.exec("select pg_logical_emit_message(true, 'test', '')")
	require.NoError(l.t, l.db.QueryRow(l.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&end))
	l.exec("select pg_switch_wal()")
	lsn, err := catalog.ParseLSN(end)
	require.NoError(l.t, err)
	return lsn
}

// drain reads all that was written until now.
func (l *lab) drain() {
	l.t.Helper()
	end := l.end()
	l.until("the log is read up to "+end.String(), func() bool { return l.through >= end })
}

// snapshotted waits until every running table's rows are read, then drains.
func (l *lab) snapshotted() {
	l.t.Helper()
	l.until("the snapshots are done", func() bool {
		for name, s := range l.store {
			if _, stopped := l.faults[name]; !stopped && (s.snapshot == nil || !s.snapshot.Done) {
				return false
			}
		}
		return true
	})
	l.drain()
}

func toEvent(b *change.Batch, c *change.Change) event {
	row := func(i int) []string {
		if i < 0 {
			return nil
		}
		return texts(b.Rows, i)
	}
	return event{
		op: c.Op, key: string(c.Key), other: string(c.OtherKey), before: row(c.Before), after: row(c.After), moved: row(c.Other),
		position: c.Position, lsn: c.LSN, xid: c.TxID, time: c.CommitTime,
	}
}

func texts(rows *change.Rows, row int) []string {
	out := make([]string, len(rows.Schema().Columns))
	for col := range out {
		switch rows.Mark(row, col) {
		case change.Null:
			out[col] = cellNull
		case change.Unavailable:
			out[col] = cellUnavailable
		case change.Absent:
			out[col] = cellAbsent
		case change.Unfit:
			out[col] = cellUnfit
		case change.Present, change.Filled:
			out[col] = string(appendValue(nil, rows, row, col))
		}
	}
	return out
}

func (s *stored) has(op change.Op) bool {
	return slices.ContainsFunc(s.events, func(e event) bool { return e.op == op })
}

// folded is the plainest fold there is: the last writer of a key wins, and a value
// that was not sent is the one that held.
func (s *stored) folded() map[string][]string {
	state := map[string][]string{}
	moved := map[string][]string{} // rows on the way to another key
	for _, e := range s.events {
		switch e.op {
		case change.Truncate:
			clear(state)
		case change.Delete:
			if e.other != "" {
				moved[e.other] = state[e.key]
			}
			delete(state, e.key)
		case change.Create, change.Update, change.Read:
			was := state[e.key]
			if e.other != "" {
				was = moved[e.other0()]
				delete(moved, e.other0())
			}
			row := slices.Clone(e.after)
			for i := range row {
				if row[i] == cellUnavailable && was != nil {
					row[i] = was[i]
				}
			}
			state[e.key] = row
		}
	}
	return state
}

// other0 is the key under which folded keeps the row that moves into e's.
func (e event) other0() string { return e.key }

// rows prints a folded state's rows, sorted.
func printed(state map[string][]string) []string {
	out := make([]string, 0, len(state))
	for _, row := range state {
		out = append(out, strings.Join(row, "|"))
	}
	slices.Sort(out)
	return out
}

// live reads the source's table.
func (l *lab) live(table string) []string {
	l.t.Helper()
	rows, err := l.db.Query(l.t.Context(), "select * from "+table)
	require.NoError(l.t, err)
	defer rows.Close()
	out := []string{}
	for rows.Next() {
		cells := make([]string, 0, 8)
		for _, v := range rows.RawValues() {
			if v == nil {
				cells = append(cells, cellNull)
			} else {
				cells = append(cells, string(v))
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	require.NoError(l.t, rows.Err())
	slices.Sort(out)
	return out
}

// same requires that what was read folds to what the source holds.
func (l *lab) same(table string) {
	l.t.Helper()
	name := catalog.ParseTableName(table).String()
	if diff := gocmp.Diff(l.live(table), printed(l.store[name].folded())); diff != "" {
		l.t.Fatalf("%s: source (-) and what was read (+) differ:\n%s", table, diff)
	}
}

// script prints events in short, one a line.
func (s *stored) script() string {
	var b strings.Builder
	for _, e := range s.events {
		fmt.Fprintf(&b, "%c", e.op)
		for _, part := range []struct {
			name string
			row  []string
		}{{"before", e.before}, {"after", e.after}, {"other", e.moved}} {
			if part.row != nil {
				short := make([]string, len(part.row))
				for i, v := range part.row {
					short[i] = v
					if len(v) > 40 {
						short[i] = fmt.Sprintf("%s…(%d)", v[:3], len(v))
					}
				}
				fmt.Fprintf(&b, " %s(%s)", part.name, strings.Join(short, ", "))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// seeded returns a random source and says how to have it again.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("LAKEWEIR_TEST_SEED"); s != "" {
		_, err := fmt.Sscan(s, &seed)
		require.NoError(t, err)
	}
	t.Logf("LAKEWEIR_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
