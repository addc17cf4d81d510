package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// world is a source with some tables and a lake, over which pipelines run.
type world struct {
	tables   []*catalog.Table
	models   []*foldtest.Source
	log      *pipelinetest.Log
	lake     *pipelinetest.Lake
	observer *pipelinetest.Observer
	limits   pipeline.Limits
}

// newWorld makes tables with random lives whose logs are interleaved.
func newWorld(t *rapid.T, tables int) *world { return newWorldOf(t, tables, false) }

// newWorldOf is newWorld, with transactions at times of their own when they are apart.
func newWorldOf(t *rapid.T, tables int, apart bool) *world {
	w := &world{log: &pipelinetest.Log{}, lake: pipelinetest.NewLake(), observer: pipelinetest.NewObserver()}
	for i := range tables {
		table := foldtest.Table(rapid.Bool().Draw(t, "soft"))
		table.Name.Name = fmt.Sprintf("t%d", i)
		table.Tier = rapid.SampledFrom([]catalog.Tier{catalog.Realtime, catalog.Tier1h}).Draw(t, "tier")
		model := foldtest.NewSource()
		model.Apart = apart
		model.Live(t, 8)
		w.tables, w.models = append(w.tables, table), append(w.models, model)
		w.log.Parts = append(w.log.Parts, pipelinetest.Parts(t, table, model.Log)...)
	}
	slices.SortStableFunc(w.log.Parts, func(a, b pipelinetest.Part) int { return int(a.End()) - int(b.End()) })
	w.lake.Forgetful = rapid.IntRange(0, 9).Draw(t, "forgetful") == 0
	w.limits = pipeline.Limits{
		SaveEvery: time.Nanosecond, ReportEvery: time.Millisecond, DrainWithin: 10 * time.Second,
		BatchRows:   rapid.SampledFrom([]int{1, 3, 250_000}).Draw(t, "batch rows"),
		RemakeBytes: rapid.SampledFrom([]int{1, 3000, 64 << 20}).Draw(t, "remake bytes"),
	}
	return w
}

func (w *world) pipeline() (*pipeline.Pipeline, *pipelinetest.Source) {
	reader := pipelinetest.NewSource(w.log)
	return pipeline.New(pipeline.Config{
		Source: &catalog.Source{Name: "shop"}, Tables: w.tables, Reader: reader, Lake: w.lake, Observer: w.observer,
		Limits: w.limits,
	}), reader
}

// run runs one pipeline until all was read and saved, or until the worker dies.
func (w *world) run(t *rapid.T) (died bool) {
	p, reader := w.pipeline()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	select {
	case <-reader.Idle():
		cancel()
		require.NoError(t, <-done)
		select {
		case <-w.lake.Died():
			died = true
		default:
		}
	case <-w.lake.Died():
		cancel()
		<-done
		died = true
	case err := <-done:
		require.NoError(t, err)
	case <-ctx.Done():
		require.Fail(t, "the pipeline hangs")
	}
	return died
}

func (w *world) requireEqual(t *rapid.T) {
	for i, table := range w.tables {
		m := w.lake.Table(table.Name.String())
		require.Equal(t, w.models[i].CurrentText(), m.Layers.CurrentText(), "current of %s", table.Name)
		require.Equal(t, w.models[i].HistoryText(), m.Layers.HistoryText(), "history of %s", table.Name)
		require.Empty(t, m.Layers.HistoryProblems())
		var positions []catalog.Position
		for _, b := range m.Bronze {
			for _, c := range b.Changes {
				positions = append(positions, c.Position)
			}
		}
		var want []catalog.Position
		for _, e := range w.models[i].Log {
			want = append(want, e.Position())
		}
		slices.SortFunc(positions, catalog.Position.Compare) // late ones stand where they came
		require.Equal(t, want, positions, "bronze of %s has each change once, in order", table.Name)
	}
}

// script says what becomes of the next commits.
func (w *world) script(outcomes []pipelinetest.Outcome) {
	next := make(chan pipelinetest.Outcome, len(outcomes))
	for _, o := range outcomes {
		next <- o
	}
	w.lake.Outcome = func(_ string, layer catalog.Layer) pipelinetest.Outcome {
		select {
		case o := <-next:
			if o == pipelinetest.Stale && layer == catalog.Bronze {
				return pipelinetest.Lands
			}
			return o
		default:
			return pipelinetest.Lands
		}
	}
}

