package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// tricky is a catalog whose answers a test decides.
type tricky struct {
	icecat.Catalog
	commits, loads int
	// commit is asked about the n-th commit, from 1: whether it is handed on, and
	// which error is answered in spite of what became of it.
	commit func(n int) (land bool, err error)
	after  func(n int) // called once a commit was handed on
	load   func(n int) error
}

func (c *tricky) CommitTable(ctx context.Context, ident table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	c.commits++
	land, answer := true, error(nil)
	if c.commit != nil {
		land, answer = c.commit(c.commits)
	}
	var md table.Metadata
	var loc string
	err := answer
	if land {
		if md, loc, err = c.Catalog.CommitTable(ctx, ident, reqs, updates); err == nil {
			err = answer
		}
		if c.after != nil {
			c.after(c.commits)
		}
	}
	if err != nil {
		return nil, "", err
	}
	return md, loc, nil
}

func (c *tricky) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	c.loads++
	if c.load != nil {
		if err := c.load(c.loads); err != nil {
			return nil, err
		}
	}
	return c.Catalog.LoadTable(ctx, ident)
}

var errBroken = errors.New("connection reset by peer")

// world is an orders table with two rows saved, and a catalog to play tricks with.
type world struct {
	t       *testing.T
	dir     string
	version format
	lake    *Lake
	cat     *tricky
	ls      *layers
	f       *feed
}

func newWorld(t *testing.T, version format) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), version: version}
	w.lake = open(t, w.dir)
	w.cat = &tricky{Catalog: w.lake.cat}
	w.lake.cat = w.cat
	w.ls = openLayers(t, w.lake, version, ordersTable(), ordersSchema())
	w.f = newFeed(ordersTable(), ordersSchema())
	w.f.commit().create(1, "pl", "new", 100, nil)
	w.f.create(2, "pl", "new", 200, nil)
	w.ls.save(t, w.f)
	w.cat.commits, w.cat.loads = 0, 0
	return w
}

// saveAll saves into all layers as the pipeline would: found again when stale.
func (w *world) save() (stale int) {
	w.t.Helper()
	b := w.f.take()
	_, err := w.ls.Bronze.Append(w.t.Context(), []*change.Batch{b}, w.f.state())
	require.NoError(w.t, err)
	for _, foldIn := range []func(context.Context, *change.Batch, pipeline.LayerState) error{w.ls.foldCurrent, w.ls.foldHistory} {
		for {
			err := foldIn(w.t.Context(), b, w.f.state())
			if errors.Is(err, pipeline.ErrStale) {
				stale++
				continue
			}
			require.NoError(w.t, err)
			break
		}
	}
	return stale
}

// rows reads column "status" of a layer by the first key column, as others would.
func (w *world) rows(layer catalog.Layer) []string {
	w.t.Helper()
	other := open(w.t, w.dir)
	var out []string
	eachRow(w.t, other, source(w.version).LakeName(ordersTable().Name, layer), func(s *catalog.Schema, rows *change.Rows, row int) {
		id, status := "order id", "status"
		prefix := ""
		if layer == catalog.Bronze {
			id, status = "pk.order id", "after.status"
			prefix = string(rows.Bytes(row, s.Index(colOp))) + " "
		}
		text := "null"
		if col := s.Index(status); rows.HasValue(row, col) {
			text = string(rows.Bytes(row, col))
		}
		if layer == catalog.History && rows.Fixed(row, s.Index(colIsCurrent)) == 0 {
			text += " closed"
		}
		out = append(out, fmt.Sprintf("%s%d %s", prefix, rows.Fixed(row, s.Index(id)), text))
	})
	slices.Sort(out)
	return out
}

func (w *world) expectUpdated() {
	w.t.Helper()
	require.Equal(w.t, []string{"c 1 new", "c 2 new", "u 1 paid"}, w.rows(catalog.Bronze))
	require.Equal(w.t, []string{"1 paid", "2 new"}, w.rows(catalog.Current))
	require.Equal(w.t, []string{"1 new closed", "1 paid", "2 new"}, w.rows(catalog.History))
	for _, st := range w.states() {
		require.Equal(w.t, w.f.end, st.Cursor)
	}
}

