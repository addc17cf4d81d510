package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
)

// What the Kafka path's order rests on, observed in the real thing. docs/debezium.md
// tells it to users.
func TestWhatDebeziumSends(t *testing.T) {
	on := stacktest.Start(t, stack.Config{Debezium: true, Postgres: true})
	t.Run("incremental reads rank where they were read", func(t *testing.T) { incrementalReads(t, on) })
	t.Run("a key move is two events at one place", func(t *testing.T) { keyMoves(t, on) })
	t.Run("SIGKILL in the midst of a COPY", func(t *testing.T) {
		interrupted(t, on, "killed", 2, copied, func() { require.NoError(t, on.Connect.Restart(t.Context())) })
	})
	t.Run("task restarted in the midst of a COPY", func(t *testing.T) {
		interrupted(t, on, "restarted", 3, copied, func() { require.NoError(t, on.Connect.RestartTask(t.Context(), "restarted")) })
	})
	t.Run("task restarted in the midst of key moves", func(t *testing.T) {
		interrupted(t, on, "moved", 3, movedAll, func() { require.NoError(t, on.Connect.RestartTask(t.Context(), "moved")) })
	})
}

// A read by signal counts where it was read, also for a row that a transaction has
// changed and not committed: what commits later comes later and ranks higher, though
// its own place in the log is lower.
func incrementalReads(t *testing.T, on *stack.Stack) {
	t.Helper()
	const rows = 2500 // in three chunks
	c := newCaptured(t, on, "incremental", "create table items (id int primary key, v text)",
		fmt.Sprintf("insert into items select i, 'old' from generate_series(1, %d) i", rows))
	o := openTopic(t, on, "incremental.public.items")
	o.atLeast(rows)
	for _, e := range o.events {
		require.Equal(t, "r", e.op)
		require.Equal(t, [2]bool{false, true}, e.known, "an initial read has its lsn, and no commit before it: %v", e)
		require.Equal(t, o.events[0].place, e.place, "all at one place")
	}
	c.exec("update items set v = 'committed' where id = 7")

	open, err := pgx.Connect(t.Context(), on.Postgres.DSN("incremental"))
	require.NoError(t, err)
	defer open.Close(t.Context())
	tx, err := open.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "update items set v = 'in flight' where id = 5")
	require.NoError(t, err)
	c.exec("update items set v = 'again' where id = 7")
	c.exec(`insert into dbz.signal values ('read', 'execute-snapshot', '{"data-collections": ["public.items"], "type": "incremental"}')`)
	incremental := func(e event) bool { return e.snapshot == "incremental" }
	o.until(func(e []event) bool { return count(e, incremental) >= rows })
	c.exec("update items set v = 'after' where id = 9")
	require.NoError(t, tx.Commit(t.Context()))
	last := func(e event) bool { return e.op == "u" && e.after["v"] == "in flight" }
	o.until(func(e []event) bool { return count(e, last) == 1 })

	var read event
	highest := place{}
	for _, e := range o.events[rows:] {
		switch {
		case incremental(e):
			require.Equal(t, [2]bool{true, false}, e.known, "an incremental read has no lsn: %v", e)
			require.Zero(t, e.tx)
			require.GreaterOrEqual(t, e.place.sequence, highest.sequence, "it ranks above all before it: %v", e)
			if fmt.Sprint(e.after["id"]) == "5" {
				read = e
				require.Equal(t, "old", e.after["v"])
			}
			highest.sequence = e.place.sequence
		case last(e):
			require.GreaterOrEqual(t, e.place.sequence, read.place.sequence, "%v after %v", e, read)
			require.Less(t, e.place.lsn, read.place.sequence, "it was written before the read")
			t.Logf("read %v", read)
			t.Logf("then %v", e)
		default:
			t.Logf("%v", e)
			highest = e.place
		}
	}
}

