package worker_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// C46: transactions larger than a batch, a large value, and a bulk load that is
// rolled back. (make bench-memory has a million rows, 60 MB, and a bound.)
func TestC46TransactionsLargerThanABatchAreSplitAndNothingOfARolledBackOneIsSeen(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3"} {
		t.Run("v"+version, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "format_version: "+version+"\n", map[string]string{
				"public.bt.yaml": "table: public.bt\nprimary_key: [id]\nscd: [1, 2]\n",
			})
			r.exec("CREATE TABLE bt (id int PRIMARY KEY, v text, note text)")
			r.limits.BatchRows, r.limits.BatchBytes, r.limits.MemoryBytes = 8000, 4<<20, 8<<20
			r.reader.SliceRows, r.reader.SliceBytes, r.reader.BufferSize = 1000, 512<<10, 256<<10
			r.lakeCfg.ImageBytes = 2 << 20
			r.start()
			r.landed()
			r.exec("INSERT INTO bt SELECT g, repeat('a', 100) FROM generate_series(1, 50000) g")
			r.exec("UPDATE bt SET v = 'b' WHERE id <= 10000")
			r.exec("UPDATE bt SET id = id + 100000 WHERE id > 45000") // 10,000 halves of moves
			r.exec("INSERT INTO bt VALUES (0, repeat('z', 6 << 20))")
			r.exec("UPDATE bt SET note = 'n' WHERE id = 0")
			r.exec("BEGIN; INSERT INTO bt SELECT g, 'r' FROM generate_series(2000001, 2020000) g; ROLLBACK")
			r.exec(`DO $$ BEGIN FOR i IN 1..10000 LOOP
				BEGIN
					INSERT INTO bt VALUES (1000000 + i, 's');
					IF i % 2 = 0 THEN RAISE EXCEPTION 'no'; END IF;
				EXCEPTION WHEN raise_exception THEN NULL;
				END;
			END LOOP; END $$`)
			r.landed()

			seen := map[string]int{}
			_, rows := r.rows("public.bt", catalog.Current)
			for _, row := range rows {
				id, err := strconv.Atoi(row["id"])
				require.NoError(t, err)
				switch {
				case id == 0:
					require.Equal(t, 6<<20, strings.Count(row["v"], "z"))
					require.Len(t, row["v"], 6<<20)
					require.Equal(t, "n", row["note"])
				case id > 1000000:
					require.LessOrEqual(t, id, 1010000, "a row of the rolled-back load")
					require.Equal(t, 1, id%2, "a row of a rolled-back subtransaction")
				}
				seen[short(row["v"])]++
			}
			require.Equal(t, map[string]int{"b": 10000, "a*100": 40000, "z*6291456": 1, "s": 5000}, seen)

			moved := map[string]bool{} // places of first halves
			_, events := r.rows("public.bt", catalog.Bronze)
			for _, e := range events {
				require.NotEqual(t, "r", e["after.v"], "an event of the rolled-back load")
				if e["op"] == "d" && e["_other_pk.id"] != "" {
					moved[e["_commit_lsn"]+" "+e["_ordinal"]] = true
				}
			}
			require.Len(t, moved, 5000)
			detail, err := r.registry.Table(t.Context(), r.source.Name, "public.bt")
			require.NoError(t, err)
			parts := map[catalog.LSN]int{} // batches that end in a transaction
			for _, b := range detail.Batches {
				parts[b.To.Position.Commit]++
				require.False(t, moved[fmt.Sprintf("%d %d", uint64(b.To.Position.Commit), b.To.Position.Ordinal)], "a batch ends between the halves of a move")
				require.LessOrEqual(t, b.Changes(), 10000, "a batch is larger than its bound and a slice")
			}
			require.Greater(t, len(detail.Batches), 10, "progress is seen while a transaction is saved")
			for _, result := range r.compare(reconcile.Config{}) {
				require.True(t, result.Equal(), result.Text())
				require.EqualValues(t, 55001, result.SourceRows)
			}
		})
	}
}

