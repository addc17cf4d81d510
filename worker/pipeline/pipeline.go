package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Pipeline is one source's run.
type Pipeline struct {
	cfg     Config
	tables  []*tableRun
	byName  map[string]*tableRun
	through catalog.LSN
	readAt  time.Time
	flushed catalog.LSN
	results chan result
	saving  int
	rereads *rereading
	// permits lets the reader read one slice; permitted counts those given and not
	// used up.
	permits   chan struct{}
	permitted bool

	statusMu  sync.Mutex
	silent    bool // the source's silence has been logged; under statusMu
	reporting sync.WaitGroup
	statuses  chan SourceStatus // answers of the source, one at a time

	strain       strain
	captureFirst atomic.Bool // as strain says; for saves that are under way
	gaveUp       bool        // the slot was dropped
}

type result struct {
	table   *tableRun
	batches []*change.Batch
	record  BatchRecord
	err     error
}

// New makes a pipeline; nothing is read before Run.
func New(cfg Config) *Pipeline {
	cfg = cfg.WithDefaults()
	p := &Pipeline{
		cfg: cfg, byName: map[string]*tableRun{}, results: make(chan result, len(cfg.Tables)+1), statuses: make(chan SourceStatus, 1),
		permits: make(chan struct{}, 1),
	}
	p.rereads = newRereading(cfg)
	turn := make(chan struct{}, 1)
	for _, t := range cfg.Tables {
		run := &tableRun{table: t, state: catalog.Pending, masks: map[*catalog.Schema]Mask{}}
		run.turn = turn
		run.lacks.rereads, run.remakeBytes = cfg.Rereads, cfg.Limits.RemakeBytes
		p.tables = append(p.tables, run)
		p.byName[t.Name.String()] = run
	}
	return p
}

// Run reads, saves and folds until the context ends, then saves what it has read
// (I11) and returns nil. It returns an error only when the source as a whole
// cannot be read; a table's own trouble stops that table alone. Call it once.
func (p *Pipeline) Run(ctx context.Context) error {
	if err := p.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted before anything was read
		}
		return err
	}
	slices, stopReading := p.read(ctx)
	stopRereads := p.rereads.start(ctx)
	err := p.loop(ctx, slices)
	stopReading()
	stopRereads()
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Limits.DrainWithin)
	defer cancel()
	p.drain(drainCtx)
	p.confirm(drainCtx)
	p.rereads.finish(drainCtx)
	p.report(drainCtx, true)
	p.reporting.Wait()
	select {
	case s := <-p.statuses:
		p.heard(drainCtx, s)
	default:
	}
	return errors.Join(err, p.cfg.Reader.Close(drainCtx))
}

// start finds out where each table stands and begins reading there.
func (p *Pipeline) start(ctx context.Context) error {
	resumes := make([]Resume, 0, len(p.tables))
	for _, t := range p.tables {
		state, err := p.cfg.Lake.BronzeState(ctx, t.table)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if passes(err) {
				return fmt.Errorf("find where %s stands in the lake: %w", t.table.ID(), err)
			}
			p.stop(t, Fault{Table: t.table.Name.String(), State: quarantineState(err), Err: catalog.Public(err), Keep: true})
			continue
		}
		t.bronze = state
		known, err := p.cfg.Observer.KnownSchema(ctx, t.table)
		if err != nil {
			p.cfg.Logger.WarnContext(ctx, "the registry does not say which columns the table has", "table", t.table.ID(), "error", err)
		}
		resumes = append(resumes, Resume{Table: t.table, Cursor: state.Cursor, Snapshot: state.Snapshot, Offsets: state.Offsets, Schema: known})
		t.state = running(state)
		if known != nil && state != (LayerState{}) {
			p.know(ctx, t, known)
		}
	}
	faults, err := p.cfg.Reader.Start(ctx, resumes)
	if err != nil {
		return errors.Join(fmt.Errorf("start reading source %s: %w", p.cfg.Source.Name, err), p.cfg.Reader.Close(context.WithoutCancel(ctx)))
	}
	if s, err := p.cfg.Reader.Status(ctx); err == nil {
		if p.slotReader() == "" {
			// Whatever the slot may forget by now has been saved, for every table.
			p.through, p.flushed = s.Confirmed, s.Confirmed
		}
		p.heard(ctx, s)
		for _, t := range p.tables {
			if t.state.Stopped() {
				t.held = p.through
			}
		}
	}
	for _, f := range faults {
		if t := p.byName[f.Table]; t != nil {
			p.stop(t, f)
		}
	}
	if o, ok := p.cfg.Observer.(StartObserver); ok {
		for _, t := range p.tables {
			if !t.state.Stopped() {
				o.Started(ctx, t.table.Name.String(), t.bronze.Cursor)
			}
		}
	}
	return nil
}

