// Package pipelinetest has a source and a lake in memory for tests of a pipeline:
// they keep the promises of the real ones and fail where they are told to.
package pipelinetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Outcome is what becomes of a commit.
type Outcome int

// Outcomes of a commit.
const (
	Lands   Outcome = iota // it is there and the writer knows
	Fails                  // it is not there and the writer knows
	Unknown                // it is there and the writer hears an error
	Stale                  // another writer was first, in bronze with the same changes
	Crash                  // it is there and the writer dies
	Dies                   // it is not there and the writer dies
)

// Lake keeps layers in memory; it outlives the pipelines that use it. Outcome, if
// set, is asked before each commit.
type Lake struct {
	Outcome func(table string, layer catalog.Layer) Outcome
	// Forgetful makes the layers forget what they held before.
	Forgetful bool
	// Few is how many rows may be found at once; 0: as many as there are.
	Few int
	// Died is closed by the first commit that crashes; then every call fails until
	// Revive.
	mu     sync.Mutex
	died   chan struct{}
	dead   bool
	tables map[string]*Table
}

// Table is one table's layers.
type Table struct {
	lake    *Lake
	name    string
	Layers  *foldtest.Layers
	Bronze  []*change.Batch
	states  map[catalog.Layer]pipeline.LayerState
	past    map[catalog.Layer][]snapshot
	numbers map[catalog.Position]int64 // of late changes
	cut     bool
	Commits map[catalog.Layer]int
}

// snapshot is a layer after a commit.
type snapshot struct {
	state  pipeline.LayerState
	layers *foldtest.Layers
}

// NewLake returns an empty lake.
func NewLake() *Lake { return &Lake{tables: map[string]*Table{}, died: make(chan struct{})} }

// Died is closed when a commit has crashed.
func (l *Lake) Died() <-chan struct{} { return l.died }

// Revive makes the lake usable again after a crash.
func (l *Lake) Revive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.died = false, make(chan struct{})
}

// Table returns a table's layers, making them when absent.
func (l *Lake) Table(name string) *Table {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tables[name]
	if t == nil {
		t = &Table{lake: l, name: name, Layers: foldtest.NewLayers(), states: map[catalog.Layer]pipeline.LayerState{}, past: map[catalog.Layer][]snapshot{}, numbers: map[catalog.Position]int64{}, Commits: map[catalog.Layer]int{}}
		l.tables[name] = t
	}
	return t
}

// Commits returns how often a layer of a table was committed to.
func (l *Lake) Commits(table string, layer catalog.Layer) int {
	t := l.Table(table)
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.Commits[layer]
}

var errDead = catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "the worker is dead")

// BronzeState implements pipeline.Lake.
func (l *Lake) BronzeState(_ context.Context, t *catalog.Table) (pipeline.LayerState, error) {
	return l.Table(t.Name.String()).state(catalog.Bronze)
}

// Open implements pipeline.Lake.
func (l *Lake) Open(_ context.Context, t *catalog.Table, _ *catalog.Schema) (pipeline.Layers, error) {
	m := l.Table(t.Name.String())
	layers := pipeline.Layers{Bronze: bronze{m}}
	if t.Current {
		layers.Current = current{m}
	}
	if t.History {
		layers.History = history{m}
	}
	return layers, nil
}

func (t *Table) state(layer catalog.Layer) (pipeline.LayerState, error) {
	t.lake.mu.Lock()
	defer t.lake.mu.Unlock()
	if t.lake.dead {
		return pipeline.LayerState{}, errDead
	}
	return t.states[layer], nil
}

// commit applies a change of the layer as the outcome says.
func (t *Table) commit(layer catalog.Layer, to pipeline.LayerState, apply func()) (pipeline.Commit, error) {
	outcome := Lands
	if t.lake.Outcome != nil {
		outcome = t.lake.Outcome(t.name, layer)
	}
	t.lake.mu.Lock()
	defer t.lake.mu.Unlock()
	if t.lake.dead {
		return pipeline.Commit{}, errDead
	}
	if outcome == Lands || outcome == Unknown || outcome == Crash || outcome == Stale && layer == catalog.Bronze {
		apply()
		t.states[layer] = to
		t.past[layer] = append(t.past[layer], snapshot{to, t.Layers.Copy()})
		t.Commits[layer]++
	}
	switch outcome {
	case Lands:
		return pipeline.Commit{}, nil
	case Stale:
		if layer == catalog.Bronze {
			return pipeline.Commit{}, catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict, "", "append: %w", pipeline.ErrStale)
		}
		return pipeline.Commit{}, fmt.Errorf("write: %w", pipeline.ErrStale)
	case Crash, Dies:
		t.lake.dead = true
		close(t.lake.died)
		return pipeline.Commit{}, errDead
	case Fails, Unknown:
		return pipeline.Commit{}, catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "no answer")
	}
	return pipeline.Commit{}, nil
}

type bronze struct{ *Table }

func (b bronze) State(context.Context) (pipeline.LayerState, error) { return b.state(catalog.Bronze) }

