package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/orchestrator/dashboard/chart"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// fleetPage is the first page, in words.
type fleetPage struct {
	Filter   fleetFilter
	Fragment string // where the script asks for the live part
	Clock    string
	Summary  []figure
	Sources  []sourceCard
	Chips    []chip
	Rows     []tableRow
	Total    int // tables before the filter
}

// fleetFilter is what the address asks for.
type fleetFilter struct {
	Health monitor.Health // empty: all
	Search string         // words that must all occur in a table's source, name, owner or note
}

func (f fleetFilter) href(path string) string {
	q := url.Values{}
	if f.Health != "" {
		q.Set("state", string(f.Health))
	}
	if f.Search != "" {
		q.Set("q", f.Search)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// figure is one number of the summary.
type figure struct {
	Value, Label, Class string
}

// chip is one filter by health.
type chip struct {
	Label, Href string
	Health      monitor.Health
	Count       int
	On          bool
}

// sourceCard is one source in the strip.
type sourceCard struct {
	Key, Name, Kind, Tables string
	Worker                  string
	Alive                   bool
	Slot                    string
	WAL                     string
	Note                    string // who holds the slot and what follows
	Level                   string // of the WAL: ok, near, over
	BarSVG                  string
}

func fleetPageOf(r *monitor.Report, f fleetFilter) fleetPage {
	p := fleetPage{
		Filter: f, Fragment: f.href("/fragments/fleet"), Clock: r.Now.UTC().Format("15:04:05") + " UTC",
		Summary: figuresOf(r), Total: len(r.Tables),
	}
	for i := range r.Sources {
		p.Sources = append(p.Sources, cardOf(&r.Sources[i], r.Now))
	}
	all := f
	all.Health = ""
	p.Chips = append(p.Chips, chip{Label: "all", Href: all.href("/"), Count: len(r.Tables), On: f.Health == ""})
	order := map[monitor.Health]int{}
	for i, h := range monitor.Healths() {
		order[h] = i
		if n := r.Summary.ByState[h]; n > 0 || f.Health == h {
			one := f
			one.Health = h
			p.Chips = append(p.Chips, chip{Label: string(h), Href: one.href("/"), Health: h, Count: n, On: f.Health == h})
		}
	}
	for i := range r.Tables {
		row := rowOf(&r.Tables[i], r.Now)
		if (f.Health == "" || f.Health == row.Health) && matches(&row, f.Search) {
			p.Rows = append(p.Rows, row)
		}
	}
	// What asks for attention comes first; within that nothing moves about.
	slices.SortStableFunc(p.Rows, func(a, b tableRow) int { return order[a.Health] - order[b.Health] })
	return p
}

func matches(r *tableRow, search string) bool {
	text := strings.ToLower(strings.Join([]string{r.Key, r.Owner, r.Note, r.Tier}, " "))
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func figuresOf(r *monitor.Report) []figure {
	s := &r.Summary
	within := figure{Value: fmt.Sprintf("%s of %s", human.Exact(int64(s.Within)), human.Exact(int64(s.Tables))), Label: "tables within their tier"}
	if s.Within < s.Tables {
		within.Class = "warn"
	}
	out := []figure{within, {Value: human.Rate(s.Rate), Label: "changes, last minute"}}
	worst := figure{Value: "–", Label: "oldest for its tier"}
	if s.Worst != nil {
		worst.Value, worst.Label = human.Span(s.Worst.Freshness.Age), fmt.Sprintf("of %s, oldest for its tier: %s", s.Worst.Config.Tier, s.Worst.Name.Name)
		if !s.Worst.Freshness.Within() {
			worst.Class = "warn"
		}
	}
	out = append(out, worst)
	stopped := s.ByState[monitor.Quarantined] + s.ByState[monitor.Gap]
	bad := figure{Value: human.Exact(int64(stopped)), Label: "stopped by an error or a gap"}
	if stopped > 0 {
		bad.Class = "bad"
	}
	out = append(out, bad)
	verified := figure{Value: human.Clock(s.Verified, r.Now), Label: "verified through, all tables"}
	switch {
	case s.Tables > 0 && s.Unverified == s.Tables:
		verified.Label = "no table verified yet"
	case s.Unverified > 0:
		verified.Label = fmt.Sprintf("verified through; %d not yet", s.Unverified)
	}
	return append(out, verified)
}

func cardOf(s *monitor.Source, now time.Time) sourceCard {
	c := sourceCard{
		Key: "source " + s.Name, Name: s.Name, Kind: string(s.Kind) + ", " + string(s.Capture), Tables: plural(s.Tables, "table"),
		Worker: "no worker yet", Slot: "slot unknown", WAL: "–", Level: string(monitor.WithinBudget), Alive: s.Alive,
	}
	if w := s.Worker; w != nil {
		c.Worker = fmt.Sprintf("worker %d, up %s", w.PID, human.Span(now.Sub(w.StartedAt)))
		if !s.Alive {
			c.Worker = fmt.Sprintf("worker %d silent, last heard %s", w.PID, human.Ago(w.SeenAt, now))
		}
	}
	l := s.Log
	if l == nil {
		c.BarSVG = chart.Bar(0, "idle", 120, 6)
		return c
	}
	c.Slot = "slot " + l.SlotState
	if l.SlotState == "" {
		c.Slot = "slot"
	}
	if !l.Active {
		c.Slot += ", not in use"
	}
	if age := now.Sub(l.UpdatedAt); age > monitor.SilentAfter {
		c.Slot += ", as of " + human.Ago(l.UpdatedAt, now)
	}
	c.Level = string(s.WAL.Level)
	if s.WAL.Lost || s.WAL.Missing || s.WAL.Danger {
		c.Level = string(monitor.OverBudget)
	}
	c.Note = walNote(&s.WAL)
	c.WAL = human.Bytes(s.WAL.Retained) + " WAL"
	if s.WAL.Budget > 0 {
		c.WAL = human.Bytes(s.WAL.Retained) + " of " + human.Bytes(s.WAL.Budget) + " WAL"
	}
	c.BarSVG = chart.Bar(s.WAL.Share, c.Level, 120, 6)
	return c
}

// walNote says who holds the slot and what follows; empty while all is well.
func walNote(w *monitor.WAL) string {
	var parts []string
	if w.Danger {
		parts = append(parts, "the server may take the log away at any moment")
	}
	if w.HeldBy != "" {
		parts = append(parts, "held by "+w.HeldBy)
	}
	if w.Then != "" {
		parts = append(parts, w.Then)
	}
	return strings.Join(parts, "; ")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return human.Exact(int64(n)) + " " + word + "s"
}
