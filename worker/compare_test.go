package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/privacy"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

func (r *rig) compare(opts reconcile.Config) map[string]*reconcile.Result {
	r.t.Helper()
	return r.compareBy(opts, false)
}

// Tables of every kind are proved equal while they are written to, with key moves,
// returns of keys, swaps, TOAST, rollbacks and a table without a key.
func TestSourceAndLakeAreProvedEqualWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "snapshot: {chunk_rows: 100}\n", map[string]string{
		"public.account.yaml": accountFile,
		"public.person.yaml":  "table: public.person\nprimary_key: [email]\nscd: [1, 2]\nsoft_delete: true\npii: {email: tokenize, name: redact, born: tokenize}\ntrack_history_columns: [city]\n",
		"public.visit.yaml":   "table: public.visit\nprimary_key: []\n",
		"public.past.yaml":    "table: public.past\nprimary_key: [id]\nscd: [2]\ntrack_history_columns: [v]\n",
		"public.odd.yaml":     "table: public.odd\nprimary_key: [id]\nscd: [1]\n",
	})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text, big text)")
	r.exec("CREATE TABLE person (email text PRIMARY KEY, name text, born date, city text)")
	r.exec("CREATE TABLE past (id int PRIMARY KEY, v text, w text)")
	r.exec("INSERT INTO past SELECT g, 'v', 'w' FROM generate_series(1, 500) g")
	r.exec("CREATE TABLE visit (who int, at timestamptz)")
	r.exec("ALTER TABLE visit REPLICA IDENTITY FULL")
	r.exec("CREATE TABLE odd (id int PRIMARY KEY, n numeric(8,2), d date, ts timestamptz, f float8, a int[], t time, g int GENERATED ALWAYS AS (id * 2) STORED)")
	r.exec(`INSERT INTO odd VALUES (1, 'NaN', 'infinity', '-infinity', 'NaN', '{{1},{2}}', '24:00'), (2, 1.5, '0044-03-15 BC', '0044-03-15 12:00:00 BC', 1e23, '{1,NULL}', '23:59:59.5'), (3, NULL, NULL, NULL, NULL, NULL, NULL)`)
	r.exec("INSERT INTO account SELECT g, 'seed', repeat(md5(g::text), 200) FROM generate_series(1, 500) g")
	r.exec("INSERT INTO person SELECT 'p' || g || '@example.com', 'Name ' || g, '1980-01-01'::date + g, 'Bern' FROM generate_series(1, 300) g")
	r.exec("INSERT INTO visit SELECT g % 7, now() FROM generate_series(1, 100) g")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() { writeOdd(ctx, t, r.dsn, rand.New(rand.NewPCG(1, uint64(n)))) })
	}
	r.start()
	r.landed()
	for round := range 2 {
		for name, result := range r.compare(reconcile.Config{Rounds: 3, RefoldBytes: 1 << (20 + 4*round)}) {
			require.True(t, result.Equal(), result.Text())
			require.NotZero(t, result.SourceRows, name)
			require.Equal(t, result.SourceRows, result.LakeRows, name)
			require.Equal(t, name != "public.visit", result.Refolded, result.Text())
			if round == 1 {
				t.Log(result.Text())
			}
		}
	}
	stop()
	writers.Wait()
	for _, result := range r.compare(reconcile.Config{}) {
		require.True(t, result.Equal(), result.Text())
		require.Zero(t, result.Unsettled)
		require.Equal(t, 1, result.Rounds, result.Table)
	}
	require.False(t, r.state("public.account").VerifiedThrough.IsZero(), "the registry knows what was verified")
}

