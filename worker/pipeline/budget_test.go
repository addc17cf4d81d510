package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestABudgetHasStagesThatDoNotFlap(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type step struct {
		retained, unsaved int64
		at                int // seconds
		stage             catalog.BudgetStage
		first, drop       bool
	}
	const ok, near, over = catalog.WithinBudget, catalog.NearBudget, catalog.OverBudget
	for name, c := range map[string]struct {
		budget budget
		steps  []step
	}{
		"a backlog is captured first until it is small": {budget{bytes: 1000, near: 70}, []step{
			{699, 699, 0, ok, false, false},
			{700, 700, 1, near, true, false},
			{690, 90, 2, near, true, false},
			{690, 21, 3, near, true, false},
			{690, 20, 4, near, false, false},
			{690, 100, 5, near, false, false},
			{690, 101, 6, near, true, false},
			{601, 101, 7, near, true, false},
			{600, 101, 8, ok, false, false},
			{650, 500, 9, ok, false, false},
		}},
		"what is no backlog of ours stops no folding": {budget{bytes: 1000, near: 70}, []step{
			{5000, 0, 0, over, false, false},
			{5000, 100, 3600, over, false, false},
		}},
		"at the budget a slot is dropped once it has stayed there": {budget{bytes: 1000, near: 70, drop: true, grace: 30 * time.Second}, []step{
			{1000, 0, 0, over, false, false},
			{901, 0, 29, over, false, false},
			{900, 0, 29, near, false, false},
			{1000, 0, 40, over, false, false},
			{1000, 0, 69, over, false, false},
			{901, 0, 70, over, false, true},
		}},
		"a slot that is kept is kept": {budget{bytes: 1000, near: 70, grace: 30 * time.Second}, []step{
			{1000, 0, 0, over, false, false},
			{9000, 0, 900, over, false, false},
			{0, 0, 901, ok, false, false},
		}},
		"without a budget nothing is near": {budget{near: 70, drop: true}, []step{{1 << 60, 1 << 60, 0, ok, false, false}}},
		"a budget of many bytes does not overflow": {budget{bytes: 1<<63 - 1, near: 70}, []step{
			{1 << 62, 0, 0, ok, false, false},
			{1<<63 - 1, 0, 0, over, false, false},
		}},
	} {
		var now strain
		for i, s := range c.steps {
			now = c.budget.decide(now, pressure{retained: s.retained, unsaved: s.unsaved, now: began.Add(time.Duration(s.at) * time.Second)})
			require.Equal(t, []any{s.stage, s.first, s.drop}, []any{now.stage, now.captureFirst, now.drop}, "%s, step %d", name, i)
		}
	}
}

func TestWhatHoldsASlotIsSaidInWords(t *testing.T) {
	t.Parallel()
	const mb = catalog.LSN(1 << 20)
	run := func(name string, change func(*tableRun)) *tableRun {
		r := &tableRun{table: &catalog.Table{Name: catalog.ParseTableName(name)}, state: catalog.Streaming}
		if change != nil {
			change(r)
		}
		return r
	}
	stopped := func(r *tableRun) { r.state, r.holds = catalog.Quarantined, true }
	for _, c := range []struct {
		tables  []*tableRun
		status  SourceStatus
		through catalog.LSN
		want    string
	}{
		{[]*tableRun{run("a", nil)}, SourceStatus{End: 100 * mb, Confirmed: 95 * mb, Retained: 5 << 20}, 100 * mb, ""},
		{[]*tableRun{run("a", stopped), run("b", nil)}, SourceStatus{End: 100 * mb, Retained: 5 << 20}, 100 * mb, "stopped table public.a"},
		{[]*tableRun{run("a", stopped), run("b", stopped), run("c", stopped), run("d", stopped), run("e", stopped)}, SourceStatus{}, 0, "stopped tables public.a, public.b, public.c and 2 more"},
		{[]*tableRun{run("a", func(r *tableRun) { r.state = catalog.Gap })}, SourceStatus{End: 100 * mb, Confirmed: 99 * mb, Retained: 50 << 20}, 100 * mb, "a transaction that is or was open at the source"},
		{[]*tableRun{run("a", nil)}, SourceStatus{End: 100 * mb, Confirmed: 30 * mb, Retained: 70 << 20}, 40 * mb, "a backlog of 60 MB that is being read"},
		{[]*tableRun{run("a", nil)}, SourceStatus{End: 100 * mb, Confirmed: 30 * mb, Retained: 70 << 20}, 99 * mb, "changes that are being saved"},
		{[]*tableRun{run("a", stopped)}, SourceStatus{SlotState: "missing"}, 0, ""},
	} {
		require.Equal(t, c.want, holder(c.tables, c.status, c.through))
	}
}

func TestWhatHoldsAConnectorsSlotIsSaidInWords(t *testing.T) {
	t.Parallel()
	const mb = catalog.LSN(1 << 20)
	for _, c := range []struct {
		status SourceStatus
		want   string
	}{
		{SourceStatus{End: 100 * mb, Confirmed: 95 * mb, Retained: 5 << 20}, ""},
		{SourceStatus{End: 100 * mb, Confirmed: 30 * mb, Retained: 70 << 20}, "connector shop, which is not reading it"},
		{SourceStatus{End: 100 * mb, Confirmed: 30 * mb, Retained: 70 << 20, Active: true}, "what connector shop has not confirmed"},
		{SourceStatus{End: 100 * mb, Confirmed: 99 * mb, Retained: 70 << 20, Active: true}, "a transaction that is or was open at the source"},
		{SourceStatus{End: 100 * mb, SlotState: "missing"}, ""},
		{SourceStatus{End: 100 * mb, Retained: 100 << 20, SlotState: "lost"}, ""},
	} {
		require.Equal(t, c.want, holderElsewhere("connector shop", c.status))
	}
}