// A TRUNCATE of more rows than are found at once empties the layers in steps, and
// closes every version.
func TestALargeTableIsEmptiedInSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{
		"public.a.yaml": "table: public.a\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.b.yaml": "table: public.b\nprimary_key: [id]\nscd: [1, 2]\nsoft_delete: true\n",
	})
	r.lakeCfg.FindRows, r.lakeCfg.ImageBytes = 700, 64<<10
	r.exec("CREATE TABLE a (id int PRIMARY KEY, v text)")
	r.exec("CREATE TABLE b (id int PRIMARY KEY, v text)")
	for _, table := range []string{"a", "b"} {
		r.exec("INSERT INTO " + table + " SELECT g, 'old' FROM generate_series(1, 3000) g")
	}
	r.start()
	r.landed()
	r.exec("BEGIN; UPDATE a SET v = 'newer' WHERE id < 10; TRUNCATE a, b; INSERT INTO a SELECT g, 'new' FROM generate_series(1, 5) g; INSERT INTO b SELECT g, 'new' FROM generate_series(1, 5) g; COMMIT")
	r.landed()
	for _, table := range []string{"public.a", "public.b"} {
		live, marked := 0, 0
		_, rows := r.rows(table, catalog.Current)
		for _, row := range rows {
			if row["_is_deleted"] == "t" {
				marked++
				continue
			}
			live++
			require.Equal(t, "new", row["v"])
		}
		require.Equal(t, 5, live)
		require.Equal(t, map[string]int{"public.a": 0, "public.b": 2995}[table], marked)
		open := 0
		_, versions := r.rows(table, catalog.History)
		for _, v := range versions {
			if v["is_current"] == "t" {
				open++
				require.Equal(t, "new", v["v"])
			}
		}
		require.Equal(t, 5, open)
	}
	for _, result := range r.compare(reconcile.Config{}) {
		require.True(t, result.Equal(), result.Text())
	}
}

// Tables of many columns, of one, of key columns alone, without rows, and rows that
// are NULL throughout.
func TestTablesOfManyColumnsAndOfFew(t *testing.T) {
	t.Parallel()
	r := newRig(t, "snapshot: {chunk_rows: 50}\n", map[string]string{
		"public.wide.yaml":  "table: public.wide\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.most.yaml":  "table: public.most\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.one.yaml":   "table: public.one\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.keys.yaml":  "table: public.keys\nprimary_key: [a, b]\nscd: [1, 2]\n",
		"public.empty.yaml": "table: public.empty\nprimary_key: [id]\nscd: [1, 2]\n",
	})
	types := []string{"int", "text", "boolean", "numeric(10,2)", "timestamptz", "date", "smallint", "uuid", "bytea", "float8"}
	values := []string{"g", "'t' || g", "g % 2 = 0", "g * 1.25", "timestamptz '2020-01-01' + g * interval '1s'", "date '2020-01-01' + g", "g", "md5(g::text)::uuid", "sha256(g::text::bytea)", "g / 3.0"}
	create := func(table string, n int, types []string) {
		var sql strings.Builder
		for i := range n - 1 {
			fmt.Fprintf(&sql, ", c%d %s", i, types[i%len(types)])
		}
		r.exec("CREATE TABLE " + table + " (id int PRIMARY KEY" + sql.String() + ")")
	}
	insert := func(table string, n, from, to int, values []string) {
		var sql strings.Builder
		for i := range n - 1 {
			sql.WriteString(", " + values[i%len(values)])
		}
		r.exec(fmt.Sprintf("INSERT INTO %s SELECT g%s FROM generate_series(%d, %d) g", table, sql.String(), from, to))
	}
	short := []string{"smallint", "boolean"}
	create("wide", 500, types)
	create("most", 1600, short)
	r.exec("CREATE TABLE one (id int PRIMARY KEY)")
	r.exec("CREATE TABLE keys (a int, b text, PRIMARY KEY (a, b))")
	r.exec("CREATE TABLE empty (id int PRIMARY KEY, v text)")
	fill := func(from, to int) {
		insert("wide", 500, from, to, values)
		insert("most", 1600, from, min(to, from+20), []string{"g", "true"})
		r.exec(fmt.Sprintf("INSERT INTO wide (id) SELECT -g FROM generate_series(%d, %d) g", from, to)) // NULL throughout
		r.exec(fmt.Sprintf("INSERT INTO one SELECT g FROM generate_series(%d, %d) g", from, to))
		r.exec(fmt.Sprintf("INSERT INTO keys SELECT g, 'k' || g FROM generate_series(%d, %d) g", from, to))
	}
	fill(1, 100)
	r.start()
	r.landed()
	fill(101, 200)
	r.exec("UPDATE wide SET c498 = NULL, c1 = 'changed' WHERE id % 3 = 0")
	r.exec("UPDATE wide SET id = 100000 + id WHERE id % 7 = 0")
	r.exec("UPDATE most SET c1598 = 5 WHERE id % 2 = 0")
	r.exec("UPDATE one SET id = -id WHERE id % 5 = 0")
	r.exec("UPDATE keys SET b = 'moved' WHERE a % 5 = 0")
	r.exec("DELETE FROM wide WHERE id % 11 = 0")
	r.exec("DELETE FROM keys WHERE a % 3 = 0")
	r.landed()
	for name, result := range r.compare(reconcile.Config{}) {
		require.True(t, result.Equal(), result.Text())
		require.Equal(t, name == "public.empty", result.SourceRows == 0, name)
	}
}
