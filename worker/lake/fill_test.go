package lake

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// filledWorld is an orders table, deleting softly, of a closed version, a deleted row and
// two live ones, that gets a column with a constant.
func filledWorld(t *testing.T, version format) (*world, pipeline.Fill) {
	t.Helper()
	w := newWorld(t, version)
	w.ls.table.SoftDelete = true
	w.f.commit().create(3, "pl", "new", 300, nil)
	w.f.commit().update(1, "pl", "paid", 100, nil)
	w.f.commit().remove(3, "pl", change.Absent, change.Absent, change.Absent)
	w.save()
	to := edited(func(s *catalog.Schema) {
		s.Columns = append(s.Columns, catalog.Column{Name: "level", Number: 6, Type: typ(catalog.Float32), Nullable: true})
	})
	require.NoError(t, w.evolve(to))
	w.reopen(to)
	w.f.commit()
	return w, pipeline.Fill{Column: "level", Value: "0.1", At: catalog.Position{Generation: 1, Commit: w.f.pos.Commit, Ordinal: 2}, CommitTime: w.f.time}
}

// levels prints a layer's rows with the column that was filled.
func (w *world) levels(kind catalog.Layer) []string {
	w.t.Helper()
	var out []string
	eachRow(w.t, w.lake, source(w.version).LakeName(ordersTable().Name, kind), func(s *catalog.Schema, rows *change.Rows, row int) {
		id, level, text := s.Index("order id"), s.Index("level"), "null"
		if kind == catalog.Bronze {
			id, level = s.Index("pk.order id"), s.Index("after.level")
		}
		if rows.HasValue(row, level) {
			v := float64(math.Float32frombits(uint32(rows.Fixed(row, level))))
			if s.Columns[level].Type.Kind == catalog.Float64 {
				v = math.Float64frombits(uint64(rows.Fixed(row, level)))
			}
			text = fmt.Sprintf("%.3g", v)
		}
		line := fmt.Sprintf("%d %s", rows.Fixed(row, id), text)
		switch {
		case kind == catalog.Current && rows.Fixed(row, s.Index(colIsDeleted)) != 0:
			line += " deleted"
		case kind == catalog.History && rows.Fixed(row, s.Index(colIsCurrent)) == 0:
			line += " closed"
		}
		out = append(out, line)
	})
	slices.Sort(out)
	return out
}

func (w *world) expectFilled() {
	w.t.Helper()
	require.Equal(w.t, []string{"1 0.1", "2 0.1", "3 null deleted"}, w.levels(catalog.Current))
	require.Equal(w.t, []string{"1 0.1", "1 null closed", "2 0.1", "3 null closed"}, w.levels(catalog.History))
	require.Equal(w.t, []string{"1 null", "1 null", "2 null", "3 null", "3 null"}, w.levels(catalog.Bronze))
}

func TestAConstantIsInTheRowsThatAreThereAndNotInThePast(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w, fill := filledWorld(t, version)
			states := w.states()
			require.NoError(t, w.lake.Fill(t.Context(), w.ls.Layers, fill))
			w.expectFilled()
			require.Equal(t, states, w.states(), "no cursor moves")
			at := w.table(catalog.Current).MetadataLocation()
			require.NoError(t, w.lake.Fill(t.Context(), w.ls.Layers, fill))
			require.Equal(t, at, w.table(catalog.Current).MetadataLocation(), "what is done is not done again")

			other := fill
			other.Value = "7"
			require.Equal(t, catalog.CodeLakeSchema, catalog.Public(w.lake.Fill(t.Context(), w.ls.Layers, other)).Code)
			// Rows go on from there: what changed in the same transaction had the value for no
			// time at all, 2 as it became until it was
			// deleted.
			w.f.update(2, "pl", "paid", 200, nil, int64(math.Float32bits(0.1)))
			w.f.update(1, "pl", "paid", 100, nil, int64(math.Float32bits(9)))
			w.f.commit().remove(2, "pl", change.Absent, change.Absent, change.Absent, change.Absent)
			w.save()
			require.Equal(t, []string{"1 9", "1 null closed", "1 null closed", "2 0.1 closed", "2 null closed", "3 null closed"}, w.levels(catalog.History))
			require.Equal(t, []string{"1 9", "2 0.1 deleted", "3 null deleted"}, w.levels(catalog.Current))
		})
	}
}

func TestAValueThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	w, fill := filledWorld(t, 3)
	at := w.table(catalog.Bronze).MetadataLocation()
	for column, value := range map[string]string{"level": "none", "order id": "5", "nothing": "5"} {
		fill.Column, fill.Value = column, value
		err := w.lake.Fill(t.Context(), w.ls.Layers, fill)
		require.Equal(t, catalog.CodeLakeSchema, catalog.Public(err).Code, "%v", err)
	}
	require.Equal(t, at, w.table(catalog.Bronze).MetadataLocation())
}

// A fill takes as many rows at a time as may be in memory, and goes on where it ended.
func TestAFillThatEndedHalfWayGoesOn(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w, fill := filledWorld(t, version)
			w.lake.findMost = 1
			w.cat.commits = 0
			w.cat.commit = func(n int) (bool, error) { return n <= 2, errBroken } // bronze's, and one row of current
			require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(w.lake.Fill(t.Context(), w.ls.Layers, fill)).Code)
			w.cat.commit = nil
			require.Equal(t, []string{"1 null", "2 0.1", "3 null deleted"}, w.levels(catalog.Current))
			lake := open(t, w.dir)
			ls := openLayers(t, lake, version, ordersTable(), w.ls.schema)
			require.NoError(t, lake.Fill(t.Context(), ls.Layers, fill))
			w.expectFilled()
		})
	}
}

// A layer that is set back to before it had the values gets them before anything else.
func TestALayerThatWasRolledBackIsFilledAgain(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w, fill := filledWorld(t, version)
			back := map[catalog.Layer]int64{}
			for _, kind := range []catalog.Layer{catalog.Current, catalog.History} {
				back[kind] = w.table(kind).CurrentSnapshot().SnapshotID
			}
			require.NoError(t, w.lake.Fill(t.Context(), w.ls.Layers, fill))
			for kind, id := range back {
				ident := source(version).LakeName(ordersTable().Name, kind)
				_, _, err := w.lake.cat.CommitTable(t.Context(), ident, nil, []table.Update{table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0)})
				require.NoError(t, err)
			}
			w.states()
			require.Equal(t, []string{"1 null", "2 null", "3 null deleted"}, w.levels(catalog.Current))
			w.f.create(4, "pl", "new", 400, nil, int64(math.Float32bits(4)))
			require.Equal(t, 2, w.save(), "each layer was found again")
			require.Equal(t, []string{"1 0.1", "2 0.1", "3 null deleted", "4 4"}, w.levels(catalog.Current))
			require.Equal(t, []string{"1 0.1", "1 null closed", "2 0.1", "3 null closed", "4 4"}, w.levels(catalog.History))
		})
	}
}

// A float's constant is that float once the column is a double, not the double of its
// text.
func TestAFilledFloatThatIsWidened(t *testing.T) {
	t.Parallel()
	w, fill := filledWorld(t, 3)
	require.NoError(t, w.lake.Fill(t.Context(), w.ls.Layers, fill))
	to := *w.ls.schema
	to.Version++
	to.Columns = slices.Clone(to.Columns)
	to.Columns[5].Type = typ(catalog.Float64)
	require.NoError(t, w.evolve(&to))
	w.reopen(&to)
	n := 0
	for b, err := range w.ls.Bronze.Read(t.Context(), catalog.Position{}, fill.At, 100) {
		require.NoError(t, err)
		for _, c := range b.Changes {
			if c.After >= 0 {
				require.Equal(t, math.Float64bits(float64(float32(0.1))), uint64(b.Rows.Fixed(c.After, 5)))
				n++
			}
		}
	}
	require.Equal(t, 4, n)
	require.NoError(t, w.lake.Fill(t.Context(), w.ls.Layers, fill))
}
