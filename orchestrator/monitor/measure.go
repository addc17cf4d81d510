package monitor

import (
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
	NearBudget   Level = "near" // at least 70 % of it
	OverBudget   Level = "over"
)

const nearShare = 0.7

// WAL is what a slot makes its source keep.
type WAL struct {
	Retained int64   // bytes
	Budget   int64   // bytes; 0: none was set
	Share    float64 // of the budget; 0 without one
	Level    Level
	Lost     bool // the server has thrown the slot's log away: changes are missing
}

func wal(retained, budget int64) WAL {
	w := WAL{Retained: retained, Budget: budget, Level: WithinBudget}
	if budget <= 0 {
		return w
	}
	w.Share = float64(retained) / float64(budget)
	switch {
	case w.Share >= 1:
		w.Level = OverBudget
	case w.Share >= nearShare:
		w.Level = NearBudget
	}
	return w
}
