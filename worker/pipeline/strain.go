package pipeline

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
)

// SlotDropper is an optional ability of a Source: giving its slot up.
//
//	if d, ok := source.(SlotDropper); ok { … }
type SlotDropper interface {
	// DropSlot notes durably that changes of every table are missing, for the reason
	// that the error gives, then ends the reading and drops the slot. It may be
	// repeated until it returns nil; Next hands over nothing any more from then on.
	DropSlot(ctx context.Context, why *catalog.Error) error
}

// SlotElsewhere is an optional ability of a Source whose slot somebody else reads: what
// its Status calls confirmed is that reader's word, and saving here frees nothing there.
//
//	if e, ok := source.(SlotElsewhere); ok { … }
type SlotElsewhere interface {
	// SlotReader names the reader, in words: "connector lakeweir-shop".
	SlotReader() string
}

// StrainObserver is an optional ability of an Observer: it is told when a source comes
// near its budget, leaves it, or gives its slot up.
type StrainObserver interface {
	// Strained is told of each change of stage.
	Strained(ctx context.Context, from, to catalog.BudgetStage, s SourceStatus, budget int64)
	// SlotDropped is told once the slot is gone.
	SlotDropped(ctx context.Context, slot string, s SourceStatus, budget int64)
}

// heard takes in what the source said of its log, and returns it with what the budget
// makes of it.
func (p *Pipeline) heard(ctx context.Context, s SourceStatus) SourceStatus {
	unsaved := int64(0)
	if saved := p.runningSaved(); s.End > saved && p.slotReader() == "" {
		unsaved = int64(s.End - saved)
	}
	before := p.strain
	b := budgetOf(p.cfg.Source, p.cfg.Limits.DropAfter)
	p.strain = b.decide(before, pressure{retained: s.Retained, unsaved: unsaved, now: p.cfg.Clock()})
	p.captureFirst.Store(p.strain.captureFirst)
	s.Stage = p.strain.stage
	if reader := p.slotReader(); reader != "" {
		s.HeldBy = holderElsewhere(reader, s)
	} else {
		s.HeldBy = holder(p.tables, s, p.through)
	}
	if s.SlotState == "missing" || s.SlotState == "lost" { // there is nothing left to judge
		p.strain, s.Stage = strain{}, ""
		p.captureFirst.Store(false)
	} else if p.strain.stage != before.stage && (before.stage != "" || p.strain.stage != catalog.WithinBudget) {
		p.tellStrain(ctx, before.stage, s)
	}
	p.cfg.Observer.Source(ctx, p.cfg.Source.Name, s, p.flushed)
	return s
}

// slotReader names who reads the slot; empty when the pipeline's own reader does.
func (p *Pipeline) slotReader() string {
	if e, ok := p.cfg.Reader.(SlotElsewhere); ok {
		return e.SlotReader()
	}
	return ""
}

// runningSaved is how far every table that runs is saved.
func (p *Pipeline) runningSaved() catalog.LSN {
	through := p.through
	for _, t := range p.tables {
		if !t.state.Stopped() {
			through = t.needs(through, 0)
		}
	}
	return through
}

func (p *Pipeline) tellStrain(ctx context.Context, from catalog.BudgetStage, s SourceStatus) {
	args := []any{"source", p.cfg.Source.Name, "retained", s.Retained, "budget", p.cfg.Source.WALBudget, "held by", s.HeldBy}
	switch s.Stage {
	case catalog.OverBudget:
		p.cfg.Logger.ErrorContext(ctx, "the slot has reached its WAL budget", append(args, "on_wal_budget", p.cfg.Source.OnBudget)...)
	case catalog.NearBudget:
		if p.slotReader() != "" {
			p.cfg.Logger.WarnContext(ctx, "the slot is near its WAL budget", args...)
			break
		}
		p.cfg.Logger.WarnContext(ctx, "the slot is near its WAL budget; changes are captured first and folded later", args...)
	case catalog.WithinBudget:
		p.cfg.Logger.InfoContext(ctx, "the slot is within its WAL budget again", args...)
	}
	if o, ok := p.cfg.Observer.(StrainObserver); ok {
		o.Strained(ctx, from, s.Stage, s, p.cfg.Source.WALBudget)
	}
}

// giveUp drops the slot and stops every table with a gap. What fails is tried again at
// the next report.
func (p *Pipeline) giveUp(ctx context.Context, s SourceStatus) {
	d, ok := p.cfg.Reader.(SlotDropper)
	if !ok {
		return
	}
	why := catalog.Errorf(catalog.Conflict, catalog.CodeSourceBudget,
		"find out what held the slot ("+orUnknown(s.HeldBy)+"), then read the source's tables anew: docs/runbooks/slot-lost.md",
		"changes are missing: slot %s was dropped when it retained %d MB of log, at its budget of %d MB, as on_wal_budget: drop says",
		p.cfg.Source.Slot, s.Retained>>20, p.cfg.Source.WALBudget>>20)
	if err := d.DropSlot(ctx, why); err != nil {
		p.cfg.Logger.ErrorContext(ctx, "the slot is at its budget and cannot be dropped, trying again", "source", p.cfg.Source.Name, "error", err)
		return
	}
	p.gaveUp = true
	p.cfg.Logger.ErrorContext(ctx, "the slot was dropped at its WAL budget; every table has a gap", "source", p.cfg.Source.Name, "retained", s.Retained, "budget", p.cfg.Source.WALBudget)
	if o, ok := p.cfg.Observer.(StrainObserver); ok {
		o.SlotDropped(ctx, p.cfg.Source.Slot, s, p.cfg.Source.WALBudget)
	}
	for _, t := range p.tables {
		f := Fault{Table: t.table.Name.String(), State: catalog.Gap, Err: why}
		switch {
		case t.state == catalog.Gap:
		case t.saving: // what is on its way to bronze may land; the table stops behind it
			t.ending, t.queue = &f, nil
			t.recount()
		default:
			p.stop(t, f)
		}
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "lakeweir status names it"
	}
	return s
}
