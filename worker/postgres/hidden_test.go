package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// A commit that waits for a standby is in the log, and read, while no reader sees
// it yet. That is where a chunk can come too late or be overtaken.

func waitingLab(t *testing.T, ddl string) *lab {
	t.Helper()
	server := localpgtest.Server(t, map[string]string{"synchronous_standby_names": "nobody", "synchronous_commit": "local"})
	return labOn(t, localpgtest.DatabaseOn(t, server), ddl)
}

// commitUnseen runs SQL in a transaction that is durable but stays invisible until
// the returned function is called.
func (l *lab) commitUnseen(sql string) (release func()) {
	l.t.Helper()
	db := session(l.t, l.dsn)
	pid := db.PgConn().PID()
	ended := make(chan error, 1)
	go func() {
		_, err := db.PgConn().Exec(context.WithoutCancel(l.t.Context()), "set synchronous_commit = on; begin; "+sql+"; commit").ReadAll()
		ended <- err
	}()
	l.poll("the commit waits", func() bool {
		var waits bool
		err := l.db.QueryRow(l.t.Context(), "select coalesce(wait_event = 'SyncRep', false) from pg_stat_activity where pid = $1", int(pid)).Scan(&waits)
		require.NoError(l.t, err)
		return waits
	})
	return func() {
		l.exec("select pg_cancel_backend($1)", int(pid))
		require.NoError(l.t, <-ended)
	}
}

