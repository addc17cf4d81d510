package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// started reads two tables to their end, and stops.
func startedLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, "create table a (id int primary key, v text);\ncreate table b (id int primary key, v text);\ninsert into a values (1, 'before');")
	l.table("a", "id")
	l.table("b", "id")
	l.begin()
	l.snapshotted()
	l.exec("insert into b values (1, 'before')")
	l.drain()
	l.saveAll()
	l.crash()
	l.free()
	return l
}

func TestAMissingSlotIsAGapAndIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	l := startedLab(t)
	l.exec("select pg_drop_replication_slot($1)", l.cfg.Source.Slot)
	l.exec("insert into a values (2, 'in the gap');\ndelete from a where id = 1;")
	faults := l.begin()
	require.Len(t, faults, 2)
	for _, f := range faults {
		require.Equal(t, catalog.Gap, f.State)
		require.Equal(t, "changes are missing: slot "+l.cfg.Source.Slot+" is missing at the source", f.Err.Message)
		require.Contains(t, f.Err.Hint, l.cfg.Source.Slot)
	}
	require.Empty(t, l.next(), "nothing is read where no table could start")
	var slots int
	require.NoError(t, l.db.QueryRow(t.Context(), "select count(*)::int from pg_replication_slots where slot_name = $1", l.cfg.Source.Slot).Scan(&slots))
	require.Zero(t, slots)

	c := l.table("c", "id") // a new table has to wait too
	l.exec("create table c (id int primary key)")
	l.crash()
	faults = l.begin()
	require.Equal(t, c.Name.String(), faults[2].Table)
	require.Equal(t, catalog.CodeSourceSlot, faults[2].Err.Code)
	require.Equal(t, catalog.Quarantined, faults[2].State)
}

func TestASlotMovedBySomebodyElseIsAGap(t *testing.T) {
	t.Parallel()
	l := startedLab(t)
	l.exec("insert into a values (2, 'in the gap')")
	l.exec("select pg_replication_slot_advance($1, $2::pg_lsn)", l.cfg.Source.Slot, l.end().String())
	faults := l.begin()
	require.Len(t, faults, 2)
	require.Equal(t, catalog.Gap, faults[0].State)
	require.Contains(t, faults[0].Err.Message, "was moved to")
}

