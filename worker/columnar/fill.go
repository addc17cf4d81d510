package columnar

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Fill stores the values of arr at the indexes sel into column col of the rows
// first, first+1, … of rows, which must exist. NULL becomes the mark Null. It
// fails when arr does not hold values of the column's type; arrays that other
// writers' files give for the same Iceberg type are read too, and those of files from
// before the column was widened: int as long, float as double, a decimal as one of
// more digits.
func Fill(rows *change.Rows, first, col int, arr arrow.Array, sel []int) error {
	t := rows.Schema().Columns[col].Type
	if t.Fixed() {
		get, err := FixedReader(arr, t)
		if err != nil {
			return fmt.Errorf("column %q: %w", rows.Schema().Columns[col].Name, err)
		}
		for k, i := range sel {
			if arr.IsNull(i) {
				rows.SetMark(first+k, col, change.Null)
				continue
			}
			rows.SetFixed(first+k, col, get(i))
		}
		return nil
	}
	if get := plainReader(arr, t); get != nil {
		for k, i := range sel {
			if arr.IsNull(i) {
				rows.SetMark(first+k, col, change.Null)
				continue
			}
			v := get(i)
			rows.SetBytes(first+k, col, unsafe.Slice(unsafe.StringData(v), len(v)))
		}
		return nil
	}
	appendTo, err := bytesReader(arr, t)
	if err != nil {
		return fmt.Errorf("column %q: %w", rows.Schema().Columns[col].Name, err)
	}
	var buf []byte
	for k, i := range sel {
		if arr.IsNull(i) {
			rows.SetMark(first+k, col, change.Null)
			continue
		}
		buf = appendTo(buf[:0], i)
		rows.SetBytes(first+k, col, buf)
	}
	return nil
}

// plainReader returns a function that reads a value whose bytes are those of the
// array, or nil when the type has another form.
func plainReader(arr arrow.Array, t catalog.Type) func(i int) string {
	switch a := arr.(type) {
	case *array.String:
		if t.Kind == catalog.Text {
			return a.Value
		}
	case *array.LargeString:
		if t.Kind == catalog.Text {
			return a.Value
		}
	case *array.Binary:
		if t.Kind == catalog.Binary {
			return a.ValueString
		}
	case *array.LargeBinary:
		if t.Kind == catalog.Binary {
			return a.ValueString
		}
	}
	return nil
}

// FixedReader returns a function that reads the value at an index of arr, which
// must not be NULL, in the form change.Rows has for the fixed type t.
func FixedReader(arr arrow.Array, t catalog.Type) (func(i int) int64, error) {
	switch a := arr.(type) {
	case *array.Boolean:
		if t.Kind == catalog.Bool {
			return func(i int) int64 {
				if a.Value(i) {
					return 1
				}
				return 0
			}, nil
		}
	case *array.Int32:
		if t.Kind == catalog.Int32 || t.Kind == catalog.Int64 {
			return func(i int) int64 { return int64(a.Value(i)) }, nil
		}
	case *array.Int64:
		if t.Kind == catalog.Int64 {
			return a.Value, nil
		}
	case *array.Float32:
		switch t.Kind { //nolint:exhaustive // a float is read as no other
		case catalog.Float32:
			return func(i int) int64 { return int64(math.Float32bits(a.Value(i))) }, nil
		case catalog.Float64:
			return func(i int) int64 { return int64(math.Float64bits(float64(a.Value(i)))) }, nil
		}
	case *array.Float64:
		if t.Kind == catalog.Float64 {
			return func(i int) int64 { return int64(math.Float64bits(a.Value(i))) }, nil
		}
	case *array.Decimal128:
		if t.Kind == catalog.Decimal && sameScale(a.DataType(), t) {
			return func(i int) int64 { return int64(a.Value(i).LowBits()) }, nil
		}
	case *array.Date32:
		if t.Kind == catalog.Date {
			return func(i int) int64 { return int64(a.Value(i)) }, nil
		}
	case *array.Time64:
		if t.Kind == catalog.Time && inMicroseconds(a.DataType()) {
			return func(i int) int64 { return int64(a.Value(i)) }, nil
		}
	case *array.Timestamp:
		if (t.Kind == catalog.Timestamp || t.Kind == catalog.TimestampTZ) && inMicroseconds(a.DataType()) {
			return func(i int) int64 { return int64(a.Value(i)) }, nil
		}
	}
	return nil, wrongType(arr, t)
}

func bytesReader(arr arrow.Array, t catalog.Type) (func(dst []byte, i int) []byte, error) {
	if e, ok := arr.(array.ExtensionArray); ok {
		arr = e.Storage()
	}
	switch a := arr.(type) {
	case *array.String:
		if t.Kind == catalog.Text {
			return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }, nil
		}
	case *array.LargeString:
		if t.Kind == catalog.Text {
			return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }, nil
		}
	case *array.Binary:
		if t.Kind == catalog.Binary {
			return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }, nil
		}
	case *array.LargeBinary:
		if t.Kind == catalog.Binary {
			return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }, nil
		}
	case *array.FixedSizeBinary:
		if t.Kind == catalog.UUID && a.DataType().Layout().Buffers[1].ByteWidth == 16 {
			return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }, nil
		}
	case *array.Decimal128:
		if t.Kind == catalog.Decimal && sameScale(a.DataType(), t) {
			return func(dst []byte, i int) []byte { return appendDecimal(dst, a.Value(i)) }, nil
		}
	case array.ListLike:
		if t.Kind == catalog.List {
			return listReader(a, *t.Elem)
		}
	}
	return nil, wrongType(arr, t)
}

func listReader(a array.ListLike, elem catalog.Type) (func(dst []byte, i int) []byte, error) {
	values := a.ListValues()
	if elem.Fixed() {
		get, err := FixedReader(values, elem)
		if err != nil {
			return nil, fmt.Errorf("element: %w", err)
		}
		return func(dst []byte, i int) []byte {
			for j, end := a.ValueOffsets(i); j < end; j++ {
				if values.IsNull(int(j)) {
					dst = typemap.AppendElemNull(dst)
				} else {
					dst = typemap.AppendElemFixed(dst, get(int(j)))
				}
			}
			return dst
		}, nil
	}
	get, err := bytesReader(values, elem)
	if err != nil {
		return nil, fmt.Errorf("element: %w", err)
	}
	var buf []byte
	return func(dst []byte, i int) []byte {
		for j, end := a.ValueOffsets(i); j < end; j++ {
			if values.IsNull(int(j)) {
				dst = typemap.AppendElemNull(dst)
				continue
			}
			buf = get(buf[:0], int(j))
			dst = typemap.AppendElemBytes(dst, buf)
		}
		return dst
	}, nil
}

func appendDecimal(dst []byte, v decimal128.Num) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.HighBits()))
	return binary.BigEndian.AppendUint64(dst, v.LowBits())
}

func inMicroseconds(dt arrow.DataType) bool {
	t, ok := dt.(arrow.TemporalWithUnit)
	return ok && t.TimeUnit() == arrow.Microsecond
}

func sameScale(dt arrow.DataType, t catalog.Type) bool {
	d, ok := dt.(*arrow.Decimal128Type)
	return ok && int(d.Scale) == t.Scale
}

func wrongType(arr arrow.Array, t catalog.Type) error {
	return fmt.Errorf("the file has %s where %s is expected", arr.DataType(), t)
}
