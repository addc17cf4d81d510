package lake

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// rowLine prints an image with its marks; "-" is none.
func rowLine(rows *change.Rows, row int) string {
	if row < 0 {
		return "-"
	}
	var cells []string
	for col, c := range rows.Schema().Columns {
		switch rows.Mark(row, col) {
		case change.Absent:
			cells = append(cells, "absent")
		case change.Null:
			cells = append(cells, "null")
		case change.Unavailable:
			cells = append(cells, "unavailable")
		case change.Unfit:
			cells = append(cells, "unfit")
		case change.Present, change.Filled:
			cells = append(cells, fmt.Sprint(canon(c.Type, rows, row, col)))
		}
	}
	return strings.Join(cells, ",")
}

// changeLines prints everything that a batch says, but where its rows lie.
func changeLines(batches ...*change.Batch) string {
	var b strings.Builder
	for _, batch := range batches {
		for _, c := range batch.Changes {
			fmt.Fprintf(&b, "%c %s | before %s | after %s | other %s | key %x other %x | lsn %s tx %d at %d\n", c.Op, c.Position,
				rowLine(batch.Rows, c.Before), rowLine(batch.Rows, c.After), rowLine(batch.Rows, c.Other), c.Key, c.OtherKey, c.LSN, c.TxID, c.CommitTime)
		}
	}
	return b.String()
}

// oddChanges has each kind of change and mark.
func oddChanges(f *feed) *change.Batch {
	f.commit().read(1, "pl", "new", 100, nil)
	f.commit().create(2, "pl", change.Unfit, 200, "n")
	f.update(2, "pl", "paid", 200, change.Unavailable)
	// A full before image, and one with the key alone.
	f.add(change.Update, f.row(2, "pl", "paid", nil, "n"), f.row(2, "pl", "sent", 1, "m"), -1)
	f.commit().remove(2, "pl")
	f.add(change.Delete, f.row(1, "pl", "new", 100, change.Unfit), -1, -1)
	f.commit()
	old, moved := f.row(3, "pl"), f.row(4, "de", "moved", 5, change.Unavailable)
	key := f.row(4, "de")
	f.add(change.Delete, old, -1, key)
	f.add(change.Create, -1, moved, f.row(3, "pl"))
	f.commit().add(change.Truncate, -1, -1, -1)
	f.pos.Generation++
	f.commit().read(9, "pl", "again", 1, nil)
	return f.take()
}

func TestBronzeGivesBackWhatItWasGiven(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			ls := openLayers(t, open(t, t.TempDir()), version, ordersTable(), ordersSchema())
			f := newFeed(ordersTable(), ordersSchema())
			in := oddChanges(f)
			_, err := ls.Bronze.Append(t.Context(), []*change.Batch{in}, f.state())
			require.NoError(t, err)
			for most := 1; most <= len(in.Changes)+1; most++ {
				var out []*change.Batch
				for b, err := range ls.Bronze.Read(t.Context(), catalog.Position{}, f.end.Position, most) {
					require.NoError(t, err)
					require.Equal(t, epoch, b.Epoch)
					require.LessOrEqual(t, len(b.Changes), most+1)
					require.False(t, b.Changes[len(b.Changes)-1].MovedAway())
					out = append(out, b)
				}
				require.Empty(t, cmp.Diff(changeLines(in), changeLines(out...)), "at most %d", most)
				for i, b := range out[:len(out)-1] {
					last, next := b.Changes[len(b.Changes)-1].Position, out[i+1].Changes[0].Position
					require.Equal(t, last.Commit != next.Commit || last.Generation != next.Generation, b.Whole)
				}
			}
			// From the middle to the middle.
			part := &change.Batch{Rows: in.Rows, Changes: in.Changes[2:6]}
			var out []*change.Batch
			for b, err := range ls.Bronze.Read(t.Context(), in.Changes[1].Position, in.Changes[5].Position, 100) {
				require.NoError(t, err)
				out = append(out, b)
			}
			require.Empty(t, cmp.Diff(changeLines(part), changeLines(out...)))
		})
	}
}

