// Package pipelinetest has a source and a lake in memory for tests of a pipeline:
// they keep the promises of the real ones and fail where they are told to.
package pipelinetest

import (
	"context"
	"fmt"
	"iter"
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
	Stale                  // another writer was first
	Crash                  // it is there and the writer dies
	Dies                   // it is not there and the writer dies
)

// Lake keeps layers in memory; it outlives the pipelines that use it. Outcome, if
// set, is asked before each commit.
type Lake struct {
	Outcome func(table string, layer catalog.Layer) Outcome
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
	Commits map[catalog.Layer]int
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
		t = &Table{lake: l, name: name, Layers: foldtest.NewLayers(), states: map[catalog.Layer]pipeline.LayerState{}, Commits: map[catalog.Layer]int{}}
		l.tables[name] = t
	}
	return t
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
	if outcome == Lands || outcome == Unknown || outcome == Crash {
		apply()
		t.states[layer] = to
		t.Commits[layer]++
	}
	switch outcome {
	case Lands:
		return pipeline.Commit{}, nil
	case Stale:
		if layer == catalog.Bronze {
			return pipeline.Commit{}, catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "busy")
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
		}
	})
}

func (b bronze) Read(_ context.Context, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	return func(yield func(*change.Batch, error) bool) {
		b.lake.mu.Lock()
		var out []*change.Batch
		for _, batch := range b.Bronze {
			var part []change.Change
			for _, c := range batch.Changes {
				if c.Position.Compare(after) <= 0 || c.Position.Compare(through) > 0 {
					continue
				}
				if len(part) >= maxRows && !c.MovedIn() {
					out = append(out, copyBatch(batch, part))
					part = nil
				}
				part = append(part, c)
			}
			if len(part) > 0 {
				out = append(out, copyBatch(batch, part))
			}
		}
		b.lake.mu.Unlock()
		for _, batch := range out {
			if !yield(batch, nil) {
				return
			}
		}
	}
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
	return c.Layers.FindCurrent(touched), nil
}

func (c current) Write(_ context.Context, r fold.CurrentResult, to pipeline.LayerState) (pipeline.Commit, error) {
	return c.commit(catalog.Current, to, func() { c.Layers.WriteCurrent(r) })
}

type history struct{ *Table }

func (h history) State(context.Context) (pipeline.LayerState, error) { return h.state(catalog.History) }

func (h history) Find(_ context.Context, touched fold.Touched, whole [][]byte) ([]fold.VersionFound, error) {
	h.lake.mu.Lock()
	defer h.lake.mu.Unlock()
	return h.Layers.FindHistory(touched, whole), nil
}

func (h history) Write(_ context.Context, r fold.HistoryResult, to pipeline.LayerState) (pipeline.Commit, error) {
	return h.commit(catalog.History, to, func() { h.Layers.WriteHistory(r) })
}
