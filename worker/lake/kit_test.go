package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// epoch is that of every change the tests make.
var epoch = catalog.Epoch{System: "7312345678901234567", Timeline: 1}

func typ(k catalog.ValueKind) catalog.Type { return catalog.Type{Kind: k} }

// orders is a small table with a key of two columns and awkward names.
func ordersSchema() *catalog.Schema {
	return &catalog.Schema{Version: 3, Key: []int{0, 1}, Columns: []catalog.Column{
		{Name: "order id", Number: 1, Type: typ(catalog.Int64)},
		{Name: "shop.code", Number: 2, Type: typ(catalog.Text)},
		{Name: "status", Number: 3, Type: typ(catalog.Text), Nullable: true},
		{Name: "amount", Number: 4, Type: catalog.Type{Kind: catalog.Decimal, Precision: 12, Scale: 2}, Nullable: true},
		{Name: `no"te`, Number: 5, Type: typ(catalog.Text), Nullable: true},
	}}
}

func ordersTable() *catalog.Table {
	return &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"order id", "shop.code"}, Current: true, History: true, ApplyTruncates: true}
}

func source(version format) *catalog.Source {
	return &catalog.Source{Name: "shop", FormatVersion: int(version), Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}}}
}

// open opens a lake with a SQLite catalog in a folder.
func open(tb testing.TB, dir string) *Lake {
	tb.Helper()
	return openConfig(tb, Config{Catalog: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: filepath.Join(dir, "warehouse")})
}