func (w *world) states() []pipeline.LayerState {
	w.t.Helper()
	var out []pipeline.LayerState
	for _, s := range []interface {
		State(context.Context) (pipeline.LayerState, error)
	}{w.ls.Bronze, w.ls.Current, w.ls.History} {
		st, err := s.State(w.t.Context())
		require.NoError(w.t, err)
		out = append(out, st)
	}
	return out
}

func (w *world) update() *world {
	w.f.commit().update(1, "pl", "paid", 100, nil)
	return w
}

func TestACommitThatDidNotLandIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.cat.commit = func(n int) (bool, error) {
				if n%3 != 0 { // each layer's third try
					return false, errBroken
				}
				return true, nil
			}
			require.Zero(t, w.update().save())
			w.expectUpdated()
			require.Equal(t, 9, w.cat.commits)
		})
	}
}

func TestALostReplyIsResolvedByReadingBack(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.cat.commit = func(int) (bool, error) { return true, errBroken }
			w.cat.load = func(n int) error {
				if n%2 == 1 { // nor does reading back work at once
					return errBroken
				}
				return nil
			}
			b := w.update().f.take()
			_, err := w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
			require.NoError(t, err)
			require.Equal(t, 1, w.cat.commits)
			w.cat.load = nil
			require.NoError(t, w.ls.foldCurrent(t.Context(), b, w.f.state()))
			require.NoError(t, w.ls.foldHistory(t.Context(), b, w.f.state()))
			w.expectUpdated()
			require.Equal(t, 3, w.cat.commits)
			// What was learnt from the table serves the next commit.
			w.cat.commit = nil
			w.f.commit().update(1, "pl", "shipped", 100, nil)
			require.Zero(t, w.save())
			require.Equal(t, []string{"1 shipped", "2 new"}, w.rows(catalog.Current))
		})
	}
}

func TestACatalogThatIsDownLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			before := w.states()
			w.cat.commit = func(int) (bool, error) { return false, errBroken }
			b := w.update().f.take()
			_, err := w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
			require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(err).Code)
			require.Equal(t, w.lake.retry.attempts, w.cat.commits)
			err = w.ls.foldCurrent(t.Context(), b, w.f.state())
			require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(err).Code)
			require.Equal(t, before, w.states())
			require.Equal(t, []string{"1 new", "2 new"}, w.rows(catalog.Current))

			w.cat.commit = nil
			_, err = w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
			require.NoError(t, err)
			require.NoError(t, w.ls.foldCurrent(t.Context(), b, w.f.state()))
			require.NoError(t, w.ls.foldHistory(t.Context(), b, w.f.state()))
			w.expectUpdated()
		})
	}
}

// another writes to a table as another engine would: through its own handle.
func (w *world) another(layer catalog.Layer, f func(t *table.Table) (*table.Table, error)) {
	w.t.Helper()
	other := open(w.t, w.dir)
	tbl, err := other.cat.LoadTable(w.t.Context(), source(w.version).LakeName(ordersTable().Name, layer))
	require.NoError(w.t, err)
	_, err = f(tbl)
	require.NoError(w.t, err)
}

// appendForeign adds one row with nothing but its first columns.
func (w *world) appendForeign(layer catalog.Layer, id int64) {
	w.another(layer, func(tbl *table.Table) (*table.Table, error) {
		schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
		require.NoError(w.t, err)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i, f := range schema.Fields() {
			switch f.Name {
			case "order id":
				b.Field(i).(*array.Int64Builder).Append(id)
			case "shop.code", "status", colOp:
				b.Field(i).(*array.StringBuilder).Append("x")
			case colIsCurrent:
				b.Field(i).(*array.BooleanBuilder).Append(true)
			case colIngestedAt, colValidFrom:
				b.Field(i).(*array.TimestampBuilder).Append(0)
			case colValidTo:
				b.Field(i).(*array.TimestampBuilder).Append(arrow.Timestamp(fold.Open))
			default:
				b.Field(i).AppendNull()
			}
		}
		rec := b.NewRecordBatch()
		rdr, err := array.NewRecordReader(schema, []arrow.RecordBatch{rec})
		require.NoError(w.t, err)
		return tbl.Append(w.t.Context(), rdr, nil)
	})
}

