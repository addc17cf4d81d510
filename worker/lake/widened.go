package lake

import (
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// widened returns the types of the fields that were of fewer bytes once: files of then
// have their bounds in fewer bytes too.
func widened(md table.Metadata) map[int]iceberg.Type {
	now := fieldTypes(md.CurrentSchema())
	out := map[int]iceberg.Type{}
	for _, s := range md.Schemas() {
		for id, was := range fieldTypes(s) {
			if t, ok := now[id]; ok && (t == iceberg.PrimitiveTypes.Int64 && was == iceberg.PrimitiveTypes.Int32 || t == iceberg.PrimitiveTypes.Float64 && was == iceberg.PrimitiveTypes.Float32) {
				out[id] = t
			}
		}
	}
	return out
}

// fieldTypes returns the primitive types of a schema's fields, those in structs too.
func fieldTypes(s *iceberg.Schema) map[int]iceberg.Type {
	out := map[int]iceberg.Type{}
	var walk func(fields []iceberg.NestedField)
	walk = func(fields []iceberg.NestedField) {
		for _, f := range fields {
			switch t := f.Type.(type) {
			case *iceberg.StructType:
				walk(t.FieldList)
			case *iceberg.ListType:
				walk([]iceberg.NestedField{t.ElementField()})
			case iceberg.PrimitiveType:
				out[f.ID] = t
			}
		}
	}
	walk(s.Fields())
	return out
}
