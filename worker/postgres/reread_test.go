package postgres

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// again asks for keys and waits until they are answered.
func (l *lab) again(q pipeline.Reread) {
	l.t.Helper()
	q.ID = int64(len(l.answered) + 1)
	l.source.Reread(q)
	l.until("the rows are read again", func() bool { return l.answered[q.ID] })
}

func TestRowsAreReadAgainByKeyAndMissingOnesSaidToBeGone(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create type mood as enum ('sad', 'ok');
create table s (m mood, id int, v text, primary key (m, id));
insert into s values ('sad', 1, 'one'), ('ok', 2, 'two'), ('ok', 3, 'three');`)
	l.table("s", "m", "id")
	l.begin()
	l.snapshotted()
	s := l.store["public.s"]
	before := len(s.events)
	l.exec("alter type mood rename value 'sad' to 'blue'")
	l.again(pipeline.Reread{Table: "public.s", Keys: [][]string{
		{"ok", "2"}, {"ok", "99"}, {"ok", "099"}, {"ok", "2"}, {"ok", "none"}, {"sad", "1"}, {"blue", "1"}, {"ok"},
	}})
	var got []string
	for _, e := range s.events[before:] {
		row := e.after
		if e.op == change.Delete {
			row = e.before
		}
		got = append(got, string(e.op)+" "+strings.Join(row, " "))
		require.Equal(t, catalog.LSN(1), e.position.Commit&1, "it stands where a commit record can be")
		require.Zero(t, e.xid)
	}
	require.ElementsMatch(t, []string{"r ok 2 two", "r blue 1 one", "d ok 99 <absent>", "d sad 1 <absent>"}, got)
	l.same("s")

	l.again(pipeline.Reread{Table: "public.s", Keys: nil})
	l.again(pipeline.Reread{Table: "public.s", Keys: [][]string{{"ok", "77"}}})
	l.exec("insert into s values ('ok', 77, 'later')")
	l.drain()
	l.same("s")
	l.exec("delete from s where id = 77")
	l.drain()
	l.crash() // the next source goes on behind what was read again
	l.free()
	before = len(s.events)
	l.begin()
	l.exec("insert into s values ('ok', 4, 'four')")
	l.drain()
	require.Len(t, s.events, before+1, s.script())
	l.same("s")
}

// Rows that do not fit into one chunk are read in several.
func TestALargeRequestIsReadInChunksOfBoundedSize(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key, v text);\ninsert into s select g, repeat('x', 20000) from generate_series(1, 1200) g;")
	l.table("s", "id")
	l.cfg.Limits.ChunkBytes = 1 << 20
	l.begin()
	l.snapshotted()
	s := l.store["public.s"]
	before := len(s.events)
	var keys [][]string
	for id := range 2000 {
		keys = append(keys, []string{strconv.Itoa(id + 1)})
	}
	l.again(pipeline.Reread{Table: "public.s", Keys: keys})
	reads, gone := 0, 0
	places := map[catalog.LSN]int{}
	for _, e := range s.events[before:] {
		places[e.position.Commit]++
		if e.op == change.Read {
			reads++
		} else {
			gone++
		}
	}
	require.Equal(t, 1200, reads)
	require.Equal(t, 800, gone)
	for place, n := range places {
		require.LessOrEqual(t, n, rereadKeys, place)
	}
	require.Greater(t, len(places), 10, "each chunk holds some fifty rows")
	l.same("s")
}

// Keys that nobody knows in clear are found by masking those of the source.
func TestMaskedKeysAreFoundByMasking(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (email text, n int, v text, primary key (email, n));\ninsert into s select 'p' || g, g, 'v' from generate_series(1, 50) g;")
	l.table("s", "email", "n").PII = map[string]catalog.Protection{"email": catalog.Tokenize}
	token := func(text string) string { return "tok_" + strings.ToUpper(text) }
	l.cfg.Seal = func(_ string, plain []byte) string { return string(plain) }
	l.cfg.Unseal = func(_, sealed string) ([]byte, error) { return []byte(sealed), nil }
	l.cfg.MaskText = func(_ catalog.Protection, text string) (string, error) { return token(text), nil }
	l.begin()
	l.snapshotted()
	s := l.store["public.s"]
	before := len(s.events)
	l.source.Reread(pipeline.Reread{ID: 7, Table: "public.s", Masked: true, Keys: [][]string{{"tok_P3", "3"}, {"tok_P3", "4"}, {"tok_NOBODY", "1"}, {"tok_P5", "x"}}})
	masked := map[string]int{}
	l.until("they are answered", func() bool {
		for _, b := range s.pending {
			for row, texts := range b.Masked {
				masked[strings.Join(texts, " ")]++
				require.Equal(t, texts[1], string(appendValue(nil, b.Rows, row, 1)), "what is not masked is known")
				require.False(t, b.Rows.HasValue(row, 0))
			}
		}
		return l.answered[7]
	})
	var got []string
	for _, e := range s.events[before:] {
		got = append(got, fmt.Sprintf("%c %v %v", e.op, e.before, e.after))
	}
	require.ElementsMatch(t, []string{"r [] [p3 3 v]", "d [<absent> 4 <absent>] []", "d [<absent> 1 <absent>] []"}, got)
}

// Whatever is read again, and whenever, what is read in all folds to what the source
// holds: nothing that committed later is undone.
func TestReadingAgainUndoesNothing(t *testing.T) {
	t.Parallel()
	for _, held := range []int{0, 40} { // with little room, windows are given up
		t.Run(strconv.Itoa(held), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, `create table s (id int primary key, v int, big text);
alter table s alter column big set storage external;
insert into s select g, g, repeat('x', 3000) from generate_series(1, 60) g;`)
			l.table("s", "id")
			l.cfg.Source.Snapshot.ChunkRows = 7
			l.cfg.Limits.HeldRows = held
			random := seeded(t)
			l.begin()
			var writers sync.WaitGroup
			for n := range 3 {
				seed := random.Uint64()
				writers.Go(func() { writeAbout(t, l.dsn, rand.New(rand.NewPCG(seed, uint64(n)))) })
			}
			done := make(chan struct{})
			go func() { writers.Wait(); close(done) }()
			var last int64
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				if random.IntN(4) == 0 {
					last++
					var keys [][]string
					for range 1 + random.IntN(30) {
						keys = append(keys, []string{strconv.Itoa(random.IntN(100))})
					}
					l.source.Reread(pipeline.Reread{ID: last, Table: "public.s", Keys: keys})
				}
				l.next()
				l.saveAll()
			}
			l.snapshotted()
			l.until("all requests are answered", func() bool { return int64(len(l.answered)) == last })
			l.drain()
			require.Positive(t, last)
			l.same("s")
			t.Logf("%d requests, %d events", last, len(l.store["public.s"].events))
		})
	}
}

// writeAbout changes rows at random: also in transactions that stay open a while, and
// with large values that are not sent again.
func writeAbout(t *testing.T, dsn string, random *rand.Rand) {
	t.Helper()
	db := session(t, dsn)
	for range 250 {
		id, to := random.IntN(100), random.IntN(100)
		var sql []string
		for range 1 + random.IntN(3) {
			sql = append(sql, []string{
				fmt.Sprintf("update s set v = v + 1 where id = %d", id),
				fmt.Sprintf("delete from s where id = %d", id),
				fmt.Sprintf("insert into s values (%d, 0, repeat('y', 3000)) on conflict do nothing", id),
				fmt.Sprintf("update s set id = %[2]d where id = %[1]d and not exists (select from s where id = %[2]d)", id, to),
				"select pg_sleep(0.003)",
			}[random.IntN(5)])
		}
		_, _ = db.Exec(t.Context(), "begin")
		for _, one := range sql {
			if _, err := db.Exec(t.Context(), one); err != nil {
				break // two writers met
			}
		}
		_, _ = db.Exec(t.Context(), []string{"commit", "commit", "commit", "rollback"}[random.IntN(4)])
	}
}