func TestAnotherWritersRowsSurviveAndOursToo(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			layers := []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History}
			w.cat.commit = func(n int) (bool, error) {
				// Between what a commit was computed on and the commit.
				if n == 1 || n == 3 || n == 5 {
					w.appendForeign(layers[n/2], 77)
				}
				return true, nil
			}
			require.Equal(t, 2, w.update().save(), "current and history are found again")
			require.Equal(t, []string{"c 1 new", "c 2 new", "u 1 paid", "x 0 null"}, w.rows(catalog.Bronze))
			require.Equal(t, []string{"1 paid", "2 new", "77 x"}, w.rows(catalog.Current))
			require.Equal(t, []string{"1 new closed", "1 paid", "2 new", "77 x"}, w.rows(catalog.History))
			// The other's row is one like any other now.
			w.cat.commit = nil
			w.f.commit().update(77, "x", "ours", 1, nil)
			w.save()
			require.Equal(t, []string{"1 paid", "2 new", "77 ours"}, w.rows(catalog.Current))
		})
	}
}

func TestALostReplyIsResolvedThoughOthersCommittedSince(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.cat.commit = func(int) (bool, error) { return true, errBroken }
			layers := []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History}
			w.cat.after = func(n int) {
				if n <= 3 {
					w.appendForeign(layers[n-1], 77)
				}
			}
			require.Zero(t, w.update().save())
			require.Equal(t, []string{"1 paid", "2 new", "77 x"}, w.rows(catalog.Current))
			w.cat.commit, w.cat.after = nil, nil
			w.f.commit().update(1, "pl", "shipped", 1, nil)
			w.f.update(77, "x", "ours", 1, nil)
			require.Zero(t, w.save())
			require.Equal(t, []string{"1 shipped", "2 new", "77 ours"}, w.rows(catalog.Current))
			require.Equal(t, []string{"1 new closed", "1 paid closed", "1 shipped", "2 new", "77 ours", "77 x closed"}, w.rows(catalog.History))
		})
	}
}

func TestADeleteByAnotherWriterIsKept(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			done := false
			w.cat.commit = func(n int) (bool, error) {
				if n == 2 && !done { // the commit to current: rows 1 and 2 lie in one file
					done = true
					w.another(catalog.Current, func(tbl *table.Table) (*table.Table, error) {
						return tbl.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("order id"), int64(2)), nil)
					})
				}
				return true, nil
			}
			require.Equal(t, 1, w.update().save())
			require.Equal(t, []string{"1 paid"}, w.rows(catalog.Current))
			// A vector of ours on top of the merged one.
			w.f.commit().create(2, "pl", "again", 1, nil)
			w.f.remove(1, "pl")
			w.save()
			require.Equal(t, []string{"2 again"}, w.rows(catalog.Current))
		})
	}
}

func TestASecondWorkersChangesAreAConflict(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			b := w.update().f.take()
			w.cat.commit = func(n int) (bool, error) {
				if n == 1 {
					second := openLayers(t, open(t, w.dir), version, ordersTable(), ordersSchema())
					_, err := second.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
					require.NoError(t, err)
				}
				return true, nil
			}
			_, err := w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
			require.Equal(t, catalog.CodeLakeConflict, catalog.Public(err).Code)
			require.ErrorIs(t, err, pipeline.ErrStale)
			require.Equal(t, []string{"c 1 new", "c 2 new", "u 1 paid"}, w.rows(catalog.Bronze), "no event twice")
		})
	}
}

func TestARolledBackLayerSaysSoAndCatchesUp(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			before := w.states()[1]
			w.update().save()
			w.f.commit().create(3, "pl", "new", 1, nil)
			w.save()
			w.another(catalog.Current, func(tbl *table.Table) (*table.Table, error) {
				parent := tbl.SnapshotByID(*tbl.CurrentSnapshot().ParentSnapshotID)
				tx := tbl.NewTransaction()
				require.NoError(t, tx.RollbackToSnapshot(*parent.ParentSnapshotID))
				return tx.Commit(t.Context())
			})
			require.Equal(t, []string{"1 new", "2 new"}, w.rows(catalog.Current))
			st, err := w.ls.Current.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, st)
			for b, err := range w.ls.Bronze.Read(t.Context(), st.Cursor.Position, w.f.end.Position, 1) {
				require.NoError(t, err)
				require.NoError(t, w.ls.foldCurrent(t.Context(), b, pipeline.LayerState{Cursor: b.End(st.Cursor)}))
			}
			require.Equal(t, []string{"1 paid", "2 new", "3 new"}, w.rows(catalog.Current))
			st, err = w.ls.Current.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, w.f.end, st.Cursor)
		})
	}
}

