package lake

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// engine is another program that knows the catalog.
func (w *world) engine() *laketest.Engine {
	w.t.Helper()
	e, err := laketest.SQLite(filepath.Join(w.dir, "catalog.db"), "")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = e.Close() })
	return e
}

func (w *world) ident(layer catalog.Layer) []string {
	return source(w.version).LakeName(ordersTable().Name, layer)
}

// restart opens the layers anew, as another process would.
func (w *world) restart() {
	w.t.Helper()
	w.lake = open(w.t, w.dir)
	w.ls = openLayers(w.t, w.lake, w.version, ordersTable(), ordersSchema())
}

// catchUp folds into current and history what they lack of bronze, as the pipeline
// does.
func (w *world) catchUp() {
	w.t.Helper()
	states := w.states()
	for b, err := range w.ls.Bronze.Read(w.t.Context(), states[1].Cursor.Position, w.f.end.Position, 1) {
		require.NoError(w.t, err)
		require.NoError(w.t, w.ls.foldCurrent(w.t.Context(), b, pipeline.LayerState{Cursor: b.End(states[1].Cursor)}))
	}
	w.ls.history = states[2].Cursor.Position
	for b, err := range w.ls.Bronze.Read(w.t.Context(), states[2].Cursor.Position, w.f.end.Position, 1) {
		require.NoError(w.t, err)
		require.NoError(w.t, w.ls.foldHistory(w.t.Context(), b, pipeline.LayerState{Cursor: b.End(states[2].Cursor)}))
	}
}

// Another engine may add a column without writing a row: the newest snapshot does not
// know it, and is read with it all the same.
func TestAColumnThatTheNewestSnapshotDoesNotKnowIsRead(t *testing.T) {
	t.Parallel()
	for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current} {
		t.Run(string(layer), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			w.save()
			before, err := w.lake.View(t.Context(), w.ident(layer), 0)
			require.NoError(t, err)
			require.NoError(t, w.engine().AddColumn(t.Context(), w.ident(layer), "remarks"))
			count := func(id int64) (columns, rows int) {
				v, err := w.lake.View(t.Context(), w.ident(layer), id)
				require.NoError(t, err)
				schema, parts, err := v.Scan(t.Context(), ScanOptions{})
				require.NoError(t, err)
				for part, err := range parts {
					require.NoError(t, err)
					rows += part.Len()
				}
				return len(schema.Columns), rows
			}
			columns, rows := count(0)
			require.Equal(t, len(before.Columns())+1, columns)
			require.Positive(t, rows)
			columns, then := count(before.SnapshotID())
			require.Equal(t, len(before.Columns()), columns, "asked for as it was")
			require.Equal(t, rows, then)
		})
	}
}

// C59: others rewrite a layer's files and expire every snapshot but the newest, which
// is not ours; also when several of theirs came since, so that the chain is broken,
// and when the tag that keeps ours was taken away first. Nothing of the past is left
// but what the rows prove.
func TestC59ALayerGoesOnAfterOthersExpiredEverySnapshotOfOurs(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		for _, theirs := range []int{1, 3} {
			for _, untag := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d of theirs, tag dropped=%v", version, theirs, untag), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, version)
					w.update().save()
					e := w.engine()
					for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
						require.NoError(t, e.Compact(t.Context(), w.ident(layer)))
						for range theirs - 1 {
							require.NoError(t, e.RewriteManifests(t.Context(), w.ident(layer)))
						}
						require.NoError(t, e.Expire(t.Context(), w.ident(layer), untag))
						require.NoError(t, e.RemoveOrphans(t.Context(), w.ident(layer), time.Hour))
						tbl, err := e.Load(t.Context(), w.ident(layer))
						require.NoError(t, err)
						want := 1
						if !untag {
							want = 2
						}
						require.Len(t, tbl.Metadata().Snapshots(), want)
					}
					w.restart()
					w.expectUpdated()
					w.f.commit().update(2, "pl", "sent", 1, nil)
					w.save()
					require.Equal(t, []string{"c 1 new", "c 2 new", "u 1 paid", "u 2 sent"}, w.rows(catalog.Bronze))
					require.Equal(t, []string{"1 paid", "2 sent"}, w.rows(catalog.Current))
					require.Equal(t, []string{"1 new closed", "1 paid", "2 new closed", "2 sent"}, w.rows(catalog.History))
				})
			}
		}
	}
}

