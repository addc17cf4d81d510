package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// withREST puts a REST catalog before the rig's lake, with trouble at the commits
// that faults name.
func (r *rig) withREST(faults ...fault) (*laketest.Engine, func(kind string) int) {
	r.t.Helper()
	dir := r.t.TempDir()
	e, err := laketest.SQLite(filepath.Join(dir, "catalog.db"), r.lakeCfg.Warehouse)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = e.Close() })
	var mu sync.Mutex
	came := map[string]int{}
	f := &front{engine: e, fired: func(kind string) { mu.Lock(); defer mu.Unlock(); came[kind]++ }}
	f.live(0, faults)
	s := httptest.NewServer(f.rest())
	s.Config.ErrorLog = quiet()
	r.t.Cleanup(s.Close)
	r.lakeCfg.Catalog = s.URL
	return e, func(kind string) int { mu.Lock(); defer mu.Unlock(); return came[kind] }
}

// C56: the catalog applies a commit and the answer is lost, or it refuses and did not
// apply it; tables are made and written under that trouble, each commit of each layer
// once, and every reader finds every file at every moment.
func TestC56ACommitWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{replyLost, replyCut, commitRefused} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "", map[string]string{"public.cu.yaml": "table: public.cu\nprimary_key: [id]\nscd: [1, 2]\n"})
			var faults []fault
			for n := 1; n <= 40; n++ {
				if kind != commitRefused || n%2 == 1 { // or it never comes through
					faults = append(faults, fault{Kind: kind, At: n})
				}
			}
			e, came := r.withREST(faults...)
			r.exec("CREATE TABLE cu (id int PRIMARY KEY, v text)")
			reading := r.readAlways(e, "public.cu")
			r.start()
			r.landed()
			for _, sql := range []string{"INSERT INTO cu VALUES (1, 'a')", "INSERT INTO cu VALUES (2, 'b')", "UPDATE cu SET v = 'c' WHERE id = 2", "DELETE FROM cu WHERE id = 1"} {
				r.exec(sql)
				r.landed()
			}
			reading()
			require.Greater(t, came(kind), 9, "each layer's creation and commits were hit")
			r.requireCurrentEqualsSource("cu")
			r.requireBronzeSound("public.cu")
			_, bronze := r.rows("public.cu", catalog.Bronze)
			require.Len(t, bronze, 4)
			_, history := r.rows("public.cu", catalog.History)
			require.Len(t, history, 3)
		})
	}
}

// readAlways reads all layers of a table whole, again and again, until the function
// that it returns is called; no read may miss a file.
func (r *rig) readAlways(e *laketest.Engine, table string) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var reading sync.WaitGroup
	reads := 0
	reading.Go(func() {
		for ctx.Err() == nil {
			for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
				_, err := e.Count(context.WithoutCancel(ctx), r.source.LakeName(catalog.ParseTableName(table), layer))
				if err != nil && !strings.Contains(err.Error(), "does not exist") {
					r.t.Errorf("%s cannot be read: %v", layer, err)
					return
				}
				reads++
			}
		}
	})
	return func() {
		cancel()
		reading.Wait()
		require.Greater(r.t, reads, 10)
	}
}

