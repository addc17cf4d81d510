package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// gated is a lake whose appends to bronze wait: each says that it has begun, and goes
// on when it may.
type gated struct {
	pipeline.Lake
	began chan struct{}
	goOn  chan struct{}
}

func (g gated) Open(ctx context.Context, t *catalog.Table, s *catalog.Schema) (pipeline.Layers, error) {
	l, err := g.Lake.Open(ctx, t, s)
	l.Bronze = gatedBronze{l.Bronze, g}
	return l, err
}

type gatedBronze struct {
	pipeline.Bronze
	g gated
}

func (b gatedBronze) Append(ctx context.Context, batches []*change.Batch, to pipeline.LayerState) (pipeline.Commit, error) {
	b.g.began <- struct{}{}
	<-b.g.goOn
	return b.Bronze.Append(ctx, batches, to)
}

// Where one save follows the other, what is told of a table while the second is under
// way has what the first saved, and that the rest is old.
func TestATableThatNeverRestsIsReported(t *testing.T) {
	t.Parallel()
	w := rapid.Custom(func(t *rapid.T) *world { return newWorld(t, 1) }).Filter(func(w *world) bool { return len(w.log.Parts) > 3 }).Example(7)
	g := gated{w.lake, make(chan struct{}), make(chan struct{})}
	reader := pipelinetest.NewSource(w.log)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- pipeline.New(pipeline.Config{
			Source: &catalog.Source{Name: "shop"}, Tables: w.tables, Reader: reader, Lake: g, Observer: w.observer,
			Limits: pipeline.Limits{SaveEvery: time.Nanosecond, ReportEvery: time.Nanosecond, DrainWithin: 10 * time.Second},
		}).Run(ctx)
	}()
	<-g.began
	<-reader.Idle() // the rest waits for the first save
	g.goOn <- struct{}{}
	<-g.began
	require.Eventually(t, func() bool {
		s := w.observer.Last(w.tables[0].Name.String())
		return s.CurrentThrough > 0 && s.HistoryThrough > 0 && s.State == catalog.Lagging
	}, 5*time.Second, time.Millisecond)
	cancel()
	go func() {
		for range g.began {
			g.goOn <- struct{}{}
		}
	}()
	g.goOn <- struct{}{}
	require.NoError(t, <-ended)
	close(g.began)
}
