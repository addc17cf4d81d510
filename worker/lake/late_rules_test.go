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
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// lately saves what f does, but for the changes that come late, and then those, as the
// pipeline does; it returns current and history of what there is.
func lately(t *testing.T, late []int, do func(f *feed)) (current, history []string) {
	t.Helper()
	l := open(t, t.TempDir())
	table, schema := ordersTable(), ordersSchema()
	ls := openLayers(t, l, 3, table, schema)
	f := newFeed(table, schema)
	do(f)
	all := f.take()
	inTime, behind := *all, *all
	inTime.Changes, behind.Changes = nil, nil
	keys := fold.NewKeySet()
	for i, c := range all.Changes {
		if !slices.Contains(late, i) {
			inTime.Changes = append(inTime.Changes, c)
			continue
		}
		c.Late = true
		behind.Changes = append(behind.Changes, c)
		if c.Op == change.Truncate {
			keys = fold.AllKeys()
		}
		keys.Add(c.Key, c.OtherKey)
	}
	to := pipeline.LayerState{Cursor: inTime.End(catalog.Cursor{}), CommitTime: f.time}
	_, err := ls.Bronze.Append(t.Context(), []*change.Batch{&inTime}, to)
	require.NoError(t, err)
	one := inTime
	require.NoError(t, ls.foldCurrent(t.Context(), &one, to))
	require.NoError(t, ls.foldHistory(t.Context(), &one, to))
	to.Late = 1
	_, err = ls.Bronze.Append(t.Context(), []*change.Batch{&behind}, to)
	require.NoError(t, err)
	_, _, err = pipeline.Remake(t.Context(), table, ls.Layers, keys)
	require.NoError(t, err)
	line := func(rows *change.Rows, row int) string {
		note := "null"
		if rows.HasValue(row, 4) {
			note = string(rows.Bytes(row, 4))
		}
		return fmt.Sprintf("%d %s %s", rows.Fixed(row, 0), rows.Bytes(row, 2), note)
	}
	second := func(us int64) string {
		if us == fold.Open {
			return "open"
		}
		return strconv.FormatInt((us-1_700_000_000_000_000)/1_000_000, 10)
	}
	eachRow(t, l, source(3).LakeName(table.Name, catalog.Current), func(_ *catalog.Schema, rows *change.Rows, row int) {
		current = append(current, line(rows, row))
	})
	eachRow(t, l, source(3).LakeName(table.Name, catalog.History), func(s *catalog.Schema, rows *change.Rows, row int) {
		history = append(history, fmt.Sprintf("%s %s-%s", line(rows, row),
			second(rows.Fixed(row, s.Index(colValidFrom))), second(rows.Fixed(row, s.Index(colValidTo)))))
	})
	return current, history
}

func sortedLines(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// Commits are one second apart.
func TestALateChangeTakesItsPlace(t *testing.T) {
	t.Parallel()
	none := change.Unavailable
	for name, c := range map[string]struct {
		late             []int
		do               func(f *feed)
		current, history string
	}{
		"it splits the version that it falls into": {[]int{1}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, nil)
			f.commit().update(1, "pl", "paid", 1, nil)
			f.commit().update(1, "pl", "sent", 1, nil)
		}, "1 sent null", "1 new null 1-2, 1 paid null 2-3, 1 sent null 3-open"},
		"it fills the time before the first version": {[]int{0}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, nil)
			f.commit().update(1, "pl", "paid", 1, nil)
		}, "1 paid null", "1 new null 1-2, 1 paid null 2-open"},
		"a late delete makes a gap": {[]int{1}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, nil)
			f.commit().remove(1, "pl")
			f.commit().create(1, "pl", "again", 1, nil)
		}, "1 again null", "1 new null 1-2, 1 again null 3-open"},
		"a create after whose delete it comes does not come back": {[]int{0}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, nil)
			f.commit().remove(1, "pl")
			f.commit().create(2, "pl", "new", 1, nil)
		}, "2 new null", "1 new null 1-2, 2 new null 3-open"},
		"a truncate takes what was below it, and nothing newer": {[]int{2}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, nil)
			f.commit().create(2, "pl", "new", 1, nil)
			f.commit().add(change.Truncate, -1, -1, -1)
			f.commit().create(2, "pl", "again", 1, nil)
		}, "2 again null", "1 new null 1-3, 2 new null 2-3, 2 again null 4-open"},
		"a key move moves the row of both keys": {[]int{1, 2}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, "note")
			f.commit().move([]any{1, "pl"}, []any{2, "pl", "new", 1, none})
			f.commit().update(2, "pl", "paid", 1, none)
		}, "2 paid note", "1 new note 1-2, 2 new note 2-3, 2 paid note 3-open"},
		"a large value is that of all that did not send it, also after a move": {[]int{1}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, "first")
			f.commit().update(1, "pl", "paid", 1, "second")
			f.commit().update(1, "pl", "sent", 1, none)
			f.commit().move([]any{1, "pl"}, []any{2, "pl", "sent", 1, none})
		}, "2 sent second", "1 new first 1-2, 1 paid second 2-3, 1 sent second 3-4, 2 sent second 4-open"},
		"the newest of its key counts as any change": {[]int{2}, func(f *feed) {
			f.commit().create(1, "pl", "new", 1, nil)
			f.commit().create(2, "pl", "new", 1, nil)
			f.commit().update(1, "pl", "paid", 1, nil)
			f.commit().update(2, "pl", "paid", 1, nil)
		}, "1 paid null, 2 paid null", "1 new null 1-3, 1 paid null 3-open, 2 new null 2-4, 2 paid null 4-open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			current, history := lately(t, c.late, c.do)
			require.Empty(t, cmp.Diff(sortedLines(strings.Split(c.current, ", ")), sortedLines(current)), "current")
			require.Empty(t, cmp.Diff(sortedLines(strings.Split(c.history, ", ")), sortedLines(history)), "history")
		})
	}
}
