package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

func TestEveryKindOfChangeArrivesInCommitOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table ol (order_id int, line int, qty int, primary key (order_id, line))`)
	l.table("ol", "order_id", "line")
	l.begin()
	l.snapshotted()
	l.exec(`insert into ol values (10,1,5),(10,2,7);
update ol set qty = 6 where line = 1;
update ol set line = 3 where order_id = 10 and line = 1;
update ol set order_id = 11 where order_id = 10;
delete from ol where line = 2;
insert into ol values (1,1,null);
truncate ol;
insert into ol values (2,2,2);`)
	l.drain()
	want := strings.TrimLeft(`
c after(10, 1, 5)
c after(10, 2, 7)
u after(10, 1, 6)
d before(10, 1, <absent>) other(10, 3, 6)
c after(10, 3, 6) other(10, 1, <absent>)
d before(10, 2, <absent>) other(11, 2, 7)
c after(11, 2, 7) other(10, 2, <absent>)
d before(10, 3, <absent>) other(11, 3, 6)
c after(11, 3, 6) other(10, 3, <absent>)
d before(11, 2, <absent>)
c after(1, 1, <null>)
t
c after(2, 2, 2)
`, "\n")
	require.Empty(t, gocmp.Diff(want, l.store["public.ol"].script()))
	l.same("ol")
}

const toastScript = `insert into doc values (1,'a',repeat('x',9000),repeat('y',9000));
update doc set title = 'b' where id = 1;
update doc set body = null where id = 1;
update doc set title = 'c' where id = 1;
update doc set id = 2 where id = 1;
delete from doc where id = 2;`

const docTable = `create table doc (id int primary key, title text, body text, meta text);
alter table doc alter body set storage external, alter meta set storage external;`

func TestUnchangedLargeValuesAreMarkedAndDistinctFromNull(t *testing.T) {
	t.Parallel()
	l := newLab(t, docTable)
	l.table("doc", "id")
	l.begin()
	l.snapshotted()
	l.exec(toastScript)
	l.drain()
	require.Equal(t, strings.TrimLeft(`
c after(1, a, xxx…(9000), yyy…(9000))
u after(1, b, <unavailable>, <unavailable>)
u after(1, b, <null>, <unavailable>)
u after(1, c, <null>, <unavailable>)
d before(1, <absent>, <absent>, <absent>) other(2, c, <null>, <unavailable>)
c after(2, c, <null>, <unavailable>) other(1, <absent>, <absent>, <absent>)
d before(2, <absent>, <absent>, <absent>)
`, "\n"), l.store["public.doc"].script())
}

func TestFullIdentityGivesUnchangedLargeValues(t *testing.T) {
	t.Parallel()
	l := newLab(t, docTable+"\nalter table doc replica identity full;")
	l.table("doc", "id")
	l.begin()
	l.snapshotted()
	l.exec(toastScript)
	l.drain()
	require.Equal(t, strings.TrimLeft(`
c after(1, a, xxx…(9000), yyy…(9000))
u before(1, a, xxx…(9000), yyy…(9000)) after(1, b, xxx…(9000), yyy…(9000))
u before(1, b, xxx…(9000), yyy…(9000)) after(1, b, <null>, yyy…(9000))
u before(1, b, <null>, yyy…(9000)) after(1, c, <null>, yyy…(9000))
d before(1, c, <null>, yyy…(9000)) other(2, c, <null>, yyy…(9000))
c after(2, c, <null>, yyy…(9000)) other(1, c, <null>, yyy…(9000))
d before(2, c, <null>, yyy…(9000))
`, "\n"), l.store["public.doc"].script())
}

func TestALargeKeyThatDoesNotChangeIsNoMove(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table k (id text primary key, v int);
alter table k alter id set storage external;`)
	l.table("k", "id")
	l.begin()
	l.snapshotted()
	l.exec("insert into k values (repeat('k', 2600), 1);\nupdate k set v = 2;\ndelete from k;")
	l.drain()
	require.Equal(t, strings.TrimLeft(`
c after(kkk…(2600), 1)
u before(kkk…(2600), <absent>) after(kkk…(2600), 2)
d before(kkk…(2600), <absent>)
`, "\n"), l.store["public.k"].script())
}