// poll asks until the condition holds.
func (l *lab) poll(what string, holds func() bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			l.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestAChunkOvertakenByAnUnseenCommitGivesItsValuesOnly(t *testing.T) { // not parallel: a slot is made only while no commit of the server waits
	l := waitingLab(t, `create table doc (id int primary key, title text, body text);
alter table doc alter body set storage external;
insert into doc select g, 'old', repeat('x', 9000) from generate_series(1, 6) g;`)
	l.table("doc", "id")
	l.begin()
	// Held from Start on, and committed before the first chunk is read.
	release := l.commitUnseen("update doc set title = 'new' where id = 1; delete from doc where id = 2; update doc set id = 30 where id = 3; insert into doc values (7, 'new', 'y')")
	defer release()
	l.snapshotted()
	require.Equal(t, strings.TrimLeft(`
u after(1, new, xxx…(9000))
d before(2, <absent>, <absent>)
d before(3, <absent>, <absent>) other(30, old, xxx…(9000))
c after(30, old, xxx…(9000)) other(3, <absent>, <absent>)
c after(7, new, y)
r after(4, old, xxx…(9000))
r after(5, old, xxx…(9000))
r after(6, old, xxx…(9000))
`, "\n"), l.store["public.doc"].script())
}

func TestAKeyAskedForAgainIsLeftToAnUnseenCommitThatBringsIt(t *testing.T) { // not parallel: a slot is made only while no commit of the server waits
	l := waitingLab(t, `create table doc (id int primary key, title text, body text);
alter table doc alter body set storage external;
insert into doc select g, 'old', repeat('x', 9000) from generate_series(1, 3) g;`)
	l.table("doc", "id")
	l.begin()
	l.snapshotted()
	s := l.store["public.doc"]
	before := len(s.events)
	release := l.commitUnseen("insert into doc values (9, 'new', 'y'); update doc set title = 'new' where id = 1; update doc set id = 8 where id = 2; delete from doc where id = 3")
	l.source.Reread(pipeline.Reread{ID: 1, Table: "public.doc", Keys: [][]string{{"1"}, {"2"}, {"3"}, {"7"}, {"8"}, {"9"}}})
	for range 10 { // it cannot be answered, or not all of it, while the commit is unseen
		l.next()
		l.saveAll()
	}
	require.False(t, l.answered[1])
	release()
	l.until("it is answered", func() bool { return l.answered[1] })
	l.drain()
	l.same("doc")
	require.Contains(t, s.script(), "d before(7, <absent>, <absent>)\n")
	require.NotContains(t, s.script(), "d before(9", "the key that came was said to be gone")
	require.Greater(t, len(s.events), before)
}

func TestAnUnseenTruncateOvertakesTheWholeChunk(t *testing.T) { // not parallel: a slot is made only while no commit of the server waits
	l := waitingLab(t, `create table doc (id int primary key, title text);
insert into doc select g, 'old' from generate_series(1, 6) g;`)
	l.table("doc", "id")
	l.cfg.Limits.LockTimeout = 200 * time.Millisecond
	l.begin()
	release := l.commitUnseen("truncate doc; insert into doc values (1, 'new')")
	// The truncate's lock keeps the chunk from being read until it is seen.
	l.until("the truncate is read", func() bool { return len(l.store["public.doc"].events) == 2 || l.source.order[0].snap.failures > 0 })
	release()
	l.snapshotted()
	l.same("doc")
}

func TestAChunkIsReadAgainWhenACommitHandedOverBeforeIsUnseen(t *testing.T) { // not parallel: a slot is made only while no commit of the server waits
	l := waitingLab(t, `create table doc (id int primary key, title text);
insert into doc select g, 'old' from generate_series(1, 6) g;`)
	l.table("doc", "id")
	l.cfg.Source.Snapshot.ChunkRows = 2
	l.begin()
	l.until("a chunk is read", func() bool { s := l.store["public.doc"].snapshot; return s != nil && s.Chunks == 1 })
	release := l.commitUnseen("update doc set title = 'new' where id >= 5")
	l.until("the change is handed over", func() bool { return l.store["public.doc"].has(change.Update) })
	for range 5 { // chunks are read, and put aside
		l.next()
		l.saveAll()
	}
	require.False(t, l.store["public.doc"].snapshot.Done, "rows 5 and 6 were read as they were before their update")
	release()
	l.snapshotted()
	l.same("doc")
}

func TestARestartWhileACommitWaitsForItsStandby(t *testing.T) { // not parallel: a slot is made only while no commit of the server waits
	l := waitingLab(t, `create table doc (id int primary key, title text);
insert into doc select g, 'old' from generate_series(1, 6) g;`)
	l.table("doc", "id")
	l.cfg.Source.Snapshot.ChunkRows = 2
	l.begin()
	l.until("a chunk is read", func() bool { s := l.store["public.doc"].snapshot; return s != nil && s.Chunks == 1 })
	release := l.commitUnseen("update doc set title = 'new' where id >= 5")
	l.until("the change is handed over", func() bool { return l.store["public.doc"].has(change.Update) })
	l.confirm()
	l.crash()
	l.begin()
	for range 5 {
		l.next()
		l.saveAll()
	}
	require.False(t, l.store["public.doc"].snapshot.Done)
	release()
	l.snapshotted()
	l.same("doc")
}

func TestATableIsNotReadWhileOlderTransactionsMayHaveWrittenUnpublished(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table a (id int primary key, v text);
create table b (id int primary key, v text);
insert into b values (1, 'old');`)
	l.table("a", "id")
	l.begin()
	l.snapshotted()
	l.crash()
	other := session(t, l.dsn)
	tx, err := other.BeginTx(t.Context(), pgx.TxOptions{})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "insert into b values (2, 'written before b was published')")
	require.NoError(t, err)
	l.table("b", "id")
	added := make(chan []string, 1)
	go func() { // the ALTER waits for the writer, as it must, unless it need not
		var faults []string
		for _, f := range l.begin() {
			faults = append(faults, f.Err.Error())
		}
		added <- faults
	}()
	select {
	case faults := <-added:
		require.Empty(t, faults)
		for range 5 {
			l.next()
			l.saveAll()
		}
		require.Empty(t, l.store["public.b"].events, "b was read while a transaction ran whose writes are not in the stream")
		require.NoError(t, tx.Commit(t.Context()))
	case <-time.After(2 * time.Second):
		require.NoError(t, tx.Commit(t.Context()))
		require.Empty(t, <-added)
	}
	l.snapshotted()
	l.same("b")
}

func TestWidenXIDFindsTheNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		near uint64
		xid  uint32
		want uint64
	}{
		{1000, 990, 990},
		{1000, 1010, 1010},
		{1<<32 + 5, 0xfffffff0, 1<<32 - 16},
		{1<<32 - 5, 3, 1<<32 + 3},
		{7<<32 + 100, 50, 7<<32 + 50},
	} {
		require.Equal(t, c.want, widenXID(c.near, c.xid))
	}
}
