package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// refusing makes a lab whose table x stops at a TRUNCATE.
func refusing(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, "create table x (id int primary key, v text);\ncreate table other (id int primary key, v text);\ninsert into x values (1, 'a');")
	l.parking(true)
	l.table("x", "id").ApplyTruncates = false
	l.table("other", "id")
	return l
}

func TestARefusedChangeIsPassedByAndTheRestReplayed(t *testing.T) {
	t.Parallel()
	l := refusing(t)
	l.begin()
	l.snapshotted()
	l.together("insert into x values (2, 'b')", "truncate x", "insert into x values (3, 'c')", "insert into other values (1, 'a')")
	l.exec("update x set v = 'd';\ninsert into other values (2, 'b');")
	l.drain()
	f := l.parked["public.x"]
	require.Equal(t, catalog.CodeTruncate, f.Err.Code)
	require.Len(t, l.store["public.x"].events, 2)
	l.same("other")
	l.replay("public.x", l.store["public.x"].schema)
	require.Contains(t, l.parked, "public.x", "it is refused again")
	l.replay("public.x", l.store["public.x"].schema, l.store["public.x"].runs[0].From)
	require.Empty(t, l.parked)
	l.exec("insert into x values (4, 'e')")
	l.drain()
	require.Equal(t, []string{"1|a", "2|b", "3|d", "4|e"}, printed(l.store["public.x"].folded()))
}

// TestTheSlotMovesOnWhileATableParks confirms everything, and starts again.
func TestTheSlotMovesOnWhileATableParks(t *testing.T) {
	t.Parallel()
	l := refusing(t)
	l.begin()
	l.snapshotted()
	l.exec("truncate x")
	for i := range 50 {
		l.exec(fmt.Sprintf("insert into x values (%d, 'x');\ninsert into other values (%d, 'o');", 10+i, i))
		if i%10 == 9 {
			l.drain()
			l.crash()
			l.free()
			require.Empty(t, l.begin())
		}
	}
	end := l.end()
	l.drain()
	l.until("the slot is behind the parked changes", func() bool {
		status, err := l.source.Status(t.Context())
		require.NoError(t, err)
		return status.Confirmed >= end
	})
	runs := l.store["public.x"].runs
	require.Equal(t, 51, func() (n int) {
		for _, r := range runs {
			n += r.Events
		}
		return n
	}())
	l.replay("public.x", l.store["public.x"].schema, runs[0].From)
	require.Empty(t, l.parked)
	l.drain()
	require.Len(t, l.store["public.x"].folded(), 51)
	l.same("other")
}

func TestALostConnectionInTheMidstOfParking(t *testing.T) {
	t.Parallel()
	l := refusing(t)
	l.begin()
	l.snapshotted()
	l.exec("truncate x")
	for i := range 20 {
		l.exec(fmt.Sprintf("insert into x select g, 'x' from generate_series(%d, %d) g", 100*i, 100*i+99))
		l.next()
		if i%4 == 3 {
			l.exec("select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '" + l.cfg.Source.Slot + "' and active_pid is not null")
		}
	}
	l.drain()
	l.replay("public.x", l.store["public.x"].schema, l.store["public.x"].runs[0].From)
	l.drain()
	require.Empty(t, l.parked)
	require.Len(t, l.store["public.x"].folded(), 2000)
}

// TestAReplayKeepsUpWithABusyStream replays while changes never cease.
func TestAReplayKeepsUpWithABusyStream(t *testing.T) {
	t.Parallel()
	l := refusing(t)
	l.cfg.Limits.SliceRows, l.cfg.Limits.SliceBytes = 500, 256<<10
	l.begin()
	l.snapshotted()
	l.exec("truncate x")
	busy := session(t, l.dsn)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := busy.Exec(t.Context(), "insert into x values ("+strconv.Itoa(1000+i)+", repeat('x', 100))"); err != nil {
				stopped <- err
				return
			}
		}
	}()
	l.until("much is parked", func() bool { return len(l.store["public.x"].runs) > 20 })
	l.replay("public.x", l.store["public.x"].schema, l.store["public.x"].runs[0].From)
	require.Empty(t, l.parked)
	close(stop)
	require.NoError(t, <-stopped)
	l.drain()
	want := append(l.live("x"), "1|a")
	slices.Sort(want)
	require.Greater(t, len(want), 100)
	require.Equal(t, want, printed(l.store["public.x"].folded()))
}

