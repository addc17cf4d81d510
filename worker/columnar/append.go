package columnar

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Append adds one value per ref to b: the cell in column col of the row it points
// at, or NULL when the ref is zero or the cell has no value. b must build
// DataType(t), which is the type of the column.
func Append(b array.Builder, t catalog.Type, refs []change.Ref, col int) {
	b.Reserve(len(refs))
	if t.Fixed() {
		put := fixedAppender(b, t)
		for _, r := range refs {
			if r.IsZero() || !r.Rows.HasValue(r.Row, col) {
				b.AppendNull()
				continue
			}
			put(r.Rows.Fixed(r.Row, col))
		}
		return
	}
	put := bytesAppender(b, t)
	for _, r := range refs {
		if r.IsZero() || !r.Rows.HasValue(r.Row, col) {
			b.AppendNull()
			continue
		}
		put(r.Rows.Bytes(r.Row, col))
	}
}

func fixedAppender(b array.Builder, t catalog.Type) func(int64) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return func(v int64) { b.Append(v != 0) }
	case *array.Int32Builder:
		return func(v int64) { b.Append(int32(v)) }
	case *array.Int64Builder:
		return b.Append
	case *array.Float32Builder:
		return func(v int64) { b.Append(math.Float32frombits(uint32(v))) }
	case *array.Float64Builder:
		return func(v int64) { b.Append(math.Float64frombits(uint64(v))) }
	case *array.Decimal128Builder:
		return func(v int64) { b.Append(decimal128.FromI64(v)) }
	case *array.Date32Builder:
		return func(v int64) { b.Append(arrow.Date32(v)) }
	case *array.Time64Builder:
		return func(v int64) { b.Append(arrow.Time64(v)) }
	case *array.TimestampBuilder:
		return func(v int64) { b.Append(arrow.Timestamp(v)) }
	}
	panic("columnar: no builder of " + t.String() + " is " + b.Type().String())
}

func bytesAppender(b array.Builder, t catalog.Type) func([]byte) {
	switch b := b.(type) {
	case *array.StringBuilder:
		return b.BinaryBuilder.Append
	case *array.BinaryBuilder:
		return b.Append
	case *array.Decimal128Builder:
		return func(v []byte) {
			b.Append(decimal128.New(int64(binary.BigEndian.Uint64(v)), binary.BigEndian.Uint64(v[8:])))
		}
	case *extensions.UUIDBuilder:
		return func(v []byte) { b.AppendBytes([16]byte(v)) }
	case *array.ListBuilder:
		return listAppender(b, *t.Elem)
	}
	panic("columnar: no builder of " + t.String() + " is " + b.Type().String())
}

func listAppender(b *array.ListBuilder, elem catalog.Type) func([]byte) {
	values := b.ValueBuilder()
	isFixed := elem.Fixed()
	var fixed func(int64)
	var bytes func([]byte)
	if isFixed {
		fixed = fixedAppender(values, elem)
	} else {
		bytes = bytesAppender(values, elem)
	}
	each := func(null bool, f int64, v []byte) {
		switch {
		case null:
			values.AppendNull()
		case isFixed:
			fixed(f)
		default:
			bytes(v)
		}
	}
	return func(list []byte) {
		b.Append(true)
		typemap.EachElem(list, isFixed, each)
	}
}