// A change of a key is a delete, a tombstone and a create, one after the other, at one
// place.
func keyMoves(t *testing.T, on *stack.Stack) {
	t.Helper()
	c := newCaptured(t, on, "moves", "create table items (id int primary key, v text)", "insert into items values (1, 'a'), (2, 'b')")
	o := openTopic(t, on, "moves.public.items")
	o.atLeast(2)
	c.exec("update items set id = 10 where id = 1")
	c.exec("update items set id = id + 20") // both, in one statement
	o.atLeast(11)
	for i, e := range o.events[2:] {
		t.Logf("%v tombstone=%v", e, e.tombstone)
		switch i % 3 {
		case 0:
			require.Equal(t, "d", e.op)
			require.Contains(t, e.headers, "__debezium.newkey")
		case 1:
			require.True(t, e.tombstone)
		case 2:
			d := o.events[2+i-2]
			require.Equal(t, "c", e.op)
			require.Contains(t, e.headers, "__debezium.oldkey")
			require.Equal(t, d.place, e.place, "both halves stand at one place")
			require.Equal(t, d.tx, e.tx)
		}
	}
}

func count(events []event, which func(event) bool) int {
	n := 0
	for _, e := range events {
		if which(e) {
			n++
		}
	}
	return n
}

// many is how many rows a transaction has that is interrupted.
const many = 20_000

// copied makes rows with one COPY; those of a page share one place in the log.
func copied(c *captured, from int) (events int) {
	var lines strings.Builder
	for i := range many {
		fmt.Fprintf(&lines, "%d\t%s\n", from+i, strings.Repeat("x", 20))
	}
	_, err := c.conn.PgConn().CopyFrom(c.t.Context(), strings.NewReader(lines.String()), "copy big from stdin")
	require.NoError(c.t, err)
	return many
}

// movedAll makes rows one by one, then gives each another key in one statement; the
// halves of a move share one place.
func movedAll(c *captured, from int) (events int) {
	c.exec(fmt.Sprintf("insert into big select i, 'x' from generate_series(%d, %d) i", from, from+many/2-1))
	c.exec(fmt.Sprintf("update big set id = id + %d where id between %d and %d", 10*many, from, from+many/2-1))
	return many/2 + 3*many/2
}

// interrupted has Debezium stopped and started again in the midst of large
// transactions, the first of which is the first after the initial read. Then:
//
//   - A place, which is (sequence[0], lsn), falls only where another run of the task
//     begins, which the header __debezium.context.runId tells.
//   - What is sent again has the same place as before, but for the first transaction
//     after the initial read: it had no sequence[0] and, sent again, has the lsn at
//     which the task went on.
//   - What shares a place is sent again whole, or not at all.
//   - Debezium goes on behind the last place that it has noted, so that what it had not
//     sent of that place never comes. At each loss the topic shows it: the new run does
//     not begin at or below the place with which the old one ended.
func interrupted(t *testing.T, on *stack.Stack, name string, rounds int, work func(c *captured, from int) int, interrupt func()) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCaptured(t, on, name, "create table big (id int primary key, v text)", "insert into big values (0, 'read')")
	o := openTopic(t, on, name+".public.big")
	o.atLeast(1)
	for round := range rounds {
		mark := len(o.events)
		n := work(c, 1+round*many)
		for range 2 {
			mark += 1 + random.IntN(n/3)
			o.atLeast(mark)
			interrupt()
			require.NoError(t, on.Connect.Running(t.Context(), name))
			mark = len(o.events)
		}
		end := fmt.Sprintf("end %d", round)
		c.exec(fmt.Sprintf("insert into big values (%d, '%s')", -1-round, end))
		o.until(func(e []event) bool { return len(e) > 0 && e[len(e)-1].after["v"] == end })
	}
	requireResentAlike(t, o.events)
	lost := lostEvents(t, c, o.events)
	suspects := suspectPlaces(o.events)
	for _, e := range lost {
		require.True(t, suspects[e.place], "a loss that the topic does not show: %v", e)
	}
	t.Logf("%d events of %d places, %d runs; %d rows lost; %d places look as if something were missing",
		len(o.events), len(groups(o.events)), runs(o.events), len(lost), len(suspects))
}

