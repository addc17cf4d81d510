package worker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// A worker that comes back to a backlog near the budget saves it first, and folds when
// bronze has it; in the end everything is equal and the slot within its budget.
func TestNearTheBudgetCaptureComesBeforeFolding(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_wal_size": "515MB"})), "", map[string]string{"public.quiet.yaml": quietFile})
	r.limits.BatchRows = 3000
	r.source.WALBudget, r.source.NearBudget = 40*megabyte, 30
	r.sync()
	r.exec("CREATE TABLE quiet (id int PRIMARY KEY, v text)")
	r.start()
	r.landed()
	r.stop()
	for i := range 30 {
		r.exec(fmt.Sprintf("INSERT INTO quiet SELECT %d + g, repeat(md5(g::text), 20) FROM generate_series(1, 1000) g", 1000*i))
	}
	require.Greater(t, r.behind(), int64(20*megabyte))
	r.start()
	r.landed()
	r.requireEqual()
	require.Eventually(t, func() bool { return r.log().Stage == catalog.WithinBudget }, time.Minute, 50*time.Millisecond, "once the server has let its log go")
	r.stop()

	d, err := r.registry.Table(t.Context(), "shop", "public.quiet")
	require.NoError(t, err)
	var saved, folded, before int
	for _, b := range slices.Backward(d.Batches) { // the oldest first
		if b.Creates == 0 && b.Current.Rows == 0 {
			continue
		}
		saved += b.Bronze.Rows
		if b.Current.Rows > 0 && folded == 0 {
			before = saved
		}
		folded += b.Current.Rows
	}
	require.Equal(t, 30_000, saved)
	require.Equal(t, 30_000, folded)
	t.Logf("%d of 30,000 rows were in bronze when folding began", before)
	require.Greater(t, before, 25_000)
	require.Equal(t, []string{"ok", "near"}, r.stages())
}

// stages are the stages that the source has come to, the newest first.
func (r *rig) stages() (out []string) {
	r.t.Helper()
	events, err := r.registry.SourceEvents(r.t.Context(), r.source.Name)
	require.NoError(r.t, err)
	for _, e := range events {
		if e.Kind == registry.BudgetStaged {
			var detail struct{ To string }
			require.NoError(r.t, json.Unmarshal(e.Detail, &detail))
			out = append(out, detail.To)
		}
	}
	return out
}

// held is a source whose slot a stopped table holds beyond its budget.
func held(t *testing.T, size string, on catalog.OnBudget) *rig {
	t.Helper()
	r := newRigOn(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_wal_size": size})), "", map[string]string{
		"public.quiet.yaml": quietFile, "public.sg.yaml": sgFile,
	})
	r.source.WALBudget, r.source.OnBudget = 8*megabyte, on
	r.limits.DropAfter = time.Second
	r.sync()
	r.exec("CREATE TABLE quiet (id int PRIMARY KEY, v text); CREATE TABLE sg (id int PRIMARY KEY, v text)")
	r.exec("INSERT INTO sg VALUES (1, 'before')")
	r.start()
	r.landed()
	r.exec("ALTER TABLE quiet ADD COLUMN w text")
	r.exec("INSERT INTO quiet VALUES (1, 'x', 'y')")
	r.wait(func(v *registry.TableView) bool { return v.Name.Name != "quiet" || v.State == catalog.Quarantined })
	noise(t, r.conn)
	return r
}

func TestAtTheBudgetASlotIsKeptAndSaidToBe(t *testing.T) {
	t.Parallel()
	r := held(t, "516MB", catalog.KeepSlot)
	require.Eventually(t, func() bool { return r.log().Stage == catalog.OverBudget }, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, "stopped table public.quiet", r.log().HeldBy)
	r.exec("INSERT INTO sg VALUES (2, 'goes on')")
	r.wait(func(v *registry.TableView) bool {
		return v.State == catalog.Quarantined || v.CurrentThrough >= r.endOfLog()-megabyte
	})
	require.Eventually(t, func() bool { _, rows := r.rows("public.sg", catalog.Current); return len(rows) == 2 }, 30*time.Second, 100*time.Millisecond, "what is no backlog puts no folding off")
	require.Equal(t, 1, r.slotCount())

	// Mended, the slot moves and the stage is left.
	r.stop()
	r.exec("ALTER TABLE quiet DROP COLUMN w")
	r.lakeCfg.Warehouse, r.lakeCfg.Catalog = r.freshLake()
	r.exec("SELECT pg_drop_replication_slot('" + r.source.Slot + "')")
	r.start()
	require.Eventually(t, func() bool { return r.log().Stage == catalog.WithinBudget }, 60*time.Second, 50*time.Millisecond)
	require.Contains(t, r.stages(), "over")
}

func TestAtTheBudgetASlotIsDroppedWhereTheSourceSaysSo(t *testing.T) {
	t.Parallel()
	r := held(t, "517MB", catalog.DropSlot)
	f := r.gaps()
	require.Equal(t, catalog.CodeSourceBudget, f.Code)
	require.Regexp(t, "^changes are missing: slot "+r.source.Slot+` was dropped when it retained \d+ MB of log, at its budget of 8 MB, as on_wal_budget: drop says$`, f.Message)
	require.Contains(t, f.Hint, "stopped table public.quiet")
	require.Zero(t, r.slotCount())
	require.Eventually(t, func() bool { return r.log().SlotState == "missing" }, 20*time.Second, 50*time.Millisecond)
	require.Empty(t, r.done, "the worker goes on, and can say why")
	r.exec(inTheGap)
	r.untouched()
	r.stop()

	r.start() // the reason outlives the worker, and the slot is not made again
	r.wait(func(v *registry.TableView) bool { return v.State == catalog.Gap })
	require.Equal(t, f.Message, r.state("public.sg").Fault.Message)
	require.Zero(t, r.slotCount())
	events, err := r.registry.SourceEvents(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, registry.SlotDropped, events[0].Kind)
	require.Contains(t, string(events[0].Detail), `"heldBy": "stopped table public.quiet"`)
}
