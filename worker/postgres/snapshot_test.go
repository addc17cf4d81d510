package postgres

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

func TestASnapshotSurvivesACrashAtEveryChunk(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table s (a int, b text, v int, primary key (a, b));
insert into s select g / 7, 'b' || g % 7, g from generate_series(1, 100) g;`)
	l.table("s", "b", "a")
	l.cfg.Source.Snapshot.ChunkRows = 9
	s := l.store["public.s"]
	for crashes := 0; s.snapshot == nil || !s.snapshot.Done; crashes++ {
		require.Less(t, crashes, 40)
		l.begin()
		chunks := 0
		for range 100 {
			saved := l.next()
			if len(saved.Batches) > 0 && saved.Batches[0].Snapshot != nil {
				if chunks++; chunks == 2 {
					break // the second chunk is not saved
				}
			}
			l.saveAll()
			if s.snapshot != nil && s.snapshot.Done {
				break
			}
		}
		l.crash()
	}
	require.Len(t, s.events, 100)
	for _, e := range s.events {
		require.Equal(t, change.Read, e.op)
		require.Equal(t, catalog.LSN(1), e.position.Commit&1, "a row stands where a commit record can be")
		require.Zero(t, e.xid)
		require.WithinDuration(t, time.Now(), time.UnixMicro(e.time), time.Minute)
	}
	require.Equal(t, int64(100), s.snapshot.Rows)
	require.GreaterOrEqual(t, s.snapshot.Chunks, 12)
	require.Equal(t, uint32(1), s.snapshot.Generation)
	l.same("s")
}

func TestAnEmptyTableIsSoonRead(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key);\ncreate table k (v int);\nalter table k replica identity full;")
	l.table("s", "id")
	l.table("k")
	l.begin()
	l.snapshotted()
	require.True(t, l.store["public.s"].snapshot.Done)
	require.True(t, l.store["public.k"].snapshot.Done)
}

func TestANewGenerationIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key);\ninsert into s values (1), (2);")
	l.table("s", "id")
	l.begin()
	l.snapshotted()
	l.crash()
	s := l.store["public.s"]
	s.snapshot = &catalog.SnapshotProgress{Generation: 2}
	l.begin()
	l.exec("insert into s values (3)")
	l.snapshotted()
	require.Equal(t, uint32(2), s.events[len(s.events)-1].position.Generation)
	require.Equal(t, uint32(2), s.snapshot.Generation)
	require.Equal(t, int64(3), s.snapshot.Rows)
	l.same("s")
}

func TestManyTablesAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	var ddl []string
	for i := range 12 {
		ddl = append(ddl, fmt.Sprintf("create table s%[1]d (id int primary key, v text);\ninsert into s%[1]d select g, 'v' from generate_series(1, 50) g;", i))
	}
	l := newLab(t, strings.Join(ddl, "\n"))
	for i := range 12 {
		l.table(fmt.Sprint("s", i), "id")
	}
	l.cfg.Source.Snapshot.ChunkRows = 20
	l.begin()
	l.snapshotted()
	for i := range 12 {
		l.same(fmt.Sprint("s", i))
	}
}

// TestARowThatMovesIntoTheRangeAlreadyReadIsReadByItsKey moves rows from behind
// the reading to before it: the stream has them without their large values.
func TestARowThatMovesIntoTheRangeAlreadyReadIsReadByItsKey(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table s (id int primary key, body text);
alter table s alter body set storage external;
insert into s select g, repeat('x', 3000 + g) from generate_series(1, 40) g;`)
	l.table("s", "id")
	l.cfg.Source.Snapshot.ChunkRows = 10
	l.begin()
	s := l.store["public.s"]
	l.until("a chunk is read", func() bool { return s.snapshot != nil })
	l.exec("update s set id = -id where id > 30")
	l.until("the moves are known", func() bool { return s.has(change.Delete) })
	require.NotEmpty(t, s.snapshot.Keys)
	l.crash() // the keys to be read again survive
	l.begin()
	l.exec("delete from s where id = -35;\nupdate s set id = -1000 where id = -36;")
	l.snapshotted()
	require.Empty(t, s.snapshot.Keys)
	l.same("s")
}

func TestTheProgressOfAMaskedKeyIsSealed(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (email text primary key, v int);\ninsert into s select 'person' || g || '@example.com', g from generate_series(1, 30) g;")
	l.table("s", "email").PII = map[string]catalog.Protection{"email": catalog.Tokenize}
	l.cfg.Source.Snapshot.ChunkRows = 10
	l.cfg.Seal = func(table string, plain []byte) string {
		return table + ":" + base64.StdEncoding.EncodeToString(plain)
	}
	l.cfg.Unseal = func(table, sealed string) ([]byte, error) {
		text, ours := strings.CutPrefix(sealed, table+":")
		if !ours {
			return nil, errors.New("sealed for another table")
		}
		return base64.StdEncoding.DecodeString(text)
	}
	l.begin()
	s := l.store["public.s"]
	l.until("a chunk is read", func() bool { return s.snapshot != nil })
	require.True(t, strings.HasPrefix(s.snapshot.Bound, "public.s:"))
	require.NotContains(t, s.snapshot.Bound, "person")
	l.crash()
	l.begin()
	l.snapshotted()
	require.Len(t, s.events, 30)
	l.same("s")
}

