package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/bench/tree"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
)

// report is what the command writes.
type report struct {
	Scale     float64 `json:"scale"`
	Seed      uint64  `json:"seed"`
	BatchRows int     `json:"batch_rows"`
	MemoryMiB int     `json:"memory_mib"` // what Lakeweir was told to take
	History   bool    `json:"scd2"`
	CPUs      int     `json:"cpus"`
	Events    int64   `json:"events"`

	lakeState
	RowsDiffering int64            `json:"rows_differing"`
	Saves         map[string]saves `json:"saves"`
	cost

	// Peer and the ratios, the peer's figures by ours, are nil when it was left out.
	CPURatio  *float64 `json:"cpu_ratio,omitempty"`
	WallRatio *float64 `json:"wall_ratio,omitempty"`
	*peerCost

	Crash    *crash            `json:"crash,omitempty"`
	Versions map[string]string `json:"versions"`
}

// cost is what a run took.
type cost struct {
	CPU     float64 `json:"cpu_s"`
	Wall    float64 `json:"wall_s"`    // from the start to the last commit
	Process float64 `json:"process_s"` // from the start to the end of the process
	RSS     float64 `json:"peak_rss_mib"`
}

type peerCost struct {
	RowsDiffering int64   `json:"peer_rows_differing"`
	CPU           float64 `json:"peer_cpu_s"`
	Wall          float64 `json:"peer_wall_s"`
	Process       float64 `json:"peer_process_s"`
	RSS           float64 `json:"peer_peak_rss_mib"`
}

// lakeState is what a lake of Lakeweir's holds.
type lakeState struct {
	Rows         map[string]int64 `json:"rows"` // of current, and versions
	BronzeEvents map[string]int64 `json:"bronze_events"`
	// From bronze alone: the orders that were deleted at the source, and what they were
	// worth, in minor units by currency.
	HardDeleted  int64            `json:"hard_deleted_orders"`
	DeletedWorth map[string]int64 `json:"hard_deleted_worth"`
}

// crash is the run that was killed.
type crash struct {
	BatchesAtKill map[string]int64 `json:"bronze_batches_at_kill"`
	EventsAtKill  map[string]int64 `json:"bronze_events_at_kill"`
	lakeState
	RowsDiffering int64   `json:"rows_differing"`
	Process       float64 `json:"process_s"` // both processes
}

func costOf(f tree.Figures, began time.Time, found verify.Result) cost {
	last := int64(0)
	for _, t := range found.Tables {
		last = max(last, t.WrittenMS)
	}
	return cost{
		CPU: tenths(f.CPU.Seconds()), Wall: tenths(time.UnixMilli(last).Sub(began).Seconds()),
		Process: tenths(f.Wall.Seconds()), RSS: math.Round(float64(f.PeakRSS) / (1 << 20)),
	}
}

// against sets the peer's figures and how many times ours they are.
func (r *report) against(peer cost, differing int64) {
	r.peerCost = &peerCost{RowsDiffering: differing, CPU: peer.CPU, Wall: peer.Wall, Process: peer.Process, RSS: peer.RSS}
	r.CPURatio, r.WallRatio = ratio(peer.CPU, r.cost.CPU), ratio(peer.Wall, r.cost.Wall)
}

func ratio(peer, ours float64) *float64 {
	if ours <= 0 {
		return nil
	}
	n := math.Round(peer/ours*100) / 100
	return &n
}

func tenths(s float64) float64 { return math.Round(s*10) / 10 }

func stateOf(found verify.Result) lakeState {
	s := lakeState{Rows: map[string]int64{}, BronzeEvents: map[string]int64{}}
	for name, t := range found.Tables {
		s.Rows[name] = t.Rows
	}
	for name, log := range found.Logs {
		s.BronzeEvents[name] = log.Rows
	}
	s.HardDeleted, s.DeletedWorth = found.Logs[workload.Orders].Deleted, found.Logs[workload.Orders].Worth
	return s
}

// wrong lists what a lake shows that the workload does not have; log says that there
// is a bronze.
func wrong(whose string, found verify.Result, o *workload.Outcome, log bool) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, whose+": "+fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(found.Tables)) {
		t := found.Tables[name]
		if t.Differing != 0 {
			add("%d rows of %s differ, such as %s", t.Differing, name, strings.Join(t.Examples, "; "))
		}
	}
	for _, table := range workload.Tables() {
		if want := int64(o.Live(table)); found.Tables[table].Rows != want {
			add("%s has %d rows, not %d", table, found.Tables[table].Rows, want)
		}
		if !log {
			continue
		}
		l, total := found.Logs[table], o.Total(table)
		if !maps.Equal(l.Ops, o.Events[table]) {
			add("bronze of %s has the events %v, not %v", table, l.Ops, o.Events[table])
		}
		if l.Rows != total || l.Offsets != total || l.LastOffset != total-1 {
			add("bronze of %s has %d events of %d offsets up to %d, not each of %d once", table, l.Rows, l.Offsets, l.LastOffset, total)
		}
	}
	if !log {
		return out
	}
	orders := found.Logs[workload.Orders]
	if want := o.Events[workload.Orders]["d"]; orders.Deleted != want {
		add("bronze tells of %d hard-deleted orders, not %d", orders.Deleted, want)
	}
	if !maps.Equal(orders.Worth, o.DeletedWorth) {
		add("bronze tells that the hard-deleted orders were worth %v, not %v", orders.Worth, o.DeletedWorth)
	}
	return out
}

// print writes the figures for people.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d events, batches of %d, format 3, bronze and current", r.Events, r.BatchRows)
	if r.History {
		fmt.Fprint(w, ", history of orders")
	}
	fmt.Fprintf(w, "; %d CPUs\n\n%-28s %12s", r.CPUs, "", "lakeweir")
	if r.peerCost != nil {
		fmt.Fprintf(w, " %12s %8s", "spark", "ratio")
	}
	fmt.Fprintln(w)
	line := func(name string, ours, peer float64, digits int) {
		fmt.Fprintf(w, "%-28s %12.*f", name, digits, ours)
		if r.peerCost != nil {
			fmt.Fprintf(w, " %12.*f", digits, peer)
			if n := ratio(peer, ours); n != nil {
				fmt.Fprintf(w, " %8.2f", *n)
			}
		}
		fmt.Fprintln(w)
	}
	var p peerCost
	if r.peerCost != nil {
		p = *r.peerCost
	}
	line("CPU s", r.cost.CPU, p.CPU, 1)
	line("wall s, to the last commit", r.cost.Wall, p.Wall, 1)
	line("wall s, whole process", r.cost.Process, p.Process, 1)
	line("peak RSS MiB", r.cost.RSS, p.RSS, 0)
	line("rows differing", float64(r.RowsDiffering), float64(p.RowsDiffering), 0)
	fmt.Fprintln(w)
	r.lakeState.print(w, "lakeweir")
	if c := r.Crash; c != nil {
		c.lakeState.print(w, fmt.Sprintf("killed with %d events in bronze, %d rows differ", sum(c.EventsAtKill), c.RowsDiffering))
	}
}

func (s lakeState) print(w io.Writer, whose string) {
	fmt.Fprintf(w, "%s\n  rows %s\n  bronze %s events; %d hard-deleted orders, worth %s\n", whose, listed(s.Rows), listed(s.BronzeEvents), s.HardDeleted, listed(s.DeletedWorth))
}

func listed(m map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}
