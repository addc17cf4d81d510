package demo

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Comparison says how the lake's history of a table is held against the oracle's.
// Only Columns must be set.
type Comparison struct {
	// Columns names the intervals' values, for the differences.
	Columns []string
	// Mask returns what the lake shows instead of a value of the oracle, for
	// personal data; nil leaves all as they are. NULL is never masked.
	Mask func(column, text string) string
	// MaskKey is Mask for the key's i-th column; nil leaves keys as they are.
	MaskKey func(i int, text string) string
	// Began and SnapshotEnded are when capture of the table began and when all of
	// its existing rows had been read, in microseconds since 1970 UTC. What the
	// shop changed between them may be unknown to the lake: a row that was there
	// before and deleted before it was read. Zero: the lake was first.
	Began, SnapshotEnded int64
}

// Difference is one version that lake and oracle do not agree on. One of the two
// is nil when only the other has a version there.
type Difference struct {
	Key          []Value
	Lake, Oracle *Interval
	Columns      []string // whose values differ; also valid_from, valid_to, is_current
}

// String tells the difference without the values of columns, which may be
// personal data.
func (d Difference) String() string {
	var b strings.Builder
	b.WriteString("key")
	for _, k := range d.Key {
		b.WriteString(" " + k.Text)
	}
	switch {
	case d.Lake == nil:
		fmt.Fprintf(&b, ": the lake lacks the version %s", span(d.Oracle))
	case d.Oracle == nil:
		fmt.Fprintf(&b, ": the lake has a version too many, %s", span(d.Lake))
	default:
		fmt.Fprintf(&b, ": %s differ in the lake's version %s, the oracle's is %s", strings.Join(d.Columns, ", "), span(d.Lake), span(d.Oracle))
	}
	return b.String()
}

func span(v *Interval) string {
	at := func(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.000000") }
	if v.To == Open {
		return "from " + at(v.From)
	}
	return "from " + at(v.From) + " to " + at(v.To)
}

// Compare holds the lake's versions against the oracle's, in whatever order they
// come, and returns every difference, by key and time. Both are kept in memory.
func (c Comparison) Compare(lake, oracle iter.Seq2[Interval, error]) ([]Difference, error) {
	ours, err := byKey(lake)
	if err != nil {
		return nil, fmt.Errorf("read the lake's history: %w", err)
	}
	theirs, err := byKey(c.masked(oracle))
	if err != nil {
		return nil, fmt.Errorf("read the oracle's history: %w", err)
	}
	var out []Difference
	for id, have := range ours {
		out = append(out, c.key(have, theirs[id])...)
	}
	for id, want := range theirs {
		if _, seen := ours[id]; !seen {
			out = append(out, c.key(nil, want)...)
		}
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(slices.CompareFunc(a.Key, b.Key, compareValues), cmp.Compare(a.from(), b.from()))
	})
	return out, nil
}

func (d Difference) from() int64 {
	if d.Oracle != nil {
		return d.Oracle.From
	}
	return d.Lake.From
}

func compareValues(a, b Value) int {
	return cmp.Or(cmp.Compare(len(a.Text), len(b.Text)), strings.Compare(a.Text, b.Text))
}

// key compares the versions of one key.
func (c Comparison) key(lake, oracle []Interval) []Difference {
	lake, oracle = c.clip(lake, oracle)
	var out []Difference
	// Both are in order of time, and versions are told apart by where they begin:
	// two of the same instant pair up in order.
	for len(lake) > 0 || len(oracle) > 0 {
		switch {
		case len(oracle) == 0 || len(lake) > 0 && lake[0].From < oracle[0].From:
			out = append(out, Difference{Key: lake[0].Key, Lake: &lake[0]})
			lake = lake[1:]
		case len(lake) == 0 || oracle[0].From < lake[0].From:
			out = append(out, Difference{Key: oracle[0].Key, Oracle: &oracle[0]})
			oracle = oracle[1:]
		default:
			if columns := c.differing(&lake[0], &oracle[0]); len(columns) > 0 {
				out = append(out, Difference{Key: lake[0].Key, Lake: &lake[0], Oracle: &oracle[0], Columns: columns})
			}
			lake, oracle = lake[1:], oracle[1:]
		}
	}
	return out
}

// clip leaves out what the lake cannot know: how a row came to be what it was
// when it was first seen, and rows that were gone by then. A row that was there
// before capture began may first be seen by reading it, or by a change of it.
func (c Comparison) clip(lake, oracle []Interval) ([]Interval, []Interval) {
	first, read := c.SnapshotEnded, false
	if len(lake) > 0 {
		read = lake[0].FromSnapshot
		if read || lake[0].From < first {
			first = lake[0].From
		}
	}
	unknown := func(v Interval) bool { return read || v.From < c.Began }
	oracle = slices.DeleteFunc(slices.Clone(oracle), func(v Interval) bool { return v.To <= first && unknown(v) })
	if len(oracle) > 0 && len(lake) > 0 && oracle[0].From < first && unknown(oracle[0]) {
		oracle[0].From = first
	}
	if read {
		// A change that committed just before the read by the clock, but after it in
		// the log, leaves a version without length there.
		lake = slices.DeleteFunc(slices.Clone(lake), func(v Interval) bool { return v.From == first && v.To == first })
	}
	return lake, oracle
}

// differing names what is not the same in two versions.
func (c Comparison) differing(lake, oracle *Interval) []string {
	var out []string
	if lake.To != oracle.To {
		out = append(out, "valid_to")
	}
	if lake.Current != oracle.Current {
		out = append(out, "is_current")
	}
	if len(lake.Values) != len(oracle.Values) {
		return append(out, "number of columns")
	}
	for i := range lake.Values {
		// A change of a row that has not been read yet may lack a large value.
		if lake.Values[i].Unknown && lake.From < c.SnapshotEnded {
			continue
		}
		if lake.Values[i] != oracle.Values[i] {
			out = append(out, c.column(i))
		}
	}
	return out
}

func (c Comparison) column(i int) string {
	if i < len(c.Columns) {
		return c.Columns[i]
	}
	return fmt.Sprintf("column %d", i+1)
}

// masked yields the oracle's versions as the lake may show them.
func (c Comparison) masked(oracle iter.Seq2[Interval, error]) iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		for v, err := range oracle {
			if err == nil {
				v.Key = maskAll(v.Key, c.MaskKey)
				if c.Mask != nil {
					v.Values = maskAll(v.Values, func(i int, text string) string { return c.Mask(c.column(i), text) })
				}
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

func maskAll(values []Value, mask func(i int, text string) string) []Value {
	if mask == nil {
		return values
	}
	out := slices.Clone(values)
	for i, v := range out {
		if !v.Null {
			out[i].Text = mask(i, v.Text)
		}
	}
	return out
}

// byKey gathers versions by key, each key's in order of time. Versions without
// length come before the one that begins where they do; of several at one instant
// nobody can tell the order, so they stand by what they hold.
func byKey(rows iter.Seq2[Interval, error]) (map[string][]Interval, error) {
	out := map[string][]Interval{}
	var id strings.Builder
	for v, err := range rows {
		if err != nil {
			return nil, err
		}
		id.Reset()
		for _, k := range v.Key {
			fmt.Fprintf(&id, "%d:%t:%s", len(k.Text), k.Null, k.Text)
		}
		out[id.String()] = append(out[id.String()], v)
	}
	for _, versions := range out {
		slices.SortStableFunc(versions, func(a, b Interval) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), slices.CompareFunc(a.Values, b.Values, compareValues))
		})
	}
	return out, nil
}
