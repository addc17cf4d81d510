package monitor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

var now = time.Date(2026, 11, 29, 14, 2, 13, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func table(state catalog.State, fresh, heard time.Duration) registry.TableView {
	v := registry.TableView{
		Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, State: state,
		Config: registry.TableConfig{Tier: catalog.Tier1m, BronzeTable: "bronze.orders_cdc"},
	}
	if fresh >= 0 {
		v.FreshAt = ago(fresh)
	}
	if heard >= 0 {
		v.HeardAt = ago(heard)
	}
	return v
}

const never = time.Duration(-1)

func TestHealthIsHonest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		table  registry.TableView
		worker time.Duration // when it was heard of
		want   monitor.Health
	}{
		{"an idle table that is caught up", table(catalog.Streaming, 2*time.Second, time.Second), 0, monitor.Fresh},
		{"as old as the tier allows", table(catalog.Streaming, time.Minute, 0), 0, monitor.Fresh},
		{"older than the tier allows", table(catalog.Streaming, time.Minute+time.Millisecond, 0), 0, monitor.Late},
		{"lagging by its own word, caught up by the clock", table(catalog.Lagging, time.Second, 0), 0, monitor.Fresh},
		{"fresh a moment ago, but its worker is gone", table(catalog.Streaming, 16*time.Second, 16*time.Second), 16 * time.Second, monitor.Silent},
		{"quiet for a while, but its worker lives", table(catalog.Streaming, 20*time.Second, 20*time.Second), time.Second, monitor.Fresh},
		{"worker never registered, table news is recent", table(catalog.Streaming, time.Second, time.Second), never, monitor.Fresh},
		{"nobody said how fresh", table(catalog.Streaming, never, time.Second), 0, monitor.Late},
		{"the source's clock is ahead", table(catalog.Streaming, 0, 0), 0, monitor.Fresh},
		{"never started", table(catalog.Pending, never, never), never, monitor.Pending},
		{"pending and answered for", table(catalog.Pending, never, time.Second), 0, monitor.Pending},
		{"pending, but its worker is gone", table(catalog.Pending, never, time.Hour), time.Hour, monitor.Silent},
		{"snapshotting", table(catalog.Snapshotting, never, 0), 0, monitor.Snapshotting},
		{"snapshotting, but its worker is gone", table(catalog.Snapshotting, never, time.Minute), time.Minute, monitor.Silent},
		{"stopped stays stopped without a worker", table(catalog.Quarantined, time.Hour, time.Hour), time.Hour, monitor.Quarantined},
		{"a gap", table(catalog.Gap, time.Second, 0), 0, monitor.Gap},
		{"paused", table(catalog.Paused, time.Second, 0), 0, monitor.Paused},
		{"retired", table(catalog.Retired, time.Second, 0), 0, monitor.Retired},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &registry.Fleet{Now: now, Sources: []registry.SourceView{{Name: "shop"}}, Tables: []registry.TableView{c.table}}
			if c.worker != never {
				f.Sources[0].Worker = &registry.Worker{ID: "w", SeenAt: ago(c.worker)}
			}
			r := monitor.Judge(f)
			require.Equal(t, c.want, r.Tables[0].Health)
			require.Equal(t, map[monitor.Health]int{c.want: 1}, r.Summary.ByState)
			if c.want != monitor.Fresh {
				require.Zero(t, r.Summary.Within)
			}
		})
	}
}

func TestEveryStateHasAHealth(t *testing.T) {
	t.Parallel()
	for _, s := range []catalog.State{catalog.Pending, catalog.Snapshotting, catalog.Streaming, catalog.Lagging, catalog.Quarantined, catalog.Gap, catalog.Paused, catalog.Retired} {
		r := monitor.Judge(&registry.Fleet{Now: now, Tables: []registry.TableView{table(s, 0, 0)}})
		require.Contains(t, monitor.Healths(), r.Tables[0].Health, s)
	}
}

func TestFreshnessIsAPartOfTheTier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fresh  time.Duration
		within bool
		share  float64
	}{{never, false, 0}, {0, true, 0}, {-time.Hour, true, 0}, {30 * time.Second, true, 0.5}, {2 * time.Minute, false, 2}} {
		v := table(catalog.Streaming, 0, 0)
		v.FreshAt = ago(c.fresh)
		if c.fresh == never {
			v.FreshAt = time.Time{}
		}
		r := monitor.Judge(&registry.Fleet{Now: now, Tables: []registry.TableView{v}})
		f := r.Tables[0].Freshness
		require.Equal(t, c.within, f.Within())
		require.InDelta(t, c.share, f.Share(), 1e-9)
		require.GreaterOrEqual(t, f.Age, time.Duration(0))
	}
}

func TestRateIsOverTheLastMinute(t *testing.T) {
	t.Parallel()
	v := table(catalog.Streaming, 0, 0)
	// now is 14:02:13: the stretch that runs began at :10, six whole ones at 14:01:10.
	for _, s := range []struct {
		before  time.Duration
		changes int64
	}{{83 * time.Second, 1_000_000}, {63 * time.Second, 300}, {13 * time.Second, 300}, {3 * time.Second, 30}} {
		v.Samples = append(v.Samples, registry.Sample{At: ago(s.before), Changes: s.changes})
	}
	r := monitor.Judge(&registry.Fleet{Now: now, Tables: []registry.TableView{v, v}})
	require.InDelta(t, 10, r.Tables[0].Rate, 1e-9)
	require.InDelta(t, 20, r.Summary.Rate, 1e-9)
}

func TestProgressTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	start := ago(100 * time.Second).UnixMicro()
	for _, c := range []struct {
		name string
		in   catalog.SnapshotProgress
		want monitor.Progress
	}{
		{"half", catalog.SnapshotProgress{Rows: 500, Estimate: 1000, StartedAt: start}, monitor.Progress{Rows: 500, Estimate: 1000, Share: 0.5, Rate: 5, Left: 100 * time.Second}},
		{"no statistics", catalog.SnapshotProgress{Rows: 500, StartedAt: start}, monitor.Progress{Rows: 500, Rate: 5}},
		{"more than was estimated", catalog.SnapshotProgress{Rows: 5000, Estimate: 1000, StartedAt: start}, monitor.Progress{Rows: 5000, Estimate: 1000, Share: 0.99, Rate: 50}},
		{"not begun", catalog.SnapshotProgress{Estimate: 1000}, monitor.Progress{Estimate: 1000}},
		{"done", catalog.SnapshotProgress{Rows: 900, Estimate: 1000, Done: true, StartedAt: start}, monitor.Progress{Rows: 900, Estimate: 1000, Share: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := table(catalog.Snapshotting, never, 0)
			v.Snapshot = &c.in
			r := monitor.Judge(&registry.Fleet{Now: now, Tables: []registry.TableView{v}})
			require.Equal(t, &c.want, r.Tables[0].Progress)
		})
	}
}

func TestWALIsMeasuredAgainstItsBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retained, budget int64
		want             monitor.Level
		share            float64
	}{{0, 0, monitor.WithinBudget, 0}, {5, 0, monitor.WithinBudget, 0}, {69, 100, monitor.WithinBudget, 0.69}, {70, 100, monitor.NearBudget, 0.7}, {99, 100, monitor.NearBudget, 0.99}, {100, 100, monitor.OverBudget, 1}, {300, 100, monitor.OverBudget, 3}} {
		v := registry.SourceView{Name: "shop", WALBudget: c.budget, Log: &registry.SourceLog{SourceStatus: registry.SourceStatus{Retained: c.retained, SlotState: "lost"}}}
		r := monitor.Judge(&registry.Fleet{Now: now, Sources: []registry.SourceView{v}})
		require.Equal(t, c.want, r.Sources[0].WAL.Level)
		require.InDelta(t, c.share, r.Sources[0].WAL.Share, 1e-9)
		require.True(t, r.Sources[0].WAL.Lost)
	}
}

func TestTheStageThatALivingWorkerJudgedCounts(t *testing.T) {
	t.Parallel()
	v := registry.SourceView{
		Name: "shop", WALBudget: 100, NearBudget: 50, OnBudget: catalog.DropSlot, Worker: &registry.Worker{SeenAt: ago(time.Second)},
		Log: &registry.SourceLog{SourceStatus: registry.SourceStatus{Retained: 65, SlotState: "unreserved", Stage: catalog.OverBudget, HeldBy: "stopped table public.a"}},
	}
	judge := func() monitor.WAL {
		return monitor.Judge(&registry.Fleet{Now: now, Sources: []registry.SourceView{v}}).Sources[0].WAL
	}
	w := judge()
	require.Equal(t, monitor.OverBudget, w.Level)
	require.True(t, w.Danger)
	require.Equal(t, "stopped table public.a", w.HeldBy)
	require.Equal(t, "the slot is being dropped (on_wal_budget: drop)", w.Then)
	v.Worker.SeenAt = ago(time.Hour)
	require.Equal(t, monitor.NearBudget, judge().Level, "nobody judges any more: what was reported last is measured")
	require.Equal(t, "at the budget the slot is dropped", judge().Then)
	v.OnBudget = catalog.KeepSlot
	require.Equal(t, "the slot is kept: watch the source's disk", judge().Then)
	v.Log.Retained = 49
	require.Equal(t, monitor.WithinBudget, judge().Level)
	require.Empty(t, judge().Then)
}

func TestTheSummaryLeavesTheRetiredOutAndNamesTheWorst(t *testing.T) {
	t.Parallel()
	fresh, late, stopped, retired := table(catalog.Streaming, 10*time.Second, 0), table(catalog.Streaming, 90*time.Second, 0), table(catalog.Quarantined, time.Hour, 0), table(catalog.Retired, time.Hour, 0)
	slow := table(catalog.Streaming, 10*time.Minute, 0)
	slow.Config.Tier = catalog.Tier15m
	fresh.VerifiedThrough, late.VerifiedThrough = ago(time.Minute), ago(time.Hour)
	r := monitor.Judge(&registry.Fleet{Now: now, Tables: []registry.TableView{fresh, late, stopped, retired, slow}})
	s := r.Summary
	require.Equal(t, 4, s.Tables)
	require.Equal(t, 2, s.Within)
	require.Equal(t, 90*time.Second, s.Worst.Freshness.Age, "the largest share of its promise, not the largest age")
	require.Equal(t, ago(time.Hour), s.Verified)
	require.Equal(t, 2, s.Unverified)
	empty := monitor.Judge(&registry.Fleet{Now: now})
	require.Nil(t, empty.Summary.Worst)
	require.NotNil(t, empty.Document().Tables)
	require.NotNil(t, empty.SourcesDocument().Sources)
}
