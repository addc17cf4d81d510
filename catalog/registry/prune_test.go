package registry

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

func TestPruneKeepsTheNewestOfEachTable(t *testing.T) {
	t.Parallel()
	r, err := Open(t.Context(), catalog.Secret(localpgtest.Database(t)))
	require.NoError(t, err)
	t.Cleanup(r.Close)
	source := catalog.Source{Name: "shop", Namespaces: catalog.Namespaces{Bronze: []string{"b"}, Silver: []string{"s"}}}
	busy := catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "busy"}}
	quiet := catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "quiet"}}
	require.NoError(t, r.SyncConfig(t.Context(), []catalog.Source{source}, []catalog.Table{busy, quiet}))

	now := time.Now()
	var batches []BatchRecord
	for i := range 20 {
		batches = append(batches, BatchRecord{Table: "public.busy", ID: strconv.Itoa(i), At: now.Add(-time.Duration(i) * time.Minute), Creates: 1})
	}
	batches = append(batches,
		BatchRecord{Table: "public.quiet", ID: "recent", At: now.Add(-6 * 24 * time.Hour), Creates: 1},
		BatchRecord{Table: "public.quiet", ID: "old", At: now.Add(-8 * 24 * time.Hour), Creates: 1})
	require.NoError(t, r.RecordBatches(t.Context(), "shop", batches))
	for i := range 9 { // the oldest stay open
		c, err := r.RecordSchemaChange(t.Context(), "shop", SchemaChange{Table: "public.busy", At: catalog.Place{Position: catalog.Position{Generation: 1, Ordinal: uint64(i)}}})
		require.NoError(t, err)
		q, err := r.BeginQuarantine(t.Context(), "shop", Quarantine{Table: "public.busy", Key: "k"})
		require.NoError(t, err)
		if i > 0 {
			require.NoError(t, r.SupersedeSchemaChange(t.Context(), c.ID, ""))
		}
		require.NoError(t, r.EndQuarantine(t.Context(), q.ID))
		if i > 0 {
			require.NoError(t, r.MarkSwept(t.Context(), q.ID))
		}
	}
	for i := range 9 {
		require.NoError(t, r.RecordEvent(t.Context(), "shop", "public.busy", Started, map[string]any{"n": i}))
	}
	require.NoError(t, r.prune(t.Context(), 5, 3))
	changes, err := r.SchemaChanges(t.Context(), "shop", "public.busy")
	require.NoError(t, err)
	require.Len(t, changes, 4, "what is open is never forgotten")
	quarantines, err := r.Quarantines(t.Context(), "shop", "public.busy")
	require.NoError(t, err)
	require.Len(t, quarantines, 4, "nor that there are files to remove")

	d, err := r.Table(t.Context(), "shop", "public.busy")
	require.NoError(t, err)
	require.Len(t, d.Batches, 5)
	require.Equal(t, "0", d.Batches[0].ID)
	require.Len(t, d.Events, 3)
	require.JSONEq(t, `{"n": 8}`, string(d.Events[0].Detail))
	require.EqualValues(t, 20, d.Table.Totals.Changes, "sums outlive the batches")
	d, err = r.Table(t.Context(), "shop", "public.quiet")
	require.NoError(t, err)
	require.Len(t, d.Batches, 1)
	require.Equal(t, "recent", d.Batches[0].ID)
}
