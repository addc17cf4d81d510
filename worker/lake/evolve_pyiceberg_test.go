package lake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake/icetest"
)

// canonical are the model's rows of today as testdata/read.py prints them.
func (e *evolvingLake) canonical() []map[string]any {
	schema := e.m.schema()
	rows := change.NewRows(schema)
	var out []map[string]any
	for _, v := range e.m.rows {
		row := rows.Add()
		for i, c := range e.m.columns {
			setValue(rows, row, i, c.Type, v[c.id])
		}
		out = append(out, canonRow(schema, rows, row))
	}
	return out
}

// sourceRows leaves Lakeweir's own columns out of what PyIceberg read.
func sourceRows(rows []map[string]any, s *catalog.Schema) []map[string]any {
	var out []map[string]any
	for _, r := range rows {
		out = append(out, only(r, names(s)...))
	}
	return out
}

func sorted(rows []map[string]any) []map[string]any {
	slices.SortFunc(rows, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return rows
}

// Another reader sees the columns of today in every row, and of an older snapshot those
// of then.
func TestPyIcebergReadsEvolvedTablesOfTodayAndThen(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			bin := icetest.Python(t)
			dir := t.TempDir()
			e := newEvolvingLake(t, version, 3, dir, func() *Lake { return open(t, dir) })
			ident := source(version).LakeName(e.m.table().Name, catalog.Current)
			type then struct {
				snapshot int64
				schema   *catalog.Schema
				rows     []map[string]any
			}
			var past []then
			for range 5 {
				for range 4 {
					e.m.live()
				}
				e.save()
				e.catchUp()
				v, err := e.lake.View(t.Context(), ident, 0)
				require.NoError(t, err)
				past = append(past, then{v.SnapshotID(), e.schema, e.canonical()})
				e.evolve()
			}
			require.Empty(t, cmp.Diff(sorted(e.canonical()), sorted(sourceRows(pyRows(t, bin, e.dir, ident), e.schema))))
			for _, p := range past {
				got := pyRows(t, bin, e.dir, ident, "--snapshot="+strconv.FormatInt(p.snapshot, 10))
				require.Empty(t, cmp.Diff(sorted(p.rows), sorted(sourceRows(got, p.schema))), "snapshot %d", p.snapshot)
				for _, row := range got {
					require.Len(t, row, len(p.schema.Columns)+len(currentOwn), "it has the columns of then")
				}
			}
			bronze := pyRows(t, bin, e.dir, source(version).LakeName(e.m.table().Name, catalog.Bronze))
			for _, row := range bronze {
				for _, image := range []string{colBefore, colAfter} {
					if row[image] == nil {
						continue
					}
					for _, c := range e.schema.Columns {
						require.Contains(t, row[image], c.Name)
					}
				}
			}
			require.Equal(t, e.m.historyText(), e.text(catalog.History))
			require.Len(t, pyRows(t, bin, e.dir, source(version).LakeName(e.m.table().Name, catalog.History)), len(e.lines(catalog.History)))
		})
	}
}

func TestPyIcebergFiltersWidenedColumns(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			bin, dir := icetest.Python(t), t.TempDir()
			_, to := widenedNumbers(t, dir, version)
			ident := source(version).LakeName(numbersTable().Name, catalog.Current)
			require.Len(t, pyRows(t, bin, dir, ident), 4)
			for filter, want := range map[string][]string{
				"i > 0": {"2", "1099511627776"}, "i = 7": {"2"}, "f < 0": {"1"}, "f > 1000.5": {"1099511627776"},
				"d > 1": {"2", "1099511627776"}, "e < 1": {"1", "2"}, "id < 3": {"1", "2"},
			} {
				var got []string
				for _, row := range pyRows(t, bin, dir, ident, "--filter="+filter) {
					got = append(got, row["id"].(string))
				}
				require.ElementsMatch(t, want, got, filter)
			}
			rows := pyRows(t, bin, dir, ident, "--filter=id = 2")
			require.Empty(t, cmp.Diff([]map[string]any{{"id": "2", "i": "7", "f": "3fb99999a0000000", "d": "12345", "e": "5"}}, sourceRows(rows, to)))
		})
	}
}
