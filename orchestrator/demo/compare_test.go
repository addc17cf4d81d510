package demo_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// version makes an interval of key k with one value; to 0 leaves it open.
func version(k, value string, from, to int64) demo.Interval {
	v := demo.Interval{Key: []demo.Value{{Text: k}}, Values: []demo.Value{{Text: value}}, From: from, To: to}
	if to == 0 {
		v.To, v.Current = demo.Open, true
	}
	return v
}

func read(v demo.Interval) demo.Interval {
	v.FromSnapshot = true
	return v
}

func unknown(v demo.Interval) demo.Interval {
	v.Values = []demo.Value{{Null: true, Unknown: true}}
	return v
}

func each(versions ...demo.Interval) iter.Seq2[demo.Interval, error] {
	return func(yield func(demo.Interval, error) bool) {
		for _, v := range versions {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func TestCompareFindsEachWayToBeWrong(t *testing.T) {
	t.Parallel()
	type versions = []demo.Interval
	window := demo.Comparison{Columns: []string{"status"}, Began: 50, SnapshotEnded: 90}
	plain := demo.Comparison{Columns: []string{"status"}}
	cases := []struct {
		name         string
		c            demo.Comparison
		lake, oracle versions
		want         []string
	}{
		{"equal, in another order", plain, versions{version("1", "b", 20, 0), version("1", "a", 10, 20), version("2", "a", 5, 6)}, versions{version("2", "a", 5, 6), version("1", "a", 10, 20), version("1", "b", 20, 0)}, nil},
		{"a value", plain, versions{version("1", "x", 10, 0)}, versions{version("1", "a", 10, 0)}, []string{"key 1: status differ in the lake's version from 1970-01-01 00:00:00.000010, the oracle's is from 1970-01-01 00:00:00.000010"}},
		{"NULL is not the empty text", plain, versions{{Key: []demo.Value{{Text: "1"}}, Values: []demo.Value{{Null: true}}, From: 10, To: 20}}, versions{version("1", "", 10, 20)}, []string{"key 1: status differ"}},
		{"a value that was never sent, before the row was read", window, versions{unknown(version("1", "", 60, 70)), version("1", "a", 70, 0)}, versions{version("1", "b", 60, 70), version("1", "a", 70, 0)}, nil},
		{"and one after it", window, versions{unknown(version("1", "", 95, 0))}, versions{version("1", "b", 95, 0)}, []string{"key 1: status differ"}},
		{"an end", plain, versions{version("1", "a", 10, 19)}, versions{version("1", "a", 10, 20)}, []string{"key 1: valid_to differ"}},
		{"a version left open", plain, versions{version("1", "a", 10, 0)}, versions{version("1", "a", 10, 20)}, []string{"key 1: valid_to, is_current differ"}},
		{"a missing version", plain, versions{version("1", "a", 10, 20)}, versions{version("1", "a", 10, 20), version("1", "b", 20, 0)}, []string{"key 1: the lake lacks the version from 1970-01-01 00:00:00.000020"}},
		{"a version too many", plain, versions{version("1", "a", 10, 20), version("1", "b", 20, 0)}, versions{version("1", "a", 10, 20)}, []string{"key 1: the lake has a version too many, from 1970-01-01 00:00:00.000020"}},
		{"a missing key", plain, nil, versions{version("1", "a", 10, 0)}, []string{"key 1: the lake lacks the version"}},
		{"a key too many", plain, versions{version("1", "a", 10, 0)}, nil, []string{"key 1: the lake has a version too many"}},
		{"by key and time", plain, nil, versions{version("10", "a", 1, 2), version("9", "a", 3, 4), version("9", "a", 1, 2)}, []string{"key 9: the lake lacks the version from 1970-01-01 00:00:00.000001", "key 9: the lake lacks the version from 1970-01-01 00:00:00.000003", "key 10"}},
		{"versions without length pair up", plain, versions{version("1", "a", 10, 10), version("1", "b", 10, 10), version("1", "c", 10, 0)}, versions{version("1", "a", 10, 10), version("1", "b", 10, 10), version("1", "c", 10, 0)}, nil},
		{"a version without length that is lost", plain, versions{version("1", "b", 10, 0)}, versions{version("1", "a", 10, 10), version("1", "b", 10, 0)}, []string{"valid_to, is_current, status differ", "lacks the version"}},

		{"a row that was read has no past", plain, versions{read(version("1", "b", 30, 40)), version("1", "c", 40, 0)}, versions{version("1", "a", 10, 20), version("1", "b", 20, 40), version("1", "c", 40, 0)}, nil},
		{"a row that was read must be what it was", plain, versions{read(version("1", "a", 30, 40)), version("1", "c", 40, 0)}, versions{version("1", "a", 10, 20), version("1", "b", 20, 40), version("1", "c", 40, 0)}, []string{"status differ"}},
		{"a read between clock and log", plain, versions{read(version("1", "a", 30, 30)), version("1", "b", 30, 0)}, versions{version("1", "a", 10, 29), version("1", "b", 29, 0)}, nil},
		{"a row that was read and is long gone", plain, versions{read(version("1", "a", 30, 0))}, versions{version("1", "a", 10, 20)}, []string{"a version too many"}},

		{"a row gone before it could be read", window, nil, versions{version("1", "a", 10, 60)}, nil},
		{"a row gone after all were read", window, nil, versions{version("1", "a", 10, 91)}, []string{"lacks"}},
		{"a row that came after capture began", window, nil, versions{version("1", "a", 51, 60)}, []string{"lacks"}},
		{"a row first seen by a change", window, versions{version("1", "b", 60, 0)}, versions{version("1", "a", 10, 60), version("1", "b", 60, 0)}, nil},
		{"a row first seen by a change that makes no version", window, versions{version("1", "a", 60, 70)}, versions{version("1", "a", 10, 70)}, nil},
		{"a row first seen by a change after all were read", window, versions{version("1", "b", 95, 0)}, versions{version("1", "a", 10, 95), version("1", "b", 95, 0)}, []string{"lacks"}},
		{"a key that was gone before and came back", window, versions{version("1", "b", 95, 0)}, versions{version("1", "a", 10, 40), version("1", "b", 95, 0)}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.c.Compare(each(c.lake...), each(c.oracle...))
			require.NoError(t, err)
			require.Len(t, got, len(c.want), "%v", got)
			for i := range got {
				require.Contains(t, got[i].String(), c.want[i])
			}
		})
	}
}

func TestCompareMasksTheOracleOnly(t *testing.T) {
	t.Parallel()
	c := demo.Comparison{
		Columns: []string{"email"},
		Mask:    func(column, text string) string { return column + "#" + strings.ToUpper(text) },
		MaskKey: func(_ int, text string) string { return "k" + text },
	}
	got, err := c.Compare(each(version("k1", "email#A", 10, 0)), each(version("1", "a", 10, 0)))
	require.NoError(t, err)
	require.Empty(t, got)
	null := []demo.Value{{Null: true}}
	got, err = c.Compare(
		each(demo.Interval{Key: []demo.Value{{Text: "k1"}}, Values: null, From: 1, To: 2}),
		each(demo.Interval{Key: []demo.Value{{Text: "1"}}, Values: null, From: 1, To: 2}))
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestCompareReportsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := func(yield func(demo.Interval, error) bool) { yield(demo.Interval{}, errors.New("disk on fire")) }
	_, err := demo.Comparison{}.Compare(broken, each())
	require.EqualError(t, err, "read the lake's history: disk on fire")
	_, err = demo.Comparison{}.Compare(each(), broken)
	require.EqualError(t, err, "read the oracle's history: disk on fire")
}