func openConfig(tb testing.TB, cfg Config) *Lake {
	tb.Helper()
	l, err := Open(tb.Context(), cfg, nil)
	require.NoError(tb, err)
	l.retry.first, l.retry.most = 1, 1
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

// format is the version of a table's format.
type format int

func (f format) String() string { return fmt.Sprintf("v%d", int(f)) }

// formats are those that every test of tables runs against.
func formats() []format { return []format{2, 3} }

// feed makes changes of one table in commit order.
type feed struct {
	table  *catalog.Table
	schema *catalog.Schema
	batch  *change.Batch
	pos    catalog.Position
	time   int64
	end    catalog.Cursor
}

func newFeed(t *catalog.Table, s *catalog.Schema) *feed {
	f := &feed{table: t, schema: s, pos: catalog.Position{Generation: 1, Commit: 0x1000}, time: 1_700_000_000_000_000}
	f.take()
	return f
}

// commit begins the next transaction.
func (f *feed) commit() *feed {
	f.pos.Commit += 0x10
	f.pos.Ordinal = 0
	f.time += 1_000_000
	return f
}

// row adds an image. cells are nil for NULL, an int64, a string, or a change.Mark.
func (f *feed) row(cells ...any) int {
	rows := f.batch.Rows
	r := rows.Add()
	for i, c := range cells {
		switch c := c.(type) {
		case nil:
			rows.SetMark(r, i, change.Null)
		case int:
			rows.SetFixed(r, i, int64(c))
		case int64:
			rows.SetFixed(r, i, c)
		case string:
			rows.SetBytes(r, i, []byte(c))
		case []byte:
			rows.SetBytes(r, i, c)
		case change.Mark:
			rows.SetMark(r, i, c)
		}
	}
	return r
}

func (f *feed) add(op change.Op, before, after, other int) *change.Change {
	f.pos.Ordinal += 2
	c := change.Change{Op: op, Before: before, After: after, Other: other, Position: f.pos, LSN: f.pos.Commit - 8, TxID: uint64(f.pos.Commit), CommitTime: f.time}
	key := func(row int) []byte {
		if row < 0 || len(f.schema.Key) == 0 {
			return nil
		}
		k, err := f.batch.Rows.AppendKey(nil, row)
		if err != nil {
			panic(err)
		}
		return k
	}
	if c.Key = key(after); after < 0 {
		c.Key = key(before)
	}
	c.OtherKey = key(other)
	f.batch.Changes = append(f.batch.Changes, c)
	return &f.batch.Changes[len(f.batch.Changes)-1]
}

func (f *feed) create(cells ...any) { f.add(change.Create, -1, f.row(cells...), -1) }
func (f *feed) update(cells ...any) { f.add(change.Update, -1, f.row(cells...), -1) }
func (f *feed) read(cells ...any)   { f.add(change.Read, -1, f.row(cells...), -1) }

// remove deletes by key: the other columns are not sent.
func (f *feed) remove(key ...any) { f.add(change.Delete, f.row(key...), -1, -1) }

// move changes a key: a delete and a create that name each other.
func (f *feed) move(from, to []any) {
	old, row := f.row(from...), f.row(to...)
	f.add(change.Delete, old, -1, row)
	f.add(change.Create, -1, row, old)
}

// take returns the changes so far and begins a new batch.
func (f *feed) take() *change.Batch {
	b := f.batch
	if b != nil {
		f.end = b.End(f.end)
	}
	f.batch = &change.Batch{Table: f.table, Rows: change.NewRows(f.schema), Epoch: epoch, Whole: true}
	return b
}

func (f *feed) state() pipeline.LayerState {
	return pipeline.LayerState{Cursor: f.end, CommitTime: f.time}
}

// layers are a table's layers and what saves into them as the pipeline does.
type layers struct {
	pipeline.Layers
	table   *catalog.Table
	schema  *catalog.Schema
	history catalog.Position
}

func openLayers(tb testing.TB, l *Lake, version format, table *catalog.Table, schema *catalog.Schema) *layers {
	tb.Helper()
	ls, err := l.ForSource(source(version)).Open(tb.Context(), table, schema)
	require.NoError(tb, err)
	out := &layers{Layers: ls, table: table, schema: schema}
	if ls.History != nil {
		st, err := ls.History.State(tb.Context())
		require.NoError(tb, err)
		out.history = st.Cursor.Position
	}
	return out
}

// save brings one batch into all layers.
func (l *layers) save(tb testing.TB, f *feed) {
	tb.Helper()
	b := f.take()
	_, err := l.Bronze.Append(tb.Context(), []*change.Batch{b}, f.state())
	require.NoError(tb, err)
	require.NoError(tb, l.foldCurrent(tb.Context(), b, f.state()))
	require.NoError(tb, l.foldHistory(tb.Context(), b, f.state()))
}

func (l *layers) foldCurrent(ctx context.Context, b *change.Batch, to pipeline.LayerState) error {
	st, err := l.Current.State(ctx)
	if err != nil {
		return err
	}
	found, err := l.Current.Find(ctx, fold.TouchedCurrent(l.table, []*change.Batch{b}))
	if err != nil {
		return err
	}
	_, err = l.Current.Write(ctx, fold.Current(l.table, st.Cursor.Position, []*change.Batch{b}, found), to)
	return err
}

func (l *layers) foldHistory(ctx context.Context, b *change.Batch, to pipeline.LayerState) error {
	batches := []*change.Batch{b}
	touched := fold.TouchedHistory(batches)
	found, err := l.History.Find(ctx, touched, nil)
	if err != nil {
		return err
	}
	if whole := fold.WholeHistory(batches, found); len(whole) > 0 {
		if found, err = l.History.Find(ctx, touched, whole); err != nil {
			return err
		}
	}
	st, err := l.History.State(ctx)
	if err != nil {
		return err
	}
	if keys, since := fold.Returning(st.CommitTime, batches, found); len(keys) > 0 {
		closed, err := l.History.FindClosed(ctx, keys, since)
		if err != nil {
			return err
		}
		found = append(found, closed...)
	}
	if _, err = l.History.Write(ctx, fold.History(l.table, l.history, batches, found), to); err == nil {
		l.history = to.Cursor.Position
	}
	return err
}

// everything has one column of each type.
func everythingSchema() *catalog.Schema {
	list := func(t catalog.Type) catalog.Type { return catalog.Type{Kind: catalog.List, Elem: &t} }
	d38 := catalog.Type{Kind: catalog.Decimal, Precision: 38, Scale: 10}
	s := &catalog.Schema{Version: 1, Key: []int{0}}
	for i, c := range []struct {
		name string
		t    catalog.Type
	}{
		{"id", typ(catalog.UUID)},
		{"t", typ(catalog.Text)},
		{"b", typ(catalog.Bool)},
		{"i", typ(catalog.Int32)},
		{"l", typ(catalog.Int64)},
		{"f", typ(catalog.Float32)},
		{"d", typ(catalog.Float64)},
		{"d9", catalog.Type{Kind: catalog.Decimal, Precision: 9, Scale: 3}},
		{"d18", catalog.Type{Kind: catalog.Decimal, Precision: 18, Scale: 0}},
		{"d38", d38},
		{"day", typ(catalog.Date)},
		{"tm", typ(catalog.Time)},
		{"ts", typ(catalog.Timestamp)},
		{"tz", typ(catalog.TimestampTZ)},
		{"u", typ(catalog.UUID)},
		{"x", typ(catalog.Binary)},
		{"lt", list(typ(catalog.Text))},
		{"ll", list(typ(catalog.Int64))},
		{"ld", list(d38)},
		{"lb", list(typ(catalog.Bool))},
		{"lu", list(typ(catalog.UUID))},
		{"lz", list(typ(catalog.TimestampTZ))},
	} {
		s.Columns = append(s.Columns, catalog.Column{Name: c.name, Number: i + 1, Type: c.t, Nullable: i > 0})
	}
	return s
}

func everythingTable() *catalog.Table {
	return &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "everything"}, PrimaryKey: []string{"id"}, Current: true, History: true, SoftDelete: true, ApplyTruncates: true}
}

