package lake

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
)

// A worker commits for months: what it keeps must depend on what the tables hold,
// not on how often they were committed to.
func TestManyCommitsKeepNoPastTables(t *testing.T) {
	l := open(t, t.TempDir())
	ls := openLayers(t, l, 3, ordersTable(), ordersSchema())
	f := newFeed(ordersTable(), ordersSchema())
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for n := range 200 {
		f.commit()
		for i := range 10 {
			f.create(10*n+i, "pl", "new", 5, "note")
		}
		b := f.take()
		_, err := ls.Bronze.Append(t.Context(), []*change.Batch{b}, f.state())
		require.NoError(t, err)
		require.NoError(t, ls.foldCurrent(t.Context(), b, f.state()))
		require.NoError(t, ls.foldHistory(t.Context(), b, f.state()))
	}
	require.Less(t, (heap()-before)>>20, int64(40), "MiB kept after 200 commits to three layers")
	runtime.KeepAlive(ls)
}
