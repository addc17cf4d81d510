package lake

import (
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
)

// Names of Lakeweir's own columns. Source columns of these names are refused when
// a table's configuration is checked.
const (
	colOp             = "op"
	colBefore         = "before"
	colAfter          = "after"
	colKey            = "pk"
	colOtherKey       = "_other_pk"
	colLSN            = "_lsn"
	colTxID           = "_tx_id"
	colCommitLSN      = "_commit_lsn"
	colOrdinal        = "_ordinal"
	colGeneration     = "_generation"
	colSourceTS       = "_source_ts"
	colSnapshot       = "_snapshot"
	colIngestedAt     = "_ingested_at"
	colUnavailable    = "_unavailable_columns"
	colUnfit          = "_unfit_columns"
	colBeforeComplete = "_before_complete"
	colSchemaVersion  = "_schema_version"
	// colLate numbers the changes that came late by the commit that admitted them; it
	// is NULL for all others.
	colLate = "_late"
	// Of tables that are read from topics, where the change stood.
	colTopic     = "_topic"
	colPartition = "_topic_partition"
	colOffset    = "_offset"

	colUpdatedAt    = "_updated_at"
	colIsDeleted    = "_is_deleted"
	colFromSnapshot = "_from_snapshot"

	colValidFrom = "valid_from"
	colValidTo   = "valid_to"
	colIsCurrent = "is_current"
	colHistoryOp = "_op"
)

var (
	typeText      = catalog.Type{Kind: catalog.Text}
	typeBool      = catalog.Type{Kind: catalog.Bool}
	typeInt       = catalog.Type{Kind: catalog.Int32}
	typeLong      = catalog.Type{Kind: catalog.Int64}
	typeInstant   = catalog.Type{Kind: catalog.TimestampTZ}
	typeTextList  = catalog.Type{Kind: catalog.List, Elem: &typeText}
	bronzeOwn     = []ownColumn{{colLSN, typeLong}, {colTxID, typeLong}, {colCommitLSN, typeLong}, {colOrdinal, typeLong}, {colGeneration, typeInt}, {colSourceTS, typeInstant}, {colSnapshot, typeBool}, {colIngestedAt, typeInstant}, {colUnavailable, typeTextList}, {colUnfit, typeTextList}, {colBeforeComplete, typeBool}, {colSchemaVersion, typeInt}, {colLate, typeLong}}
	bronzeTopic   = []ownColumn{{colTopic, typeText}, {colPartition, typeInt}, {colOffset, typeLong}}
	currentOwn    = []ownColumn{{colLSN, typeLong}, {colUpdatedAt, typeInstant}, {colIsDeleted, typeBool}, {colSourceTS, typeInstant}, {colFromSnapshot, typeBool}, {colGeneration, typeInt}, {colCommitLSN, typeLong}, {colOrdinal, typeLong}, {colUnavailable, typeTextList}}
	historyOwn    = []ownColumn{{colValidFrom, typeInstant}, {colValidTo, typeInstant}, {colIsCurrent, typeBool}, {colLSN, typeLong}, {colHistoryOp, typeText}, {colGeneration, typeInt}, {colCommitLSN, typeLong}, {colOrdinal, typeLong}, {colSourceTS, typeInstant}, {colUnavailable, typeTextList}}
	bronzeStructs = []string{colBefore, colAfter, colKey, colOtherKey}
)

type ownColumn struct {
	name string
	typ  catalog.Type
}

// ReservedColumns returns the column names that a source table must not have, since
// a layer has them itself.
func ReservedColumns() []string {
	seen := map[string]bool{}
	var out []string
	for _, cols := range [][]ownColumn{currentOwn, historyOwn} {
		for _, c := range cols {
			if !seen[c.name] {
				seen[c.name] = true
				out = append(out, c.name)
			}
		}
	}
	return out
}

// icebergType is the Iceberg type of a value; next numbers a list's element.
func icebergType(t catalog.Type, next func() int) iceberg.Type {
	switch t.Kind {
	case catalog.Text:
		return iceberg.PrimitiveTypes.String
	case catalog.Bool:
		return iceberg.PrimitiveTypes.Bool
	case catalog.Int32:
		return iceberg.PrimitiveTypes.Int32
	case catalog.Int64:
		return iceberg.PrimitiveTypes.Int64
	case catalog.Float32:
		return iceberg.PrimitiveTypes.Float32
	case catalog.Float64:
		return iceberg.PrimitiveTypes.Float64
	case catalog.Decimal:
		return iceberg.DecimalTypeOf(t.Precision, t.Scale)
	case catalog.Date:
		return iceberg.PrimitiveTypes.Date
	case catalog.Time:
		return iceberg.PrimitiveTypes.Time
	case catalog.Timestamp:
		return iceberg.PrimitiveTypes.Timestamp
	case catalog.TimestampTZ:
		return iceberg.PrimitiveTypes.TimestampTz
	case catalog.UUID:
		return iceberg.PrimitiveTypes.UUID
	case catalog.Binary:
		return iceberg.PrimitiveTypes.Binary
	case catalog.List:
		id := next()
		return &iceberg.ListType{ElementID: id, Element: icebergType(*t.Elem, next), ElementRequired: false}
	}
	return iceberg.PrimitiveTypes.String
}