// When the rows prove nothing, since the last commit wrote none, a layer that is made
// of bronze is made anew; all that it held is replaced in one commit.
func TestALayerWhoseCursorNothingProvesIsMadeAnew(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.update().save()
			w.f.commit().remove(2, "pl")
			w.save()
			e := w.engine()
			for _, layer := range []catalog.Layer{catalog.Current, catalog.History} {
				require.NoError(t, e.RewriteManifests(t.Context(), w.ident(layer)))
				require.NoError(t, e.RewriteManifests(t.Context(), w.ident(layer)))
				require.NoError(t, e.Expire(t.Context(), w.ident(layer), true))
			}
			w.restart()
			states := w.states()
			require.Equal(t, w.f.end, states[0].Cursor)
			require.True(t, states[1].Cursor.IsZero())
			require.True(t, states[2].Cursor.IsZero())
			w.catchUp()
			require.Equal(t, []string{"1 paid"}, w.rows(catalog.Current))
			require.Equal(t, []string{"1 new closed", "1 paid", "2 new closed"}, w.rows(catalog.History))
			for _, st := range w.states() {
				require.Equal(t, w.f.end, st.Cursor)
			}
			for _, layer := range []catalog.Layer{catalog.Current, catalog.History} {
				n, err := e.Count(t.Context(), w.ident(layer))
				require.NoError(t, err)
				require.EqualValues(t, len(w.rows(layer)), n)
			}
			for _, l := range []*layer{w.ls.Current.(*current).layer, w.ls.History.(*history).layer} {
				m, err := l.headManifests()
				require.NoError(t, err)
				requireSoundFiles(t, l, m)
			}
		})
	}
}

// A commit lands unheard, others build on it and expire it before we look: its files
// are theirs too now, and stay.
func TestFilesOfACommitThatOthersHaveBuiltOnStay(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			e := w.engine()
			w.cat.commit = func(n int) (bool, error) {
				if n == 2 { // the commit to current
					return true, errBroken
				}
				return true, nil
			}
			w.cat.after = func(n int) {
				if n == 2 {
					require.NoError(t, e.SetProperty(t.Context(), w.ident(catalog.Current), "by", "others"))
					w.appendForeign(catalog.Current, 77)
					w.appendForeign(catalog.Current, 78)
					require.NoError(t, e.Expire(t.Context(), w.ident(catalog.Current), true))
				}
			}
			w.update()
			b := w.f.take()
			_, err := w.ls.Bronze.Append(t.Context(), []*change.Batch{b}, w.f.state())
			require.NoError(t, err)
			err = w.ls.foldCurrent(t.Context(), b, w.f.state())
			require.ErrorIs(t, err, pipeline.ErrStale)
			require.Equal(t, []string{"1 paid", "2 new", "77 x", "78 x"}, w.rows(catalog.Current), "every file is there")
			st, err := w.ls.Current.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, w.f.end, st.Cursor)
		})
	}
}

// A bronze that was set back is a gap, also when others committed on top of it since,
// when the worker is started anew, and in the middle of a run. When it is set forward
// again it goes on.
func TestBronzeThatWasSetBackIsAGap(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		for _, after := range []string{"nothing else", "another's commit", "ours under way"} {
			t.Run(fmt.Sprintf("%s, %s", version, after), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, version)
				w.update().save()
				e := w.engine()
				was, _, err := e.RollBack(t.Context(), w.ident(catalog.Bronze), 1)
				require.NoError(t, err)
				switch after {
				case "another's commit":
					require.NoError(t, e.RewriteManifests(t.Context(), w.ident(catalog.Bronze)))
				case "ours under way":
					w.f.commit().update(2, "pl", "sent", 1, nil)
					_, err := w.ls.Bronze.Append(t.Context(), []*change.Batch{w.f.take()}, w.f.state())
					require.Equal(t, catalog.CodeGap, catalog.Public(err).Code)
				}
				_, err = w.ls.Bronze.State(t.Context())
				require.Equal(t, catalog.CodeGap, catalog.Public(err).Code)
				require.Contains(t, err.Error(), "was rolled back")
				w.restart()
				_, err = w.lake.ForSource(source(version)).BronzeState(t.Context(), ordersTable())
				require.Equal(t, catalog.CodeGap, catalog.Public(err).Code)

				require.NoError(t, e.SetMain(t.Context(), w.ident(catalog.Bronze), was))
				w.restart()
				w.f.commit().update(2, "pl", "sent", 1, nil)
				w.f.end = w.states()[0].Cursor
				w.save()
				require.Equal(t, []string{"c 1 new", "c 2 new", "u 1 paid", "u 2 sent"}, w.rows(catalog.Bronze))
			})
		}
	}
}