func running(s LayerState) catalog.State {
	switch {
	case s.Snapshot == nil:
		return catalog.Pending
	case !s.Snapshot.Done:
		return catalog.Snapshotting
	default:
		return catalog.Streaming
	}
}

// know notes the columns of a table that has been read before, so that its layers
// are opened, and one that lags catches up, although no change comes. Where that
// fails, the first batch brings its columns.
func (p *Pipeline) know(ctx context.Context, t *tableRun, known *catalog.Schema) {
	b := &change.Batch{Table: t.table, Rows: change.NewRows(known)}
	if err := t.masked(ctx, p.cfg, b); err != nil {
		p.cfg.Logger.WarnContext(ctx, "the table's layers cannot be opened before its next change", "table", t.table.ID(), "error", err)
		return
	}
	t.known = b.Rows.Schema()
}

// read hands over slices from a goroutine of its own; the channel closes when the
// reader ends, after an error if it had one.
func (p *Pipeline) read(ctx context.Context) (slices <-chan readResult, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan readResult)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(ch)
		for {
			select {
			case <-p.permits:
			case <-ctx.Done():
				return
			}
			s, err := p.next(ctx)
			if err != nil && ctx.Err() != nil {
				return
			}
			select {
			case ch <- readResult{s, err}:
			case <-ctx.Done():
				return // what was read and not handed over is read again
			}
			if err != nil {
				return
			}
		}
	}()
	return ch, func() { cancel(); <-done }
}

// next is the reader's Next; a panic in it ends this source's run, not the process.
func (p *Pipeline) next(ctx context.Context) (s Slice, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.cfg.Logger.ErrorContext(ctx, "panic while reading", "source", p.cfg.Source.Name, "panic", v, "stack", string(debug.Stack()))
			err = catalog.Errorf(catalog.Internal, catalog.CodeInternal, "see the worker's log for the stack; please report it",
				"reading source %s panicked", p.cfg.Source.Name)
		}
	}()
	return p.cfg.Reader.Next(ctx)
}

type readResult struct {
	slice Slice
	err   error
}

func (p *Pipeline) loop(ctx context.Context, slices <-chan readResult) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	lastReport := time.Time{}
	for {
		p.permit(0)
		select {
		case <-ctx.Done():
			return nil
		case r, ok := <-slices:
			p.permitted = false
			if !ok {
				return nil
			}
			if r.err != nil {
				return fmt.Errorf("read source %s: %w", p.cfg.Source.Name, r.err)
			}
			_, size := sizeOf(r.slice.Batches)
			p.permit(size) // while this slice is taken in, the next is read
			p.accept(ctx, r.slice)
		case r := <-p.results:
			p.saved(ctx, r)
		case s := <-p.statuses:
			if s = p.heard(ctx, s); p.strain.drop && !p.gaveUp {
				p.giveUp(ctx, s)
			}
		case asked := <-p.rereads.asked:
			p.reread(asked)
		case <-tick.C:
		}
		p.saveDue(ctx, false)
		if now := p.cfg.Clock(); now.Sub(lastReport) >= p.cfg.Limits.ReportEvery {
			lastReport = now
			p.confirm(ctx)
			p.report(ctx, false)
		}
	}
}

