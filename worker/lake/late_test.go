package lake

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// scene is a random life of the model's table whose log is cut anywhere, also inside
// transactions, and of which some changes come late or twice.
type scene struct {
	source *foldtest.Source
	table  *catalog.Table
	parts  []pipelinetest.Part
	limits pipeline.Limits
	runs   []int // how many parts each run reads
	seen   *pipelinetest.Observer
}

func newScene(seed int) scene {
	return rapid.Custom(func(t *rapid.T) scene {
		s := scene{seen: pipelinetest.NewObserver(), source: foldtest.NewSource(), table: foldtest.Table(rapid.Bool().Draw(t, "soft"))}
		s.source.Live(t, 16)
		s.parts = pipelinetest.Parts(t, s.table, s.source.Log)
		if seed%3 > 0 {
			s.parts = pipelinetest.Delay(t, s.parts)
		}
		s.limits = pipeline.Limits{
			SaveEvery: time.Nanosecond, ReportEvery: time.Millisecond, DrainWithin: time.Minute,
			BatchRows:   rapid.SampledFrom([]int{1, 2, 250_000}).Draw(t, "batch rows"),
			RemakeBytes: rapid.SampledFrom([]int{1, 64 << 20}).Draw(t, "remake bytes"),
		}
		s.runs = rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(t, "runs")
		return s
	}).Example(seed)
}

func (s *scene) run(t *testing.T, l *Lake, version format, log *pipelinetest.Log, most int) {
	t.Helper()
	reader := pipelinetest.NewSource(log)
	log.Most = most
	p := pipeline.New(pipeline.Config{
		Source: &catalog.Source{Name: "shop"}, Tables: []*catalog.Table{s.table}, Reader: reader, Lake: l.ForSource(source(version)),
		Observer: s.seen, Limits: s.limits, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	select {
	case <-reader.Idle():
	case <-ctx.Done():
		require.Fail(t, "the pipeline hangs")
	}
	cancel()
	require.NoError(t, <-done)
}

func TestLateChangesAndPartsOfTransactionsTakeTheirPlaceInTheLake(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		for seed := range 12 {
			t.Run(fmt.Sprintf("%s seed %d", version, seed), func(t *testing.T) {
				t.Parallel()
				s := newScene(seed)
				dir := t.TempDir()
				log := &pipelinetest.Log{Parts: s.parts}
				read := 0
				for _, n := range s.runs { // everything that is only in memory is lost in between
					read += n
					l := open(t, dir)
					s.run(t, l, version, log, read)
					require.NoError(t, l.Close())
				}
				l := open(t, dir)
				s.run(t, l, version, log, 0)
				require.Equal(t, positionsOf(s.source.Log), bronzePositions(t, l, s.table), "bronze")
				require.Equal(t, s.source.CurrentText(), currentText(t, l, s.table), "current")
				require.Equal(t, s.source.HistoryText(), historyText(t, l, s.table), "history")
			})
		}
	}
}

func positionsOf(log []foldtest.Event) []string {
	var out []string
	for _, e := range log {
		out = append(out, e.Position().String())
	}
	slices.Sort(out)
	return out
}

func bronzePositions(t *testing.T, l *Lake, table *catalog.Table) []string {
	t.Helper()
	v, err := l.View(t.Context(), source(3).LakeName(table.Name, catalog.Bronze), 0)
	require.NoError(t, err)
	_, parts, err := v.Scan(t.Context(), ScanOptions{Columns: []string{colGeneration, colCommitLSN, colOrdinal}})
	require.NoError(t, err)
	var out []string
	for rows, err := range parts {
		require.NoError(t, err)
		for row := range rows.Len() {
			out = append(out, stampPosition(rows.Fixed(row, 0), rows.Fixed(row, 1), rows.Fixed(row, 2)).String())
		}
	}
	slices.Sort(out)
	return out
}