// Before Lakeweir has written to a table, what others wrote says nothing: it begins
// at the beginning, and their rows stay.
func TestRowsThatWereThereBeforeTheFirstCommitStay(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := &world{t: t, dir: dir, version: version, lake: open(t, dir)}
			w.ls = openLayers(t, w.lake, version, ordersTable(), ordersSchema())
			w.appendForeign(catalog.Current, 5)
			w.f = newFeed(ordersTable(), ordersSchema())
			for _, st := range w.states() {
				require.True(t, st.Cursor.IsZero())
			}
			w.f.commit().create(1, "pl", "new", 100, nil)
			w.save()
			require.Equal(t, []string{"1 new", "5 x"}, w.rows(catalog.Current))
		})
	}
}

// C57: rows of others in bronze, which have no position, do not keep it from being
// read file by file.
func TestC57RowsOfOthersInBronzeAreNoChanges(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			w.appendForeign(catalog.Bronze, 77)
			w.restart()
			w.update().save()
			b := w.ls.Bronze.(*bronze)
			lg, err := b.ready(t.Context())
			require.NoError(t, err)
			require.Len(t, lg.files, 3)
			require.Len(t, (&eventReader{layer: b.layer, through: w.f.end.Position}).plan(lg), 2)
			n := 0
			for batch, err := range b.Read(t.Context(), catalog.Position{}, w.f.end.Position, 100) {
				require.NoError(t, err)
				n += len(batch.Changes)
			}
			require.Equal(t, 3, n)
		})
	}
}

// C59: the metadata of a table does not grow with the commits of a worker, however
// many there are.
func TestC59MetadataStaysFlat(t *testing.T) {
	t.Parallel()
	commits := 120
	if os.Getenv("LAKEWEIR_COMMITS") != "" { // as many as in an hour and more
		_, err := fmt.Sscan(os.Getenv("LAKEWEIR_COMMITS"), &commits)
		require.NoError(t, err)
	}
	w := newWorld(t, 3)
	e := w.engine()
	keep := 40
	if commits >= 1000 {
		keep = 500 // the default
	}
	for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
		require.NoError(t, e.SetProperty(t.Context(), w.ident(layer), propMaxSnapshots, strconv.Itoa(keep)))
	}
	size := func() (n int64) {
		tbl, err := e.Load(t.Context(), w.ident(catalog.Current))
		require.NoError(t, err)
		info, err := os.Stat(tbl.MetadataLocation()[len("file://"):])
		require.NoError(t, err)
		require.LessOrEqual(t, len(tbl.Metadata().Snapshots()), keep+keep/10)
		return info.Size()
	}
	half := int64(0)
	for i := range commits {
		w.f.commit().update(1, "pl", fmt.Sprint("s", i%2), i, nil)
		w.save()
		if i == keep+keep/10 || i == commits/2 {
			half = max(half, size())
		}
	}
	end := size()
	t.Logf("%d commits: metadata of %d bytes at its fullest before, %d at the end", commits, half, end)
	require.LessOrEqual(t, end, half+half/10)
	entries, err := os.ReadDir(filepath.Join(w.dir, "warehouse", "silver", "orders", "metadata"))
	require.NoError(t, err)
	metadata := 0
	for _, f := range entries {
		if m, _ := filepath.Match("*.metadata.json", f.Name()); m {
			metadata++
		}
	}
	require.LessOrEqual(t, metadata, 22)
}
