package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake/icetest"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// repair compares and repairs every table.
func (r *rig) repair(opts reconcile.Config) map[string]*reconcile.Result {
	r.t.Helper()
	opts.Poll = 20 * time.Millisecond
	return r.compareBy(opts, true)
}

// plant edits a layer of a table as another writer would, while the worker runs.
func (r *rig) plant(table string, layer catalog.Layer, key string, edits ...icetest.Edit) {
	r.t.Helper()
	icetest.Apply(r.t, strings.TrimPrefix(r.lakeCfg.Catalog, "sqlite://"), r.lakeCfg.Warehouse,
		r.source.LakeName(catalog.ParseTableName(table), layer), key, edits...)
}

// findings prints what differs, in order: "changed id=1 w".
func findings(differences []reconcile.Difference) []string {
	out := []string{}
	for _, d := range differences {
		line := []string{string(d.Kind), d.Key}
		for _, v := range d.Values {
			line = append(line, v.Column)
		}
		out = append(out, strings.Join(line, " "))
	}
	return out
}

// steadily runs one statement after the other, again and again, until stop is called;
// {n} is how many have run.
func (r *rig) steadily(every time.Duration, statements ...string) (stop func()) {
	r.t.Helper()
	conn, err := pgx.Connect(r.t.Context(), r.dsn)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			sql := strings.ReplaceAll(statements[n%len(statements)], "{n}", strconv.Itoa(n))
			if _, err := conn.PgConn().Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil {
				r.t.Errorf("%s: %v", sql, err)
				return
			}
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); done.Wait() }) }
	r.t.Cleanup(stop)
	return stop
}