func TestATransactionLargerThanASliceIsSplitButAMoveIsNot(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table big (id int primary key, v text);\ncreate table small (id int primary key);")
	l.table("big", "id")
	l.table("small", "id")
	l.cfg.Limits.SliceRows = 100
	l.begin()
	l.snapshotted()
	l.exec(`begin;
insert into big select g, 'v' from generate_series(1, 1000) g;
insert into small values (1);
update big set id = -id;
commit;
insert into small values (2);`)
	end := l.end()
	slices, split := 0, 0
	for l.through < end {
		slice := l.next()
		for _, b := range slice.Batches {
			slices++
			require.Less(t, len(b.Changes), 300)
			if !b.Whole {
				split++
				require.Less(t, slice.Through, b.Changes[0].Position.Commit)
			}
			require.False(t, b.Changes[len(b.Changes)-1].MovedAway(), "a move was split")
			require.False(t, b.Changes[0].MovedIn(), "a move was split")
		}
		if slices == 5 { // forget the rest and come again in the middle of the transaction
			l.saveAll()
			l.crash()
			l.begin()
			slices++
		}
		if slices > 7 {
			l.saveAll()
		}
	}
	l.saveAll()
	require.Greater(t, split, 10)
	require.Len(t, l.store["public.big"].events, 3000)
	l.same("big")
	l.same("small")
}

func TestASmallTransactionIsNeverSplit(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table small (id int primary key)")
	l.table("small", "id")
	l.cfg.Limits.SliceRows = 100
	l.begin()
	l.snapshotted()
	for i := range 30 {
		l.exec("insert into small select g from generate_series($1::int, $2::int) g", i*90, i*90+89)
	}
	end := l.end()
	for l.through < end {
		for _, b := range l.next().Batches {
			require.True(t, b.Whole)
			require.Zero(t, len(b.Changes)%90)
		}
		l.saveAll()
	}
	require.Len(t, l.store["public.small"].events, 2700)
}

func TestTruncateIsAChangeOfEachOfItsTables(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table th (id serial primary key, v text);
create table th_child (id int primary key, th_id int references th(id));`)
	l.table("th", "id")
	l.table("th_child", "id")
	l.begin()
	l.snapshotted()
	l.exec(`insert into th(v) values ('a'),('b'),('c');
insert into th_child values (1,1);
begin;
insert into th(v) values ('d');
truncate th restart identity cascade;
insert into th(v) values ('new');
commit;`)
	l.drain()
	require.Equal(t, "c after(1, a)\nc after(2, b)\nc after(3, c)\nc after(4, d)\nt\nc after(1, new)\n", l.store["public.th"].script())
	require.Equal(t, "c after(1, 1)\nt\n", l.store["public.th_child"].script())
}

func TestALostConnectionIsMadeAgainWithoutLossOrDoubles(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	l := newLab(t, fmt.Sprintf(docDDL, "d")+"\n"+fillDocs("d", 200))
	l.table("d", "k1", "k2")
	l.cfg.Source.Snapshot.ChunkRows = 20
	l.begin()
	w := l.write(r, 2, false, "d")
	for range 5 {
		before := w.commits.Load()
		l.until("more is written", func() bool { return w.commits.Load() > before+20 })
		l.exec("select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active", l.cfg.Source.Slot)
	}
	w.end()
	l.snapshotted()
	l.same("d")
}

func TestAnIdleTableIsKnownToBeFreshAndTheSlotMoves(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table quiet (id int primary key, v text);\ncreate table noisy (x text);\ninsert into quiet values (1,'a');")
	l.table("quiet", "id")
	l.begin()
	l.snapshotted()
	l.exec("insert into noisy select repeat(md5(g::text),30) from generate_series(1,20000) g")
	end := l.end()
	var now time.Time
	require.NoError(t, l.db.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now))
	l.until("the idle source is known to be read", func() bool { return l.readAt.After(now) && l.through >= end })
	l.until("the slot has moved", func() bool {
		status, err := l.source.Status(t.Context())
		require.NoError(t, err)
		require.True(t, status.Active)
		require.Equal(t, "reserved", status.SlotState)
		return status.Confirmed >= end
	})
	l.exec("insert into quiet values (2,'b')")
	l.drain()
	l.same("quiet")
	require.LessOrEqual(t, l.notes.at, l.through)
}

func TestTheServerIsAnsweredWhileNobodyCallsNext(t *testing.T) {
	t.Parallel()
	server := localpgtest.Server(t, map[string]string{"wal_sender_timeout": "1s"})
	l := labOn(t, localpgtest.DatabaseOn(t, server), "create table d (id int primary key, v text)")
	l.table("d", "id")
	l.cfg.Limits.BufferSize = packetSize
	l.begin()
	l.snapshotted()
	pid := l.source.stream.conn.Load().PID()
	l.exec("insert into d select g, repeat('v', 100) from generate_series(1, 100000) g") // more than the buffer
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	<-ctx.Done() // four times what the server waits for an answer
	require.NotNil(t, l.source.stream.conn.Load())
	require.Equal(t, pid, l.source.stream.conn.Load().PID())
	l.drain()
	require.Len(t, l.store["public.d"].events, 100000)
}
