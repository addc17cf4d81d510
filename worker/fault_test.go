package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/tableconfigs"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
	"github.com/lakeweir/lakeweir/worker/postgres"
	"github.com/lakeweir/lakeweir/worker/privacy"
)

// The shop lives while commits are refused, answers get lost, the worker dies,
// other writers commit and the replication connection is cut, all by a seed. In the
// end every layer equals the source, and history equals what the audit says.
//
// LAKEWEIR_FAULT_RUNS says how many runs there are, LAKEWEIR_SEED repeats one.
func TestFaultsLoseDoubleAndReviveNothing(t *testing.T) {
	t.Parallel()
	runs, seed := 8, uint64(time.Now().UnixNano())
	if s := os.Getenv("LAKEWEIR_FAULT_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		runs = n
	}
	if s := os.Getenv("LAKEWEIR_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		runs, seed = 1, n
	}
	for i := range runs {
		t.Run(fmt.Sprintf("LAKEWEIR_SEED=%d", seed+uint64(i)), func(t *testing.T) {
			t.Parallel()
			faultRun(t, seed+uint64(i))
		})
	}
}

func faultRun(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(tableconfigs.Files, "shop", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, "source.yaml") {
			var b []byte
			b, err = tableconfigs.Files.ReadFile(path)
			files[strings.TrimPrefix(path, "shop/")] = string(b)
		}
		return err
	}))
	r := newRig(t, fmt.Sprintf("snapshot: {chunk_rows: %d}\nformat_version: %d\n", 100+random.IntN(200), 2+random.IntN(2)), files)
	require.NoError(t, demo.Setup(t.Context(), r.dsn, 60))

	living, stop := context.WithCancel(t.Context())
	defer stop()
	var shop sync.WaitGroup
	shop.Go(func() {
		w := demo.NewWorkload(demo.WorkloadConfig{DSN: r.dsn, Rate: 300, Seed: seed, Connections: 2, MaxHold: 500 * time.Millisecond})
		if _, err := w.Run(living); err != nil {
			t.Errorf("workload: %v", err)
		}
	})
	if random.IntN(3) > 0 { // else the first snapshot is in trouble too
		r.start()
		r.landed()
		r.stop()
	}
	for life := range 3 + random.IntN(3) {
		m := &faulty{random: rand.New(rand.NewPCG(seed, uint64(life)+1)), died: make(chan struct{}), rig: r}
		end := r.startFaulty(m)
		select {
		case <-m.died:
		case <-time.After(time.Duration(300+random.IntN(900)) * time.Millisecond):
			if random.IntN(3) == 0 {
				r.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND slot_name = '" + r.source.Slot + "'")
			}
		}
		end()
	}
	stop()
	shop.Wait()
	r.start()
	r.landed()
	r.requireAllEqual()
}

// requireAllEqual compares source and lake, the layers with each other, and
// history with the audit.
func (r *rig) requireAllEqual() {
	r.t.Helper()
	r.requireEqual()
	l, err := lake.Open(r.t.Context(), r.lakeCfg, testLogger(r.t))
	require.NoError(r.t, err)
	defer l.Close()
	for _, t := range r.tables {
		if t.History {
			require.Empty(r.t, r.historyDifferences(l, t), "history of %s", t.ID())
		}
	}
}

