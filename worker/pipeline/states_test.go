package pipeline_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// silent is a lake whose history does not say its state when it is first asked.
type silent struct {
	pipeline.Lake
	asked *atomic.Int64
}

func (s silent) Open(ctx context.Context, t *catalog.Table, schema *catalog.Schema) (pipeline.Layers, error) {
	l, err := s.Lake.Open(ctx, t, schema)
	l.History = silentHistory{l.History, s.asked}
	return l, err
}

type silentHistory struct {
	pipeline.History
	asked *atomic.Int64
}

func (h silentHistory) State(ctx context.Context) (pipeline.LayerState, error) {
	if h.asked.Add(1) == 1 {
		return pipeline.LayerState{}, catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "the lake is away")
	}
	return h.History.State(ctx)
}

// A layer whose state cannot be read when it is opened is asked again, and not taken
// for an empty one, into which everything would be folded a second time.
func TestAStateThatCannotBeReadAtFirstIsAskedForAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 1)
		w.run(t)
		began := time.Now()
		reader := pipelinetest.NewSource(w.log)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		asked := &atomic.Int64{}
		ended := make(chan error, 1)
		go func() {
			ended <- pipeline.New(pipeline.Config{
				Source: &catalog.Source{Name: "shop"}, Tables: w.tables, Reader: reader, Lake: silent{w.lake, asked}, Observer: w.observer,
				// Trying again is not to wait long.
				Clock:  func() time.Time { return began.Add(1000 * time.Since(began)) },
				Limits: pipeline.Limits{SaveEvery: time.Nanosecond, ReportEvery: time.Millisecond, DrainWithin: 10 * time.Second},
			}).Run(ctx)
		}()
		<-reader.Idle()
		folded := func() int { return w.lake.Commits(w.tables[0].Name.String(), catalog.History) }
		before := folded()
		for len(w.log.Parts) > 0 && asked.Load() < 2 && folded() == before && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		cancel()
		require.NoError(t, <-ended)
		w.run(t)
		w.requireEqual(t)
	})
}
