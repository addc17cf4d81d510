package monitor

import (
	"fmt"
	"time"

	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// Note says in one line how a table is, where that is not plain, and what to do when
// somebody must.
func (t *Table) Note(now time.Time) (text, hint string) {
	switch t.Health {
	case Quarantined, Gap, Paused:
		if t.Fault != nil {
			return t.Fault.Message, t.Fault.Hint
		}
		return "since " + human.Clock(t.Since, now), ""
	case Snapshotting:
		return t.Progress.Line(), ""
	case Silent:
		if t.HeardAt.IsZero() {
			return "no word of a worker yet", silentHint
		}
		return "no word of its worker for " + human.Span(now.Sub(t.HeardAt)), silentHint
	case Pending:
		return "nothing read yet", ""
	case Late:
		switch {
		case !t.Freshness.Known:
			return "caught up to nobody knows where yet", ""
		case t.CurrentThrough != 0 && t.CurrentThrough < t.BronzeThrough, t.HistoryThrough != 0 && t.HistoryThrough < t.BronzeThrough:
			return "silver is behind bronze", ""
		}
		return "the worker is behind the source", ""
	case Fresh, Retired:
	}
	switch {
	case !t.InFiles:
		return "no file names it any more", ""
	case len(t.Config.PrimaryKey) == 0:
		return "no key: bronze only", ""
	}
	return "", ""
}

// silentHint also fits a worker that runs and cannot reach the registry.
const silentHint = "start its worker: lakeweir run DIR; if it runs, see its log"

// Line says how far the reading is; p may be nil.
func (p *Progress) Line() string {
	if p == nil {
		return "reading existing rows"
	}
	s := human.Count(p.Rows) + " rows"
	if p.Estimate > 0 {
		s = fmt.Sprintf("%.0f %% · %s of %s rows", p.Share*100, human.Count(p.Rows), human.Count(max(p.Estimate, p.Rows)))
	}
	if p.Rate > 0 {
		s += " · " + human.Rate(p.Rate)
	}
	if p.Left > 0 {
		s += " · " + human.Span(p.Left) + " left"
	}
	return s
}