// historyDifferences holds the lake's history of a shop table against the audit.
func (r *rig) historyDifferences(l *lake.Lake, t *catalog.Table) []string {
	r.t.Helper()
	h, err := worker.OpenHistory(r.t.Context(), l, r.source, t)
	require.NoError(r.t, err)
	masking, err := privacy.NewText([]byte(tokenKey))
	require.NoError(r.t, err)
	mask := func(column, text string) string {
		p, ok := t.PII[column]
		if !ok {
			return text
		}
		out, err := masking.Append(nil, p, []byte(text))
		require.NoError(r.t, err)
		return string(out)
	}
	tracked := slices.DeleteFunc(slices.Clone(h.Columns), func(c string) bool { return !t.Tracks(c) })
	c := demo.Comparison{
		Columns: h.Columns, Mask: mask, MaskKey: func(i int, text string) string { return mask(t.PrimaryKey[i], text) },
		Began: h.FirstRead, SnapshotEnded: h.LastRead,
	}
	ours := func(yield func(demo.Interval, error) bool) {
		for v, err := range h.Versions(r.t.Context()) {
			require.NoError(r.t, err)
			out := demo.Interval{From: v.From, To: v.To, Current: v.Current, FromSnapshot: v.Op == change.Read}
			for _, text := range v.Values {
				value := demo.Value{Null: text == nil}
				if text != nil {
					value.Text = *text
				}
				out.Values = append(out.Values, value)
			}
			for _, name := range t.PrimaryKey {
				out.Key = append(out.Key, out.Values[slices.Index(h.Columns, name)])
			}
			if !yield(out, nil) {
				return
			}
		}
	}
	conn, err := pgx.Connect(r.t.Context(), r.dsn)
	require.NoError(r.t, err)
	defer conn.Close(context.WithoutCancel(r.t.Context()))
	differences, err := c.Compare(ours, demo.History(r.t.Context(), conn, t.Name.Name, t.PrimaryKey, tracked, h.Columns))
	require.NoError(r.t, err)
	var out []string
	for _, d := range differences {
		out = append(out, d.String())
	}
	return out
}

// faulty is a lake in trouble.
type faulty struct {
	pipeline.Lake
	rig  *rig
	died chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	dead   bool
}

var errAway = catalog.Errorf(catalog.Unavailable, catalog.CodeLakeUnavailable, "", "the lake is away")

// fate is what becomes of an operation.
type fate int

const (
	works fate = iota
	refused
	unheard // it is done, but the answer is lost
	slow
	rivalFirst
	deadBefore
	deadAfter
)

func (m *faulty) draw(commit bool) (fate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return works, errDead
	}
	f := works
	switch n := m.random.IntN(100); {
	case n < 4:
		f = refused
	case !commit:
	case n < 8:
		f = unheard
	case n < 14:
		f = slow
	case n < 20:
		f = rivalFirst
	case m.random.IntN(160) == 0:
		f = deadBefore
	case m.random.IntN(160) == 0: //nolint:gocritic // drawn anew
		f = deadAfter
	}
	if f == deadBefore || f == deadAfter {
		m.dead = true
		close(m.died)
	}
	return f, nil
}

// commit does a commit as fate wills.
func (m *faulty) commit(ctx context.Context, rival func(context.Context) error, do func() (pipeline.Commit, error)) (pipeline.Commit, error) {
	f, err := m.draw(true)
	if err != nil {
		return pipeline.Commit{}, err
	}
	switch f {
	case refused:
		return pipeline.Commit{}, errAway
	case deadBefore:
		return pipeline.Commit{}, errDead
	case slow:
		select {
		case <-time.After(50 * time.Millisecond):
		case <-m.died:
		}
	case rivalFirst:
		if err := rival(ctx); err != nil && !errors.Is(err, pipeline.ErrStale) {
			return pipeline.Commit{}, err
		}
	case works, unheard, deadAfter:
	}
	c, err := do()
	switch {
	case err != nil:
		return c, err
	case f == unheard:
		return pipeline.Commit{}, errAway
	case f == deadAfter:
		return pipeline.Commit{}, errDead
	}
	return c, nil
}

func (m *faulty) Open(ctx context.Context, t *catalog.Table, s *catalog.Schema) (pipeline.Layers, error) {
	if f, err := m.draw(false); err != nil || f == refused {
		return pipeline.Layers{}, errors.Join(err, errAway)
	}
	layers, err := m.Lake.Open(ctx, t, s)
	if err != nil {
		return layers, err
	}
	f := faultyTable{m, t, s}
	layers.Bronze = faultyBronze{layers.Bronze, f}
	if layers.Current != nil {
		layers.Current = faultyCurrent{layers.Current, f}
	}
	if layers.History != nil {
		layers.History = faultyHistory{layers.History, f}
	}
	return layers, nil
}