// C56: the object store answers 503 for a while, while data files are written. The
// batch is saved once it is back, once.
func TestC56AnObjectStoreThatIsAwayForAWhileLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.cu.yaml": "table: public.cu\nprimary_key: [id]\nscd: [1, 2]\n"})
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("lake"))
	store := gofakes3.New(backend).Server()
	var away, refused atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPut && away.Add(-1) >= 0 {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		store.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	r.lakeCfg.Warehouse = "s3://lake/wh"
	r.lakeCfg.Properties = map[string]string{"s3.endpoint": s.URL, "s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}
	r.exec("CREATE TABLE cu (id int PRIMARY KEY, v text)")
	r.start()
	r.landed()
	away.Store(8)
	r.exec("INSERT INTO cu VALUES (1, 'a')")
	r.landed()
	require.EqualValues(t, 8, refused.Load())
	r.requireCurrentEqualsSource("cu")
	_, bronze := r.rows("public.cu", catalog.Bronze)
	require.Len(t, bronze, 1)
	_, history := r.rows("public.cu", catalog.History)
	require.Len(t, history, 1)
}

// C57: another program appends a row to each layer, again and again, sets a property
// and adds a column, while we write twenty batches. Every row of both is there and no
// snapshot is left out. What is the other's is none of the source's: a comparison
// says that these rows are too many.
func TestC57TwoWritersOfOneTableKeepEachOthersRows(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, fmt.Sprintf("format_version: %d\n", version), map[string]string{"public.cw.yaml": "table: public.cw\nprimary_key: [id]\nscd: [1, 2]\n"})
			r.exec("CREATE TABLE cw (id int PRIMARY KEY, v text)")
			r.start()
			r.landed()
			e, err := laketest.SQLite(strings.TrimPrefix(r.lakeCfg.Catalog, "sqlite://"), "")
			require.NoError(t, err)
			t.Cleanup(func() { _ = e.Close() })
			layers := map[catalog.Layer]map[string]any{
				catalog.Bronze:  {"op": "x"},
				catalog.Current: {"v": "marker", "_is_deleted": false},
				catalog.History: {"v": "marker", "is_current": true, "valid_from": int64(0), "valid_to": int64(253402214400000000)},
			}
			var other sync.WaitGroup
			turn := make(chan int, 20) // one of theirs while one of ours is under way
			other.Go(func() {
				for i := range turn {
					for layer, row := range layers {
						row["id"] = int64(1000 + i)
						if err := e.Append(t.Context(), r.source.LakeName(catalog.ParseTableName("public.cw"), layer), row); err != nil {
							t.Errorf("append to %s: %v", layer, err)
						}
						switch i {
						case 7:
							err = e.SetProperty(t.Context(), r.source.LakeName(catalog.ParseTableName("public.cw"), layer), "comment", "markers")
						case 12:
							err = e.AddColumn(t.Context(), r.source.LakeName(catalog.ParseTableName("public.cw"), layer), "marked_by")
						}
						if err != nil {
							t.Errorf("change %s: %v", layer, err)
						}
					}
				}
			})
			for i := range 20 {
				turn <- i
				r.exec(fmt.Sprintf("INSERT INTO cw VALUES (%d, 'ours'); UPDATE cw SET v = v || '!' WHERE id = %d", i, i-1))
				r.landed()
			}
			close(turn)
			other.Wait()
			r.landed()
			require.Nil(t, r.state("public.cw").Fault)
			count := func(layer catalog.Layer) (ours, theirs int) {
				_, rows := r.rows("public.cw", layer)
				for _, row := range rows {
					if row["op"] == "x" || row["v"] == "marker" {
						theirs++
					} else {
						ours++
					}
				}
				return ours, theirs
			}
			for layer, want := range map[catalog.Layer]int{catalog.Bronze: 39, catalog.Current: 20, catalog.History: 39} {
				ours, theirs := count(layer)
				require.Equal(t, want, ours, layer)
				require.Equal(t, 20, theirs, layer)
				chain, err := e.Chain(t.Context(), r.source.LakeName(catalog.ParseTableName("public.cw"), layer))
				require.NoError(t, err, layer)
				require.GreaterOrEqual(t, len(chain), 40)
			}

			outcomes, err := worker.Compare(t.Context(), worker.CompareConfig{
				Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey, Lake: r.lakeCfg, Registry: r.registry, Logger: testLogger(t),
			})
			require.NoError(t, err)
			require.NoError(t, outcomes[0].Err)
			require.Equal(t, map[reconcile.Kind]int64{reconcile.Extra: 20}, outcomes[0].Result.Kinds)

			// A restart reads all of it back.
			r.stop()
			r.start()
			r.exec("UPDATE cw SET v = 'new'; DELETE FROM cw WHERE id < 5")
			r.landed()
			ours, theirs := count(catalog.Current)
			require.Equal(t, []int{15, 20}, []int{ours, theirs})
		})
	}
}
