package lake

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/columnar"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// images appends the columns that rows of current and history share: the source's
// and _unavailable_columns.
type images struct {
	schema *catalog.Schema
	refs   []change.Ref
	held   []*change.Rows // that refs point into
	sparse bool           // large values are left out
}

// stores are the row stores that references point into, each once.
func stores(refs []change.Ref) []*change.Rows {
	var out []*change.Rows
	last := (*change.Rows)(nil)
	for _, r := range refs {
		if r.Rows != last {
			if last = r.Rows; last != nil && !slices.Contains(out, last) {
				out = append(out, last)
			}
		}
	}
	return out
}

// longestIn returns the length of the longest value in a column of row stores, or in
// any when col is negative.
func longestIn(rows []*change.Rows, col int) int {
	n := 0
	for _, r := range rows {
		if col >= 0 {
			n = max(n, r.Longest(col))
			continue
		}
		for c := range r.Schema().Columns {
			n = max(n, r.Longest(c))
		}
	}
	return n
}

// largeValue returns a cell's value when it is large text or bytes.
func largeValue(r change.Ref, col int) []byte {
	if col < 0 || r.IsZero() || r.Rows.Longest(col) < change.Large || !r.Rows.HasValue(r.Row, col) {
		return nil
	}
	if k := r.Rows.Schema().Columns[col].Type.Kind; k != catalog.Text && k != catalog.Binary {
		return nil
	}
	if v := r.Rows.Bytes(r.Row, col); len(v) >= change.Large {
		return v
	}
	return nil
}

func (m *images) leaveLarge(leave bool) { m.sparse = leave }

func (m *images) rowSize(i int) int { return m.refs[i].Rows.RowSize(m.refs[i].Row) }

func (m *images) longest(path []string) int {
	if len(path) == 0 {
		return longestIn(m.stores(), -1)
	}
	if col := m.schema.Index(path[0]); len(path) == 1 && col >= 0 {
		return longestIn(m.stores(), col)
	}
	return 0
}

func (m *images) stores() []*change.Rows {
	if m.held == nil {
		m.held = stores(m.refs)
	}
	return m.held
}

func (m *images) large(path []string, i int) []byte {
	if len(path) != 1 {
		return nil
	}
	return largeValue(m.refs[i], m.schema.Index(path[0]))
}

func (m *images) size() int {
	total, last := 0, (*change.Rows)(nil)
	n := 0
	for _, r := range m.refs {
		if r.Rows != last && r.Rows.Len() > 0 {
			last = r.Rows
			n = r.Rows.Size() / r.Rows.Len()
		}
		total += n
	}
	return total
}

func (m *images) appendColumn(name string, b array.Builder, lo, hi int) bool {
	if name == colUnavailable {
		appendMarked(b, m.refs[lo:hi], change.Unavailable)
		return true
	}
	col := m.schema.Index(name)
	if col < 0 {
		return false
	}
	if m.sparse && largeValue(m.refs[lo], col) != nil {
		b.AppendNull()
		return true
	}
	columnar.Append(b, m.schema.Columns[col].Type, m.refs[lo:hi], col)
	return true
}

func (m *images) repeats(path []string) bool {
	if len(path) != 1 {
		return path[0] == colUnavailable
	}
	col := m.schema.Index(path[0])
	return col >= 0 && repeating(m.refs, col)
}

// repeating samples a text column: whether a dictionary is worth its time.
func repeating(refs []change.Ref, col int) bool {
	const sample = 200
	seen, n := make(map[string]struct{}, 16), 0
	step := max(1, len(refs)/sample)
	for i := 0; i < len(refs); i += step {
		r := refs[i]
		if r.IsZero() || !r.Rows.HasValue(r.Row, col) {
			continue
		}
		v := r.Rows.Bytes(r.Row, col)
		if len(v) > 256 {
			return false
		}
		n++
		seen[string(v)] = struct{}{}
	}
	return len(seen)*5 <= n
}

// appendMarked adds, for each ref, the names of its columns with a mark, or NULL
// when there are none.
func appendMarked(b array.Builder, refs []change.Ref, mark change.Mark) {
	lb := builder[*array.ListBuilder](b)
	names := builder[*array.StringBuilder](lb.ValueBuilder())
	for _, r := range refs {
		open := false
		if !r.IsZero() {
			for col, c := range r.Rows.Schema().Columns {
				if r.Rows.Mark(r.Row, col) != mark {
					continue
				}
				if !open {
					lb.Append(true)
					open = true
				}
				names.Append(c.Name)
			}
		}
		if !open {
			lb.AppendNull()
		}
	}
}

// builder is the column's builder as what the layout makes it; that a table has the
// layout's types was checked when it was opened.
func builder[B array.Builder](b array.Builder) B {
	bb, ok := b.(B)
	if !ok {
		panic("lake: no column is built by " + b.Type().String())
	}
	return bb
}

type intBuilder[T any] interface {
	array.Builder
	Append(v T)
}

func appendInts[B intBuilder[T], T ~int32 | ~int64](b array.Builder, n int, get func(i int) T) {
	bb := builder[B](b)
	for i := range n {
		bb.Append(get(i))
	}
}

func appendBools(b array.Builder, n int, get func(i int) bool) {
	bb := builder[*array.BooleanBuilder](b)
	for i := range n {
		bb.Append(get(i))
	}
}

// appendStamp writes a column of what stamps reads; false when it is no such column.
func appendStamp(name string, b array.Builder, n int, stamp func(i int) *fold.Stamp) bool {
	switch name {
	case colLSN:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(stamp(i).LSN) })
	case colSourceTS:
		appendInts[*array.TimestampBuilder](b, n, func(i int) arrow.Timestamp { return arrow.Timestamp(stamp(i).CommitTime) })
	case colGeneration:
		appendInts[*array.Int32Builder](b, n, func(i int) int32 { return int32(stamp(i).Position.Generation) })
	case colCommitLSN:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(stamp(i).Position.Commit) })
	case colOrdinal:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(stamp(i).Position.Ordinal) })
	default:
		return false
	}
	return true
}