type faultyTable struct {
	*faulty
	table  *catalog.Table
	schema *catalog.Schema
}

// open opens the table as another writer would.
func (f faultyTable) open(ctx context.Context) (pipeline.Layers, error) {
	return f.Lake.Open(ctx, f.table, f.schema)
}

type faultyBronze struct {
	pipeline.Bronze
	f faultyTable
}

func (b faultyBronze) Append(ctx context.Context, batches []*change.Batch, to pipeline.LayerState) (pipeline.Commit, error) {
	none := func(context.Context) error { return nil } // bronze has one writer
	return b.f.commit(ctx, none, func() (pipeline.Commit, error) { return b.Bronze.Append(ctx, batches, to) })
}

func (b faultyBronze) Read(ctx context.Context, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	if f, err := b.f.draw(false); err != nil || f == refused {
		return func(yield func(*change.Batch, error) bool) { yield(nil, errAway) }
	}
	return b.Bronze.Read(ctx, after, through, maxRows)
}

type faultyCurrent struct {
	pipeline.Current
	f faultyTable
}

func (c faultyCurrent) Write(ctx context.Context, r fold.CurrentResult, to pipeline.LayerState) (pipeline.Commit, error) {
	rival := func(ctx context.Context) error {
		layers, err := c.f.open(ctx)
		if err != nil {
			return err
		}
		state, err := layers.Current.State(ctx)
		if err != nil || state.Cursor.IsZero() {
			return err
		}
		_, err = layers.Current.Write(ctx, fold.CurrentResult{}, state)
		return err
	}
	return c.f.commit(ctx, rival, func() (pipeline.Commit, error) { return c.Current.Write(ctx, r, to) })
}

type faultyHistory struct {
	pipeline.History
	f faultyTable
}

func (h faultyHistory) Write(ctx context.Context, r fold.HistoryResult, to pipeline.LayerState) (pipeline.Commit, error) {
	rival := func(ctx context.Context) error {
		layers, err := h.f.open(ctx)
		if err != nil {
			return err
		}
		state, err := layers.History.State(ctx)
		if err != nil || state.Cursor.IsZero() {
			return err
		}
		_, err = layers.History.Write(ctx, fold.HistoryResult{}, state)
		return err
	}
	return h.f.commit(ctx, rival, func() (pipeline.Commit, error) { return h.History.Write(ctx, r, to) })
}

// startFaulty runs a pipeline over a lake in trouble; end ends it.
func (r *rig) startFaulty(m *faulty) (end func()) {
	r.t.Helper()
	l, err := lake.Open(r.t.Context(), r.lakeCfg, testLogger(r.t))
	require.NoError(r.t, err)
	m.Lake = l.ForSource(r.source)
	sealer, err := privacy.NewSealer([]byte(tokenKey))
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan struct{})
	limits := r.limits
	limits.DrainWithin = 5 * time.Second
	go func() {
		defer close(done)
		err := pipeline.New(pipeline.Config{
			Source: r.source, Tables: r.tables, Lake: m, Observer: pipelinetest.NewObserver(), Limits: limits,
			Logger: slog.New(slog.DiscardHandler),
			Mask: func(t *catalog.Table, s *catalog.Schema) (pipeline.Mask, error) {
				return privacy.New(t, s, []byte(tokenKey))
			},
			Reader: postgres.New(postgres.Config{
				Source: r.source, DSN: catalog.Secret(r.dsn), Notes: notes{r}, Limits: postgres.Limits{ConfirmEvery: 10 * time.Millisecond},
				Seal:   func(_ string, plain []byte) string { return sealer.Seal(plain) },
				Unseal: func(_, sealed string) ([]byte, error) { return sealer.Open(sealed) },
			}),
		}).Run(ctx)
		if err != nil && !errors.Is(err, errDead) && catalog.KindOf(err) != catalog.Unavailable && !strings.Contains(err.Error(), "in use") {
			r.t.Logf("the run ended: %v", err)
		}
	}()
	return func() {
		cancel()
		<-done
		_ = l.Close()
	}
}
