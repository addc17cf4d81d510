package pipeline

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// saveDue starts the saves that are due.
func (p *Pipeline) saveDue(ctx context.Context, force bool) {
	now := p.cfg.Clock()
	for _, t := range p.tables {
		if p.saving >= p.cfg.Limits.Parallel {
			return
		}
		if t.saving || t.state.Stopped() || t.abandoned {
			continue
		}
		bronzeEvery, layersEvery := cadence(t.table.Tier)
		if p.cfg.Limits.SaveEvery > 0 {
			bronzeEvery, layersEvery = p.cfg.Limits.SaveEvery, p.cfg.Limits.SaveEvery
		}
		first := p.strain.captureFirst && !force
		if first { // at once, but in pieces as large as a second makes them
			bronzeEvery = min(bronzeEvery, least)
		}
		n := t.due(now, bronzeEvery, p.cfg.Limits, force)
		foldDue := !first && (force || layersEvery <= bronzeEvery || now.Sub(t.folded) >= layersEvery)
		lags := (t.lagging() && foldDue || t.unopened() && (foldDue || first)) && !now.Before(t.retryAt)
		switch {
		case n > 0:
			batches := t.split(n, now)
			p.save(ctx, t, batches, foldDue || hasRereads(batches))
		case lags:
			p.save(ctx, t, nil, foldDue)
		case t.offsetsDue(t.passed, now) && !now.Before(t.retryAt):
			p.save(ctx, t, nil, false)
		}
	}
}

func (p *Pipeline) save(ctx context.Context, t *tableRun, batches []*change.Batch, foldNow bool) {
	t.saving = true
	t.savingLow, t.savingTime, _ = lowest(batches)
	_, t.savingBytes = sizeOf(batches)
	p.saving++
	// A save is never broken off half-way by the end of the context; it has its own
	// bound in Limits.DrainWithin.
	ctx = context.WithoutCancel(ctx)
	go func() {
		r := result{table: t, batches: batches}
		defer func() {
			if v := recover(); v != nil {
				r.err = catalog.Errorf(catalog.Internal, catalog.CodeInternal, "see the worker's log for the stack; please report it",
					"saving %s panicked", t.table.ID())
				p.cfg.Logger.ErrorContext(ctx, "panic while saving", "table", t.table.ID(), "panic", v, "stack", string(debug.Stack()))
			}
			p.results <- r
		}()
		r.record, r.err = p.saveNow(ctx, t, batches, foldNow)
	}()
}

func (p *Pipeline) saveNow(ctx context.Context, t *tableRun, batches []*change.Batch, foldNow bool) (BatchRecord, error) {
	schema := t.known
	if len(batches) > 0 {
		schema = batches[len(batches)-1].Rows.Schema()
	}
	if err := t.keeper.open(ctx, p.cfg.Lake, t.table, schema); err != nil {
		return BatchRecord{}, err
	}
	t.keeper.yields = p.captureFirst.Load
	return t.keeper.save(ctx, t.table, batches, foldNow, p.cfg.Clock)
}

// saved takes note of how a save ended.
func (p *Pipeline) saved(ctx context.Context, r result) {
	t := r.table
	t.saving, t.savingLow, t.savingTime, t.savingBytes = false, 0, 0, 0
	p.saving--
	now := p.cfg.Clock()
	defer p.status(t, now) // what a report says while the next save is under way, which may begin at once
	switch {
	case r.err == nil:
		t.tries, t.retryAt, t.failure = 0, time.Time{}, ""
		if !t.state.Stopped() {
			t.state = running(t.bronze)
		}
		p.answered(t, r.batches)
		if k, ok := p.cfg.Reader.(OffsetKeeper); ok && t.bronze.Offsets != nil {
			k.Saved(t.table.Name.String(), t.bronze.Offsets)
		}
		if hasContent(r.batches) || r.record.Current != (Commit{}) || r.record.History != (Commit{}) {
			p.cfg.Observer.Batch(ctx, r.record)
		}
	case errors.Is(r.err, ErrStale) && t.tries < maxOvertaken:
		// The worker before this one was killed while the catalog was still at its
		// commit, which has landed since: save what it has not saved.
		t.tries++
		t.retryAt, t.failure = now, catalog.Public(r.err).Message
		t.putBack(r.batches)
		p.cfg.Logger.InfoContext(ctx, "another worker's commit came first, saving again", "table", t.table.ID())
	case passes(r.err):
		// The lake is away: keep what is read and try again.
		t.tries++
		wait := min(time.Second<<min(t.tries, 5), 30*time.Second)
		t.retryAt, t.failure = now.Add(wait), catalog.Public(r.err).Message
		t.putBack(r.batches)
		p.cfg.Logger.WarnContext(ctx, "saving will be tried again", "table", t.table.ID(), "in", wait, "error", r.err)
	default:
		t.putBack(r.batches)
		p.stop(t, Fault{Table: t.table.Name.String(), State: quarantineState(r.err), Err: catalog.Public(r.err), Keep: true})
	}
	p.endStopped()
}

// hasContent reports whether the batches hold more than where the reading of a topic
// stands.
func hasContent(batches []*change.Batch) bool {
	return slices.ContainsFunc(batches, func(b *change.Batch) bool {
		return b.Offsets == nil || len(b.Changes) > 0 || b.Snapshot != nil || len(b.Rereads) > 0
	})
}

// maxOvertaken bounds how often in a row another worker's commit to bronze may come
// before ours: past it that worker is not one that was killed, but a rival.
const maxOvertaken = 3

// passes reports an error that waiting may mend. What others have made of a table of
// the lake stays until a person decides.
func passes(err error) bool {
	stays := []catalog.Code{catalog.CodeLakeConflict, catalog.CodeGap, catalog.CodeLakeCursor, catalog.CodeLakeForeign, catalog.CodeLakeSchema}
	return catalog.KindOf(err).Retryable() && !slices.Contains(stays, catalog.Public(err).Code)
}

func quarantineState(err error) catalog.State {
	if catalog.Public(err).Code == catalog.CodeGap {
		return catalog.Gap
	}
	return catalog.Quarantined
}
