package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake/icetest"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// load is how much of it a run of TestReconcileUnderLoad has.
type load struct {
	rounds, orders int
	rate           float64
	connections    int // of the shop; 0: its default
	save, hold     time.Duration
	steady         time.Duration // between the changes of the tables made for it
	truncates      time.Duration // at most so long after a comparison began is a table truncated
}

// config has room for a machine that is busy with other tests too.
func (l load) config() reconcile.Config { return reconcile.Config{Rounds: 3, Wait: 10 * time.Minute} }

// While the shop is busy, with hot keys, long transactions, moves, truncates and a
// worker that restarts, no comparison says that something differs; and what another
// writer then does to the lake is found, all of it and nothing else, and repaired
// while writes go on. LAKEWEIR_RECONCILE_LONG makes it 20 comparisons at 2,000 changes
// a second (make reconcile-long).
func TestReconcileUnderLoad(t *testing.T) {
	t.Parallel()
	icetest.Python(t)
	l := load{rounds: 3, orders: 100, rate: 60, steady: 40 * time.Millisecond, save: 500 * time.Millisecond, hold: time.Second, truncates: 2 * time.Second}
	if os.Getenv("LAKEWEIR_RECONCILE_LONG") != "" {
		l = load{rounds: 20, orders: 5000, rate: 2000, connections: 8, steady: 5 * time.Millisecond, save: time.Second, hold: 5 * time.Second, truncates: 8 * time.Second}
	}
	files := shopFiles(t)
	files["public.hot.yaml"] = "table: public.hot\nprimary_key: [id]\nscd: [1, 2]\nfreshness_tier: realtime\n"
	files["public.flush.yaml"] = "table: public.flush\nprimary_key: [id]\nscd: [1, 2]\nfreshness_tier: realtime\n"
	files["public.ledger.yaml"] = "table: public.ledger\nprimary_key: [id]\nscd: [1, 2]\nfreshness_tier: realtime\nsoft_delete: false\n"
	r := newRig(t, "format_version: 2\n", files)
	r.limits.SaveEvery = l.save
	require.NoError(t, demo.Setup(t.Context(), r.dsn, l.orders))
	r.exec("CREATE TABLE hot (id numeric PRIMARY KEY, v int)")
	r.exec("INSERT INTO hot SELECT g, 0 FROM generate_series(1, 50) g")
	r.exec("CREATE TABLE flush (id int PRIMARY KEY, v int)")
	r.exec("CREATE TABLE ledger (id int PRIMARY KEY, amount int, note text)")
	r.exec("INSERT INTO ledger SELECT g, g, 'note ' || g FROM generate_series(1, 500) g")

	workload := demo.NewWorkload(demo.WorkloadConfig{DSN: r.dsn, Rate: l.rate, Connections: l.connections, Seed: 1, MaxHold: l.hold, Logger: testLogger(t)})
	busy, rest := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		if _, err := workload.Run(busy); err != nil {
			t.Errorf("the shop: %v", err)
		}
	})
	began := time.Now()
	quiet := sync.OnceFunc(func() { rest(); working.Wait() })
	t.Cleanup(quiet)
	r.steadily(l.steady,
		"UPDATE hot SET v = v + 1 WHERE id <= 3",
		"UPDATE hot SET id = CASE WHEN id::text LIKE '%.0' THEN round(id) ELSE round(id, 1) END WHERE id BETWEEN 4 AND 9", // another way to print the same key
		"UPDATE hot SET id = id + 100 * (1 - 2 * (id > 100)::int) WHERE id IN (10, 110)",
		"INSERT INTO flush VALUES ({n}, 0)")
	// Once in each comparison: a table that is truncated in every round is never compared.
	flush := func(n int) {
		conn, err := pgx.Connect(t.Context(), r.dsn)
		if err == nil {
			<-time.After(l.truncates * time.Duration(n%5) / 4)
			_, err = conn.PgConn().Exec(t.Context(), fmt.Sprintf(`BEGIN; INSERT INTO flush VALUES (-1, 0); TRUNCATE flush;
				INSERT INTO flush SELECT g, %d FROM generate_series(-10, -2) g; COMMIT`, n)).ReadAll()
			err = errors.Join(err, conn.Close(t.Context()))
		}
		if err != nil {
			t.Errorf("truncate: %v", err)
		}
	}
	writeLedger := func() (stop func()) {
		return r.steadily(5*l.steady, "UPDATE ledger SET amount = amount + 1, note = md5(random()::text) WHERE id = 100 + {n} % 400")
	}
	pause := writeLedger()
	r.start()
	r.landed()
	for _, table := range r.tables {
		require.False(t, r.state(table.Name.String()).State.Stopped(), "%s: %+v", table.Name, r.state(table.Name.String()).Fault)
	}

	alarms, events := 0, int64(0)
	for n := range l.rounds {
		held := r.holdOpen("UPDATE ledger SET note = 'held open' WHERE id IN (20, 21)")
		var meanwhile sync.WaitGroup
		if n == 1 {
			meanwhile.Go(func() { r.stop(); r.start() })
		}
		meanwhile.Go(func() { flush(n) })
		results := r.compare(l.config())
		meanwhile.Wait()
		held()
		events = 0
		for name, result := range results {
			events += result.BronzeEvents
			if !result.Equal() {
				alarms++
				t.Errorf("a false alarm: %s", result.Text())
			}
			require.True(t, result.Refolded || !result.Checked || name == "public.event_log", result.Text())
		}
		t.Logf("comparison %d: %s", n+1, results["public.orders"].Line())
	}
	took := time.Since(began).Seconds()
	t.Logf("false alarms: %d (%d comparisons of %d tables; %d changes of the shop, %.0f a second; %d events in bronze, %.0f a second)",
		alarms, l.rounds, len(r.tables), workload.Stats().Changes(), float64(workload.Stats().Changes())/took, events, float64(events)/took)

	// The other writer is slow, and would lose every race for the table's next snapshot.
	pause()
	r.plant("public.ledger", catalog.Current, "id",
		icetest.Edit{Do: "delete", Keys: []any{1}},
		icetest.Edit{Do: "copy", Keys: []any{2}, Set: map[string]any{"id": 9000}},
		icetest.Edit{Do: "set", Keys: []any{3}, Set: map[string]any{"note": "damaged"}},
		icetest.Edit{Do: "swap", Keys: []any{4, 5}, Column: "amount"})
	writeLedger()
	want := []string{"missing id=1", "extra id=9000", "changed id=3 note", "changed id=4 amount", "changed id=5 amount"}
	found := r.compare(l.config())
	repaired := r.repair(l.config())
	for name, result := range found {
		if name != "public.ledger" {
			require.True(t, result.Equal(), result.Text())
			require.True(t, repaired[name].Equal(), repaired[name].Text())
		}
	}
	ledger := found["public.ledger"]
	require.ElementsMatch(t, want, findings(ledger.Differences), ledger.Text())
	require.True(t, repaired["public.ledger"].Equal(), repaired["public.ledger"].Text())
	require.ElementsMatch(t, want, findings(repaired["public.ledger"].Repairs))
	t.Logf("planted differences: found and repaired all 4, in just these keys: %v", findings(repaired["public.ledger"].Repairs))
	t.Log(repaired["public.ledger"].Text())

	quiet()
	r.landed()
	for _, result := range r.compare(l.config()) {
		require.True(t, result.Equal(), result.Text())
	}
}

