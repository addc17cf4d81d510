package lake

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/columnar"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// bronze is the layer of every change.
type bronze struct{ *layer }

var _ pipeline.Bronze = (*bronze)(nil)

func newBatchID() string { return uuid.NewString() }

// Append writes the changes and the state in one commit. When another writer
// committed to the table meanwhile, the same files are appended to its head, unless
// the cursor moved: then someone else writes for this source, and it fails with
// lake.conflict.
func (b *bronze) Append(ctx context.Context, batches []*change.Batch, to pipeline.LayerState) (pipeline.Commit, error) {
	start := b.lake.now()
	var c pipeline.Commit
	from, err := b.checked()
	if err != nil {
		return c, err
	}
	for _, batch := range batches {
		if err := b.takes(batch.Rows.Schema()); err != nil {
			return c, err
		}
	}
	at := b.lake.now()
	inOrder, late := newEventRows(b.schema, batches, at.UnixMicro()), newLateRows(b.schema, batches, at.UnixMicro(), to.Late)
	inOrder.topic, late.topic = b.topic, b.topic
	c.Rows = inOrder.len() + late.len()
	w, err := b.writeRows(ctx, inOrder, b.day(at))
	if err != nil {
		return c, err
	}
	// In files of their own, so that those of the others stay in order.
	behind, err := b.writeRows(ctx, late, b.day(at))
	w.files, w.rows, w.bytes = append(w.files, behind.files...), append(w.rows, behind.rows...), w.bytes+behind.bytes
	e := &edit{data: w.files}
	e.newest = b.newest(from.Cursor.Position, to.Cursor.Position, inOrder.len())
	if err == nil {
		e.summary, err = summaryOf(to, newBatchID(), b.schema.Version)
	}
	if err != nil {
		b.remove(w.paths())
		return c, err
	}
	if events, ok := b.appended(); ok {
		e.summary[propEvents] = strconv.FormatInt(events+int64(c.Rows), 10)
	}
	s, err := b.land(ctx, e, func() error {
		now, err := b.checked()
		if err != nil {
			return err
		}
		if now.Cursor != from.Cursor {
			return pipeline.ErrStale
		}
		return nil
	})
	if errors.Is(err, pipeline.ErrStale) {
		return c, catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict, "see that only one worker runs the source; the table is read again from where the lake now stands",
			"another worker has written changes to %s: %w", b.name, err)
	}
	if err != nil {
		return c, err
	}
	c.Bytes, c.Files, c.SnapshotID, c.Total, c.Took = w.bytes, len(w.files), s.id, s.rows, b.lake.now().Sub(start)
	if b.ledger != nil {
		for _, df := range w.files {
			b.register(b.ledger, df, s.seq)
		}
	}
	return c, nil
}

// newest is what proves that a head came after this commit: the transaction of its
// last row, when no commit before had rows of it; without rows, what proved it of the
// commit before, since the rows are the same.
func (b *bronze) newest(from, to catalog.Position, rows int) catalog.Position {
	if rows > 0 {
		return firstOf(from, to)
	}
	if l := lastOf(b.tbl.Metadata()); l != nil {
		return catalog.Position{Generation: l.Generation, Commit: l.Commit}
	}
	return catalog.Position{}
}

// eventRows are changes as bronze's columns.
type eventRows struct {
	schema  *catalog.Schema
	changes []*change.Change
	batches []*change.Batch // of each change
	at      int64           // when they are saved, microseconds since 1970 UTC
	version int32
	topic   string
	late    int64 // their number when they came late, else 0
	bytes   int
	held    []*change.Rows // of the batches
	sparse  bool           // large values are left out
}

// newEventRows takes the changes that are in order.
func newEventRows(schema *catalog.Schema, batches []*change.Batch, at int64) *eventRows {
	r := &eventRows{schema: schema, at: at, version: int32(schema.Version)}
	n := 0
	for _, b := range batches {
		n += len(b.Changes)
	}
	r.changes, r.batches = make([]*change.Change, 0, n), make([]*change.Batch, 0, n)
	r.take(batches, false)
	return r
}

// newLateRows takes the late changes, and puts them in order.
func newLateRows(schema *catalog.Schema, batches []*change.Batch, at, number int64) *eventRows {
	r := &eventRows{schema: schema, at: at, version: int32(schema.Version), late: number}
	r.take(batches, true)
	if len(r.changes) == 0 {
		return r
	}
	order := make([]int, len(r.changes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return r.changes[i].Position.Compare(r.changes[j].Position) })
	changes, of := make([]*change.Change, len(order)), make([]*change.Batch, len(order))
	for i, n := range order {
		changes[i], of[i] = r.changes[n], r.batches[n]
	}
	r.changes, r.batches = changes, of
	return r
}

func (r *eventRows) take(batches []*change.Batch, late bool) {
	for _, b := range batches {
		n := len(r.changes)
		for i := range b.Changes {
			if b.Changes[i].Late == late {
				r.changes, r.batches = append(r.changes, &b.Changes[i]), append(r.batches, b)
			}
		}
		if len(r.changes) > n {
			r.bytes += b.Size()
			r.held = append(r.held, b.Rows)
		}
	}
}

func (r *eventRows) len() int              { return len(r.changes) }
func (r *eventRows) size() int             { return r.bytes }
func (r *eventRows) leaveLarge(leave bool) { r.sparse = leave }

func (r *eventRows) rowSize(i int) int {
	c, size := r.changes[i], 0
	for _, row := range []int{c.Before, c.After, c.Other} {
		if row >= 0 {
			size += r.batches[i].Rows.RowSize(row)
		}
	}
	return size
}