func TestALostSlotIsAGap(t *testing.T) {
	t.Parallel()
	server, err := localpg.Start(t.Context(), localpg.Config{Dir: t.TempDir(), Settings: map[string]string{"fsync": "off", "max_slot_wal_keep_size": "48MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) })
	l := labOn(t, server.DSN("postgres"), "create table a (id int primary key, v text);\ncreate table noise (x text);")
	l.table("a", "id")
	l.begin()
	l.snapshotted()
	l.exec("insert into a values (1, 'seen')")
	l.drain()
	l.crash()
	l.free()
	for range 5 {
		l.exec("insert into noise select repeat(md5(g::text), 30) from generate_series(1, 20000) g;\nselect pg_switch_wal();\ncheckpoint;")
	}
	faults := l.begin()
	require.Len(t, faults, 1)
	require.Equal(t, catalog.Gap, faults[0].State)
	require.Equal(t, "changes are missing: slot "+l.cfg.Source.Slot+" is lost (wal_status lost)", faults[0].Err.Message)
}

func TestACursorOfAnotherLogIsAGap(t *testing.T) {
	t.Parallel()
	cursor := func(system string, timeline uint32, at catalog.LSN) catalog.Cursor {
		return catalog.Cursor{Epoch: catalog.Epoch{System: system, Timeline: timeline}, Position: catalog.Position{Generation: 1, Commit: at}}
	}
	history, err := parseForks([]byte("1\t0/3000000\tno recovery target specified\n\n# a remark\n2\t0/5000000\tbefore 2026\n"))
	require.NoError(t, err)
	require.Equal(t, forks{1: 0x3000000, 2: 0x5000000}, history)
	now := catalog.Epoch{System: "7", Timeline: 3}
	for _, c := range []struct {
		cursor catalog.Cursor
		want   string
	}{
		{cursor("7", 3, 0x5000100), ""},
		{cursor("7", 3, 0x9000000), "the server's log ends at 0/8000000, before what was read up to 0/9000000: an older state was restored"},
		{cursor("8", 3, 0x5000100), "another cluster answers: system 7 instead of 8"},
		{cursor("7", 1, 0x2fffff8), ""},
		{cursor("7", 1, 0x3000000), "timeline 1 was left at 0/3000000, before what was read up to 0/3000000: what came after is not in the server's log"},
		{cursor("7", 2, 0x4000000), ""},
		{cursor("7", 4, 0x4000000), "the server is on timeline 3, the lake was on the later 4: an older state was restored"},
	} {
		ok, why := continues(c.cursor, now, history, 0x8000000)
		require.Equal(t, c.want == "", ok)
		require.Equal(t, c.want, why)
	}
	_, why := continues(cursor("7", 2, 1), now, forks{1: 5}, 10)
	require.Equal(t, "timeline 2 is no ancestor of the server's timeline 3", why)
	_, err = parseForks([]byte("nonsense"))
	require.Error(t, err)

	l := startedLab(t)
	s := l.store["public.a"]
	s.cursor.Epoch.System = "1"
	faults := l.begin()
	require.Len(t, faults, 1)
	require.Equal(t, "public.a", faults[0].Table)
	require.Equal(t, catalog.Gap, faults[0].State)
	l.exec("insert into b values (2, 'goes on')")
	l.drain()
	l.same("b")
}

func TestASlotThatIsInUse(t *testing.T) {
	t.Parallel()
	t.Run("by a session of ours that is left over is taken", func(t *testing.T) {
		t.Parallel()
		l := startedLab(t)
		l.begin()
		old := l.source
		l.begin()
		l.exec("insert into a values (2, 'new')")
		l.drain()
		l.same("a")
		require.NotNil(t, old)
	})
	t.Run("by somebody else is not", func(t *testing.T) {
		t.Parallel()
		l := startedLab(t)
		l.cfg.Limits.SlotWait = time.Second
		conn, err := connectReplication(t.Context(), l.cfg.DSN, "other", 10*time.Second)
		require.NoError(t, err)
		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
		require.NoError(t, pglogrepl.StartReplication(t.Context(), conn.PgConn, l.cfg.Source.Slot, 0, pglogrepl.StartReplicationOptions{
			PluginArgs: []string{"proto_version '1'", "publication_names 'lakeweir_shop'"},
		}))
		_, err = l.tryBegin()
		require.Error(t, err)
		e := catalog.Public(err)
		require.Equal(t, catalog.Unavailable, e.Kind)
		require.Equal(t, catalog.CodeSourceSlot, e.Code)
		require.Contains(t, e.Message, "(lakeweir other)")
	})
}

func TestAServerThatIsNotThereIsSaidToBeUnreachable(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table a (id int primary key)")
	l.table("a", "id")
	l.cfg.DSN = "postgres://app:very-secret@127.0.0.1:1/none?sslmode=disable"
	_, err := l.tryBegin()
	require.Error(t, err)
	e := catalog.Public(err)
	require.Equal(t, catalog.Unavailable, e.Kind)
	require.Equal(t, catalog.CodeSourceUnreachable, e.Code)
	require.NotContains(t, e.Message, "very-secret")

	l.cfg.DSN = "postgres://app:very-secret@127.0.0.1:99999999/none"
	_, err = l.tryBegin()
	require.NotContains(t, err.Error(), "very-secret")
}

func TestAServerCrashLosesNothing(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	dir := t.TempDir()
	config := localpg.Config{Dir: dir, Settings: map[string]string{"synchronous_commit": "off"}}
	server, err := localpg.Start(t.Context(), config)
	require.NoError(t, err)
	dsn := server.DSN("postgres")
	config.Port = portOf(t, dsn)
	t.Cleanup(func() { _ = server.Stop(context.WithoutCancel(t.Context())) })
	l := labOn(t, dsn, docDDLOf("d")+"\n"+fillDocs("d", 300))
	l.table("d", "k1", "k2")
	l.cfg.Source.Snapshot.ChunkRows = 10
	l.begin()
	for range 2 {
		w := l.write(r, 2, false, "d")
		l.until("something is written", func() bool { return w.commits.Load() > 30 })
		require.NoError(t, server.Kill())
		w.end()
		server, err = localpg.Start(t.Context(), config)
		require.NoError(t, err)
		l.db = session(t, dsn)
	}
	l.snapshotted()
	l.same("d")
}

func TestTheNotedPositionIsNeverBehindTheSlot(t *testing.T) {
	t.Parallel()
	_ = localpgtest.Server(t)
	l := startedLab(t)
	var confirmed string
	require.NoError(t, l.db.QueryRow(t.Context(), "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1", l.cfg.Source.Slot).Scan(&confirmed))
	at, err := catalog.ParseLSN(confirmed)
	require.NoError(t, err)
	require.LessOrEqual(t, at, l.notes.at)
	require.Positive(t, at)
}
