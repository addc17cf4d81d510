package monitor

import (
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// Report is the verdict on the whole fleet at one moment.
type Report struct {
	Now     time.Time
	Sources []Source
	Tables  []Table // as in the registry: by source, then name
	Summary Summary
}

// Table is one table and what to think of it.
type Table struct {
	registry.TableView

	Health    Health
	Freshness Freshness
	// Rate is changes a second over the last minute; 0 when nobody answers.
	Rate     float64
	Progress *Progress // while existing rows are read, else nil
}

// Source is one source and what to think of it.
type Source struct {
	registry.SourceView

	Tables int
	WAL    WAL
	Alive  bool // its worker was heard of within SilentAfter
}

// Summary counts what the top of the page says.
type Summary struct {
	Tables  int // that promise something: all but the retired
	Within  int // of them: fresh
	ByState map[Health]int
	Rate    float64
	// Worst is the table that uses the largest share of its tier's bound, among those
	// with a known age and not stopped; nil when there is none.
	Worst *Table
	// Verified is the oldest of the times through which tables were compared without
	// difference; zero when no table was. Unverified counts those never compared so.
	Verified   time.Time
	Unverified int
}

// Judge turns what the registry knows into verdicts. The report shares the fleet's
// values.
func Judge(f *registry.Fleet) *Report {
	r := &Report{Now: f.Now, Summary: Summary{ByState: map[Health]int{}}}
	index := map[string]int{}
	for i, s := range f.Sources {
		index[s.Name] = i
		r.Sources = append(r.Sources, judgeSource(s, f.Now))
	}
	for i := range f.Tables {
		v := &f.Tables[i]
		var worker *registry.Worker
		if s, ok := index[v.Source]; ok {
			r.Sources[s].Tables++
			worker = r.Sources[s].Worker
		}
		r.Tables = append(r.Tables, judgeTable(v, worker, f.Now))
	}
	for i := range r.Tables {
		r.Summary.add(&r.Tables[i])
	}
	return r
}

func judgeTable(v *registry.TableView, worker *registry.Worker, now time.Time) Table {
	t := Table{TableView: *v, Freshness: freshness(v, now), Rate: rate(v.Samples, now)}
	t.Health = health(v, t.Freshness, worker, now)
	if v.State == catalog.Snapshotting && v.Snapshot != nil {
		p := progress(v.Snapshot, now)
		t.Progress = &p
	}
	return t
}

func judgeSource(v registry.SourceView, now time.Time) Source {
	s := Source{SourceView: v, Alive: v.Worker != nil && now.Sub(v.Worker.SeenAt) <= SilentAfter}
	if v.Log != nil {
		s.WAL = wal(v.Log, v.WALBudget, v.NearBudget, v.OnBudget, s.Alive)
	}
	return s
}

func (s *Summary) add(t *Table) {
	s.ByState[t.Health]++
	if t.Health == Retired {
		return
	}
	s.Tables++
	s.Rate += t.Rate
	if t.Health == Fresh {
		s.Within++
	}
	if t.Freshness.Known && !t.State.Stopped() && (s.Worst == nil || t.Freshness.Share() > s.Worst.Freshness.Share()) {
		s.Worst = t
	}
	switch {
	case t.VerifiedThrough.IsZero():
		s.Unverified++
	case s.Verified.IsZero() || t.VerifiedThrough.Before(s.Verified):
		s.Verified = t.VerifiedThrough
	}
}
