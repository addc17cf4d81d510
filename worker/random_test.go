package worker_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// Tables whose keys are of odd types, or are shared by rows until their transaction
// ends, live a random life: moves, swaps, chains, truncates, large values, savepoints
// and rollbacks, while the worker ends and starts again and transactions are split.
// In the end every layer equals the source, and history equals what an observer of
// the tables' states at each commit says.
//
// LAKEWEIR_RANDOM_RUNS says how many runs there are, LAKEWEIR_SEED repeats one.
func TestRandomLivesOfTablesWithOddKeys(t *testing.T) {
	t.Parallel()
	runs, seed := 1, uint64(time.Now().UnixNano())
	if s := os.Getenv("LAKEWEIR_RANDOM_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		runs = n
	}
	if s := os.Getenv("LAKEWEIR_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		runs, seed = 1, n
	}
	for i := range runs {
		t.Run(fmt.Sprintf("LAKEWEIR_SEED=%d", seed+uint64(i)), func(t *testing.T) {
			t.Parallel()
			randomLife(t, rand.New(rand.NewPCG(seed+uint64(i), 7)))
		})
	}
}

// oddTable is a table and how to change it at random.
type oddTable struct {
	name    string
	key     []string
	ddl     string
	columns []string // as the observer reads them, the key first
	same    string   // an expression that is the same for keys that are one
	fresh   func(r *rand.Rand) string
	change  func(r *rand.Rand) string
	soft    bool
}

// big is a large value, of one letter, so that messages stay short.
func big(r *rand.Rand) string {
	return fmt.Sprintf("repeat('%c', %d)", 'a'+rune(r.IntN(26)), 2500+r.IntN(500))
}

func pick(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }

// anyChange changes the rows of a WHERE.
func anyChange(r *rand.Rand, table, where, move string) string {
	switch r.IntN(10) {
	case 0, 1, 2:
		return fmt.Sprintf("UPDATE %s SET v = 'v%d' WHERE %s", table, r.IntN(50), where)
	case 3:
		return fmt.Sprintf("UPDATE %s SET body = %s WHERE %s", table, pick(r, big(r), "null", "'short'"), where)
	case 4:
		return fmt.Sprintf("DELETE FROM %s WHERE %s", table, where)
	case 5:
		return fmt.Sprintf("UPDATE %s SET v = v WHERE %s", table, where)
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", table, move, where)
}

func oddTables() []oddTable {
	numeric := func(r *rand.Rand) string {
		return pick(r, "1", "1.0", "1.00", "2", "2.50", "2.5", "-3.10", "0", "0.00", "'NaN'", "'Infinity'", "7e20")
	}
	spelled := func(r *rand.Rand) string { return "'" + pick(r, "a", "A", "b", "B", "c", "ß", "é", "É", "") + "'" }
	id := func(r *rand.Rand) int { return 1 + r.IntN(9) }
	return []oddTable{
		{
			name: "composite", key: []string{"b", "a"}, columns: []string{"b", "a", "v", "body"}, same: "b || '|' || a",
			ddl: "CREATE TABLE composite (a int, b text, v text, body text, PRIMARY KEY (a, b))",
			fresh: func(r *rand.Rand) string {
				return fmt.Sprintf("INSERT INTO composite VALUES (%d, 'k%d', 'new', %s)", id(r), r.IntN(3), big(r))
			},
			change: func(r *rand.Rand) string {
				where := fmt.Sprintf("a = %d AND b = 'k%d'", id(r), r.IntN(3))
				return anyChange(r, "composite", where, pick(r, fmt.Sprintf("a = %d", id(r)), fmt.Sprintf("a = %d, b = 'k%d', v = 'moved'", id(r), r.IntN(3))))
			},
		},
		{
			name: "numbers", key: []string{"k"}, columns: []string{"k", "v", "body"}, same: "trim_scale(k)::text",
			ddl: "CREATE TABLE numbers (k numeric PRIMARY KEY, v text, body text)",
			fresh: func(r *rand.Rand) string {
				return fmt.Sprintf("INSERT INTO numbers VALUES (%s, 'new', %s)", numeric(r), big(r))
			},
			change: func(r *rand.Rand) string {
				return anyChange(r, "numbers", "k = "+numeric(r), "k = "+numeric(r))
			},
		},
		{
			name: "deferred", key: []string{"id"}, columns: []string{"id", "v", "body"}, same: "id::text",
			ddl: "CREATE TABLE deferred (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text, body text); ALTER TABLE deferred REPLICA IDENTITY FULL",
			fresh: func(r *rand.Rand) string {
				return fmt.Sprintf("INSERT INTO deferred VALUES (%d, 'new', %s)", id(r), pick(r, big(r), "'same'"))
			},
			change: func(r *rand.Rand) string {
				switch r.IntN(6) {
				case 0: // a permutation in one statement
					return fmt.Sprintf("UPDATE deferred SET id = (id * %d + %d) %% 11 WHERE id BETWEEN 0 AND 10", 1+r.IntN(10), r.IntN(11))
				case 1: // a chain
					return fmt.Sprintf("UPDATE deferred SET id = id + 1 WHERE id >= %d", id(r))
				case 2:
					return fmt.Sprintf("UPDATE deferred SET id = id - 1 WHERE id > %d", id(r))
				case 3: // a swap in three statements, with changes between
					a, b := id(r), id(r)
					return fmt.Sprintf("UPDATE deferred SET id = %d, v = v || '>' WHERE id = %d; UPDATE deferred SET v = left(v, 20) || '.' WHERE id = %d; UPDATE deferred SET id = %d WHERE ctid = (SELECT ctid FROM deferred WHERE id = %d ORDER BY v LIMIT 1)", b, a, b, a, b)
				}
				return anyChange(r, "deferred", fmt.Sprintf("id = %d", id(r)), fmt.Sprintf("id = %d", id(r)))
			},
		},
		{
			name: "spelled", key: []string{"k"}, columns: []string{"k", "v", "body"}, same: `k COLLATE "C"`, soft: true,
			ddl: "CREATE TABLE spelled (k text COLLATE nocase PRIMARY KEY, v text, body text)",
			fresh: func(r *rand.Rand) string {
				return fmt.Sprintf("INSERT INTO spelled VALUES (%s, 'new', %s)", spelled(r), big(r))
			},
			change: func(r *rand.Rand) string {
				return anyChange(r, "spelled", "k = "+spelled(r), "k = "+spelled(r))
			},
		},
	}
}

func randomLife(t *testing.T, random *rand.Rand) {
	t.Helper()
	tables := oddTables()
	files := map[string]string{}
	for _, o := range tables {
		files["public."+o.name+".yaml"] = fmt.Sprintf("table: public.%s\nprimary_key: [%s]\nscd: [1, 2]\nsoft_delete: %t\n", o.name, strings.Join(o.key, ", "), o.soft)
	}
	r := newRig(t, fmt.Sprintf("snapshot: {chunk_rows: %d}\nformat_version: %d\n", 2+random.IntN(20), 2+random.IntN(2)), files)
	r.limits.BatchRows, r.reader.SliceRows = 1+random.IntN(40), 1+random.IntN(20)
	r.exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	for _, o := range tables {
		r.exec(o.ddl)
		r.exec("ALTER TABLE " + o.name + " ALTER body SET STORAGE EXTERNAL")
	}
	life := newObserved(t, r.dsn, tables)
	for range 30 {
		life.transaction(random, true)
	}
	// In two of three lives rows move and swap while they are read for the first time.
	amid := random.IntN(3) > 0
	t.Logf("amid the first reading: %t, batches of %d, slices of %d", amid, r.limits.BatchRows, r.reader.SliceRows)
	r.start()
	if !amid {
		r.landed()
	}
	life.look(r)
	for range 3 + random.IntN(3) {
		for range 15 + random.IntN(30) {
			life.transaction(random, false)
		}
		switch random.IntN(3) {
		case 0:
			r.stop()
			for range random.IntN(20) {
				life.transaction(random, false)
			}
			r.start()
		case 1:
			r.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND confirmed_flush_lsn IS NOT NULL AND slot_name = '" + r.source.Slot + "'")
		case 2:
			r.landed()
		}
		life.look(r)
	}
	r.landed()
	life.look(r)
	for _, o := range tables {
		require.Nil(t, r.state("public."+o.name).Fault, o.name)
	}
	r.requireEqual()
	l, err := lake.Open(t.Context(), r.lakeCfg, testLogger(t))
	require.NoError(t, err)
	defer l.Close()
	for _, o := range tables {
		require.Empty(t, r.againstObserver(l, &o, life), "history of %s", o.name)
	}
	t.Logf("%d transactions committed", len(life.commits))
}

// observed changes tables over one connection, and keeps what they hold at each
// commit.
type observed struct {
	t       *testing.T
	conn    *pgx.Conn
	tables  []oddTable
	commits []observedCommit
	read    map[string]int64 // when a table was first seen to have been read
}

// look notes which tables have been read by now, by the source's clock.
func (o *observed) look(r *rig) {
	o.t.Helper()
	var now int64
	for _, t := range o.tables {
		if s := r.state("public." + t.name).Snapshot; o.read[t.name] == 0 && s != nil && s.Done {
			require.NoError(o.t, o.conn.QueryRow(o.t.Context(), "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8").Scan(&now))
			o.read[t.name] = now
		}
	}
}

type observedCommit struct {
	at     int64 // microseconds since 1970 UTC
	states map[string]map[string][]string
}

func newObserved(t *testing.T, dsn string, tables []oddTable) *observed {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	maps.Copy(cfg.RuntimeParams, typemap.SessionSettings())
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return &observed{t: t, conn: conn, tables: tables, read: map[string]int64{}}
}

// transaction runs a random one. What fails is rolled back alone.
func (o *observed) transaction(r *rand.Rand, seeding bool) {
	o.t.Helper()
	o.run("BEGIN")
	n := 1 + r.IntN(5)
	if r.IntN(10) == 0 {
		n = 25
	}
	for range n {
		table := o.tables[r.IntN(len(o.tables))]
		sql := table.change(r)
		switch {
		case seeding || r.IntN(4) == 0:
			sql = table.fresh(r)
		case r.IntN(60) == 0:
			sql = "TRUNCATE " + table.name
		}
		o.run("SAVEPOINT s")
		if _, err := o.conn.PgConn().Exec(o.t.Context(), sql).ReadAll(); err != nil || r.IntN(12) == 0 {
			o.run("ROLLBACK TO SAVEPOINT s")
		}
	}
	if _, err := o.conn.Exec(o.t.Context(), "SET CONSTRAINTS ALL IMMEDIATE"); err != nil || r.IntN(12) == 0 {
		o.run("ROLLBACK")
		return
	}
	c := observedCommit{states: map[string]map[string][]string{}}
	for _, t := range o.tables {
		c.states[t.name] = o.state(&t)
	}
	var xid *string
	require.NoError(o.t, o.conn.QueryRow(o.t.Context(), "SELECT pg_current_xact_id_if_assigned()::xid::text").Scan(&xid))
	o.run("COMMIT")
	if xid == nil {
		return
	}
	require.NoError(o.t, o.conn.QueryRow(o.t.Context(), "SELECT (extract(epoch FROM pg_xact_commit_timestamp('"+*xid+"'::xid)) * 1000000)::int8").Scan(&c.at))
	o.commits = append(o.commits, c)
}

func (o *observed) run(sql string) {
	o.t.Helper()
	_, err := o.conn.Exec(o.t.Context(), sql)
	require.NoError(o.t, err, sql)
}

// state reads a table's rows by what makes their keys one.
func (o *observed) state(table *oddTable) map[string][]string {
	o.t.Helper()
	rows, err := o.conn.Query(o.t.Context(), "SELECT "+table.same+", "+strings.Join(table.columns, ", ")+" FROM "+table.name)
	require.NoError(o.t, err)
	defer rows.Close()
	out := map[string][]string{}
	for rows.Next() {
		var line []string
		for _, v := range rows.RawValues()[1:] {
			if v == nil {
				line = append(line, null)
			} else {
				line = append(line, string(v))
			}
		}
		key := string(rows.RawValues()[0])
		require.NotContains(o.t, out, key)
		out[key] = line
	}
	require.NoError(o.t, rows.Err())
	return out
}

const null = "<NULL>"

// history yields the versions of a table's rows: what differs from one commit to
// the next.
func (o *observed) history(table *oddTable) iter.Seq2[demo.Interval, error] {
	open := map[string]*demo.Interval{}
	var out []*demo.Interval
	before := map[string][]string{}
	last := int64(0)
	for _, c := range o.commits {
		last = max(last, c.at) // one connection, so a clock that is set back is the only reason
		now := c.states[table.name]
		for key, line := range before {
			if !slices.Equal(line, now[key]) {
				open[key].To, open[key].Current = last, false
				delete(open, key)
			}
		}
		for key, line := range now {
			if !slices.Equal(line, before[key]) {
				v := &demo.Interval{Key: []demo.Value{{Text: key}}, From: last, To: demo.Open, Current: true}
				for _, text := range line {
					v.Values = append(v.Values, valueOf(text))
				}
				open[key] = v
				out = append(out, v)
			}
		}
		before = now
	}
	return func(yield func(demo.Interval, error) bool) {
		for _, v := range out {
			if !yield(*v, nil) {
				return
			}
		}
	}
}

func valueOf(text string) demo.Value {
	if text == null {
		return demo.Value{Null: true}
	}
	return demo.Value{Text: text}
}

// againstObserver holds the lake's history of a table against the observer's.
func (r *rig) againstObserver(l *lake.Lake, table *oddTable, life *observed) []string {
	r.t.Helper()
	h, err := worker.OpenHistory(r.t.Context(), l, r.source, r.table("public."+table.name))
	require.NoError(r.t, err)
	same := map[string]string{} // by the key's texts
	for _, c := range life.commits {
		for key, line := range c.states[table.name] {
			same[strings.Join(line[:len(table.key)], "\x00")] = key
		}
	}
	ours := func(yield func(demo.Interval, error) bool) {
		for v, err := range h.Versions(r.t.Context()) {
			require.NoError(r.t, err)
			out := demo.Interval{From: v.From, To: v.To, Current: v.Current, FromSnapshot: v.Op == change.Read}
			var texts []string
			for _, name := range table.columns {
				text := null
				if p := v.Values[slices.Index(h.Columns, name)]; p != nil {
					text = *p
				}
				texts = append(texts, text)
				out.Values = append(out.Values, valueOf(text))
			}
			key, known := same[strings.Join(texts[:len(table.key)], "\x00")]
			require.True(r.t, known, "the lake has a key that never was: %q", texts[:len(table.key)])
			out.Key = []demo.Value{{Text: key}}
			if !yield(out, nil) {
				return
			}
		}
	}
	c := demo.Comparison{Columns: table.columns, Began: h.FirstRead, SnapshotEnded: h.LastRead}
	if h.FirstRead == 0 { // it was empty when it was read
		c.Began, c.SnapshotEnded = life.read[table.name], life.read[table.name]
	}
	differences, err := c.Compare(ours, life.history(table))
	require.NoError(r.t, err)
	var out []string
	for _, d := range differences {
		// A large value that was not sent is only known from the time when its row was
		// read, and not under other keys.
		body := slices.Index(table.columns, "body")
		if d.Lake != nil && d.Oracle != nil && slices.Equal(d.Columns, []string{"body"}) && d.Lake.Values[body].Null && d.Lake.From <= h.LastRead && !d.Lake.Current {
			continue
		}
		out = append(out, d.String())
	}
	return out
}
