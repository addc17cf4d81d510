package lake

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
)

// describe makes the manifest entry of a Parquet file that the layer wrote, with the
// counts and bounds that let readers skip it. Columns are known by their field ids,
// so names do not matter. Bronze's images are left out: nobody skips by them, and
// they would make every manifest several times as large.
func (l *layer) describe(path string, size int64, md *metadata.FileMetaData, partition map[int]any) (iceberg.DataFile, error) {
	st := columnStats{values: map[int]int64{}, nulls: map[int]int64{}, lower: map[int][]byte{}, upper: map[int][]byte{}}
	for _, f := range l.tbl.Schema().Fields() {
		if inner, ok := f.Type.(*iceberg.StructType); ok {
			if isKeyStruct(f.Name) && l.kind == catalog.Bronze {
				for _, k := range inner.FieldList {
					st.want(k)
				}
			}
			continue
		}
		st.want(f)
	}
	if err := st.read(md); err != nil {
		return nil, err
	}
	b, err := iceberg.NewDataFileBuilder(l.tbl.Spec(), iceberg.EntryContentData, path, iceberg.ParquetFile, partition, nil, nil, md.NumRows, size)
	if err != nil {
		return nil, err
	}
	b.ValueCounts(st.values).NullValueCounts(st.nulls).LowerBoundValues(st.lower).UpperBoundValues(st.upper)
	var splits []int64
	for i := range md.NumRowGroups() {
		splits = append(splits, md.RowGroup(i).FileOffset())
	}
	if slices.IsSorted(splits) && len(splits) > 0 && splits[0] > 0 {
		b.SplitOffsets(splits)
	}
	return b.Build(), nil
}

type columnStats struct {
	types         map[int]iceberg.Type
	values, nulls map[int]int64
	lower, upper  map[int][]byte
}

func (s *columnStats) want(f iceberg.NestedField) {
	if s.types == nil {
		s.types = map[int]iceberg.Type{}
	}
	if _, isList := f.Type.(*iceberg.ListType); !isList {
		s.types[f.ID] = f.Type
	}
}

func (s *columnStats) read(md *metadata.FileMetaData) error {
	for leaf := range md.Schema.NumColumns() {
		id := int(md.Schema.Column(leaf).SchemaNode().FieldID())
		t, ok := s.types[id]
		if !ok {
			continue
		}
		bounded, counted := true, true
		for g := range md.NumRowGroups() {
			chunk, err := md.RowGroup(g).ColumnChunk(leaf)
			if err != nil {
				return err
			}
			s.values[id] += chunk.NumValues()
			stats, err := chunk.Statistics()
			if err != nil || stats == nil {
				bounded, counted = false, false
				continue
			}
			s.nulls[id] += stats.NullCount()
			if !stats.HasMinMax() {
				bounded = bounded && stats.NullCount() == chunk.NumValues()
				continue
			}
			lo, ok1 := bound(t, stats.EncodeMin(), false)
			hi, ok2 := bound(t, stats.EncodeMax(), true)
			if !ok1 || !ok2 {
				bounded = false
				continue
			}
			if was, ok := s.lower[id]; !ok || less(t, lo, was) {
				s.lower[id] = lo
			}
			if was, ok := s.upper[id]; !ok || less(t, was, hi) {
				s.upper[id] = hi
			}
		}
		if !counted {
			delete(s.nulls, id)
		}
		if !bounded {
			delete(s.lower, id)
			delete(s.upper, id)
		}
	}
	return nil
}

const boundChars = 16 // Iceberg's default for texts

// bound turns a value as Parquet encodes it into Iceberg's form of a bound; an upper
// bound that had to be cut is rounded up. It reports false for values that bounds
// are not kept of.
func bound(t iceberg.Type, v []byte, upper bool) ([]byte, bool) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		if len(v) == 0 {
			return nil, false
		}
		return []byte{v[0] & 1}, true
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.Float32Type, iceberg.Float64Type:
		return bytes.Clone(v), true // little-endian in both
	case iceberg.UUIDType:
		return bytes.Clone(v), len(v) == 16
	case iceberg.DecimalType:
		v = bytes.Clone(v)
		if t.Precision() <= 18 {
			slices.Reverse(v) // an integer there, big-endian here
		}
		return shortest(v), len(v) > 0
	case iceberg.StringType:
		return cutText(v, upper)
	}
	return nil, false
}

// shortest drops the sign bytes that a big-endian two's complement can do without.
func shortest(v []byte) []byte {
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return v
}

func cutText(v []byte, upper bool) ([]byte, bool) {
	end := 0
	for range boundChars {
		_, n := utf8.DecodeRune(v[end:])
		if n == 0 {
			break
		}
		end += n
	}
	if end == len(v) || !upper {
		return bytes.Clone(v[:end]), utf8.Valid(v[:end])
	}
	runes := []rune(string(v[:end]))
	for i := len(runes) - 1; i >= 0; i-- {
		next := runes[i] + 1
		if next >= 0xD800 && next <= 0xDFFF {
			next = 0xE000
		}
		if next <= utf8.MaxRune && runes[i] != utf8.RuneError {
			runes[i] = next
			return []byte(string(runes[:i+1])), true
		}
	}
	return nil, false
}

// less compares two bounds of one type.
func less(t iceberg.Type, a, b []byte) bool {
	switch t.(type) {
	case iceberg.StringType, iceberg.UUIDType, iceberg.BooleanType:
		return bytes.Compare(a, b) < 0
	}
	x, err1 := iceberg.LiteralFromBytes(t, a)
	y, err2 := iceberg.LiteralFromBytes(t, b)
	if err1 != nil || err2 != nil {
		return false
	}
	return literalLess(x, y)
}

func literalLess(x, y iceberg.Literal) bool {
	switch x := x.(type) {
	case iceberg.Int32Literal:
		return below(x, y)
	case iceberg.Int64Literal:
		return below(x, y)
	case iceberg.Float32Literal:
		return below(x, y)
	case iceberg.Float64Literal:
		return below(x, y)
	case iceberg.DateLiteral:
		return below(x, y)
	case iceberg.TimeLiteral:
		return below(x, y)
	case iceberg.TimestampLiteral:
		return below(x, y)
	case iceberg.DecimalLiteral:
		d, ok := y.(iceberg.DecimalLiteral)
		return ok && x.Val.Less(d.Val)
	}
	return false
}

func below[T cmp.Ordered](x T, y iceberg.Literal) bool {
	v, ok := y.(any).(T)
	return ok && x < v
}
