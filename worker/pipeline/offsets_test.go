package pipeline_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// topic is a source that hands over the slices of a script, and hears what is saved.
type topic struct {
	slices chan pipeline.Slice
	saved  chan *catalog.TopicOffsets
}

func (s *topic) Start(context.Context, []pipeline.Resume) ([]pipeline.Fault, error) { return nil, nil }

func (s *topic) Next(ctx context.Context) (pipeline.Slice, error) {
	select {
	case out := <-s.slices:
		return out, nil
	case <-time.After(time.Millisecond):
		return pipeline.Slice{}, nil
	case <-ctx.Done():
		return pipeline.Slice{}, ctx.Err()
	}
}
func (s *topic) Confirm(context.Context, catalog.LSN) error { return nil }
func (s *topic) Drop(string)                                {}
func (s *topic) Close(context.Context) error                { return nil }
func (s *topic) Status(context.Context) (pipeline.SourceStatus, error) {
	return pipeline.SourceStatus{}, nil
}
func (s *topic) Saved(_ string, o *catalog.TopicOffsets) { s.saved <- o }

// ticker is a clock that a test moves.
type ticker struct {
	mu  sync.Mutex
	now time.Time
}

func (c *ticker) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *ticker) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Where the reading of a topic stands is saved with the next changes, and without any
// only after a while; what failed to be saved is never passed.
func TestWhereATopicStandsIsSavedWithChangesOrAfterAWhile(t *testing.T) {
	t.Parallel()
	table, schema := foldtest.Table(false), foldtest.NewSchema()
	lake, src := pipelinetest.NewLake(), &topic{slices: make(chan pipeline.Slice, 10), saved: make(chan *catalog.TopicOffsets, 100)}
	clock := &ticker{now: time.Unix(1_000_000, 0)}
	failing, failed := make(chan struct{}, 1), make(chan struct{}, 1)
	lake.Outcome = func(string, catalog.Layer) pipelinetest.Outcome {
		select {
		case <-failing:
			failed <- struct{}{}
			return pipelinetest.Fails
		default:
			return pipelinetest.Lands
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- pipeline.New(pipeline.Config{
			Source: &catalog.Source{Name: "shop"}, Tables: []*catalog.Table{table}, Reader: src, Lake: lake, Observer: pipelinetest.NewObserver(), Clock: clock.time,
			Limits: pipeline.Limits{SaveEvery: time.Nanosecond, ReportEvery: time.Millisecond, DrainWithin: 10 * time.Second},
		}).Run(ctx)
	}()
	at := func(next int64) *catalog.TopicOffsets {
		return &catalog.TopicOffsets{Topic: "t", Partitions: []catalog.PartitionOffset{{Next: next}}}
	}
	commit := catalog.LSN(100)
	hand := func(changes int, next int64) {
		b := &change.Batch{Table: table, Rows: change.NewRows(schema), Offsets: at(next), Whole: true}
		for i := range changes {
			commit++
			row := b.Rows.Add()
			b.Rows.SetFixed(row, 0, int64(commit))
			b.Changes = append(b.Changes, change.Change{
				Op: change.Create, Before: -1, After: row, Other: -1, Key: foldtest.Key(int64(commit)), TxID: 1,
				Position: catalog.Position{Generation: 1, Commit: commit, Ordinal: uint64(i)}, Offset: next - 1,
			})
		}
		src.slices <- pipeline.Slice{Batches: []*change.Batch{b}}
	}
	heard := func(next int64) {
		t.Helper()
		for {
			select {
			case o := <-src.saved:
				if o.Equal(at(next)) {
					return
				}
			case <-time.After(20 * time.Second):
				require.FailNow(t, "it is not saved")
			}
		}
	}
	hand(1, 5)
	heard(5)
	n := lake.Commits("public.t", catalog.Bronze)
	hand(0, 7) // tombstones
	heard(5)   // it was looked at, and not saved
	require.Equal(t, n, lake.Commits("public.t", catalog.Bronze))
	clock.pass(2 * time.Minute)
	heard(7)
	require.Equal(t, n+1, lake.Commits("public.t", catalog.Bronze))

	failing <- struct{}{} // bronze says no
	hand(1, 10)
	<-failed
	clock.pass(2 * time.Minute)
	heard(10)
	var bronze []int64
	for _, b := range lake.Table("public.t").Bronze {
		for _, c := range b.Changes {
			bronze = append(bronze, c.Offset)
		}
	}
	require.Equal(t, []int64{4, 9}, bronze)
	cancel()
	require.NoError(t, <-ended)
}