func (b bronze) Append(_ context.Context, batches []*change.Batch, to pipeline.LayerState) (pipeline.Commit, error) {
	return b.commit(catalog.Bronze, to, func() {
		for _, batch := range batches {
			b.Bronze = append(b.Bronze, copyBatch(batch, batch.Changes))
			for i := range batch.Changes {
				if c := &batch.Changes[i]; c.Late {
					b.numbers[c.Position] = to.Late
				}
			}
		}
	})
}

// Read implements pipeline.Bronze.
func (b bronze) Read(_ context.Context, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	return b.read(maxRows, func(c *change.Change) bool { return c.Position.Compare(after) > 0 && c.Position.Compare(through) <= 0 })
}

// ReadKeys implements pipeline.Bronze.
func (b bronze) ReadKeys(_ context.Context, keys *fold.KeySet, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	return b.read(maxRows, func(c *change.Change) bool {
		return c.Position.Compare(after) > 0 && c.Position.Compare(through) <= 0 && keys.Concerns(c)
	})
}

// ReadLate implements pipeline.Bronze.
func (b bronze) ReadLate(_ context.Context, after int64, maxRows int) iter.Seq2[*change.Batch, error] {
	return b.read(maxRows, func(c *change.Change) bool { return b.numbers[c.Position] > after })
}

// Holds implements pipeline.Bronze.
func (b bronze) Holds(_ context.Context, positions []catalog.Position) ([]bool, error) {
	b.lake.mu.Lock()
	defer b.lake.mu.Unlock()
	out := make([]bool, len(positions))
	for _, batch := range b.Bronze {
		for i := range batch.Changes {
			for n, p := range positions {
				out[n] = out[n] || p == batch.Changes[i].Position
			}
		}
	}
	return out, nil
}

// First implements pipeline.Bronze.
func (b bronze) First(context.Context) (catalog.Position, error) {
	b.lake.mu.Lock()
	defer b.lake.mu.Unlock()
	var first catalog.Position
	if !b.cut {
		return first, nil
	}
	for _, batch := range b.Bronze {
		for i := range batch.Changes {
			p := batch.Changes[i].Position
			if b.numbers[p] == 0 && (first.IsZero() || p.Compare(first) < 0) {
				first = p
			}
		}
	}
	if first.IsZero() { // all of it is gone
		first = b.states[catalog.Bronze].Cursor.Position
		first.Ordinal++
	}
	return first, nil
}

// Forget takes away what bronze holds up to and including a position, as its
// retention would.
func (t *Table) Forget(through catalog.Position) {
	t.lake.mu.Lock()
	defer t.lake.mu.Unlock()
	t.cut = true
	for _, batch := range t.Bronze {
		batch.Changes = slices.DeleteFunc(batch.Changes, func(c change.Change) bool { return c.Position.Compare(through) <= 0 })
	}
}

// placed is a change and the batch that it came in.
type placed struct {
	batch  *change.Batch
	change change.Change
}

