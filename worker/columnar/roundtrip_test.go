package columnar

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// value is one cell as a test writes it.
type value struct {
	null  bool
	fixed int64
	bytes []byte
}

func fixed(v ...int64) []value {
	out := []value{{null: true}}
	for _, x := range v {
		out = append(out, value{fixed: x})
	}
	return out
}

func texts(v ...string) []value {
	out := []value{{null: true}}
	for _, x := range v {
		out = append(out, value{bytes: []byte(x)})
	}
	return out
}

func wide(hi int64, lo uint64) string {
	return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(hi)), lo))
}

// kinds lists every type with NULL, its least, its greatest and odd values.
func kinds() map[string]struct {
	t      catalog.Type
	values []value
} {
	type entry = struct {
		t      catalog.Type
		values []value
	}
	f32 := func(f float32) int64 { return int64(math.Float32bits(f)) }
	f64 := func(f float64) int64 { return int64(math.Float64bits(f)) }
	m := map[string]entry{
		"text":         {catalog.Type{Kind: catalog.Text}, texts("", "a", "zażółć \U0001F600", "nul\x00inside", string(make([]byte, 70_000)))},
		"bool":         {catalog.Type{Kind: catalog.Bool}, fixed(0, 1)},
		"int":          {catalog.Type{Kind: catalog.Int32}, fixed(0, -1, math.MinInt32, math.MaxInt32)},
		"long":         {catalog.Type{Kind: catalog.Int64}, fixed(0, -1, math.MinInt64, math.MaxInt64, 1<<53+1)},
		"float":        {catalog.Type{Kind: catalog.Float32}, fixed(f32(0), f32(float32(math.Copysign(0, -1))), f32(float32(math.NaN())), f32(float32(math.Inf(-1))), f32(math.MaxFloat32), f32(math.SmallestNonzeroFloat32))},
		"double":       {catalog.Type{Kind: catalog.Float64}, fixed(f64(0), f64(math.Copysign(0, -1)), f64(math.NaN()), f64(math.Inf(1)), f64(math.MaxFloat64), f64(0.1))},
		"decimal(9,2)": {catalog.Type{Kind: catalog.Decimal, Precision: 9, Scale: 2}, fixed(0, -1, 999_999_999, -999_999_999)},
		"decimal(18,18)": {
			catalog.Type{Kind: catalog.Decimal, Precision: 18, Scale: 18},
			fixed(0, -1, 999_999_999_999_999_999, -999_999_999_999_999_999),
		},
		"decimal(38,10)": {
			catalog.Type{Kind: catalog.Decimal, Precision: 38, Scale: 10},
			texts(wide(0, 0), wide(-1, math.MaxUint64), wide(5421010862427522170, 687399551400673279), wide(-5421010862427522171, 17759344522308878337)),
		},
		"date":        {catalog.Type{Kind: catalog.Date}, fixed(0, -1, math.MinInt32, math.MaxInt32, -719529)},
		"time":        {catalog.Type{Kind: catalog.Time}, fixed(0, 1, 86_399_999_999)},
		"timestamp":   {catalog.Type{Kind: catalog.Timestamp}, fixed(0, -1, -211813488000000000, 9223371331199999999)},
		"timestamptz": {catalog.Type{Kind: catalog.TimestampTZ}, fixed(0, -1, -211813488000000000, 9223371331199999999)},
		"uuid":        {catalog.Type{Kind: catalog.UUID}, texts("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "0123456789abcdef")},
		"binary":      {catalog.Type{Kind: catalog.Binary}, texts("", "\x00", "\xff\xfe", "bytes")},
	}
	for name, e := range m {
		elem := e.t
		var full, empty []byte
		for _, v := range e.values {
			switch {
			case v.null:
				full = typemap.AppendElemNull(full)
			case elem.Fixed():
				full = typemap.AppendElemFixed(full, v.fixed)
			default:
				full = typemap.AppendElemBytes(full, v.bytes)
			}
		}
		m["list<"+name+">"] = entry{catalog.Type{Kind: catalog.List, Elem: &elem}, []value{{null: true}, {bytes: empty}, {bytes: full}, {bytes: typemap.AppendElemNull(nil)}}}
	}
	return m
}

func TestEveryTypeComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roundTrip(t, k.t, k.values)
		})
	}
}

func TestAnyMixOfValuesComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	all := kinds()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"text", "long", "double", "decimal(38,10)", "uuid", "list<text>", "list<long>", "list<decimal(38,10)>"}).Draw(t, "type")
		k := all[name]
		roundTrip(t, k.t, rapid.SliceOfN(rapid.SampledFrom(k.values), 0, 50).Draw(t, "values"))
	})
}

