package catalog

import (
	"slices"
	"strconv"
)

// ValueKind is the kind of value a column holds in the lake and in memory. Each has one physical
// form in change.Rows, given in parentheses.
type ValueKind uint8

// The kinds.
const (
	Text        ValueKind = iota + 1 // UTF-8, or the text the database prints for types without a kind of their own (var)
	Bool                             // (fixed: 0 or 1)
	Int32                            // (fixed)
	Int64                            // (fixed)
	Float32                          // (fixed: math.Float32bits)
	Float64                          // (fixed: math.Float64bits)
	Decimal                          // Precision 1 to 38, 0 <= Scale <= Precision (fixed unscaled integer up to 18 digits; else var, 16 bytes big-endian two's complement)
	Date                             // days since 1970-01-01, proleptic Gregorian (fixed)
	Time                             // microseconds since midnight, below 24 h (fixed)
	Timestamp                        // microseconds since 1970-01-01 00:00 without zone (fixed)
	TimestampTZ                      // microseconds since 1970-01-01 00:00 UTC (fixed)
	UUID                             // (var, 16 bytes)
	Binary                           // (var)
	List                             // of Elem, one-dimensional (var, see typemap.AppendElemFixed)
)

// Type is what a column is in the lake.
type Type struct {
	Kind      ValueKind
	Precision int   // of a Decimal
	Scale     int   // of a Decimal
	Elem      *Type // of a List
}

// Fixed reports whether values of the type are held as one int64, not as bytes.
func (t Type) Fixed() bool {
	switch t.Kind {
	case Bool, Int32, Int64, Float32, Float64, Date, Time, Timestamp, TimestampTZ:
		return true
	case Decimal:
		return t.Precision <= 18
	case Text, UUID, Binary, List:
		return false
	}
	return false
}

// Equal reports whether both are the same type.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.Precision != u.Precision || t.Scale != u.Scale || (t.Elem == nil) != (u.Elem == nil) {
		return false
	}
	return t.Elem == nil || t.Elem.Equal(*u.Elem)
}

// String prints the type as Iceberg names it: "decimal(12, 2)", "list<long>".
func (t Type) String() string {
	switch t.Kind {
	case Text:
		return "string"
	case Bool:
		return "boolean"
	case Int32:
		return "int"
	case Int64:
		return "long"
	case Float32:
		return "float"
	case Float64:
		return "double"
	case Decimal:
		return "decimal(" + strconv.Itoa(t.Precision) + ", " + strconv.Itoa(t.Scale) + ")"
	case Date:
		return "date"
	case Time:
		return "time"
	case Timestamp:
		return "timestamp"
	case TimestampTZ:
		return "timestamptz"
	case UUID:
		return "uuid"
	case Binary:
		return "binary"
	case List:
		return "list<" + t.Elem.String() + ">"
	}
	return "unknown"
}

// SourceType is a column's type as the source declares it, with domains looked
// through. typemap turns it into a Type.
type SourceType struct {
	// Name is what the database prints, with modifiers and schema where needed:
	// "numeric(12,2)", "shop.order_status", "text[]".
	Name string `json:"name"`
	// Base is the built-in type underneath, by its catalog name ("int4",
	// "numeric", "timestamptz"), or "enum", "array", "composite", "range",
	// "multirange" for made ones. A domain has the Base of what it is over.
	Base string `json:"base"`
	OID  uint32 `json:"oid"`
	// Modifier is pg_attribute.atttypmod, -1 when there is none. For a domain it
	// is the domain's own.
	Modifier int32       `json:"modifier"`
	Elem     *SourceType `json:"elem,omitempty"` // of an array
	// Dims is how many dimensions an array is declared with, which Postgres notes and
	// does not enforce; 0 when it is not known.
	Dims int `json:"dims,omitempty"`
}

// Column is one column of a table at one schema version.
type Column struct {
	Name     string
	Number   int // the attribute number at the source, which survives a rename
	Source   SourceType
	Type     Type
	Nullable bool
	// Dropped says that the source has the column no more. The lake keeps it, and it is
	// NULL in every later change.
	Dropped bool
	// Was are the names that the column had in the lake before, the oldest first. With
	// the name of today they tell which column it is: two that have swapped their names
	// differ in nothing else. See Renamed.
	Was []string
}

// Renamed returns the column under another name, with the one it had among its former.
func (c Column) Renamed(name string) Column {
	if name != c.Name {
		c.Was = append(slices.Clone(c.Was), c.Name)
		c.Name = name
	}
	return c
}

// Schema is the columns of a table at one version, in the source's order.
// It is immutable once built.
type Schema struct {
	Version int // from 1; counted by the registry
	Columns []Column
	// Key holds the indexes of the configured primary key's columns, in its
	// order; empty for a table without a key.
	Key []int
	// Definition is how the source declares the table with these columns; nil where that
	// is not known. The next change of the table is told from it.
	Definition *Definition
	// At is the place from which on the source had them, as far as it was decided that
	// the lake follows; zero for the columns that the table was first read with.
	At Place
}

// Index returns the index of the named column, or -1.
func (s *Schema) Index(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// IsKey reports whether the column at index i is part of the key.
func (s *Schema) IsKey(i int) bool { return slices.Contains(s.Key, i) }

// SameShape reports whether both have the same columns with the same types, in
// the same order, whatever their versions.
func (s *Schema) SameShape(o *Schema) bool {
	return slices.EqualFunc(s.Columns, o.Columns, func(a, b Column) bool {
		return a.Name == b.Name && a.Type.Equal(b.Type)
	}) && slices.Equal(s.Key, o.Key)
}
