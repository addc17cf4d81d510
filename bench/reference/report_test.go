package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/bench/topics"
	"github.com/lakeweir/lakeweir/bench/tree"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
)

// right is what a lake shows in which everything is right.
func right(t *testing.T) (verify.Result, *workload.Outcome) {
	t.Helper()
	o, err := workload.Make(workload.Config{Scale: 0.002, Seed: 1}, func(workload.Record) error { return nil })
	require.NoError(t, err)
	found := verify.Result{Tables: map[string]verify.TableResult{}, Logs: map[string]verify.LogResult{}}
	for _, table := range workload.Tables() {
		found.Tables[table] = verify.TableResult{Rows: int64(o.Live(table)), WrittenMS: 3_500}
		n := o.Total(table)
		found.Logs[table] = verify.LogResult{Rows: n, Offsets: n, LastOffset: n - 1, Ops: maps.Clone(o.Events[table])}
	}
	orders := found.Logs[workload.Orders]
	orders.Deleted, orders.Worth = o.Events[workload.Orders]["d"], maps.Clone(o.DeletedWorth)
	found.Logs[workload.Orders] = orders
	return found, o
}

func TestNothingIsWrongWithALakeThatIsRight(t *testing.T) {
	t.Parallel()
	found, o := right(t)
	require.Positive(t, found.Logs[workload.Orders].Deleted)
	require.Empty(t, wrong("lakeweir", found, o, true))
}

func TestEachMistakeIsToldOf(t *testing.T) {
	t.Parallel()
	log := func(change func(l *verify.LogResult)) func(r *verify.Result) {
		return func(r *verify.Result) {
			l := r.Logs[workload.Orders]
			change(&l)
			r.Logs[workload.Orders] = l
		}
	}
	for want, change := range map[string]func(r *verify.Result){
		"lakeweir: 2 rows of payments differ, such as p1; p2": func(r *verify.Result) {
			p := r.Tables[workload.Payments]
			p.Differing, p.Examples = 2, []string{"p1", "p2"}
			r.Tables[workload.Payments] = p
		},
		"lakeweir: refunds has 0 rows":                 func(r *verify.Result) { delete(r.Tables, workload.Refunds) },
		"lakeweir: bronze of orders has 646 events of": log(func(l *verify.LogResult) { l.Rows++ }),
		"up to 645, not each of 645 once":              log(func(l *verify.LogResult) { l.LastOffset++ }),
		"bronze of orders has the events map[c:282":    log(func(l *verify.LogResult) { l.Ops["c"]++ }),
		"bronze tells of 9 hard-deleted orders":        log(func(l *verify.LogResult) { l.Deleted-- }),
		"were worth map[EUR:":                          log(func(l *verify.LogResult) { l.Worth["EUR"]++ }),
	} {
		found, o := right(t)
		change(&found)
		told := wrong("lakeweir", found, o, true)
		require.Len(t, told, 1, want)
		require.Contains(t, told[0], want)
	}
}

func TestTheReportHasWhatItsReadersLookFor(t *testing.T) {
	t.Parallel()
	found, _ := right(t)
	began := time.UnixMilli(1_000)
	r := &report{Events: 10, Crash: &crash{}}
	r.cost = costOf(tree.Figures{CPU: 2 * time.Second, Wall: 3 * time.Second, PeakRSS: 100 << 20}, began, found)
	require.Equal(t, cost{CPU: 2, Wall: 2.5, Process: 3, RSS: 100}, r.cost)
	keys := func() []string {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		var out map[string]any
		require.NoError(t, json.Unmarshal(text, &out))
		return slices.Sorted(maps.Keys(out))
	}
	alone := keys()
	require.Subset(t, alone, []string{"events", "rows", "rows_differing", "cpu_s", "wall_s", "peak_rss_mib", "bronze_events", "hard_deleted_orders", "hard_deleted_worth", "crash", "versions"})
	require.NotContains(t, alone, "cpu_ratio", "the peer was left out")
	r.against(cost{CPU: 21, Wall: 5, Process: 6, RSS: 400}, 7)
	require.Subset(t, keys(), []string{"cpu_ratio", "wall_ratio", "peer_cpu_s", "peer_wall_s", "peer_peak_rss_mib", "peer_rows_differing"})
	require.InEpsilon(t, 10.5, *r.CPURatio, 1e-9)
	require.InEpsilon(t, 2.0, *r.WallRatio, 1e-9)
	require.Equal(t, int64(7), r.peerCost.RowsDiffering)
	require.Zero(t, r.RowsDiffering)
}

func TestOnlyCommitsWithRowsCount(t *testing.T) {
	t.Parallel()
	commits, events, err := countCommits([]byte(`{"snapshots":[{"summary":{"operation":"append","added-records":"5"}},{"summary":{"operation":"append"}},{"summary":{"added-records":"7"}}]}`))
	require.NoError(t, err)
	require.Equal(t, []int64{2, 12}, []int64{commits, events})
	commits, events, err = countCommits([]byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0}, []int64{commits, events})
}

func TestTheSourcesFilesAreGood(t *testing.T) {
	t.Parallel()
	for _, history := range []bool{false, true} {
		s := &stand{place: place{broker: "127.0.0.1:9092"}, o: options{history: history}}
		dir := filepath.Join(t.TempDir(), sourceName)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for name, text := range s.files() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		files, problems := tableconfig.LoadDir(dir)
		require.NoError(t, problems.Err())
		require.Len(t, files.Tables, len(workload.Tables()))
		for _, table := range files.Tables {
			require.Equal(t, topics.Prefix+table.Name.Name, files.Sources[0].Connector.Topic(table.Name))
			require.Equal(t, history && table.Name.Name == workload.Orders, table.History)
			require.True(t, table.Current)
			require.False(t, table.SoftDelete)
		}
	}
}
