package reconcile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/fold"
)

var orderColumns = []catalog.Column{
	{Name: "id", Type: catalog.Type{Kind: catalog.Int64}},
	{Name: "amount", Type: catalog.Type{Kind: catalog.Decimal, Precision: 12, Scale: 2}},
	{Name: "note", Type: catalog.Type{Kind: catalog.Text}},
}

func order(id int, amount, note string) rowText {
	r := rowText{fmt.Append(nil, id), []byte(amount), []byte(note)}
	if note == "NULL" {
		r[2] = nil
	}
	return r
}

func orders() []rowText {
	return []rowText{order(1, "1.00", "a"), order(2, "2.50", "b"), order(3, "-3.00", ""), order(4, "0.00", "NULL")}
}

// run compares the rows, given in any order.
func run(source, lake []rowText) *comparison {
	c := newComparison(orderColumns, []int{0})
	var d digester
	for _, i := range rand.Perm(len(lake)) {
		c.addLake(d.of(lake[i], c.key), lake[i])
	}
	for _, i := range rand.Perm(len(source)) {
		c.addSource(d.of(source[i], c.key), source[i])
	}
	c.finish()
	return c
}

func TestEqualRowsDoNotDiffer(t *testing.T) {
	t.Parallel()
	c := run(orders(), orders())
	require.Zero(t, c.differing())
	require.Empty(t, c.suspects)
	for i := range c.columns {
		require.True(t, c.source.totals[i].equal(&c.lake.totals[i]))
	}
	require.Equal(t, "0.50", c.source.totals[1].sum())
	require.Equal(t, "10", c.lake.totals[0].sum())
	require.Equal(t, int64(1), c.lake.totals[2].nulls)
}

func TestEveryPlantedDifferenceIsFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		lake   func([]rowText) []rowText
		source func([]rowText) []rowText
		want   map[Kind]int64
	}{
		"a row is missing in the lake":         {lake: func(r []rowText) []rowText { return r[1:] }, want: map[Kind]int64{Missing: 1}},
		"the lake has a row too many":          {lake: func(r []rowText) []rowText { return append(r, order(9, "1.00", "x")) }, want: map[Kind]int64{Extra: 1}},
		"one is missing, another too many":     {lake: func(r []rowText) []rowText { return append(r[1:], order(9, "1.00", "a")) }, want: map[Kind]int64{Missing: 1, Extra: 1}},
		"a value changed":                      {lake: func(r []rowText) []rowText { r[1][2] = []byte("B"); return r }, want: map[Kind]int64{Changed: 1}},
		"NULL became empty":                    {lake: func(r []rowText) []rowText { r[3][2] = []byte{}; return r }, want: map[Kind]int64{Changed: 1}},
		"empty became NULL":                    {lake: func(r []rowText) []rowText { r[2][2] = nil; return r }, want: map[Kind]int64{Changed: 1}},
		"a number is printed otherwise":        {lake: func(r []rowText) []rowText { r[1][1] = []byte("2.5"); return r }, want: map[Kind]int64{Changed: 1}},
		"two rows swapped a value, sums alike": {lake: func(r []rowText) []rowText { r[0][1], r[1][1] = r[1][1], r[0][1]; return r }, want: map[Kind]int64{Changed: 2}},
		"two rows swapped their keys":          {lake: func(r []rowText) []rowText { r[0][0], r[1][0] = r[1][0], r[0][0]; return r }, want: map[Kind]int64{Changed: 2}},
		"a text moved over a column's border": {
			lake:   func(r []rowText) []rowText { return append(r, rowText{[]byte("5"), []byte("1.001"), []byte("x")}) },
			source: func(r []rowText) []rowText { return append(r, rowText{[]byte("5"), []byte("1.00"), []byte("1x")}) },
			want:   map[Kind]int64{Changed: 1},
		},
		"the lake has a row twice":     {lake: func(r []rowText) []rowText { return append(r, r[0]) }, want: map[Kind]int64{Duplicate: 1}},
		"the lake has a key twice":     {lake: func(r []rowText) []rowText { return append(r, order(4, "7.00", "")) }, want: map[Kind]int64{Duplicate: 1, Changed: -1}},
		"the source has a key twice":   {source: func(r []rowText) []rowText { return append(r, r[3]) }, want: map[Kind]int64{Ambiguous: 1}},
		"the lake is empty":            {lake: func([]rowText) []rowText { return nil }, want: map[Kind]int64{Missing: 4}},
		"the source is empty":          {source: func([]rowText) []rowText { return nil }, want: map[Kind]int64{Extra: 4}},
		"both are empty":               {source: func([]rowText) []rowText { return nil }, lake: func([]rowText) []rowText { return nil }, want: map[Kind]int64{}},
		"a sum alike by other numbers": {lake: func(r []rowText) []rowText { r[0][1], r[1][1] = []byte("2.00"), []byte("1.50"); return r }, want: map[Kind]int64{Changed: 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, lake := orders(), orders()
			if c.source != nil {
				source = c.source(source)
			}
			if c.lake != nil {
				lake = c.lake(lake)
			}
			got := run(source, lake)
			if c.want[Changed] < 0 { // which of the two rows is compared depends on the order
				delete(c.want, Changed)
				delete(got.counts, Changed)
			}
			require.Equal(t, c.want, got.counts)
			for kind := range c.want {
				found := false
				for _, k := range got.suspects {
					found = found || k == kind
				}
				require.True(t, found, kind)
			}
		})
	}
}

func TestComparisonAgreesWithAPlainOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) map[int]string {
			return rapid.MapOfN(rapid.IntRange(0, 40), rapid.SampledFrom([]string{"", "a", "b"}), 0, 30).Draw(t, label)
		}
		source, lake := draw("source"), draw("lake")
		rows := func(m map[int]string) []rowText {
			var out []rowText
			for id, note := range m {
				out = append(out, order(id, "1.00", note))
			}
			return out
		}
		want := map[Kind]int64{}
		for id, note := range source {
			if other, ok := lake[id]; !ok {
				want[Missing]++
			} else if other != note {
				want[Changed]++
			}
		}
		for id := range lake {
			if _, ok := source[id]; !ok {
				want[Extra]++
			}
		}
		got := run(rows(source), rows(lake))
		for _, k := range []Kind{Missing, Changed, Extra, Duplicate, Ambiguous} {
			if got.counts[k] != want[k] {
				t.Fatalf("%s: %d, want %d", k, got.counts[k], want[k])
			}
		}
	})
}

func TestLedgerGrowsWithoutLosingAKey(t *testing.T) {
	t.Parallel()
	const n = 100_000
	l := newLedger()
	var d digester
	key := func(i int) digest { return d.of(rowText{fmt.Append(nil, i)}, nil) }
	for i := range n {
		require.True(t, l.put(key(i), key(-i)))
	}
	for i := range n / 2 {
		require.Equal(t, metEqual, l.meet(key(i), key(-i)))
		require.Equal(t, metTwice, l.meet(key(i), key(-i)))
	}
	require.Equal(t, metUnknown, l.meet(key(n), key(0)))
	left := 0
	l.unmet(func(digest) { left++ })
	require.Equal(t, n/2, left)
}

func TestTimelineFindsEveryBrokenRule(t *testing.T) {
	t.Parallel()
	var d digester
	k1, k2 := d.of(rowText{[]byte("1")}, nil), d.of(rowText{[]byte("2")}, nil)
	same, other := d.of(rowText{[]byte("x")}, nil), d.of(rowText{[]byte("y")}, nil)
	good := func(l *timeline) {
		l.compared = true
		l.addCurrent(k1, same)
		l.add(k1, 10, 20, false, other)
		l.add(k1, 20, 20, false, other) // two transactions of one time
		l.add(k1, 25, fold.Open, true, same)
		l.add(k2, 5, 9, false, other)
	}
	cases := []struct {
		plant func(*timeline)
		want  string
	}{
		{func(l *timeline) { l.add(k1, 15, 18, false, other) }, "overlaps"},
		{func(l *timeline) { l.add(k1, 30, fold.Open, true, same) }, "two intervals are open"},
		{func(l *timeline) { l.add(k2, 30, fold.Open, true, same) }, "an interval is open, and current has no such row"},
		{func(l *timeline) { l.addCurrent(k2, same) }, "current has the row, and no interval is open"},
		{func(l *timeline) { l.addCurrent(k1, other) }, "does not show what current shows"},
		{func(l *timeline) { l.add(k2, 9, 12, true, other) }, "is_current is true and valid_to is 1970-01-01T00:00:00.000012Z"},
		{func(l *timeline) { l.addCurrent(k2, same); l.add(k2, 30, fold.Open, false, same) }, "is_current is false"},
		{func(l *timeline) { l.add(k2, 40, 39, false, other) }, "before it begins"},
	}
	l := newTimeline()
	good(l)
	require.Zero(t, l.finish().count)
	for _, c := range cases {
		l := newTimeline()
		good(l)
		c.plant(l)
		wrong := l.finish()
		require.NotZero(t, wrong.count, c.want)
		found := false
		for _, v := range wrong.shown {
			found = found || strings.Contains(v.what, c.want)
		}
		require.True(t, found, "%s: %v", c.want, wrong.shown)
	}
}