func roundTrip(t require.TestingT, typ catalog.Type, values []value) {
	schema := &catalog.Schema{Version: 1, Columns: []catalog.Column{{Name: "other", Type: catalog.Type{Kind: catalog.Int32}}, {Name: "c", Type: typ, Nullable: true}}}
	rows := change.NewRows(schema)
	refs := []change.Ref{{}}
	for _, v := range values {
		r := rows.Add()
		switch {
		case v.null:
			rows.SetMark(r, 1, change.Null)
		case typ.Fixed():
			rows.SetFixed(r, 1, v.fixed)
		default:
			rows.SetBytes(r, 1, v.bytes)
		}
		refs = append(refs, change.Ref{Rows: rows, Row: r})
	}
	b := array.NewBuilder(memory.DefaultAllocator, DataType(typ))
	Append(b, typ, refs, 1)
	arr := b.NewArray()
	require.Equal(t, len(refs), arr.Len())
	require.True(t, arr.IsNull(0), "a zero ref is NULL")

	got := change.NewRows(schema)
	sel := []int{}
	for i := range values {
		got.Add()
		sel = append(sel, i+1)
	}
	require.NoError(t, Fill(got, 0, 1, arr, sel))
	for i, v := range values {
		require.Equal(t, v.null, got.Mark(i, 1) == change.Null, "value %d", i)
		require.True(t, change.Equal(rows, i, got, i, 1), "value %d", i)
	}
}

func TestFillRefusesAnArrayOfAnotherType(t *testing.T) {
	t.Parallel()
	for name, k := range kinds() {
		for other, o := range kinds() {
			if name == other {
				continue
			}
			schema := &catalog.Schema{Columns: []catalog.Column{{Name: "c", Type: k.t}}}
			rows := change.NewRows(schema)
			err := Fill(rows, 0, 0, array.NewBuilder(memory.DefaultAllocator, DataType(o.t)).NewArray(), nil)
			if widens(o.t, k.t) {
				require.NoError(t, err, "%s into %s", other, name)
				continue
			}
			require.Error(t, err, "%s into %s", other, name)
		}
	}
}

// widens says which types a column may have had before Iceberg widened it, or may
// share an Arrow form with.
func widens(from, to catalog.Type) bool {
	switch {
	case from.Kind == catalog.List && to.Kind == catalog.List:
		return widens(*from.Elem, *to.Elem)
	case from.Kind == catalog.Int32 && to.Kind == catalog.Int64, from.Kind == catalog.Float32 && to.Kind == catalog.Float64:
		return true
	case from.Kind == catalog.Timestamp && to.Kind == catalog.TimestampTZ, from.Kind == catalog.TimestampTZ && to.Kind == catalog.Timestamp:
		return true
	}
	return false
}

// A column that was widened shows the same values, NULL, least and greatest among them.
func TestFillReadsWhatAWidenedColumnHeld(t *testing.T) {
	t.Parallel()
	fill := func(from, to catalog.Type, values ...int64) *change.Rows {
		was := change.NewRows(&catalog.Schema{Columns: []catalog.Column{{Name: "c", Type: from}}})
		refs, sel := []change.Ref{{}}, []int{0}
		for i, v := range values {
			was.SetFixed(was.Add(), 0, v)
			refs, sel = append(refs, change.Ref{Rows: was, Row: i}), append(sel, i+1)
		}
		b := array.NewBuilder(memory.DefaultAllocator, DataType(from))
		Append(b, from, refs, 0)
		out := change.NewRows(&catalog.Schema{Columns: []catalog.Column{{Name: "c", Type: to}}})
		out.AddMany(len(sel))
		require.NoError(t, Fill(out, 0, 0, b.NewArray(), sel))
		require.Equal(t, change.Null, out.Mark(0, 0))
		return out
	}
	longs := fill(catalog.Type{Kind: catalog.Int32}, catalog.Type{Kind: catalog.Int64}, math.MinInt32, math.MaxInt32)
	require.Equal(t, []int64{math.MinInt32, math.MaxInt32}, []int64{longs.Fixed(1, 0), longs.Fixed(2, 0)})

	floats := []float32{0.1, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.Copysign(0, -1))}
	var bits []int64
	for _, f := range floats {
		bits = append(bits, int64(math.Float32bits(f)))
	}
	doubles := fill(catalog.Type{Kind: catalog.Float32}, catalog.Type{Kind: catalog.Float64}, bits...)
	for i, f := range floats {
		require.Equal(t, math.Float64bits(float64(f)), uint64(doubles.Fixed(i+1, 0)))
	}

	wider := fill(catalog.Type{Kind: catalog.Decimal, Precision: 9, Scale: 2}, catalog.Type{Kind: catalog.Decimal, Precision: 18, Scale: 2}, -999_999_999, 1)
	require.Equal(t, []int64{-999_999_999, 1}, []int64{wider.Fixed(1, 0), wider.Fixed(2, 0)})
	widest := fill(catalog.Type{Kind: catalog.Decimal, Precision: 18, Scale: 2}, catalog.Type{Kind: catalog.Decimal, Precision: 38, Scale: 2}, -1, 5)
	require.Equal(t, wide(-1, math.MaxUint64), string(widest.Bytes(1, 0)))
	require.Equal(t, wide(0, 5), string(widest.Bytes(2, 0)))
}

func BenchmarkAppendAColumnOfTexts(b *testing.B) {
	schema := &catalog.Schema{Columns: []catalog.Column{{Name: "c", Type: catalog.Type{Kind: catalog.Text}}}}
	rows := change.NewRows(schema)
	refs := make([]change.Ref, 8192)
	for i := range refs {
		rows.Add()
		rows.SetBytes(i, 0, []byte("some text of a usual length"))
		refs[i] = change.Ref{Rows: rows, Row: i}
	}
	bld := array.NewBuilder(memory.DefaultAllocator, DataType(schema.Columns[0].Type))
	for b.Loop() {
		Append(bld, schema.Columns[0].Type, refs, 0)
		bld.NewArray().Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8192, "ns/row")
}
