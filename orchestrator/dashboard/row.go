package dashboard

import (
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/dashboard/chart"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// tableRow is one row of the fleet, in words.
type tableRow struct {
	Key, Href           string
	Health              monitor.Health
	Sign                string // a mark for those who do not see colours
	Source, Name        string
	Note, Hint          string // under the name; Hint only for what waits for a person
	Age, Tier           string
	BarSVG, SparkSVG    string
	Rows, RowsTitle     string
	RowsUnit            string // what Rows counts, when it is not rows of current
	Rate                string
	LastCommit          string
	Verified, VerifiedT string
	Unequal             bool // the newest comparison found differences
	Schema              string
	Owner               string
}

func rowOf(t *monitor.Table, now time.Time) tableRow {
	r := tableRow{
		Key: t.ID(), Href: tableHref(t.Source, t.Name), Health: t.Health, Sign: sign(t.Health),
		Source: t.Source, Name: t.Name.String(), Owner: t.Config.Owner,
		Age: age(t.Freshness), Tier: string(t.Config.Tier), Rate: human.Rate(t.Rate),
		LastCommit: human.Ago(t.Totals.LastBatchAt, now), Schema: "–",
		BarSVG:   chart.Bar(t.Freshness.Share(), barClass(t), 54, 5),
		SparkSVG: sparkline(t.Samples, t.Freshness.Bound, now, 10*time.Minute, registry.SampleEvery, 96, 22),
	}
	r.Note, r.Hint = t.Note(now)
	if t.SchemaVersion > 0 {
		r.Schema = fmt.Sprintf("v%d", t.SchemaVersion)
	}
	r.Rows, r.RowsTitle = human.Count(t.Totals.CurrentRows), human.Exact(t.Totals.CurrentRows)+" rows in "+t.Config.CurrentTable+", "+human.Exact(t.Totals.BronzeRows)+" changes in bronze, as of the last commit"
	if !t.Config.Current {
		r.RowsUnit = "changes"
		r.Rows, r.RowsTitle = human.Count(t.Totals.BronzeRows), human.Exact(t.Totals.BronzeRows)+" changes in bronze, as of the last commit"
	}
	if t.Health == monitor.Retired { // it promises nothing any more
		r.Age, r.Tier, r.BarSVG = "–", "", chart.Bar(0, "idle", 54, 5)
	}
	r.Verified, r.VerifiedT = human.Clock(t.VerifiedThrough, now), "never compared with its source"
	if !t.VerifiedThrough.IsZero() {
		r.VerifiedT = "compared with its source without difference at " + t.VerifiedThrough.UTC().Format(time.RFC3339)
	}
	if t.Verified != nil && t.Verified.Differing > 0 {
		r.Unequal, r.VerifiedT = true, human.Exact(t.Verified.Differing)+" rows differed at "+t.Verified.At.UTC().Format(time.RFC3339)
	}
	return r
}

func age(f monitor.Freshness) string {
	if !f.Known {
		return "unknown"
	}
	return human.Span(f.Age)
}

func barClass(t *monitor.Table) string {
	switch {
	case !t.Freshness.Known || t.Health == monitor.Snapshotting || t.Health == monitor.Pending:
		return "idle"
	case !t.Freshness.Within():
		return "over"
	case t.Health != monitor.Fresh || t.Freshness.Share() > 0.8:
		return "near"
	}
	return "ok"
}

// sign marks a health where its colour is not seen.
func sign(h monitor.Health) string {
	switch h {
	case monitor.Fresh:
		return "●"
	case monitor.Late:
		return "▲"
	case monitor.Silent:
		return "?"
	case monitor.Pending:
		return "○"
	case monitor.Snapshotting:
		return "◔"
	case monitor.Quarantined:
		return "■"
	case monitor.Gap:
		return "✕"
	case monitor.Paused:
		return "‖"
	case monitor.Retired:
		return "–"
	}
	return ""
}

// sparkline draws the worst age of each step of the window, a gap where nobody said.
func sparkline(samples []registry.Sample, bound time.Duration, now time.Time, window, step time.Duration, width, height int) string {
	points := make([]float64, int(window/step))
	for i := range points {
		points[i] = math.NaN()
	}
	end := now.Truncate(step).Add(step) // the step that runs is the last
	worst := -1.0
	for _, s := range samples {
		i := len(points) - 1 - int(end.Add(-step).Sub(s.At.Truncate(step))/step)
		if i < 0 || i >= len(points) || s.Age < 0 {
			continue
		}
		if v := s.Age.Seconds(); math.IsNaN(points[i]) || v > points[i] {
			points[i] = v
		}
		worst = max(worst, s.Age.Seconds())
	}
	label := "freshness over the last " + human.Span(window) + ": nobody reported"
	if worst >= 0 {
		label = fmt.Sprintf("freshness over the last %s: worst %s of %s", human.Span(window),
			human.Span(time.Duration(worst*float64(time.Second))), human.Span(bound))
	}
	return chart.Sparkline(points, bound.Seconds(), width, height, label)
}

func tableHref(source string, name catalog.TableName) string {
	return "/tables/" + url.PathEscape(source) + "/" + url.PathEscape(name.String())
}

func count(n int) string { return human.Exact(int64(n)) }