func TestAnEmptyResultMovesTheState(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.update().save()
			to := w.f.state()
			to.Cursor.Position.Commit += 100
			to.Snapshot = &catalog.SnapshotProgress{Generation: 2, Rows: 5, Bound: "x", Keys: []string{"k"}}
			_, err := w.ls.Bronze.Append(t.Context(), nil, to)
			require.NoError(t, err)
			st, err := w.ls.Bronze.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, to, st)
			to.Snapshot = nil
			_, err = w.ls.Current.Write(t.Context(), fold.CurrentResult{}, to)
			require.NoError(t, err)
			_, err = w.ls.History.Write(t.Context(), fold.HistoryResult{}, to)
			require.NoError(t, err)
			for _, st := range w.states()[1:] {
				require.Equal(t, to, st)
			}
			require.Equal(t, []string{"1 paid", "2 new"}, w.rows(catalog.Current))
			require.Equal(t, []string{"1 new closed", "1 paid", "2 new"}, w.rows(catalog.History))
		})
	}
}

// brittle is a warehouse whose n-th write fails.
type brittle struct {
	icebergio.WriteFileIO
	left *atomic.Int64
}

func (b brittle) WriteFile(name string, p []byte) error {
	if b.left.Add(-1) == 0 {
		return errors.New("no space left on device")
	}
	return b.WriteFileIO.WriteFile(name, p)
}

func TestAFailedWriteToTheWarehouseChangesNothing(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			var left atomic.Int64
			w.ls.Bronze.(*bronze).fs = brittle{w.ls.Bronze.(*bronze).fs, &left}
			w.ls.Current.(*current).fs = brittle{w.ls.Current.(*current).fs, &left}
			w.ls.History.(*history).fs = brittle{w.ls.History.(*history).fs, &left}
			b := w.update().f.take()
			// Each of the three saves, with its first, second, … write failing, until none
			// of them does.
			for _, step := range []func() error{
				func() error {
					_, err := w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
					return err
				},
				func() error { return w.ls.foldCurrent(t.Context(), b, w.f.state()) },
				func() error { return w.ls.foldHistory(t.Context(), b, w.f.state()) },
			} {
				failed := 0
				for n := int64(1); ; n++ {
					left.Store(n)
					err := step()
					if err == nil {
						break
					}
					failed++
					require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(err).Code)
					require.Contains(t, err.Error(), "no space left")
				}
				require.GreaterOrEqual(t, failed, 3, "a data file, a manifest and a manifest list at least")
			}
			left.Store(0)
			w.expectUpdated()
		})
	}
}

func TestAForeignTableIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir())
	src := source(3)
	ident := src.LakeName(ordersTable().Name, catalog.Current)
	require.NoError(t, l.cat.CreateNamespace(t.Context(), ident[:1], nil))
	_, err := l.cat.CreateTable(t.Context(), ident, layout(catalog.Current, ordersSchema(), false))
	require.NoError(t, err)
	_, err = l.ForSource(src).Open(t.Context(), ordersTable(), ordersSchema())
	require.Equal(t, catalog.CodeLakeForeign, catalog.Public(err).Code)

	other := ordersTable()
	other.Source = "shop2"
	_, err = l.ForSource(src).Open(t.Context(), other, ordersSchema())
	require.Equal(t, catalog.CodeLakeForeign, catalog.Public(err).Code)
	require.Contains(t, err.Error(), "shop/public.orders")
}

func TestATableWithOtherColumnsIsRefused(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir())
	openLayers(t, l, 3, ordersTable(), ordersSchema())
	changed := ordersSchema()
	changed.Columns[3].Type.Precision = 14
	changed.Columns[4].Name = "remark"
	_, err := l.ForSource(source(3)).Open(t.Context(), ordersTable(), changed)
	require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code)
	require.Contains(t, err.Error(), `column "before.amount" is decimal(12, 2), not decimal(14, 2)`)
	require.Contains(t, err.Error(), `column "after.remark" is missing`)
}