func TestAKeylessTableIsKeptInBronzeAlone(t *testing.T) {
	t.Parallel()
	table, schema := ordersTable(), ordersSchema()
	table.PrimaryKey, schema.Key = nil, nil
	ls := openLayers(t, open(t, t.TempDir()), 3, table, schema)
	require.Nil(t, ls.Current)
	require.Nil(t, ls.Layers.History)
	f := newFeed(table, schema)
	f.commit().create(1, "pl", "new", 1, nil)
	f.add(change.Delete, f.row(1, "pl", "new", 1, nil), -1, -1)
	in := f.take()
	_, err := ls.Bronze.Append(t.Context(), []*change.Batch{in}, f.state())
	require.NoError(t, err)
	for b, err := range ls.Bronze.Read(t.Context(), catalog.Position{}, f.end.Position, 10) {
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(changeLines(in), changeLines(b)))
	}
}

func TestBronzeIsReadInOrderHoweverItsFilesLie(t *testing.T) {
	t.Parallel()
	ls := openLayers(t, open(t, t.TempDir()), 3, ordersTable(), ordersSchema())
	f := newFeed(ordersTable(), ordersSchema())
	for i := range 12 {
		f.commit().create(i, "pl", "new", i, nil)
	}
	all := f.take()
	pick := func(n ...int) *change.Batch {
		b := &change.Batch{Table: all.Table, Rows: all.Rows, Epoch: epoch}
		for _, i := range n {
			b.Changes = append(b.Changes, all.Changes[i])
		}
		return b
	}
	// As another engine's compaction might leave them.
	for _, b := range []*change.Batch{pick(8, 9), pick(0, 2, 4), pick(1, 3, 6), pick(5, 7), pick(10, 11)} {
		_, err := ls.Bronze.Append(t.Context(), []*change.Batch{b}, f.state())
		require.NoError(t, err)
	}
	for most := 1; most < 13; most++ {
		var out []*change.Batch
		for b, err := range ls.Bronze.Read(t.Context(), catalog.Position{}, f.end.Position, most) {
			require.NoError(t, err)
			out = append(out, b)
		}
		require.Empty(t, cmp.Diff(changeLines(all), changeLines(out...)))
	}
}

// Java's writers put names into Parquet that Avro allows: order_x20id.
func TestBronzeReadsStructsByFieldID(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir())
	ls := openLayers(t, l, 3, ordersTable(), ordersSchema())
	f := newFeed(ordersTable(), ordersSchema())
	in := oddChanges(f)
	_, err := ls.Bronze.Append(t.Context(), []*change.Batch{in}, f.state())
	require.NoError(t, err)
	b, ok := ls.Bronze.(*bronze)
	require.True(t, ok)
	lg, err := b.ready(t.Context())
	require.NoError(t, err)
	for _, file := range lg.files {
		rewriteRenamed(t, b, file.path)
	}
	for got, err := range ls.Bronze.Read(t.Context(), catalog.Position{}, f.end.Position, 100) {
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(changeLines(in), changeLines(got)))
	}
}

func rewriteRenamed(t *testing.T, b *bronze, path string) {
	t.Helper()
	p, err := openParquet(b.fs, path)
	require.NoError(t, err)
	tbl, err := p.arrow.ReadTable(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Close())
	var fields []arrow.Field
	var columns []arrow.Array
	for i, f := range tbl.Schema().Fields() {
		col, err := array.Concatenate(tbl.Column(i).Data().Chunks(), memory.DefaultAllocator)
		require.NoError(t, err)
		if st, ok := f.Type.(*arrow.StructType); ok {
			inner := st.Fields()
			for n := range inner {
				inner[n].Name = strings.NewReplacer(" ", "_x20", ".", "_x2E", `"`, "_x22").Replace(inner[n].Name)
			}
			f.Type = arrow.StructOf(inner...)
			data := col.Data()
			col = array.MakeFromData(array.NewData(f.Type, data.Len(), data.Buffers(), data.Children(), data.NullN(), data.Offset()))
		}
		fields, columns = append(fields, f), append(columns, col)
	}
	schema := arrow.NewSchema(fields, nil)
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, nil, pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.WriteBuffered(array.NewRecordBatch(schema, columns, tbl.NumRows())))
	require.NoError(t, w.Close())
	require.NoError(t, b.fs.WriteFile(path, buf.Bytes()))
}