func wide(hi int64, lo uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(hi)), lo)
}

// everythingRows are the values of everything: NULL, least, greatest, odd.
func everythingRows() [][]any {
	id := func(n byte) []byte { return []byte{n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} }
	f32 := func(f float32) int64 { return int64(math.Float32bits(f)) }
	f64 := func(f float64) int64 { return int64(math.Float64bits(f)) }
	null := make([]any, len(everythingSchema().Columns))
	null[0] = id(0)
	texts := typemap.AppendElemBytes(typemap.AppendElemNull(typemap.AppendElemBytes(nil, []byte("a,\"b"))), nil)
	longs := typemap.AppendElemFixed(typemap.AppendElemNull(typemap.AppendElemFixed(nil, math.MinInt64)), math.MaxInt64)
	return [][]any{
		null,
		{
			id(1), "", 0, int64(math.MinInt32), int64(math.MinInt64), f32(-math.MaxFloat32), f64(-math.MaxFloat64),
			int64(-999_999_999), int64(-999_999_999_999_999_999), wide(-5421010862427522171, 17759344522308878337),
			int64(-719162), int64(0), int64(-62135596800000000), int64(-62135596800000000),
			make([]byte, 16),
			[]byte{},
			[]byte{},
			[]byte{},
			[]byte{},
			[]byte{},
			[]byte{},
			[]byte{},
		},
		{
			id(2), "zażółć \U0001F600 'quoted' \"too\"", 1, int64(math.MaxInt32), int64(math.MaxInt64), f32(math.MaxFloat32), f64(math.MaxFloat64),
			int64(999_999_999), int64(999_999_999_999_999_999), wide(5421010862427522170, 687399551400673279),
			int64(2932896), int64(86_399_999_999), int64(253402300799999999), int64(253402300799999999),
			[]byte("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1\xf0"), []byte("\x00\xff"),
			texts, longs, typemap.AppendElemBytes(nil, wide(-1, math.MaxUint64)), typemap.AppendElemFixed(typemap.AppendElemFixed(nil, 1), 0),
			typemap.AppendElemBytes(nil, id(9)), typemap.AppendElemFixed(nil, -1),
		},
		{
			id(3), string(make([]byte, 100_000)), 1, int64(-1), int64(1<<53 + 1), f32(0.1), f64(0.1),
			int64(1), int64(-1), wide(0, 1), int64(0), int64(1), int64(-1), int64(1),
			id(3), []byte("plain"), typemap.AppendElemNull(nil), typemap.AppendElemNull(nil), typemap.AppendElemNull(nil), typemap.AppendElemNull(nil), typemap.AppendElemNull(nil), typemap.AppendElemNull(nil),
		},
	}
}
