package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

const regionFile = "table: public.p\nprimary_key: [id, region]\nscd: [1, 2]\nfreshness_tier: realtime\n"

// partitioned is a table with leaves of every kind, replicated and equal.
func partitioned(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "snapshot: {chunk_rows: 10}\n", map[string]string{"public.p.yaml": regionFile})
	for _, sql := range []string{
		"CREATE TABLE p (id int, region text, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
		"CREATE TABLE p_eu PARTITION OF p FOR VALUES IN ('eu')",
		"CREATE TABLE p_us PARTITION OF p FOR VALUES IN ('us') PARTITION BY RANGE (id)",
		"CREATE TABLE p_us_low PARTITION OF p_us FOR VALUES FROM (MINVALUE) TO (50)",
		"CREATE TABLE p_us_high PARTITION OF p_us FOR VALUES FROM (50) TO (MAXVALUE)",
		"CREATE TABLE p_rest PARTITION OF p DEFAULT",
		"CREATE TABLE p_asia (junk int, v text, region text NOT NULL, id int NOT NULL, PRIMARY KEY (id, region))",
		"INSERT INTO p_asia VALUES (1, 'of another order', 'asia', 7)",
		"ALTER TABLE p_asia DROP COLUMN junk",
		"ALTER TABLE p ATTACH PARTITION p_asia FOR VALUES IN ('asia')",
		"ALTER TABLE p_eu REPLICA IDENTITY FULL",
		"INSERT INTO p SELECT g, (ARRAY['eu', 'us', 'asia', 'moon'])[g % 4 + 1], 'v' || g FROM generate_series(1, 120) g ON CONFLICT DO NOTHING",
	} {
		r.exec(sql)
	}
	r.start()
	r.landed()
	return r
}

// inStep waits until what partitions brought and took is in the lake too, and compares.
func (r *rig) inStep() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		var want int
		require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "SELECT count(*)::int FROM p").Scan(&want))
		_, rows := r.rows("public.p", catalog.Current)
		return len(rows) == want
	}, time.Minute, 200*time.Millisecond)
	r.landed()
	require.Equal(r.t, catalog.Streaming, r.state("public.p").State, "%+v", r.state("public.p").Fault)
	r.requireEqual()
}

func TestAPartitionedTableIsOneTable(t *testing.T) {
	t.Parallel()
	r := partitioned(t)
	for _, sql := range []string{
		"UPDATE p SET v = v || '!' WHERE id % 3 = 0",
		"UPDATE p SET region = 'us' WHERE region = 'eu' AND id < 60", // rows move from leaf to leaf
		"BEGIN; UPDATE p SET region = 'eu' WHERE region = 'us' AND id < 30; UPDATE p SET region = 'us', v = 'back' WHERE region = 'eu' AND id < 20; COMMIT",
		"UPDATE p SET id = id + 100 WHERE region = 'us' AND id BETWEEN 20 AND 45",
		"DELETE FROM p WHERE id % 7 = 0",
		"DELETE FROM p WHERE region = 'asia' AND id < 30",
		"INSERT INTO p VALUES (1000, 'mars', 'by default')",
		"CREATE TABLE p_new PARTITION OF p FOR VALUES IN ('new')", // empty: nothing to be read
		"INSERT INTO p VALUES (1, 'new', 'in a new leaf')",
		"UPDATE p SET v = 'changed' WHERE region = 'new'",
	} {
		r.exec(sql)
	}
	r.inStep()
	r.exec("TRUNCATE p")
	r.exec("INSERT INTO p VALUES (3, 'asia', 'after')")
	r.inStep()
}

func TestRowsThatComeWithAPartitionAreRead(t *testing.T) {
	t.Parallel()
	r := partitioned(t)
	for _, sql := range []string{
		"CREATE TABLE old (v text, id int NOT NULL, region text NOT NULL, PRIMARY KEY (id, region))",
		"INSERT INTO old SELECT 'old ' || g, g, 'old' FROM generate_series(1, 3000) g",
		"ALTER TABLE p ATTACH PARTITION old FOR VALUES IN ('old')",
		"UPDATE p SET v = 'changed at once' WHERE region = 'old' AND id < 100",
		"DELETE FROM p WHERE region = 'old' AND id BETWEEN 100 AND 120",
	} {
		r.exec(sql)
	}
	r.inStep()
	d, err := r.registry.Table(t.Context(), "shop", "public.p")
	require.NoError(t, err)
	var events []string
	for _, e := range d.Events {
		if e.Kind == registry.Partitions {
			events = append(events, string(e.Detail))
		}
	}
	require.Equal(t, []string{`{"attached": ["public.old"]}`}, events)

	// One that came while no worker ran.
	r.stop()
	r.exec("CREATE TABLE away (LIKE p INCLUDING ALL)")
	r.exec("INSERT INTO away SELECT g, 'away', 'x' FROM generate_series(1, 50) g")
	r.exec("ALTER TABLE p ATTACH PARTITION away FOR VALUES IN ('away')")
	r.start()
	r.inStep()
}

// What a partition brought is not forgotten by a worker that is killed while it reads
// it.
func TestAKillWhileAPartitionIsReadLosesNothing(t *testing.T) {
	t.Parallel()
	r := partitioned(t)
	r.stop()
	r.exec("CREATE TABLE big (LIKE p INCLUDING ALL)")
	r.exec("INSERT INTO big SELECT g, 'big', 'x' FROM generate_series(1, 20000) g")
	r.startProcess()
	r.wait(func(v *registry.TableView) bool { return time.Since(v.HeardAt) < time.Second })
	r.exec("ALTER TABLE p ATTACH PARTITION big FOR VALUES IN ('big')")
	require.Eventually(t, func() bool { _, rows := r.rows("public.p", catalog.Bronze); return len(rows) > 500 }, time.Minute, 20*time.Millisecond)
	r.kill()
	_, rows := r.rows("public.p", catalog.Current)
	t.Logf("%d rows were in current when the worker was killed", len(rows))
	r.start()
	r.inStep()
}

func TestRowsThatGoWithAPartitionGo(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"detached":           "ALTER TABLE p DETACH PARTITION p_eu",
		"dropped":            "DROP TABLE p_us_low",
		"dropped subtree":    "DROP TABLE p_us",
		"truncated":          "TRUNCATE p_asia",
		"rewritten":          "VACUUM FULL p_asia",
		"detached and more":  "ALTER TABLE p DETACH PARTITION p_us; DELETE FROM p_us_low; INSERT INTO p VALUES (1, 'eu', 'x') ON CONFLICT DO NOTHING",
		"truncated and more": "TRUNCATE p_eu; INSERT INTO p_eu VALUES (4, 'eu', 'again')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, away := range []bool{false, true} {
				r := partitioned(t)
				if away {
					r.stop()
				}
				for s := range strings.SplitSeq(sql, "; ") {
					r.exec(s)
				}
				if away {
					r.start()
				}
				r.inStep()
				r.exec("UPDATE p SET v = v || '.'")
				r.inStep()
				r.stop()
			}
		})
	}
}
