package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/lakeweir/lakeweir/catalog"
)

// DataType is the Arrow type that holds values of t; Append and Fill expect it.
func DataType(t catalog.Type) arrow.DataType {
	switch t.Kind {
	case catalog.Text:
		return arrow.BinaryTypes.String
	case catalog.Bool:
		return arrow.FixedWidthTypes.Boolean
	case catalog.Int32:
		return arrow.PrimitiveTypes.Int32
	case catalog.Int64:
		return arrow.PrimitiveTypes.Int64
	case catalog.Float32:
		return arrow.PrimitiveTypes.Float32
	case catalog.Float64:
		return arrow.PrimitiveTypes.Float64
	case catalog.Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case catalog.Date:
		return arrow.FixedWidthTypes.Date32
	case catalog.Time:
		return arrow.FixedWidthTypes.Time64us
	case catalog.Timestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case catalog.TimestampTZ:
		return arrow.FixedWidthTypes.Timestamp_us
	case catalog.UUID:
		return extensions.NewUUIDType()
	case catalog.Binary:
		return arrow.BinaryTypes.Binary
	case catalog.List:
		return arrow.ListOfField(arrow.Field{Name: "element", Type: DataType(*t.Elem), Nullable: true})
	}
	return arrow.Null
}
