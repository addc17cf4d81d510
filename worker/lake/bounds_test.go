package lake

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Files whose bounds show that they have none of the keys are not opened; those that
// have one always are.
func TestOnlyFilesThatMayHaveTheKeysAreRead(t *testing.T) {
	t.Parallel()
	table, schema := ordersTable(), ordersSchema()
	schema.Columns[1].Source = catalog.SourceType{Base: "text"} // whose order is known
	ls := openLayers(t, open(t, t.TempDir()), 3, table, schema)
	f := newFeed(table, schema)
	keys := map[int][]byte{}
	shops := []string{"amsterdam and its surroundings", "berlin", "zürich"}
	for file, shop := range shops {
		f.commit()
		for n := range 3 {
			f.create(file*100+n-50, shop, "new", 1, nil)
			keys[file*3+n] = f.batch.Changes[n].Key
		}
		ls.save(t, f)
	}
	h, ok := ls.Layers.History.(*history)
	require.True(t, ok)
	lg, err := h.index(t.Context())
	require.NoError(t, err)
	fields := h.keyReader().fields
	for n, key := range keys {
		filter := newKeyFilter(schema, fold.NewKeySet(key))
		for i, file := range lg.inOrder() {
			require.Equal(t, i == n/3, filter.mayHold(file, fields), "key %d, file %d", n, i)
		}
		found, err := ls.Layers.History.FindKeys(t.Context(), fold.NewKeySet(key), 1<<20)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, key, found[0].Key)
	}
	// A value between two bounds, in either column.
	for _, c := range []struct {
		id   int
		shop string
		want int
	}{{-50, "berlin", 0}, {-49, "amsterdam and its surroundings", 1}, {-49, "amsterdam and its surroundingt", 1}, {500, "zürich", 0}, {150, "zz", 0}} {
		f.row(c.id, c.shop)
		key, err := f.batch.Rows.AppendKey(nil, f.batch.Rows.Len()-1)
		require.NoError(t, err)
		filter, may := newKeyFilter(schema, fold.NewKeySet(key)), 0
		for _, file := range lg.inOrder() {
			if filter.mayHold(file, fields) {
				may++
			}
		}
		require.Equal(t, c.want, may, "%d %s", c.id, c.shop)
	}
}

// BenchmarkFindVersions looks for the versions of a key, and for when it was closed, in
// a history of 2,000,000 versions in 200 files, with keys in the order of their making
// and spread over all files.
func BenchmarkFindVersions(b *testing.B) {
	for _, spread := range []bool{false, true} {
		name := map[bool]string{false: "keys in order", true: "keys spread"}[spread]
		b.Run(name, func(b *testing.B) {
			table, schema := ordersTable(), ordersSchema()
			ls := openLayers(b, open(b, b.TempDir()), 3, table, schema)
			r := rand.New(rand.NewPCG(1, 2))
			at := catalog.Cursor{Epoch: epoch}
			const files, each = 200, 10_000
			var time int64
			for file := range files {
				rows := change.NewRows(schema)
				var result fold.HistoryResult
				for n := range each {
					id := int64(file*each + n)
					if spread {
						id = r.Int64N(files * each)
					}
					row := rows.Add()
					rows.SetFixed(row, 0, id)
					rows.SetBytes(row, 1, []byte("pl"))
					rows.SetBytes(row, 2, []byte("new"))
					rows.SetFixed(row, 3, int64(n))
					rows.SetMark(row, 4, change.Null)
					time += 1000
					at.Position = catalog.Position{Generation: 1, Commit: catalog.LSN(8 * time), Ordinal: 0}
					result.Write = append(result.Write, fold.Version{Image: change.Ref{Rows: rows, Row: row}, Stamp: fold.Stamp{Position: at.Position, CommitTime: time}, From: time, To: time + 500, Op: change.Create})
				}
				_, err := ls.Layers.History.Write(b.Context(), result, pipeline.LayerState{Cursor: at, CommitTime: time + 500})
				require.NoError(b, err)
			}
			h, _ := ls.Layers.History.(*history)
			key := func() []byte {
				rows := change.NewRows(schema)
				row := rows.Add()
				rows.SetFixed(row, 0, r.Int64N(files*each))
				rows.SetBytes(row, 1, []byte("pl"))
				k, err := rows.AppendKey(nil, row)
				require.NoError(b, err)
				return k
			}
			run := func(what string, f func()) {
				b.Run(what, func(b *testing.B) {
					before := cpuSeconds()
					for b.Loop() {
						f()
					}
					b.ReportMetric((cpuSeconds()-before)/float64(b.N)*1000, "cpu-ms/op")
				})
			}
			run("every version of one key", func() {
				_, err := ls.Layers.History.FindKeys(b.Context(), fold.NewKeySet(key()), 1<<30)
				require.NoError(b, err)
			})
			for _, back := range []int64{1000, 10_000_000} {
				run(fmt.Sprintf("when it was closed, the clock %d µs back, first", back), func() {
					h.ledger.closed = nil
					_, err := ls.Layers.History.FindClosed(b.Context(), [][]byte{key()}, time-back)
					require.NoError(b, err)
				})
			}
			run("when it was closed, again", func() {
				_, err := ls.Layers.History.FindClosed(b.Context(), [][]byte{key()}, time-1000)
				require.NoError(b, err)
			})
		})
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
