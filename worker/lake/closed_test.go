package lake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Also when only the files of commits from about that time are looked at, and when
// what was found before is remembered.
func TestWhenAKeyWasClosedIsFoundHoweverFarBack(t *testing.T) {
	t.Parallel()
	const minute = 60_000_000
	dir := t.TempDir()
	table, schema := ordersTable(), ordersSchema()
	f := newFeed(table, schema)
	begin := f.time
	ls := openLayers(t, open(t, dir), 3, table, schema)
	ended := map[int]int64{}
	keys := make([][]byte, 8)
	for n := range 8 { // key n ends n times ten minutes after the beginning
		f.commit().create(n, "pl", "new", 1, nil)
		keys[n] = f.batch.Changes[0].Key
		f.time = begin + int64(n)*10*minute
		f.commit().remove(n, "pl")
		ended[n] = f.time
		ls.save(t, f)
	}
	check := func(ls *layers, since int64) {
		want := map[string]int64{}
		for n, at := range ended {
			if at > since {
				want[string(keys[n])] = at
			}
		}
		found, err := ls.Layers.History.FindClosed(t.Context(), keys, since)
		require.NoError(t, err)
		got := map[string]int64{}
		for _, v := range found {
			got[string(v.Key)] = v.Row.To
		}
		require.Equal(t, want, got, "since %d minutes", (since-begin)/minute)
	}
	for _, back := range []int64{0, 1, 9, 10, 11, 35, 80} {
		check(ls, f.time-back*minute)                                            // remembered, or further back than that
		check(openLayers(t, open(t, dir), 3, table, schema), f.time-back*minute) // as after a restart
	}
	// What is closed meanwhile is remembered too; what is put right is forgotten.
	f.commit().create(0, "pl", "again", 1, nil)
	f.commit().remove(0, "pl")
	ended[0] = f.time
	ls.save(t, f)
	check(ls, f.time-minute)
	st, err := ls.Layers.History.State(t.Context())
	require.NoError(t, err)
	versions, err := ls.Layers.History.FindKeys(t.Context(), fold.NewKeySet(keys[7]), 1<<20)
	require.NoError(t, err)
	var gone []change.Place
	for _, v := range versions {
		gone = append(gone, v.Place)
	}
	_, err = ls.Layers.History.Write(t.Context(), fold.HistoryResult{Remove: gone}, pipeline.LayerState{Cursor: st.Cursor, CommitTime: st.CommitTime})
	require.NoError(t, err)
	delete(ended, 7)
	check(ls, f.time-80*minute)
}