func (r *eventRows) longest(path []string) int {
	if len(path) == 0 {
		return longestIn(r.held, -1)
	}
	if col := r.imageColumn(path); col >= 0 {
		return longestIn(r.held, col)
	}
	return 0
}

func (r *eventRows) large(path []string, i int) []byte {
	if col := r.imageColumn(path); col >= 0 {
		return largeValue(r.ref(path[0], i), col)
	}
	return nil
}

// imageColumn is the source's column that a path leads to, or -1.
func (r *eventRows) imageColumn(path []string) int {
	if len(path) != 2 {
		return -1
	}
	switch path[0] {
	case colBefore, colAfter, colKey, colOtherKey:
		return r.schema.Index(path[1])
	}
	return -1
}

// ref is the image that a struct of bronze shows of a change.
func (r *eventRows) ref(name string, i int) change.Ref {
	c, row := r.changes[i], -1
	switch name {
	case colBefore:
		row = c.Before
	case colAfter:
		row = c.After
	case colKey:
		if row = c.After; row < 0 {
			row = c.Before
		}
	case colOtherKey:
		row = c.Other
	}
	if row < 0 {
		return change.Ref{}
	}
	return change.Ref{Rows: r.batches[i].Rows, Row: row}
}

// marked is the image that the lists of marked columns are about.
func (r *eventRows) marked(i int) change.Ref {
	if ref := r.ref(colAfter, i); !ref.IsZero() {
		return ref
	}
	return r.ref(colBefore, i)
}

func (r *eventRows) refs(lo, hi int, get func(i int) change.Ref) []change.Ref {
	out := make([]change.Ref, hi-lo)
	for i := range out {
		out[i] = get(lo + i)
	}
	return out
}

func (r *eventRows) appendColumn(name string, b array.Builder, lo, hi int) bool {
	n := hi - lo
	at := func(i int) *change.Change { return r.changes[lo+i] }
	switch name {
	case colOp:
		appendOps(b, n, func(i int) change.Op { return at(i).Op })
	case colBefore, colAfter, colKey, colOtherKey:
		r.appendStruct(name, builder[*array.StructBuilder](b), r.refs(lo, hi, func(i int) change.Ref { return r.ref(name, i) }))
	case colLSN:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(at(i).LSN) })
	case colTxID:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(at(i).TxID) })
	case colCommitLSN:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(at(i).Position.Commit) })
	case colOrdinal:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return int64(at(i).Position.Ordinal) })
	case colGeneration:
		appendInts[*array.Int32Builder](b, n, func(i int) int32 { return int32(at(i).Position.Generation) })
	case colSourceTS:
		appendInts[*array.TimestampBuilder](b, n, func(i int) arrow.Timestamp { return arrow.Timestamp(at(i).CommitTime) })
	case colSnapshot:
		appendBools(b, n, func(i int) bool { return at(i).WasRead() })
	case colIngestedAt:
		appendInts[*array.TimestampBuilder](b, n, func(int) arrow.Timestamp { return arrow.Timestamp(r.at) })
	case colUnavailable:
		appendMarked(b, r.refs(lo, hi, r.marked), change.Unavailable)
	case colUnfit:
		appendMarked(b, r.refs(lo, hi, r.marked), change.Unfit)
	case colBeforeComplete:
		bb := builder[*array.BooleanBuilder](b)
		for i := lo; i < hi; i++ {
			ref := r.ref(colBefore, i)
			if ref.IsZero() {
				bb.AppendNull()
				continue
			}
			bb.Append(isComplete(ref))
		}
	case colSchemaVersion:
		appendInts[*array.Int32Builder](b, n, func(int) int32 { return r.version })
	case colTopic:
		sb := builder[*array.StringBuilder](b)
		for range n {
			sb.Append(r.topic)
		}
	case colPartition:
		appendInts[*array.Int32Builder](b, n, func(i int) int32 { return at(i).Partition })
	case colOffset:
		appendInts[*array.Int64Builder](b, n, func(i int) int64 { return at(i).Offset })
	case colLate:
		if r.late == 0 {
			return false // NULL
		}
		appendInts[*array.Int64Builder](b, n, func(int) int64 { return r.late })
	default:
		return false
	}
	return true
}

// isComplete reports whether an image has every column, not just the key.
func isComplete(r change.Ref) bool {
	for col := range r.Rows.Schema().Columns {
		if r.Rows.Mark(r.Row, col) == change.Absent {
			return false
		}
	}
	return true
}

func (r *eventRows) appendStruct(name string, b *array.StructBuilder, refs []change.Ref) {
	valid := make([]bool, len(refs))
	for i, ref := range refs {
		valid[i] = !ref.IsZero()
	}
	b.AppendValues(valid)
	var fields []arrow.Field
	if st, ok := b.Type().(*arrow.StructType); ok {
		fields = st.Fields()
	}
	have := map[string]int{}
	for _, col := range structColumns(name, r.schema) {
		have[r.schema.Columns[col].Name] = col
	}
	for i, f := range fields {
		col, ok := have[f.Name]
		if !ok {
			b.FieldBuilder(i).AppendNulls(len(refs))
			continue
		}
		if r.sparse && largeValue(refs[0], col) != nil {
			b.FieldBuilder(i).AppendNull()
			continue
		}
		columnar.Append(b.FieldBuilder(i), r.schema.Columns[col].Type, refs, col)
	}
}

func (r *eventRows) repeats(path []string) bool {
	switch path[0] {
	case colBefore, colAfter, colKey, colOtherKey:
		col := r.imageColumn(path)
		if col < 0 {
			return false
		}
		step := max(1, len(r.changes)/200)
		var refs []change.Ref
		for i := 0; i < len(r.changes); i += step {
			refs = append(refs, r.ref(path[0], i))
		}
		return repeating(refs, col)
	}
	return true
}
