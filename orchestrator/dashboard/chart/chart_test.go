package chart_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/dashboard/chart"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestChartsDrawWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	gap := math.NaN()
	for name, svg := range map[string]string{
		"rising":     chart.Sparkline([]float64{0, 10, 20, 30}, 60, 96, 22, "rising"),
		"over-limit": chart.Sparkline([]float64{10, 90, 10}, 60, 96, 22, "over"),
		"gaps":       chart.Sparkline([]float64{gap, 10, gap, gap, 20, 30, gap}, 60, 96, 22, "gaps"),
		"empty":      chart.Sparkline(nil, 60, 96, 22, "nothing yet"),
		"no-limit":   chart.Sparkline([]float64{0, 0}, 0, 96, 22, "flat"),
		"one":        chart.Sparkline([]float64{5}, 60, 96, 22, `a "label" with <marks>`),
		"bar-half":   chart.Bar(0.5, "ok", 54, 5),
		"bar-little": chart.Bar(0.0001, "ok", 54, 5),
		"bar-none":   chart.Bar(0, "idle", 54, 5),
		"bar-over":   chart.Bar(17, "over", 54, 5),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", name+".svg")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(svg+"\n"), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(want), svg+"\n"))
		})
	}
}

func TestOddNumbersDrawNoNonsense(t *testing.T) {
	t.Parallel()
	for _, points := range [][]float64{{math.Inf(1), 1}, {-5, 3}, {math.MaxFloat64, 1}, {math.NaN()}} {
		for _, limit := range []float64{-1, 0, 60} {
			svg := chart.Sparkline(points, limit, 96, 22, "x")
			require.NotContains(t, svg, "NaN")
			require.NotContains(t, svg, "Inf")
		}
	}
	require.NotContains(t, chart.Bar(math.NaN(), "ok", 54, 5), "NaN")
}