// requireSoundFiles checks that the live entries are each there once, that what is
// known of the files is what the manifests say, and that in format v3 the row ids of
// no two files overlap.
func requireSoundFiles(t *testing.T, l *layer, manifests []iceberg.ManifestFile) {
	t.Helper()
	type span struct{ from, to int64 }
	var ids []span
	seen := map[string]bool{}
	vectors := map[string]bool{}
	for _, m := range manifests {
		for e, err := range m.Entries(l.fs, true) {
			require.NoError(t, err)
			df := e.DataFile()
			require.Positive(t, e.SequenceNum())
			if m.ManifestContent() == iceberg.ManifestContentDeletes {
				if table.IsDeletionVector(df) {
					require.False(t, vectors[*df.ReferencedDataFile()], "one vector a file")
					vectors[*df.ReferencedDataFile()] = true
				}
				continue
			}
			require.False(t, seen[df.FilePath()])
			seen[df.FilePath()] = true
			if l.tbl.Metadata().Version() >= 3 {
				require.NotNil(t, df.FirstRowID())
				ids = append(ids, span{*df.FirstRowID(), *df.FirstRowID() + df.Count()})
			}
		}
	}
	slices.SortFunc(ids, func(a, b span) int { return int(a.from - b.from) })
	for i := 1; i < len(ids); i++ {
		require.GreaterOrEqual(t, ids[i].from, ids[i-1].to, "row ids overlap")
	}
	if len(ids) > 0 {
		require.LessOrEqual(t, ids[len(ids)-1].to, l.tbl.Metadata().NextRowID())
	}
	if l.ledger == nil {
		return
	}
	require.Len(t, l.ledger.files, len(seen))
	fresh, err := l.readLedger(t.Context(), manifests)
	require.NoError(t, err)
	for path, f := range l.ledger.byPath {
		g := fresh.byPath[path]
		require.NotNil(t, g)
		require.Equal(t, g.rows, f.rows)
		require.Equal(t, g.seq, f.seq)
		require.Equal(t, g.vector, f.vector)
		require.Equal(t, g.deleted == nil, f.deleted == nil)
		if f.deleted != nil {
			require.Equal(t, slices.Collect(g.deleted.Positions()), slices.Collect(f.deleted.Positions()))
		}
	}
}

func TestManifestsStayFewHoweverManyCommits(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			for i := range 40 {
				w.f.commit().update(1, "pl", fmt.Sprint("s", i), i, nil)
				w.f.create(100+i, "pl", "new", i, nil)
				w.save()
			}
			for _, l := range []*layer{w.ls.Bronze.(*bronze).layer, w.ls.Current.(*current).layer, w.ls.History.(*history).layer} {
				m, err := l.headManifests()
				require.NoError(t, err)
				require.LessOrEqual(t, len(m), 2*mergeAt+3, l.name)
				fresh, err := l.tbl.CurrentSnapshot().Manifests(l.fs)
				require.NoError(t, err)
				require.Len(t, fresh, len(m), "what is known of the head is what its list says")
				requireSoundFiles(t, l, fresh)
			}
			require.Len(t, w.rows(catalog.Current), 42)
			require.Len(t, w.rows(catalog.History), 2+40+40)
			require.Len(t, w.rows(catalog.Bronze), 2+80)
		})
	}
}

func TestOldSnapshotsAreForgottenAndTheCursorIsNot(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.another(catalog.Current, func(tbl *table.Table) (*table.Table, error) {
				tx := tbl.NewTransaction()
				require.NoError(t, tx.SetProperties(iceberg.Properties{propMaxSnapshots: "10"}))
				return tx.Commit(t.Context())
			})
			for i := range 30 {
				w.f.commit().update(1, "pl", fmt.Sprint("s", i), i, nil)
				w.save()
			}
			require.LessOrEqual(t, len(w.ls.Current.(*current).tbl.Metadata().Snapshots()), 11)
			require.Greater(t, len(w.ls.History.(*history).tbl.Metadata().Snapshots()), 30)
			require.Equal(t, []string{"1 s29", "2 new"}, w.rows(catalog.Current))
			st, err := openLayers(t, open(t, w.dir), version, ordersTable(), ordersSchema()).Current.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, w.f.end, st.Cursor)
		})
	}
}