func TestATableWithoutAKey(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table nolog (a int, b text);\nalter table nolog replica identity full;\ninsert into nolog values (9, 'there'), (9, 'there');")
	l.table("nolog")
	l.begin()
	l.snapshotted()
	l.exec(`insert into nolog values (1,'x'),(1,'x'),(2,'y');
update nolog set b = 'z' where a = 1;
delete from nolog where ctid = (select ctid from nolog where a = 1 limit 1);`)
	l.drain()
	require.Equal(t, strings.TrimLeft(`
r after(9, there)
r after(9, there)
c after(1, x)
c after(1, x)
c after(2, y)
u before(1, x) after(1, z)
u before(1, x) after(1, z)
d before(1, z)
`, "\n"), l.store["public.nolog"].script())
}

// TestATableWithoutAKeyIsReadWhileItIsWritten counts: every row is read once or
// inserted once, in the newest generation, whatever was forgotten on the way.
func TestATableWithoutAKeyIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	l := newLab(t, "create table k (n bigserial, v text);\nalter table k replica identity full;\ninsert into k (v) select repeat('v', 200) from generate_series(1, 5000);\ncreate table other (id int primary key);")
	l.table("k")
	l.table("other", "id")
	l.cfg.Source.Snapshot.ChunkRows = 400
	l.cfg.Limits.HeldRows = 50
	l.begin()
	s := l.store["public.k"]
	written := 0
	insert := func() {
		for range r.IntN(4) {
			sql := fmt.Sprintf("begin;\ninsert into k (v) select 'w' from generate_series(1, %d);\n", 1+r.IntN(20))
			if r.IntN(5) == 0 {
				l.exec(sql + "rollback;")
			} else {
				l.exec(sql + "commit;")
			}
		}
		written++
	}
	restarts := 0
	l.until("the rows are read", func() bool {
		insert()
		if restarts < 6 && r.IntN(6) == 0 {
			restarts++
			l.crash()
			l.begin()
		}
		return s.snapshot != nil && s.snapshot.Done
	})
	insert()
	l.drain()
	newest := s.events[len(s.events)-1].position.Generation
	seen := map[string]int{}
	for _, e := range s.events {
		if e.position.Generation == newest {
			seen[e.after[0]]++
		}
	}
	rows := len(seen)
	for _, row := range l.live("k") {
		n, _, _ := strings.Cut(row, "|")
		require.Equal(t, 1, seen[n], "row %s after %d restarts; cursor %s, snapshot %+v; last events %v", n, restarts, s.cursor, s.snapshot, s.events[len(s.events)-1])
		delete(seen, n)
	}
	require.Empty(t, seen)
	t.Logf("%d restarts, generation %d, %d rows, %d written rounds", restarts, newest, rows, written)
}

func TestAChunkIsCutShortByItsSize(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key, v text);\ninsert into s select g, repeat(md5(g::text), 30000) from generate_series(1, 40) g;")
	l.table("s", "id")
	l.cfg.Limits.ChunkBytes = 4 << 20
	l.begin()
	l.snapshotted()
	require.Len(t, l.store["public.s"].events, 40)
	require.LessOrEqual(t, l.store["public.s"].snapshot.Chunks, 41)
	l.same("s")
}

func TestALockedTableIsReadLater(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key);\ninsert into s values (1);\ncreate table other (id int primary key);")
	l.table("s", "id")
	l.table("other", "id")
	l.cfg.Limits.LockTimeout = 100 * time.Millisecond
	l.begin()
	holder := session(t, l.dsn)
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "lock table s in access exclusive mode")
	require.NoError(t, err)
	l.until("the chunk has failed once", func() bool {
		return l.source.order[0].snap == nil || l.source.order[0].snap.failures > 0
	})
	l.exec("insert into other values (1)")
	l.drain()
	l.same("other")
	require.NoError(t, tx.Commit(t.Context()))
	l.snapshotted()
	l.same("s")
}

func TestATableWhoseColumnsChangeWhileItsRowsAreReadStopsAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key, v text);\ninsert into s select g, 'v' from generate_series(1, 30) g;\ncreate table other (id int primary key);\ninsert into other values (1);")
	l.table("s", "id")
	l.table("other", "id")
	l.cfg.Source.Snapshot.ChunkRows = 10
	l.begin()
	l.until("a chunk is read", func() bool { return l.store["public.s"].snapshot != nil })
	l.exec("alter table s drop column v")
	l.snapshotted()
	require.Equal(t, catalog.CodeSchemaChanged, l.faults["public.s"].Err.Code)
	l.same("other")
}

// TestATableThatWasNeverSavedIsDescribedBeforeItsReadingBegins starts twice
// without saving: the stream then describes the table in a transaction that its
// reading makes needless.
func TestATableThatWasNeverSavedIsDescribedBeforeItsReadingBegins(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table s (id int primary key, v int);\ncreate table other (id int primary key);")
	l.table("s", "id")
	l.table("other", "id")
	l.begin()
	l.crash()
	l.exec("alter table s add w int;\ninsert into s values (1, 1, 1);\nalter table s drop v;\ninsert into s values (2, 2);")
	l.begin()
	l.exec("insert into s values (3, 3)")
	l.snapshotted()
	l.exec("insert into s values (4, 4)")
	l.drain()
	require.Empty(t, l.faults)
	l.same("s")
}
