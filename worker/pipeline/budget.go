package pipeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// budget is what a source may retain for us, and what then.
type budget struct {
	bytes int64 // 0: no budget
	near  int   // percent of bytes
	drop  bool
	grace time.Duration // how long the slot stays at the budget before it is dropped
}

func budgetOf(s *catalog.Source, grace time.Duration) budget {
	b := budget{bytes: s.WALBudget, near: s.NearBudget, drop: s.OnBudget == catalog.DropSlot, grace: grace}
	if b.near <= 0 || b.near >= 100 {
		b.near = 70
	}
	return b
}

// pressure is what is known of a source's log at one moment.
type pressure struct {
	retained int64 // by the slot
	unsaved  int64 // of it, what tables that run have not got into bronze
	now      time.Time
}

// strain is what the budget makes of the pressure; the zero value is that of a source
// nothing is known of.
type strain struct {
	stage catalog.BudgetStage
	since time.Time // when the stage began
	// captureFirst says that nothing is folded until bronze has caught up.
	captureFirst bool
	// drop says that the slot is to be given up.
	drop bool
}

// decide turns pressure into the next strain. A stage is left a tenth of the budget
// below where it is entered, and folding stops at a backlog of a tenth of the budget
// and goes on at a fiftieth, so that neither flaps. What holds the slot without being
// a backlog of ours (a stopped table, a transaction left open) stops no folding: that
// would not free a byte.
func (b budget) decide(before strain, p pressure) strain {
	next := strain{stage: catalog.WithinBudget, since: before.since}
	if b.bytes > 0 {
		near, tenth := b.bytes/100*int64(b.near)+b.bytes%100*int64(b.near)/100, b.bytes/10
		switch {
		case p.retained >= b.bytes, before.stage == catalog.OverBudget && p.retained > b.bytes-tenth:
			next.stage = catalog.OverBudget
		case p.retained >= near, before.stage != catalog.WithinBudget && before.stage != "" && p.retained > near-tenth:
			next.stage = catalog.NearBudget
		}
		mark := tenth
		if before.captureFirst {
			mark = b.bytes / 50
		}
		next.captureFirst = next.stage != catalog.WithinBudget && p.unsaved > mark
	}
	if next.stage != before.stage {
		next.since = p.now
	}
	next.drop = b.drop && next.stage == catalog.OverBudget && p.now.Sub(next.since) >= b.grace
	return next
}

// little is how much log a slot retains anyway.
const little = 16 << 20

// holderElsewhere is holder for a slot that somebody else reads: no table of ours and no
// lake holds it.
func holderElsewhere(reader string, s SourceStatus) string {
	switch {
	case s.SlotState == "missing" || s.SlotState == "lost" || s.Retained <= little:
		return ""
	case !s.Active:
		return reader + ", which is not reading it"
	case s.End > s.Confirmed && int64(s.End-s.Confirmed) > s.Retained/2:
		return "what " + reader + " has not confirmed"
	}
	return "a transaction that is or was open at the source"
}

// holder says in words what makes the slot retain log; empty when nothing does for
// long. Small amounts are how logs are written, not something that holds.
func holder(tables []*tableRun, s SourceStatus, through catalog.LSN) string {
	var stopped, failing []string
	var why string
	for _, t := range tables {
		switch {
		case t.state.Stopped() && t.holds:
			stopped = append(stopped, t.table.Name.String())
		case t.tries > 0 && len(t.queue) > 0:
			failing = append(failing, t.table.Name.String())
			why = t.failure
		}
	}
	switch {
	case s.SlotState == "missing" || s.SlotState == "lost":
		return ""
	case len(stopped) > 0:
		return "stopped " + named(stopped)
	case len(failing) > 0:
		return named(failing) + " cannot be saved: " + why
	case s.Retained <= little:
		return ""
	case s.End > through && int64(s.End-through) > s.Retained/2:
		return fmt.Sprintf("a backlog of %d MB that is being read", int64(s.End-through)>>20)
	case s.End > s.Confirmed && int64(s.End-s.Confirmed) > s.Retained/2:
		return "changes that are being saved"
	}
	return "a transaction that is or was open at the source"
}

func named(tables []string) string {
	const most = 3
	word := "table "
	if len(tables) > 1 {
		word = "tables "
	}
	if n := len(tables); n > most {
		return word + strings.Join(tables[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return word + strings.Join(tables, ", ")
}