// holdOpen runs a statement in a transaction that stays open until the returned
// function commits it.
func (r *rig) holdOpen(sql string) (release func()) {
	r.t.Helper()
	conn, err := pgx.Connect(r.t.Context(), r.dsn)
	require.NoError(r.t, err)
	tx, err := conn.Begin(r.t.Context())
	require.NoError(r.t, err)
	_, err = tx.Exec(r.t.Context(), sql)
	require.NoError(r.t, err)
	return func() {
		require.NoError(r.t, tx.Commit(r.t.Context()))
		require.NoError(r.t, conn.Close(r.t.Context()))
	}
}

// A truncated table looks empty to a transaction that began before, whatever it held
// then: that is no difference.
func TestATruncateBetweenTheMomentAndTheReadingIsNoDifference(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{
		"public.flush.yaml": "table: public.flush\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.visit.yaml": "table: public.visit\nprimary_key: []\n",
	})
	r.exec("CREATE TABLE flush (id int PRIMARY KEY)")
	r.exec("CREATE TABLE visit (who int)")
	r.exec("ALTER TABLE visit REPLICA IDENTITY FULL")
	r.exec("INSERT INTO flush SELECT generate_series(1, 20)")
	r.exec("INSERT INTO visit SELECT generate_series(1, 20)")
	r.start()
	r.landed()
	for _, table := range r.tables {
		r.exec("INSERT INTO " + table.Name.Name + " VALUES (0)") // the moment is behind what is confirmed
		truncated := false
		all, err := worker.Compare(t.Context(), worker.CompareConfig{
			Source: r.source, Tables: []*catalog.Table{table}, DSN: catalog.Secret(r.dsn), Lake: r.lakeCfg, Logger: testLogger(t),
			Options: reconcile.Config{Poll: 20 * time.Millisecond, Through: func(context.Context, *catalog.Table) (catalog.LSN, error) {
				if !truncated {
					truncated = true
					r.exec("TRUNCATE " + table.Name.Name)
				}
				return 0, nil
			}},
		})
		require.NoError(t, err)
		require.NoError(t, all[0].Err)
		require.True(t, truncated, "the moment was not waited for")
		require.True(t, all[0].Result.Equal(), all[0].Result.Text())
		require.Zero(t, all[0].Result.SourceRows)
	}
}