func TestEveryTableEqualsItsSourceWhateverCommitsDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(1, 3).Draw(t, "tables"))
		w.lake.Few = rapid.IntRange(0, 3).Draw(t, "few")
		outcomes := rapid.SliceOfN(rapid.SampledFrom([]pipelinetest.Outcome{
			pipelinetest.Lands, pipelinetest.Lands, pipelinetest.Stale, pipelinetest.Crash, pipelinetest.Dies,
		}), 0, 12).Draw(t, "outcomes")
		w.script(outcomes)
		for w.run(t) {
			w.lake.Revive()
		}
		w.run(t) // once more, for what a death after the last read left behind
		w.requireEqual(t)
	})
}

func TestLateChangesTakeTheirPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(1, 2).Draw(t, "tables"))
		w.lake.Few = rapid.IntRange(0, 3).Draw(t, "few")
		w.log.Parts = pipelinetest.Delay(t, w.log.Parts)
		outcomes := rapid.SliceOfN(rapid.SampledFrom([]pipelinetest.Outcome{
			pipelinetest.Lands, pipelinetest.Lands, pipelinetest.Lands, pipelinetest.Stale, pipelinetest.Crash, pipelinetest.Dies, pipelinetest.Unknown,
		}), 0, 20).Draw(t, "outcomes")
		w.script(outcomes)
		for w.run(t) {
			w.lake.Revive()
		}
		w.lake.Outcome = nil
		w.run(t)
		w.requireEqual(t)
	})
}

func TestAKillAtEveryCommitLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		w.limits.RemakeBytes = 64 << 20 // in one commit, so that it gets anywhere
		outcome := rapid.SampledFrom([]pipelinetest.Outcome{pipelinetest.Crash, pipelinetest.Dies}).Draw(t, "outcome")
		var n atomic.Int64
		every := rapid.IntRange(1, 3).Draw(t, "every")
		if outcome == pipelinetest.Dies {
			every++ // a death before the commit must let the next try through
		}
		w.lake.Outcome = func(string, catalog.Layer) pipelinetest.Outcome {
			if n.Add(1)%int64(every) == 0 {
				return outcome
			}
			return pipelinetest.Lands
		}
		for runs := 0; w.run(t); runs++ {
			require.Less(t, runs, 1000, "no progress")
			w.lake.Revive()
		}
		w.lake.Outcome = nil
		w.run(t)
		w.requireEqual(t)
	})
}

func TestALostReplyIsTriedAgainWithoutDoubling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		w.lake.Few = rapid.IntRange(0, 3).Draw(t, "few")
		lost := rapid.IntRange(1, 6).Draw(t, "lost")
		var n atomic.Int64
		w.lake.Outcome = func(string, catalog.Layer) pipelinetest.Outcome {
			if n.Add(1) == int64(lost) {
				return pipelinetest.Unknown
			}
			return pipelinetest.Lands
		}
		w.run(t)
		w.run(t)
		w.requireEqual(t)
	})
}

func TestAFaultStopsItsTableAloneAndHoldsTheSource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 3)
		var of []int
		for i, p := range w.log.Parts {
			if p.Table == w.tables[0] {
				of = append(of, i)
			}
		}
		if len(of) == 0 {
			t.Skip("the table has no changes")
		}
		at := of[rapid.IntRange(0, len(of)-1).Draw(t, "at")]
		poison := catalog.Errorf(catalog.Invalid, catalog.CodeDecode, "fix it", "unreadable")
		w.log.Parts[at].Fault = poison
		w.run(t)

		last := w.observer.Last(w.tables[0].Name.String())
		require.Equal(t, catalog.Quarantined, last.State)
		require.Equal(t, poison, last.Fault)
		require.LessOrEqual(t, w.log.Confirmed, w.log.Parts[at].Events[0].Position().Commit, "the source keeps what the table still needs")
		others := &world{tables: w.tables[1:], models: w.models[1:], lake: w.lake}
		others.requireEqual(t)

		w.log.Parts[at].Fault = nil // mended: the next run goes on where it stopped
		w.run(t)
		w.requireEqual(t)
	})
}

// A worker that was killed may leave a commit to bronze that lands after the next one
// has opened it. The next saves what that had not, and no table stops.
func TestACommitOfAKilledWorkerMayLandLate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.IntRange(1, 3).Draw(t, "tables"))
		var overtaken atomic.Int64
		at := rapid.Int64Range(1, 4).Draw(t, "at")
		w.lake.Outcome = func(_ string, layer catalog.Layer) pipelinetest.Outcome {
			if layer == catalog.Bronze && overtaken.Add(1) == at {
				return pipelinetest.Stale
			}
			return pipelinetest.Lands
		}
		w.run(t)
		for _, table := range w.tables {
			require.False(t, w.observer.Last(table.Name.String()).State.Stopped())
		}
		w.run(t) // the first may have ended before it came up
		w.requireEqual(t)
	})
}
