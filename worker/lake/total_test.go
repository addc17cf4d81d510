package lake

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// heardCurrent and heardHistory keep what the last commit said of itself.
type heardCurrent struct {
	pipeline.Current
	last *pipeline.Commit
}

func (h heardCurrent) Write(ctx context.Context, r fold.CurrentResult, to pipeline.LayerState) (c pipeline.Commit, err error) {
	*h.last, err = h.Current.Write(ctx, r, to)
	return *h.last, err
}

type heardHistory struct {
	pipeline.History
	last *pipeline.Commit
}

func (h heardHistory) Write(ctx context.Context, r fold.HistoryResult, to pipeline.LayerState) (c pipeline.Commit, err error) {
	*h.last, err = h.History.Write(ctx, r, to)
	return *h.last, err
}

func TestACommitSaysHowManyRowsTheLayerHolds(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			table, schema := foldtest.Table(false), foldtest.NewSchema()
			l := open(t, t.TempDir())
			ls := openLayers(t, l, version, table, schema)
			var current, history pipeline.Commit
			ls.Current, ls.History = heardCurrent{ls.Current, &current}, heardHistory{ls.History, &history}
			lf := newLife(3)
			var at catalog.Cursor
			for _, part := range lf.parts {
				b := foldtest.Batch(table, schema, part)
				b.Epoch = epoch
				at = b.End(at)
				to := pipeline.LayerState{Cursor: at}
				bronze, err := ls.Bronze.Append(t.Context(), []*change.Batch{b}, to)
				require.NoError(t, err)
				require.NoError(t, ls.foldCurrent(t.Context(), b, to))
				require.NoError(t, ls.foldHistory(t.Context(), foldtest.Batch(table, schema, part), to))
				for layer, c := range map[catalog.Layer]pipeline.Commit{catalog.Bronze: bronze, catalog.Current: current, catalog.History: history} {
					require.Equal(t, rowsIn(t, l, source(version).LakeName(table.Name, layer)), c.Total, layer)
				}
			}
		})
	}
}

// rowsIn counts as any Iceberg reader would.
func rowsIn(t testing.TB, l *Lake, ident []string) (n int64) {
	t.Helper()
	v, err := l.View(t.Context(), ident, 0)
	require.NoError(t, err)
	_, parts, err := v.Scan(t.Context(), ScanOptions{})
	require.NoError(t, err)
	for rows, err := range parts {
		require.NoError(t, err)
		n += int64(rows.Len())
	}
	return n
}