// layout returns the Iceberg schema of a layer; topic says that its table is read from
// one. The ids in it are provisional: the catalog gives its own.
func layout(layer catalog.Layer, s *catalog.Schema, topic bool) *iceberg.Schema {
	last := 0
	next := func() int { last++; return last }
	field := func(name string, t catalog.Type, required bool) iceberg.NestedField {
		id := next()
		return iceberg.NestedField{ID: id, Name: name, Type: icebergType(t, next), Required: required}
	}
	own := func(fields []iceberg.NestedField, cols []ownColumn) []iceberg.NestedField {
		for _, c := range cols {
			fields = append(fields, field(c.name, c.typ, false))
		}
		return fields
	}
	var fields []iceberg.NestedField
	if layer == catalog.Bronze {
		fields = append(fields, field(colOp, typeText, false))
		for _, name := range bronzeStructs {
			if isKeyStruct(name) && len(s.Key) == 0 {
				continue
			}
			id := next()
			st := &iceberg.StructType{}
			for _, i := range structColumns(name, s) {
				st.FieldList = append(st.FieldList, field(s.Columns[i].Name, s.Columns[i].Type, false))
			}
			fields = append(fields, iceberg.NestedField{ID: id, Name: name, Type: st})
		}
		fields = own(fields, bronzeOwn)
		if topic {
			fields = own(fields, bronzeTopic)
		}
		return iceberg.NewSchema(0, fields...)
	}
	identifiers := make([]int, 0, len(s.Key))
	for i, c := range s.Columns {
		f := field(c.Name, c.Type, s.IsKey(i))
		fields = append(fields, f)
		if s.IsKey(i) {
			identifiers = append(identifiers, f.ID)
		}
	}
	if layer == catalog.History {
		return iceberg.NewSchema(0, own(fields, historyOwn)...)
	}
	fields = own(fields, currentOwn)
	if !canIdentify(s) {
		return iceberg.NewSchema(0, fields...)
	}
	return iceberg.NewSchemaWithIdentifiers(0, identifiers, fields...)
}

func isKeyStruct(name string) bool { return name == colKey || name == colOtherKey }

// structColumns returns the source columns, by index, of one of bronze's structs.
func structColumns(name string, s *catalog.Schema) []int {
	if isKeyStruct(name) {
		return s.Key
	}
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

// canIdentify reports whether Iceberg lets the key be a table's identifier: floats
// and lists may not be part of one.
func canIdentify(s *catalog.Schema) bool {
	for _, i := range s.Key {
		switch s.Columns[i].Type.Kind {
		case catalog.Float32, catalog.Float64, catalog.List:
			return false
		case catalog.Text, catalog.Bool, catalog.Int32, catalog.Int64, catalog.Decimal, catalog.Date, catalog.Time, catalog.Timestamp, catalog.TimestampTZ, catalog.UUID, catalog.Binary:
		}
	}
	return true
}

// differences lists in what a table's columns are not those that its layer should
// have: names, types and order of nesting; ids and further columns do not matter.
func differences(want, have []iceberg.NestedField, path string) []string {
	var out []string
	byName := map[string]iceberg.NestedField{}
	for _, f := range have {
		byName[f.Name] = f
	}
	for _, w := range want {
		h, ok := byName[w.Name]
		name := path + w.Name
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("column %q is missing", name))
			continue
		case h.Required && !w.Required:
			out = append(out, fmt.Sprintf("column %q does not allow NULL", name))
		}
		ws, wok := w.Type.(*iceberg.StructType)
		hs, hok := h.Type.(*iceberg.StructType)
		if wok && hok {
			out = append(out, differences(ws.FieldList, hs.FieldList, name+".")...)
			continue
		}
		if typeName(w.Type) != typeName(h.Type) {
			out = append(out, fmt.Sprintf("column %q is %s, not %s", name, typeName(h.Type), typeName(w.Type)))
		}
	}
	return out
}

// typeName prints a type without field ids.
func typeName(t iceberg.Type) string {
	switch t := t.(type) {
	case *iceberg.ListType:
		return "list<" + typeName(t.Element) + ">"
	case *iceberg.StructType:
		var names []string
		for _, f := range t.FieldList {
			names = append(names, f.Name+" "+typeName(f.Type))
		}
		return "struct<" + strings.Join(names, ", ") + ">"
	}
	return t.String()
}