func runs(events []event) int {
	n := 0
	for i := range events {
		if i == 0 || events[i].run != events[i-1].run {
			n++
		}
	}
	return n
}

// group is a stretch of a topic whose changes were sent by one run and share a place.
type group struct {
	place place
	run   string
	known bool // sequence[0] is there
	tx    uint64
	rows  []string
}

func groups(events []event) []group {
	var out []group
	for _, e := range events {
		if !e.streamed() {
			continue
		}
		if n := len(out); n == 0 || out[n-1].place != e.place || out[n-1].run != e.run {
			out = append(out, group{place: e.place, run: e.run, known: e.known[0], tx: e.tx})
		}
		g := &out[len(out)-1]
		g.rows = append(g.rows, fmt.Sprint(e.op, e.before["id"], "→", e.after["id"]))
	}
	return out
}

func requireResentAlike(t *testing.T, events []event) {
	t.Helper()
	all := groups(events)
	first := all[0].tx // the first transaction after the initial read
	whole := map[uint64][]string{}
	for _, g := range all {
		if len(g.rows) > len(whole[g.place.lsn]) {
			whole[g.place.lsn] = g.rows
		}
	}
	places := map[string]place{}
	resent, changed := 0, 0
	for i, g := range all {
		require.Equal(t, g.tx != first || g.known, g.known, "no sequence[0] but in the first transaction: %+v", g)
		lastOfRun := i+1 < len(all) && all[i+1].run != g.run
		require.Equal(t, whole[g.place.lsn][:len(g.rows)], g.rows, "a group is whole, or its beginning")
		require.True(t, lastOfRun || len(g.rows) == len(whole[g.place.lsn]), "only at the end of a run a group is not whole: %v", g.place)
		if i > 0 && g.place.less(all[i-1].place) {
			require.NotEqual(t, all[i-1].run, g.run, "places fall at %v", g.place)
		}
		for _, row := range g.rows {
			before, again := places[row]
			if again {
				resent++
			}
			if again && before != g.place {
				changed++
				require.Equal(t, first, g.tx, "%s was at %v and comes again at %v", row, before, g.place)
				require.Equal(t, before.lsn, g.place.lsn)
				require.Less(t, g.place.sequence, g.place.lsn)
			}
			places[row] = g.place
		}
	}
	t.Logf("%d rows were sent again, %d of them, all of the first transaction, with another sequence[0]", resent, changed)
}

// suspectPlaces are places with which a run ended and at or below which the next does
// not begin.
func suspectPlaces(events []event) map[place]bool {
	out := map[place]bool{}
	all := groups(events)
	for i := 1; i < len(all); i++ {
		if all[i].run != all[i-1].run && all[i-1].place.less(all[i].place) {
			out[all[i-1].place] = true
		}
	}
	return out
}

// lostEvents are the last changes before those that the source has made and the topic
// has not.
func lostEvents(t *testing.T, c *captured, events []event) []event {
	t.Helper()
	have := map[string]bool{}
	last := map[string]event{} // by key, what put it there
	for _, e := range events {
		if e.after != nil {
			have[fmt.Sprint(e.after["id"])] = true
			last[fmt.Sprint(e.after["id"])] = e
		}
		if e.streamed() && e.op == "d" {
			last[e.headers["__debezium.newkey"]] = e
		}
	}
	rows, err := c.conn.Query(t.Context(), "select id::text from big order by big.id")
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var out []event
	var before event
	for _, id := range ids {
		if have[id] {
			before = last[id]
			continue
		}
		if d, ok := last[`{"id":`+id+`}`]; ok { // the other half of its move came
			out = append(out, d)
			continue
		}
		out = append(out, before)
	}
	return out
}
