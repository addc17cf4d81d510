package lake

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// BenchmarkSave saves batches of 1,000 changes (700 updates of 50,000 rows, 300 new
// rows) into all layers, and says how long each layer's part takes.
func BenchmarkSave(b *testing.B) {
	for _, version := range formats() {
		b.Run(version.String(), func(b *testing.B) {
			l := open(b, b.TempDir())
			ls := openLayers(b, l, version, ordersTable(), ordersSchema())
			f := newFeed(ordersTable(), ordersSchema())
			f.commit()
			n := 50_000
			for i := range n {
				f.create(i, "pl", "new", i, "a note of usual length")
			}
			ls.save(b, f)
			var bronze, findCurrent, writeCurrent, findHistory, writeHistory time.Duration
			r := rand.New(rand.NewPCG(1, 2))
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				f.commit()
				for i := range 1000 {
					if i%10 < 7 {
						f.update(r.IntN(n), "pl", []string{"paid", "shipped", "done"}[r.IntN(3)], r.IntN(1e6), "a note of usual length")
					} else {
						f.create(n, "pl", "new", 5, "a note of usual length")
						n++
					}
				}
				batch := f.take()
				batches, to := []*change.Batch{batch}, f.state()
				b.StartTimer()
				at := time.Now()
				lap := func(d *time.Duration) { *d += time.Since(at); at = time.Now() }
				_, err := ls.Bronze.Append(b.Context(), batches, to)
				require.NoError(b, err)
				lap(&bronze)
				found, err := ls.Current.Find(b.Context(), fold.TouchedCurrent(ls.table, batches))
				require.NoError(b, err)
				lap(&findCurrent)
				_, err = ls.Current.Write(b.Context(), fold.Current(ls.table, ls.history, batches, found), to)
				require.NoError(b, err)
				lap(&writeCurrent)
				versions, err := ls.History.Find(b.Context(), fold.TouchedHistory(batches), nil)
				require.NoError(b, err)
				lap(&findHistory)
				_, err = ls.History.Write(b.Context(), fold.History(ls.table, ls.history, batches, versions), to)
				require.NoError(b, err)
				lap(&writeHistory)
				ls.history = to.Cursor.Position
			}
			for name, d := range map[string]time.Duration{"bronze": bronze, "current-find": findCurrent, "current-write": writeCurrent, "history-find": findHistory, "history-write": writeHistory} {
				b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), "ms-"+name)
			}
		})
	}
}
