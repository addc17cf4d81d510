package typemap

import "github.com/lakeweir/lakeweir/catalog"

// maxPrecision is the most digits that Iceberg's decimal holds.
const maxPrecision = 38

// Postgres returns what a Postgres type is in the lake. Every type has an answer:
// one that is not in Entries is catalog.Text, the text the server prints.
func Postgres(t catalog.SourceType) catalog.Type {
	switch t.Base {
	case "array":
		return postgresArray(t)
	case "numeric":
		return postgresNumeric(t.Modifier)
	}
	if k, ok := postgresKinds[t.Base]; ok {
		return catalog.Type{Kind: k}
	}
	return catalog.Type{Kind: catalog.Text}
}

var postgresKinds = map[string]catalog.ValueKind{
	"bool":        catalog.Bool,
	"int2":        catalog.Int32,
	"int4":        catalog.Int32,
	"int8":        catalog.Int64,
	"float4":      catalog.Float32,
	"float8":      catalog.Float64,
	"date":        catalog.Date,
	"time":        catalog.Time,
	"timestamp":   catalog.Timestamp,
	"timestamptz": catalog.TimestampTZ,
	"uuid":        catalog.UUID,
	"bytea":       catalog.Binary,
}

// postgresNumeric reads a type modifier ((precision << 16) | 11-bit signed scale) + 4.
func postgresNumeric(modifier int32) catalog.Type {
	if modifier < 4 {
		return catalog.Type{Kind: catalog.Text}
	}
	m := modifier - 4
	precision := int(m>>16) & 0xffff
	scale := int(m&0x7ff^1024) - 1024
	if scale < 0 { // numeric(5,-2) holds up to 7 digits before the point
		precision, scale = precision-scale, 0
	}
	precision = max(precision, scale) // numeric(3,5) is below 0.01
	if precision < 1 || precision > maxPrecision {
		return catalog.Type{Kind: catalog.Text}
	}
	return catalog.Type{Kind: catalog.Decimal, Precision: precision, Scale: scale}
}

func postgresArray(t catalog.SourceType) catalog.Type {
	// Boxes are parted by semicolons, not commas. Who declares integer[][] means to
	// store what a list cannot hold.
	if t.Elem == nil || t.Elem.Base == "box" || t.Dims > 1 {
		return catalog.Type{Kind: catalog.Text}
	}
	source := *t.Elem
	if source.Modifier < 0 { // the array's column carries the modifier of its elements
		source.Modifier = t.Modifier
	}
	elem := Postgres(source)
	if elem.Kind == catalog.List { // an array of a domain over an array
		elem = catalog.Type{Kind: catalog.Text}
	}
	return catalog.Type{Kind: catalog.List, Elem: &elem}
}