// C63: no false alarms from how values are printed; real differences although the
// counts agree; none while writes go on; and the reader's time zone is of no account.
func TestC63ReconcileTellsRealDifferencesFromFormatting(t *testing.T) {
	t.Parallel()
	icetest.Python(t)
	r := newRig(t, "format_version: 2\n", map[string]string{"public.rec.yaml": "table: public.rec\nprimary_key: [id]\nscd: [1, 2]\n"})
	r.exec("CREATE TABLE rec (id int PRIMARY KEY, f8 float8, f4 real, c char(8), n numeric(10,4), tz timestamptz, w text, b bytea, j jsonb)")
	r.exec(`SET timezone = 'Asia/Kolkata'; SET extra_float_digits = 0; SET datestyle = 'SQL, DMY'; SET bytea_output = 'escape'`)
	r.exec(`INSERT INTO rec VALUES (1,0.1::float8+0.2::float8,0.1,'a',1.1,'2026-01-01 00:00:00.000001+05:30','',E'\\x00ff','{"a":1,"b":2}'),
		(2,1e20,1e-7,'a       ',1.1000,'2026-01-01',NULL,'','[]'),(3,'-0','NaN','ä',0,'1900-01-01',U&'e\0301',NULL,'"x"'),(4,5e-324,3.4e38,NULL,-0.0001,'2026-06-30 23:59:59.999999+00','é',NULL,NULL)`)
	r.start()
	r.landed()
	once := func() *reconcile.Result { return r.compare(reconcile.Config{})["public.rec"] }

	first := once()
	require.True(t, first.Equal(), first.Text())
	require.Equal(t, int64(4), first.SourceRows)
	// The server's and the role's defaults do not reach the comparison.
	r.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Kolkata''', current_database());
		EXECUTE format('ALTER DATABASE %I SET datestyle = ''SQL, DMY''', current_database());
		EXECUTE format('ALTER DATABASE %I SET intervalstyle = ''sql_standard''', current_database());
		EXECUTE format('ALTER DATABASE %I SET extra_float_digits = 0', current_database()); END $$`)
	again := once()
	require.True(t, again.Equal(), again.Text())
	require.Equal(t, first.Columns, again.Columns, "the session's time zone changes the result")

	r.plant("public.rec", catalog.Current, "id",
		icetest.Edit{Do: "delete", Keys: []any{3}},
		icetest.Edit{Do: "copy", Keys: []any{4}, Set: map[string]any{"id": 99}},
		icetest.Edit{Do: "swap", Keys: []any{1, 2}, Column: "w"})
	second := once()
	require.Equal(t, second.SourceRows, second.LakeRows, "the counts agree")
	require.ElementsMatch(t, []string{"changed id=1 w", "changed id=2 w", "missing id=3", "extra id=99"}, findings(second.Differences))
	require.Equal(t, int64(4), second.Differing)

	repaired := r.repair(reconcile.Config{})["public.rec"]
	require.True(t, repaired.Equal(), repaired.Text())
	require.Equal(t, int64(4), *repaired.Repaired)
	require.ElementsMatch(t, findings(second.Differences), findings(repaired.Repairs))

	stop := r.steadily(5*time.Millisecond, "UPDATE rec SET n = n + 1, tz = now() WHERE id = 1 + {n} % 4", "INSERT INTO rec (id, w) VALUES (1000 + {n}, 'w')", "DELETE FROM rec WHERE id = (SELECT max(id) FROM rec WHERE id >= 1000)")
	for range 3 {
		third := once()
		require.True(t, third.Equal(), third.Text())
	}
	stop()
	last := once()
	require.True(t, last.Equal(), last.Text())
	require.Zero(t, last.Unsettled)
	t.Log(last.Text())
}

func (r *rig) compareBy(opts reconcile.Config, repair bool) map[string]*reconcile.Result {
	r.t.Helper()
	opts.Poll = 20 * time.Millisecond
	all, err := worker.Compare(r.t.Context(), worker.CompareConfig{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey, Repair: repair,
		Lake: r.lakeCfg, Registry: r.registry, Options: opts, Logger: testLogger(r.t),
	})
	require.NoError(r.t, err)
	out := map[string]*reconcile.Result{}
	for _, c := range all {
		require.NoError(r.t, c.Err, c.Table.Name)
		out[c.Result.Table] = c.Result
	}
	return out
}

// Whatever another writer did to current is found and put right, by key, while the
// worker runs: rows that are missing, extra, changed or there twice, in tables that
// keep deleted rows and in tables whose key is tokenized.
func TestWhatAnotherWriterDidIsRepaired(t *testing.T) {
	t.Parallel()
	icetest.Python(t)
	r := newRig(t, "format_version: 2\n", map[string]string{
		"public.account.yaml": "table: public.account\nprimary_key: [id]\nscd: [1, 2]\nsoft_delete: false\n",
		"public.kept.yaml":    "table: public.kept\nprimary_key: [id]\nscd: [1, 2]\nsoft_delete: true\n",
		"public.person.yaml":  "table: public.person\nprimary_key: [email]\nscd: [1, 2]\npii: {email: tokenize, name: redact}\n",
		"public.visit.yaml":   "table: public.visit\nprimary_key: []\n",
	})
	for _, name := range []string{"account", "kept"} {
		r.exec("CREATE TYPE mood_" + name + " AS ENUM ('sad', 'ok')")
		r.exec("CREATE TABLE " + name + " (id int PRIMARY KEY, v text, m mood_" + name + "[])")
		r.exec("INSERT INTO " + name + " SELECT g, 'v' || g, '{ok}' FROM generate_series(1, 40) g")
	}
	r.exec("CREATE TABLE person (email text PRIMARY KEY, name text, city text)")
	r.exec("INSERT INTO person SELECT 'secret' || g || '@example.com', 'secret', 'Bern' FROM generate_series(1, 9) g")
	r.exec("CREATE TABLE visit (who int)")
	r.exec("ALTER TABLE visit REPLICA IDENTITY FULL")
	r.exec("INSERT INTO visit VALUES (1)")
	r.limits.SaveEvery = 200 * time.Millisecond
	r.start()
	r.landed()
	r.exec("UPDATE account SET v = v || '!' WHERE id <= 10")
	r.exec("DELETE FROM kept WHERE id = 40")
	r.landed()
	for _, result := range r.repair(reconcile.Config{}) {
		require.True(t, result.Equal(), result.Text())
		require.Zero(t, *result.Repaired)
	}

	var tokens []string
	_, people := r.rows("public.person", catalog.Current)
	for _, p := range people {
		tokens = append(tokens, p["email"])
	}
	edits := []icetest.Edit{
		{Do: "delete", Keys: []any{1, 11}},
		{Do: "copy", Keys: []any{2}, Set: map[string]any{"id": 99}},
		{Do: "copy", Keys: []any{3}},
		{Do: "copy", Keys: []any{5}, Set: map[string]any{"v": "another"}},
		{Do: "set", Keys: []any{4, 12}, Set: map[string]any{"v": "damaged"}},
		{Do: "swap", Keys: []any{6, 7}, Column: "v"},
	}
	r.plant("public.account", catalog.Current, "id", edits...)
	r.plant("public.kept", catalog.Current, "id", edits...)
	r.plant("public.person", catalog.Current, "email",
		icetest.Edit{Do: "delete", Keys: []any{tokens[0]}},
		icetest.Edit{Do: "copy", Keys: []any{tokens[1]}, Set: map[string]any{"email": "tok_invented"}},
		icetest.Edit{Do: "set", Keys: []any{tokens[2]}, Set: map[string]any{"city": "Basel"}})
	stop := r.steadily(20*time.Millisecond,
		"INSERT INTO account VALUES (100 + {n}, 'new')", "UPDATE account SET v = v || '.' WHERE id BETWEEN 20 AND 39",
		"UPDATE person SET city = city || '.' WHERE email = 'secret9@example.com'", "UPDATE kept SET v = v || '.' WHERE id BETWEEN 20 AND 30")
	found := r.compare(reconcile.Config{Rounds: 2})
	repaired := r.repair(reconcile.Config{Rounds: 2})
	stop()
	want := []string{"missing id=1", "missing id=11", "extra id=99", "changed id=4 v", "changed id=12 v", "changed id=6 v", "changed id=7 v"}
	for _, name := range []string{"public.account", "public.kept"} {
		require.Subset(t, findings(found[name].Differences), want)
		require.Equal(t, int64(2), found[name].Kinds[reconcile.Duplicate], found[name].Text())
		require.True(t, repaired[name].Equal(), repaired[name].Text())
		require.Equal(t, int64(9), *repaired[name].Repaired)
	}
	person := repaired["public.person"]
	require.True(t, person.Equal(), person.Text())
	require.Equal(t, int64(3), *person.Repaired, found["public.person"].Text())
	require.ElementsMatch(t, []string{"changed email=" + tokens[2] + " city", "extra email=tok_invented", "missing email=" + tokens[0]}, findings(person.Repairs))
	require.NotContains(t, person.Text(), "secret", "personal values are not shown")
	r.requireNoClear(t, "secret")

	r.landed()
	for _, result := range r.compare(reconcile.Config{}) {
		require.True(t, result.Equal(), result.Text())
	}
	_, rows := r.rows("public.kept", catalog.Current)
	deleted := 0
	for _, row := range rows {
		if row["_is_deleted"] == "t" {
			deleted++
		}
	}
	require.Equal(t, 1, deleted, "the deleted row is kept, and the extra one, of which bronze knows nothing, is not")
	events := map[string]int{}
	_, rows = r.rows("public.account", catalog.Bronze)
	for _, row := range rows {
		if row["_snapshot"] == "t" {
			events[row["op"]]++
		}
	}
	require.Equal(t, map[string]int{"r": 40 + 8, "d": 1}, events, "just the differing keys were read again")

	// C08: a renamed label changes what old rows show without any event.
	r.exec("ALTER TYPE mood_account RENAME VALUE 'ok' TO 'fine'")
	renamed := r.compare(reconcile.Config{})["public.account"]
	require.Contains(t, findings(renamed.Differences), "changed id=1 m")
	again := r.repair(reconcile.Config{})["public.account"]
	require.True(t, again.Equal(), again.Text())
	require.Equal(t, renamed.Differing, *again.Repaired)
	_, versions := r.rows("public.account", catalog.History)
	require.Contains(t, versions, func() cells {
		for _, v := range versions {
			if v["id"] == "1" && v["is_current"] == "t" {
				require.Equal(t, "r", v["_op"])
				require.Equal(t, "{fine}", v["m"])
				return v
			}
		}
		return nil
	}(), "a row that was put right opens a version")
}

// What another writer did to history, to a row of current that only its own columns
// show, and to rows that are long deleted, is found and put right by key, also where
// the key is tokenized or no layer has it any more; and history tells then what bronze
// tells, as if nothing had been.
func TestWhatAnotherWriterDidToHistoryIsRepaired(t *testing.T) {
	t.Parallel()
	icetest.Python(t)
	r := newRig(t, "format_version: 2\n", map[string]string{
		"public.account.yaml": "table: public.account\nprimary_key: [id]\nscd: [1, 2]\nsoft_delete: false\n",
		"public.kept.yaml":    "table: public.kept\nprimary_key: [id]\nscd: [1, 2]\nsoft_delete: true\n",
		"public.past.yaml":    "table: public.past\nprimary_key: [id]\nscd: [2]\n",
		"public.person.yaml":  "table: public.person\nprimary_key: [email]\nscd: [1, 2]\npii: {email: tokenize}\n",
	})
	plain := []string{"account", "kept", "past"}
	for _, name := range plain {
		r.exec("CREATE TABLE " + name + " (id int PRIMARY KEY, v text)")
	}
	r.exec("CREATE TABLE person (email text PRIMARY KEY, v text)")
	r.limits.SaveEvery = 100 * time.Millisecond
	r.start()
	for _, name := range plain {
		r.exec("INSERT INTO " + name + " SELECT g, 'first' FROM generate_series(1, 30) g")
	}
	r.exec("INSERT INTO person SELECT 'secret' || g || '@example.com', 'first' FROM generate_series(1, 3) g")
	r.landed()
	for _, name := range plain {
		r.exec("UPDATE " + name + " SET v = 'second' WHERE id <= 20")
		r.exec("DELETE FROM " + name + " WHERE id BETWEEN 8 AND 10")
	}
	r.exec("UPDATE person SET v = 'second'")
	r.landed()
	text := func(table string, layer catalog.Layer) []string {
		_, rows := r.rows(table, layer)
		out := make([]string, len(rows))
		for i, row := range rows {
			delete(row, "_batch_id")
			out[i] = fmt.Sprint(row)
		}
		slices.Sort(out)
		return out
	}
	tables := []string{"public.account", "public.kept", "public.past", "public.person"}
	history, current := map[string][]string{}, map[string][]string{}
	for _, name := range tables {
		history[name] = text(name, catalog.History)
		if name != "public.past" {
			current[name] = text(name, catalog.Current)
		}
	}

	_, people := r.rows("public.person", catalog.History)
	token := people[0]["email"]
	r.plant("public.person", catalog.History, "email", icetest.Edit{Do: "set", Keys: []any{token}, Set: map[string]any{"v": "forged"}})
	for _, name := range tables[:3] {
		r.plant(name, catalog.History, "id",
			icetest.Edit{Do: "delete", Keys: []any{1, 8}}, // 8 is deleted: no layer knows its key then
			icetest.Edit{Do: "copy", Keys: []any{2}},
			icetest.Edit{Do: "set", Keys: []any{3, 9}, Set: map[string]any{"v": "forged"}},
			icetest.Edit{Do: "copy", Keys: []any{4}, Set: map[string]any{"id": 99}},
			icetest.Edit{Do: "set", Keys: []any{5}, Set: map[string]any{"is_current": false}})
	}
	for _, name := range tables[:2] {
		r.plant(name, catalog.Current, "id",
			icetest.Edit{Do: "set", Keys: []any{11}, Set: map[string]any{"_ordinal": 77}},
			icetest.Edit{Do: "copy", Keys: []any{12}, Set: map[string]any{"id": 98}})
	}
	r.plant("public.kept", catalog.Current, "id", icetest.Edit{Do: "delete", Keys: []any{10}})

	found := r.compare(reconcile.Config{})
	repaired := r.repair(reconcile.Config{})
	for _, name := range tables {
		require.Positive(t, found[name].Violations, found[name].Text())
		require.True(t, repaired[name].Equal(), found[name].Text()+repaired[name].Text())
	}
	require.Zero(t, found["public.person"].Differing, "current is right")
	require.Equal(t, []string{"violation email=" + token}, findings(repaired["public.person"].Repairs))
	want := []string{"violation id=1", "violation id=8", "violation id=2", "violation id=3", "violation id=9", "violation id=99", "violation id=5"}
	require.ElementsMatch(t, append(want, "extra id=98", "violation id=11"), findings(repaired["public.account"].Repairs))
	require.ElementsMatch(t, append(want, "extra id=98", "violation id=11", "violation id=10"), findings(repaired["public.kept"].Repairs))
	for _, name := range tables {
		require.Equal(t, history[name], text(name, catalog.History), name)
		if name != "public.past" {
			require.Equal(t, current[name], text(name, catalog.Current), name)
		}
	}
	r.requireNoClear(t, "secret")
}

// requireNoClear requires that no request in the registry shows a text, nor has shown
// one.
func (r *rig) requireNoClear(t *testing.T, text string) {
	t.Helper()
	var kept, requests int
	require.NoError(t, r.conn.QueryRow(t.Context(), "select count(*), count(*) filter (where keys like '%' || $1 || '%') from lakeweir.rereads", text).Scan(&requests, &kept))
	require.Positive(t, requests)
	require.Zero(t, kept)
}

func TestARepairNeedsARunningWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.account.yaml": accountFile})
	_, err := worker.Compare(t.Context(), worker.CompareConfig{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey, Repair: true, Lake: r.lakeCfg, Registry: r.registry, Logger: testLogger(t),
	})
	require.ErrorContains(t, err, "source shop is not running, so that no row of it can be read again: no worker has ever run it")
	require.Equal(t, catalog.Unavailable, catalog.KindOf(err))
}

// Rule 8: a row that nobody knew, changed without its large value, has NULL there and
// is asked for again by itself, with and without current, tokenized or not.
func TestARowOfWhichAValueWasNeverSentIsReadAgain(t *testing.T) {
	t.Parallel()
	icetest.Python(t)
	r := newRig(t, "format_version: 2\n", map[string]string{
		"public.doc.yaml":    "table: public.doc\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.past.yaml":   "table: public.past\nprimary_key: [id]\nscd: [2]\n",
		"public.secret.yaml": "table: public.secret\nprimary_key: [id]\nscd: [1]\npii: {id: tokenize}\n",
	})
	names := []string{"doc", "past", "secret"}
	for _, name := range names {
		r.exec("CREATE TABLE " + name + " (id text PRIMARY KEY, title text, body text)")
		r.exec("ALTER TABLE " + name + " ALTER body SET STORAGE EXTERNAL")
		r.exec("INSERT INTO " + name + " SELECT 'id' || g, 'old', repeat('x', 9000) FROM generate_series(1, 5) g")
	}
	r.limits.SaveEvery = 100 * time.Millisecond
	r.start()
	r.landed()
	_, secrets := r.rows("public.secret", catalog.Current)
	token := map[string]bool{}
	for _, row := range secrets {
		token[row["id"]] = true
	}
	var tokens []any
	for one := range token {
		tokens = append(tokens, one)
	}
	// What the lake knows of the rows goes, and the worker's memory of it, so that they
	// have never been seen.
	r.stop()
	all := []any{"id1", "id2", "id3", "id4", "id5"}
	r.plant("public.doc", catalog.Current, "id", icetest.Edit{Do: "delete", Keys: all})
	r.plant("public.doc", catalog.History, "id", icetest.Edit{Do: "delete", Keys: all})
	r.plant("public.past", catalog.History, "id", icetest.Edit{Do: "delete", Keys: all})
	r.plant("public.secret", catalog.Current, "id", icetest.Edit{Do: "delete", Keys: tokens})
	for _, name := range names {
		r.exec("UPDATE " + name + " SET title = 'new' WHERE id IN ('id2', 'id4')")
	}
	r.start()
	whole := func(name string, layer catalog.Layer) bool {
		_, rows := r.rows("public."+name, layer)
		require.LessOrEqual(t, len(rows), 2)
		n := 0
		for _, row := range rows {
			if row["title"] == "new" && len(row["body"]) == 9000 && strings.Trim(row["_unavailable_columns"], "{}") == "" {
				n++
			}
		}
		return n == 2
	}
	r.eventually("the rows are whole", func() bool {
		return whole("doc", catalog.Current) && whole("doc", catalog.History) && whole("past", catalog.History) && whole("secret", catalog.Current)
	})
	var masked, keys int
	r.eventually("the registry says that the requests are done", func() bool {
		var pending int
		require.NoError(t, r.conn.QueryRow(t.Context(), `select count(*) filter (where done_at is null), count(*) filter (where form = 'masked'), sum(count)
			from lakeweir.rereads where reason = 'unavailable'`).Scan(&pending, &masked, &keys))
		return pending == 0
	})
	require.Positive(t, masked)
	require.Equal(t, 6, keys, "just the rows that lacked a value were read again, once")
	_, rows := r.rows("public.doc", catalog.Bronze)
	reads := 0
	for _, row := range rows {
		if row["op"] == "r" {
			reads++
		}
	}
	require.Equal(t, 5+2, reads)
}

func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(r.t, "waited in vain until "+what)
		}
	}
}