// writeOdd changes rows in all the ways that the tables allow.
func writeOdd(ctx context.Context, t *testing.T, dsn string, random *rand.Rand) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	statements := []string{
		"UPDATE account SET v = v || '.' WHERE id = %d",
		"UPDATE account SET big = repeat(md5(random()::text), 200) WHERE id = %d",
		"DELETE FROM account WHERE id = %d",
		"INSERT INTO account VALUES (%d, 'again') ON CONFLICT DO NOTHING",
		"UPDATE account SET id = -id WHERE id = %[1]d AND NOT EXISTS (SELECT FROM account WHERE id = -%[1]d)",
		"BEGIN; UPDATE account SET v = 'never' WHERE id = %d; ROLLBACK",
		"BEGIN; UPDATE account SET v = 'once' WHERE id = %[1]d; UPDATE account SET v = 'twice' WHERE id = %[1]d; COMMIT",
		"UPDATE person SET city = city || 'x' WHERE email = 'p%d@example.com'",
		"UPDATE person SET name = name || 'x' WHERE email = 'p%d@example.com'",
		"UPDATE person SET email = 'q' || email WHERE email = 'p%d@example.com'",
		"DELETE FROM person WHERE email = 'p%d@example.com'",
		"INSERT INTO person VALUES ('p%d@example.com', NULL, NULL, 'Chur') ON CONFLICT DO NOTHING",
		"UPDATE past SET v = v || 'x' WHERE id = %d",
		"UPDATE past SET w = w || 'x' WHERE id = %d",
		"DELETE FROM past WHERE id = %d",
		"INSERT INTO past VALUES (%d, 'v', 'w') ON CONFLICT DO NOTHING",
		"INSERT INTO visit VALUES (%d, now())",
		"DELETE FROM visit WHERE who = %d",
		"UPDATE visit SET at = now() WHERE who = %d",
	}
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		sql := fmt.Sprintf(statements[random.IntN(len(statements))], random.IntN(500))
		if _, err := conn.PgConn().Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil {
			if code, ok := errors.AsType[*pgconn.PgError](err); ok && (code.Code == "23505" || code.Code == "40P01") {
				_, _ = conn.PgConn().Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll()
				continue // two writers met
			}
			t.Errorf("%s: %v", sql, err)
			return
		}
	}
}

