package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

// C36: the worker dies at each commit in turn, before it lands and after, and the
// source sends its last changes again. Whatever the commit, the end is the same.
func TestC36ADeathAtEveryCommitOfEveryLayerEndsTheSame(t *testing.T) {
	t.Parallel()
	for _, lands := range []bool{false, true} {
		for nth := 1; nth <= 7; nth++ {
			t.Run(fmt.Sprintf("commit %d, lands=%v", nth, lands), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "snapshot: {chunk_rows: 2}\n", map[string]string{"public.rp.yaml": "table: public.rp\nprimary_key: [id]\nscd: [1, 2]\n"})
				r.exec("CREATE TABLE rp (id int PRIMARY KEY, v text)")
				r.exec("INSERT INTO rp VALUES (7, 'a'), (8, 'b'), (9, 'c')")
				r.start()
				r.landed()
				r.stop()
				deaths := &mortal{nth: nth, lands: lands, died: make(chan struct{})}
				stop := r.startMortal(deaths, postgres.New(postgres.Config{Source: r.source, DSN: catalog.Secret(r.dsn), Notes: notes{r}}))
				for i, sql := range []string{
					"INSERT INTO rp VALUES (1, 'v1')", "UPDATE rp SET v = 'v2' WHERE id = 1", "UPDATE rp SET v = 'v3' WHERE id = 1",
					"UPDATE rp SET v = 'v2' WHERE id = 1", "INSERT INTO rp VALUES (2, 'x')", "DELETE FROM rp WHERE id = 8",
				} {
					r.exec(sql)
					if i == 2 { // let some commits happen before the rest is written
						select {
						case <-deaths.died:
						case <-time.After(300 * time.Millisecond):
						}
					}
				}
				select {
				case <-deaths.died:
				case <-time.After(2 * time.Second): // fewer commits were needed
				}
				stop()
				r.start()
				r.landed()
				r.requireCurrentEqualsSource("rp")
				r.requireBronzeSound("public.rp")
				_, history := r.rows("public.rp", catalog.History)
				versions := map[string]int{}
				for _, v := range history {
					versions[v["id"]]++
				}
				_, bronze := r.rows("public.rp", catalog.Bronze)
				require.Equal(t, map[string]int{"1": 4, "2": 1, "7": 1, "8": 1, "9": 1}, versions)
				require.Len(t, bronze, 3+6)
			})
		}
	}
}

// mortal is a lake whose nth commit is the worker's last: it lands or it does not,
// and from then on nothing answers.
type mortal struct {
	pipeline.Lake
	nth   int
	lands bool
	died  chan struct{}

	mu   sync.Mutex
	n    int
	dead bool
}

var errDead = errors.New("the worker is dead")

// commit does a commit unless the worker is dead, or dies of it.
func (m *mortal) commit(do func() (pipeline.Commit, error)) (pipeline.Commit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return pipeline.Commit{}, errDead
	}
	m.n++
	if m.n < m.nth {
		return do()
	}
	m.dead = true
	defer close(m.died)
	if m.lands {
		if _, err := do(); err != nil {
			return pipeline.Commit{}, err
		}
	}
	return pipeline.Commit{}, errDead
}

func (m *mortal) Open(ctx context.Context, t *catalog.Table, s *catalog.Schema) (pipeline.Layers, error) {
	layers, err := m.Lake.Open(ctx, t, s)
	if err != nil {
		return layers, err
	}
	return pipeline.Layers{Bronze: mortalBronze{layers.Bronze, m}, Current: mortalCurrent{layers.Current, m}, History: mortalHistory{layers.History, m}}, nil
}

type mortalBronze struct {
	pipeline.Bronze
	m *mortal
}

func (b mortalBronze) Append(ctx context.Context, batches []*change.Batch, to pipeline.LayerState) (pipeline.Commit, error) {
	return b.m.commit(func() (pipeline.Commit, error) { return b.Bronze.Append(ctx, batches, to) })
}

type mortalCurrent struct {
	pipeline.Current
	m *mortal
}

func (c mortalCurrent) Write(ctx context.Context, r fold.CurrentResult, to pipeline.LayerState) (pipeline.Commit, error) {
	return c.m.commit(func() (pipeline.Commit, error) { return c.Current.Write(ctx, r, to) })
}

type mortalHistory struct {
	pipeline.History
	m *mortal
}

func (h mortalHistory) Write(ctx context.Context, r fold.HistoryResult, to pipeline.LayerState) (pipeline.Commit, error) {
	return h.m.commit(func() (pipeline.Commit, error) { return h.History.Write(ctx, r, to) })
}

// startMortal runs a pipeline over the mortal lake; stop ends it without a word to
// the source, as a death would.
func (r *rig) startMortal(m *mortal, reader pipeline.Source) (stop func()) {
	r.t.Helper()
	l, err := lake.Open(r.t.Context(), r.lakeCfg, testLogger(r.t))
	require.NoError(r.t, err)
	m.Lake = l.ForSource(r.source)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pipeline.New(pipeline.Config{
			Source: r.source, Tables: r.tables, Lake: m, Observer: pipelinetest.NewObserver(), Limits: r.limits,
			Logger: slog.New(slog.DiscardHandler), Reader: reader,
		}).Run(ctx)
	}()
	return func() {
		cancel()
		<-done
		_ = l.Close()
	}
}

// notes keeps in the registry how far the slot was allowed to forget, as a worker
// does.
type notes struct{ r *rig }

func (n notes) ReadFlushed(ctx context.Context) (catalog.LSN, bool, error) {
	slot, err := n.r.registry.ReadSlot(ctx, n.r.source.Name)
	if err != nil || slot == nil {
		return 0, false, err
	}
	return slot.FlushedLSN, true, nil
}

func (n notes) WriteFlushed(ctx context.Context, through catalog.LSN) error {
	return n.r.registry.WriteSlotFlush(ctx, n.r.source.Name, through)
}