// TestASnapshotWaitsWhileItsTableParks goes on where it was, once the table is released.
func TestASnapshotWaitsWhileItsTableParks(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table x (id int primary key, v text);
create table other (id int primary key);
insert into x select g, 'v' || g from generate_series(1, 5000) g;`)
	l.parking(true)
	l.cfg.Source.Snapshot.ChunkRows = 200
	l.table("x", "id")
	l.table("other", "id")
	l.begin()
	l.until("some is read", func() bool { return len(l.store["public.x"].events) > 500 })
	l.exec("alter table x add w int default 3;\nupdate x set w = 4 where id % 100 = 0;\ninsert into other values (1);")
	l.until("it parks", func() bool { return len(l.parked) > 0 })
	l.drain()
	read := l.store["public.x"].snapshot.Rows
	require.False(t, l.store["public.x"].snapshot.Done)
	require.Less(t, read, int64(5000))
	l.exec("update x set v = v || '!' where id % 50 = 0")
	l.drain()
	require.Equal(t, read, l.store["public.x"].snapshot.Rows)
	l.evolve("public.x")
	l.until("the rest is read", func() bool { return l.store["public.x"].snapshot.Done })
	l.drain()
	require.Empty(t, l.parked)
	state := l.store["public.x"].folded()
	require.Len(t, state, 5000)
	want := map[string]string{}
	for _, row := range l.live("x") {
		want[row] = row
	}
	for _, row := range state {
		if len(row) == 2 { // read before the column was there, and not changed since: it has the default
			row = append(slices.Clone(row), "3")
		}
		require.Contains(t, want, row[0]+"|"+row[1]+"|"+row[2])
	}
}

// TestParkingThroughRestartsEqualsNever alters a table and changes its rows at random, and
// reads it twice: once with crashes and verdicts that take their time, once without.
func TestParkingThroughRestartsEqualsNever(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		t.Run(fmt.Sprintf("logged %v", logged), func(t *testing.T) {
			t.Parallel()
			rng := seeded(t)
			l := newLab(t, "create table x (id int primary key, a text);\ncreate table other (id int primary key, v int);")
			l.parking(logged)
			l.table("x", "id")
			l.table("other", "id")
			calm := labOn(t, l.dsn, "")
			calm.cfg.Park, calm.cfg.Source.Slot = true, l.cfg.Source.Slot+"_calm"
			calm.table("x", "id")
			calm.table("other", "id")
			for _, lab := range []*lab{l, calm} {
				lab.begin()
				lab.snapshotted()
			}
			w := &altering{rng: rng, columns: []string{"a"}}
			for range 60 {
				l.exec(w.next())
				calm.drain()
				calm.evolve("public.x")
				switch k := rng.IntN(8); {
				case k == 0:
					l.crash()
					l.free()
					require.Empty(t, l.begin())
				case k < 3:
					l.drain()
				case k == 3 && l.parked["public.x"].Change != nil:
					l.replay("public.x", follow(l.store["public.x"].schema, l.parked["public.x"].Change))
				default:
					l.next()
					if rng.IntN(2) == 0 {
						l.saveAll()
					}
				}
			}
			l.exec("insert into x (id) values (50)") // which shows what was altered last
			l.drain()
			l.evolve("public.x")
			l.drain()
			l.evolve("public.x")
			calm.drain()
			calm.evolve("public.x")
			require.Empty(t, l.parked)
			l.evolved("x")
			l.same("other")
			for _, table := range []string{"public.x", "public.other"} {
				require.Equal(t, positionsOf(calm.store[table].events), positionsOf(l.store[table].events), table)
			}
		})
	}
}

func positionsOf(events []event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%c %s %s %d %q", e.op, e.position, e.lsn, e.xid, e.key)
	}
	return out
}

// altering makes statements on tables x and other, altering x now and then.
type altering struct {
	rng     *rand.Rand
	columns []string
	made    int
}

func (w *altering) next() string {
	switch k := w.rng.IntN(20); {
	case k == 0 || len(w.columns) == 0:
		w.made++
		name := "c" + strconv.Itoa(w.made)
		w.columns = append(w.columns, name)
		return "alter table x add " + name + " text" // a default's value is put into the rows that are there by the lake
	case k == 1 && len(w.columns) > 1:
		i := w.rng.IntN(len(w.columns))
		name := w.columns[i]
		w.columns = slices.Delete(w.columns, i, i+1)
		return "alter table x drop " + name
	case k == 2:
		i := w.rng.IntN(len(w.columns))
		w.made++
		was := w.columns[i]
		w.columns[i] = "r" + strconv.Itoa(w.made)
		return "alter table x rename " + was + " to " + w.columns[i]
	case k == 3:
		return "truncate x"
	case k < 7:
		return fmt.Sprintf("insert into other values (%d, 1) on conflict (id) do update set v = other.v + 1", w.rng.IntN(9))
	case k < 9:
		return fmt.Sprintf("delete from x where id = %d", w.rng.IntN(20))
	case k < 11:
		return fmt.Sprintf("update x set id = id + 100 where id = %d and not exists (select from x where id = %d)", w.rng.IntN(20), w.rng.IntN(20)+100)
	}
	return fmt.Sprintf("insert into x (id, %s) values (%d, 'v%d') on conflict (id) do update set %s = excluded.%s || 'u'",
		w.columns[0], w.rng.IntN(20), w.rng.IntN(99), w.columns[0], w.columns[0])
}

// TestARestartLosesNoAlteration reads again what was not confirmed.
func TestARestartLosesNoAlteration(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table x (id int primary key, a text);")
	l.parking(true)
	l.table("x", "id")
	l.begin()
	l.snapshotted()
	l.exec("alter table x add b int;\ninsert into x values (1, 'a', 1);\nalter table x add c int;\ninsert into x values (2, 'b', 2, 2);")
	deadline := time.Now().Add(time.Minute)
	for l.parked["public.x"].Change == nil { // nothing of it is saved
		require.True(t, time.Now().Before(deadline))
		l.next()
	}
	first := l.parked["public.x"].Change
	l.crash()
	l.free()
	delete(l.parked, "public.x")
	l.store["public.x"].runs = nil
	l.begin()
	l.drain()
	require.Equal(t, first.String(), l.parked["public.x"].Change.String())
	require.Equal(t, first.At, l.parked["public.x"].Change.At)
	l.evolve("public.x")
	l.evolved("x")
	var _ pipeline.Parker = l.source
}