// permit lets the reader go on, unless what is kept in memory, with so much more, is
// at its bound: then reading waits for saving. There is never more than the bound and
// one slice.
func (p *Pipeline) permit(more int) {
	if !p.permitted && p.memory()+more < p.cfg.Limits.MemoryBytes {
		p.permitted = true
		p.permits <- struct{}{}
	}
}

// accept takes a slice in: masks its batches and queues them.
func (p *Pipeline) accept(ctx context.Context, s Slice) {
	now := p.cfg.Clock()
	for _, b := range s.Batches {
		t := p.byName[b.Table.Name.String()]
		if t == nil || t.state.Stopped() || t.ending != nil {
			continue
		}
		if err := t.masked(ctx, p.cfg, b); err != nil {
			// I7: what cannot be masked is not kept.
			from, _, _ := lowest([]*change.Batch{b})
			t.ending = &Fault{Table: t.table.Name.String(), State: catalog.Quarantined, Err: catalog.Public(err), From: from}
			continue
		}
		t.take(b, now)
	}
	for _, f := range s.Faults {
		if t := p.byName[f.Table]; t != nil && !t.state.Stopped() && t.ending == nil {
			t.ending = &f
		}
	}
	p.through = max(p.through, s.Through)
	for _, t := range p.tables {
		if t.ending == nil { // else its transaction may go on in what a fault keeps out
			t.over(s.Through)
		}
	}
	if !s.ReadAt.IsZero() {
		p.readAt = s.ReadAt
	}
	p.endStopped()
}

// masked masks a batch. The first batch of a schema has its columns recorded,
// which gives them their version, before anything else looks at them.
func (t *tableRun) masked(ctx context.Context, cfg Config, b *change.Batch) error {
	schema := b.Rows.Schema()
	m, ok := t.masks[schema]
	if !ok {
		numbered, err := cfg.Observer.Schema(ctx, t.table, schema)
		if err != nil {
			cfg.Logger.WarnContext(ctx, "the table's columns were not recorded", "table", t.table.ID(), "error", err)
		} else if numbered != nil {
			schema.Version = numbered.Version
		}
		schema.Version = max(schema.Version, 1)
		if m, err = cfg.Mask(t.table, schema); err != nil {
			return err
		}
		t.masks[schema] = m
	}
	if m == nil {
		return nil
	}
	return m.Apply(b)
}

func (p *Pipeline) memory() int {
	n := 0
	for _, t := range p.tables {
		n += t.size()
	}
	return n
}

// endStopped stops the tables that have a fault and nothing left to save before
// it.
func (p *Pipeline) endStopped() {
	for _, t := range p.tables {
		if t.ending != nil && !t.saving && len(t.queue) == 0 {
			p.stop(t, *t.ending)
		}
	}
}

func (p *Pipeline) stop(t *tableRun, f Fault) {
	t.stop(f, p.through)
	p.cfg.Reader.Drop(t.table.Name.String())
	p.cfg.Logger.Error("table stopped", "table", t.table.ID(), "state", f.State, "code", f.Err.Code, "reason", f.Err.Message, "hint", f.Err.Hint, "cause", f.Err.Err)
}

// confirm tells the source what it may forget: what every table has in bronze (I9).
func (p *Pipeline) confirm(ctx context.Context) {
	through := confirmable(p.tables, p.through)
	if through <= p.flushed {
		return
	}
	if err := p.cfg.Reader.Confirm(ctx, through); err != nil {
		p.cfg.Logger.WarnContext(ctx, "the source was not told what is saved", "source", p.cfg.Source.Name, "error", err)
		return
	}
	p.flushed = through
}

// drain saves whole transactions that were read before the end.
func (p *Pipeline) drain(ctx context.Context) {
	for {
		p.saveDue(ctx, true)
		if p.saving == 0 {
			return
		}
		select {
		case r := <-p.results:
			failed := r.err != nil
			p.saved(ctx, r)
			// What could not be saved is read again by the next run; until then it
			// holds the source.
			r.table.abandoned = failed
		case <-ctx.Done():
			return
		}
	}
}
