package monitor

import (
	"cmp"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// rate is changes a second over about the last minute. Samples are whole stretches, so
// the minute is the last six that are over, and the one that runs.
func rate(samples []registry.Sample, now time.Time) float64 {
	running := now.Truncate(registry.SampleEvery)
	from := running.Add(-time.Minute.Truncate(registry.SampleEvery))
	var changes int64
	for _, s := range samples {
		if !s.At.Before(from) {
			changes += s.Changes
		}
	}
	return float64(changes) / now.Sub(from).Seconds()
}

// Progress is how far the reading of existing rows has come.
type Progress struct {
	Rows     int64
	Estimate int64         // of the whole; 0 when the source has no statistics
	Share    float64       // of the estimate, at most 0.99 until it is done; 0 when unknown
	Rate     float64       // rows a second since it began
	Left     time.Duration // at that rate; 0 when unknown
}

func progress(p *catalog.SnapshotProgress, now time.Time) Progress {
	out := Progress{Rows: p.Rows, Estimate: p.Estimate}
	if p.Estimate > 0 {
		// An estimate may be too low: it is not done before it is done.
		out.Share = min(0.99, float64(p.Rows)/float64(p.Estimate))
	}
	if p.Done {
		out.Share = 1
		return out
	}
	if took := now.Sub(time.UnixMicro(p.StartedAt)); p.StartedAt > 0 && took > 0 {
		out.Rate = float64(p.Rows) / took.Seconds()
	}
	if left := p.Estimate - p.Rows; left > 0 && out.Rate > 0 {
		out.Left = time.Duration(float64(left) / out.Rate * float64(time.Second))
	}
	return out
}

// Level is how near a slot's retained log is to its budget.
type Level string

// The levels.
const (
	WithinBudget Level = "ok"
	NearBudget   Level = "near" // at the source's wal_budget_near or above
	OverBudget   Level = "over"
)

const defaultNear = 70 // percent, of a source whose file was read before the key existed

// WAL is what a slot makes its source keep.
type WAL struct {
	Retained int64   // bytes
	Budget   int64   // bytes; 0: none was set
	Share    float64 // of the budget; 0 without one
	Level    Level
	Lost     bool // the server has thrown the slot's log away: changes are missing
	Missing  bool // the source has no slot of that name: it was dropped, or given up
	Danger   bool // the server may take the log away at any moment (wal_status unreserved)
	HeldBy   string
	// Then says what happens at the budget; empty while it is far.
	Then string
}

// wal judges a slot. The worker's stage counts while it is alive, since it is left at a
// lower mark than it is entered.
func wal(l *registry.SourceLog, budget int64, near int, on catalog.OnBudget, alive bool) WAL {
	w := WAL{
		Retained: l.Retained, Budget: budget, Level: WithinBudget, HeldBy: l.HeldBy,
		Lost: l.SlotState == "lost", Missing: l.SlotState == "missing", Danger: l.SlotState == "unreserved",
	}
	w.judge(cmp.Or(near, defaultNear))
	if alive && budget > 0 && l.Stage != "" {
		w.Level = Level(l.Stage)
	}
	switch {
	case w.Level == WithinBudget:
	case on == catalog.DropSlot && w.Level == OverBudget:
		w.Then = "the slot is being dropped (on_wal_budget: drop)"
	case on == catalog.DropSlot:
		w.Then = "at the budget the slot is dropped"
	default:
		w.Then = "the slot is kept: watch the source's disk"
	}
	return w
}

func (w *WAL) judge(near int) {
	retained, budget := w.Retained, w.Budget
	if budget <= 0 {
		return
	}
	w.Share = float64(retained) / float64(budget)
	switch {
	case w.Share >= 1:
		w.Level = OverBudget
	case w.Share*100 >= float64(near):
		w.Level = NearBudget
	}
}