// What is wrong in the lake is found, whatever it is, and told by key.
func TestEveryDamageToTheLakeIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{
		"public.account.yaml": accountFile,
		"public.person.yaml":  "table: public.person\nprimary_key: [email]\nscd: [1, 2]\npii: {email: tokenize, name: redact}\n",
	})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	r.exec("CREATE TABLE person (email text PRIMARY KEY, name text, city text)")
	r.start()
	r.exec("INSERT INTO account SELECT g, 'v' || g FROM generate_series(1, 20) g")
	r.exec("INSERT INTO person SELECT 'secret' || g || '@example.com', 'secret', 'Bern' FROM generate_series(1, 5) g")
	r.exec("UPDATE account SET v = v || '!' WHERE id <= 5")
	r.landed()
	for _, result := range r.compare(reconcile.Config{}) {
		require.True(t, result.Equal(), result.Text())
	}
	r.stop()

	accounts, people := r.open("public.account"), r.open("public.person")
	ctx := t.Context()
	all := fold.Touched{All: true, ImageAll: true}

	// Two rows of current swap their values, one goes, one changes, one is new.
	found, err := accounts.Current.Find(ctx, all)
	require.NoError(t, err)
	byID := map[int64]fold.CurrentFound{}
	for _, f := range found {
		byID[f.Row.Image.Rows.Fixed(f.Row.Image.Row, 0)] = f
	}
	rows := change.NewRows(byID[1].Row.Image.Rows.Schema())
	var wrong fold.CurrentResult
	for _, id := range []int64{1, 2, 3, 4} {
		wrong.Remove = append(wrong.Remove, byID[id].Place)
	}
	write := func(id int64, v string, like int64) {
		row := byID[like].Row
		row.Image = change.Ref{Rows: rows, Row: rows.Add()}
		rows.SetFixed(row.Image.Row, 0, id)
		rows.SetBytes(row.Image.Row, 1, []byte(v))
		wrong.Write = append(wrong.Write, row)
	}
	write(1, "v2!", 1)
	write(2, "v1!", 2)
	write(4, "damaged", 4)
	write(99, "invented", 4)
	state, err := accounts.Current.State(ctx)
	require.NoError(t, err)
	_, err = accounts.Current.Write(ctx, wrong, state)
	require.NoError(t, err)

	// A person's city and name change in current, and an interval of history is
	// closed and another opened over it.
	found, err = people.Current.Find(ctx, all)
	require.NoError(t, err)
	person := found[0].Row
	images := change.NewRows(person.Image.Rows.Schema())
	person.Image = change.Ref{Rows: images, Row: images.CopyRow(person.Image.Rows, person.Image.Row)}
	images.SetBytes(0, 1, []byte("somebody"))
	images.SetBytes(0, 2, []byte("Basel"))
	state, err = people.Current.State(ctx)
	require.NoError(t, err)
	_, err = people.Current.Write(ctx, fold.CurrentResult{Remove: []change.Place{found[0].Place}, Write: []fold.CurrentRow{person}}, state)
	require.NoError(t, err)
	versions, err := people.History.Find(ctx, all, nil)
	require.NoError(t, err)
	doubled := versions[1].Row
	doubled.From++
	state, err = people.History.State(ctx)
	require.NoError(t, err)
	_, err = people.History.Write(ctx, fold.HistoryResult{Write: []fold.Version{doubled}}, state)
	require.NoError(t, err)

	// Bronze holds some events twice.
	state, err = people.Bronze.State(ctx)
	require.NoError(t, err)
	for b, err := range people.Bronze.Read(ctx, catalog.Position{}, state.Cursor.Position, 100) {
		require.NoError(t, err)
		_, err = people.Bronze.Append(ctx, []*change.Batch{b}, state)
		require.NoError(t, err)
		break
	}

	r.start()
	results := r.compare(reconcile.Config{})
	account, other := results["public.account"], results["public.person"]
	require.Equal(t, int64(5), account.Differing, account.Text())
	require.Equal(t, map[reconcile.Kind]int64{reconcile.Changed: 3, reconcile.Missing: 1, reconcile.Extra: 1}, account.Kinds)
	for _, want := range []string{
		"missing: id=3", "extra: id=99", "changed: id=4", `v: source "v4!", lake "damaged"`, `v: source "v1!", lake "v2!"`,
		"history of id=4: the open interval does not show what current shows",
		"history of id=3: an interval is open, and current has no such row",
		"current of id=1: a row is not what bronze folds to",
		"current of id=99: a row stands there that bronze does not fold to",
		"current of id=3: a row that bronze folds to is not there",
	} {
		require.Contains(t, account.Text(), want)
	}
	require.Equal(t, int64(1), other.Differing, other.Text())
	for _, want := range []string{
		`city: source "Bern", lake "Basel"`, `name: source "[redacted]", lake "somebody"`, "changed: email=tok_",
		"two intervals are open", "bronze: an event stands twice",
	} {
		require.Contains(t, other.Text(), want)
	}
	require.NotContains(t, other.Text(), "secret", "personal values are not shown")
	require.True(t, r.state("public.person").VerifiedThrough.Before(other.At), "what is damaged is not verified")
}

// open opens the lake tables of a table whose worker is stopped.
func (r *rig) open(name string) pipeline.Layers {
	r.t.Helper()
	l, err := lake.Open(r.t.Context(), r.lakeCfg, testLogger(r.t))
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = l.Close() })
	table := r.table(name)
	schema, err := r.registry.Schema(r.t.Context(), r.source.Name, name)
	require.NoError(r.t, err)
	layers, err := l.ForSource(r.source).Open(r.t.Context(), table, privacy.MaskedSchema(table, schema))
	require.NoError(r.t, err)
	return layers
}