// read yields copies of changes in order, as many at a time as may be.
func (b bronze) read(maxRows int, wanted func(c *change.Change) bool) iter.Seq2[*change.Batch, error] {
	return func(yield func(*change.Batch, error) bool) {
		b.lake.mu.Lock()
		var all []placed
		for _, batch := range b.Bronze {
			for i := range batch.Changes {
				if wanted(&batch.Changes[i]) {
					all = append(all, placed{batch, batch.Changes[i]})
				}
			}
		}
		slices.SortStableFunc(all, func(x, y placed) int { return x.change.Position.Compare(y.change.Position) })
		var out []*change.Batch
		for i := range all {
			c, from := all[i].change, all[i].batch
			n := len(out)
			if n == 0 || len(out[n-1].Changes) >= maxRows && !c.MovedIn() {
				if n > 0 {
					last := out[n-1].Changes
					out[n-1].Whole = !fold.SameTransaction(last[len(last)-1].Position, c.Position)
				}
				out = append(out, &change.Batch{Table: from.Table, Rows: change.NewRows(from.Rows.Schema()), Epoch: from.Epoch})
				n++
			}
			to := out[n-1]
			for _, row := range []*int{&c.Before, &c.After, &c.Other} {
				if *row >= 0 {
					*row = to.Rows.CopyRow(from.Rows, *row)
				}
			}
			to.Changes = append(to.Changes, c)
		}
		b.lake.mu.Unlock()
		for _, batch := range out {
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// before returns the layer before the transaction that its cursor stands inside of.
func (t *Table) before(layer catalog.Layer) (snapshot, error) {
	past := t.past[layer]
	if t.lake.Forgetful || len(past) == 0 {
		return snapshot{}, pipeline.ErrNoBefore
	}
	now := past[len(past)-1].state
	for _, s := range slices.Backward(past) {
		switch {
		case s.state.Remade != now.Remade:
			return snapshot{}, pipeline.ErrNoBefore
		case !fold.SameTransaction(s.state.Cursor.Position, now.Cursor.Position):
			return s, nil
		}
	}
	return snapshot{layers: foldtest.NewLayers()}, nil
}

// copyBatch copies rows too, since folds fill them in place.
func copyBatch(b *change.Batch, changes []change.Change) *change.Batch {
	rows := change.NewRows(b.Rows.Schema())
	for i := range b.Rows.Len() {
		rows.CopyRow(b.Rows, i)
	}
	out := *b
	out.Rows = rows
	out.Changes = append([]change.Change(nil), changes...)
	return &out
}

type current struct{ *Table }

func (c current) State(context.Context) (pipeline.LayerState, error) { return c.state(catalog.Current) }

func (c current) Find(_ context.Context, touched fold.Touched) ([]fold.CurrentFound, error) {
	c.lake.mu.Lock()
	defer c.lake.mu.Unlock()
	found := c.Layers.FindCurrent(touched)
	if !c.tooMany(touched, len(found)) {
		return found, nil
	}
	if !touched.All || len(touched.Keys) > 0 {
		return nil, pipeline.ErrTooMuch
	}
	found = slices.DeleteFunc(found, func(f fold.CurrentFound) bool { return f.Row.Deleted })
	if len(found) <= c.lake.Few {
		return found, nil
	}
	return found[:c.lake.Few], pipeline.ErrMore
}

// tooMany reports whether so many rows may not be found at once.
func (t *Table) tooMany(touched fold.Touched, n int) bool {
	return t.lake.Few > 0 && n > t.lake.Few && !touched.Large
}

func (c current) FindKeys(_ context.Context, keys *fold.KeySet, maxBytes int) ([]fold.CurrentFound, error) {
	c.lake.mu.Lock()
	defer c.lake.mu.Unlock()
	found := c.Layers.FindCurrentKeys(keys)
	if 1000*len(found) > maxBytes {
		return nil, pipeline.ErrTooMuch
	}
	return found, nil
}

func (c current) Before(context.Context) (catalog.Position, error) {
	c.lake.mu.Lock()
	defer c.lake.mu.Unlock()
	s, err := c.before(catalog.Current)
	return s.state.Cursor.Position, err
}

func (c current) FindBefore(_ context.Context, touched fold.Touched) (fold.CurrentBefore, error) {
	c.lake.mu.Lock()
	defer c.lake.mu.Unlock()
	s, err := c.before(catalog.Current)
	if err != nil {
		return fold.CurrentBefore{}, err
	}
	return c.Layers.CurrentBefore(s.layers, s.state.Cursor.Position, touched), nil
}

func (c current) Write(_ context.Context, r fold.CurrentResult, to pipeline.LayerState) (pipeline.Commit, error) {
	done, err := c.commit(catalog.Current, to, func() { c.Layers.WriteCurrent(r) })
	done.Rows, done.Removed = len(r.Write), len(r.Remove)
	return done, err
}

type history struct{ *Table }

func (h history) State(context.Context) (pipeline.LayerState, error) { return h.state(catalog.History) }

func (h history) Find(_ context.Context, touched fold.Touched, whole [][]byte) ([]fold.VersionFound, error) {
	h.lake.mu.Lock()
	defer h.lake.mu.Unlock()
	found := h.Layers.FindHistory(touched, whole)
	if !h.tooMany(touched, len(found)) {
		return found, nil
	}
	if !touched.All || len(touched.Keys) > 0 {
		return nil, pipeline.ErrTooMuch
	}
	return found[:h.lake.Few], pipeline.ErrMore
}

func (h history) FindClosed(_ context.Context, keys [][]byte, since int64) ([]fold.VersionFound, error) {
	h.lake.mu.Lock()
	defer h.lake.mu.Unlock()
	return h.Layers.FindClosed(keys, since), nil
}

func (h history) FindKeys(_ context.Context, keys *fold.KeySet, maxBytes int) ([]fold.VersionFound, error) {
	h.lake.mu.Lock()
	defer h.lake.mu.Unlock()
	found := h.Layers.FindHistoryKeys(keys)
	if 1000*len(found) > maxBytes {
		return nil, pipeline.ErrTooMuch
	}
	return found, nil
}

func (h history) Before(context.Context) (catalog.Position, error) {
	h.lake.mu.Lock()
	defer h.lake.mu.Unlock()
	s, err := h.before(catalog.History)
	return s.state.Cursor.Position, err
}

func (h history) FindBefore(_ context.Context, touched fold.Touched) (fold.HistoryBefore, error) {
	h.lake.mu.Lock()
	defer h.lake.mu.Unlock()
	s, err := h.before(catalog.History)
	if err != nil {
		return fold.HistoryBefore{}, err
	}
	return h.Layers.HistoryBefore(s.layers, s.state.Cursor.Position, touched), nil
}

func (h history) Write(_ context.Context, r fold.HistoryResult, to pipeline.LayerState) (pipeline.Commit, error) {
	done, err := h.commit(catalog.History, to, func() { h.Layers.WriteHistory(r) })
	done.Rows, done.Removed = len(r.Write), len(r.Remove)
	return done, err
}
