package debezium

import (
	"crypto/md5" //nolint:gosec // Debezium names a UUID by it; nothing is protected
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// family is how values of a source type come through Debezium.
type family uint8

const (
	familyText      family = iota + 1 // a string, as the server prints it
	familyOpaque                      // the same as bytes: types that Debezium does not know
	familyGeometric                   // the same, with numbers as Java prints them
	familyBool
	familyInt
	familyIntText // an integer that is text in the lake
	familyFloat
	familyNumeric
	familyMoney
	familyBytes
	familyDate
	familyTime
	familyTimeTZ
	familyTimestamp
	familyTimestampTZ
	familyInterval
	familyUUID
	familyBit
	familyVarbit
	familyHstore
	familyPoint
	familyList
	familyListText // an array that is text in the lake
)

var families = map[string]family{
	"bool": familyBool, "int2": familyInt, "int4": familyInt, "int8": familyInt, "oid": familyIntText,
	"float4": familyFloat, "float8": familyFloat, "numeric": familyNumeric, "money": familyMoney,
	"text": familyText, "varchar": familyText, "bpchar": familyText, "name": familyText, "char": familyText, "enum": familyText,
	"json": familyText, "jsonb": familyText, "xml": familyText, "tsvector": familyText,
	"inet": familyText, "cidr": familyText, "macaddr": familyText, "macaddr8": familyText,
	"bytea": familyBytes, "uuid": familyUUID, "bit": familyBit, "varbit": familyVarbit,
	"date": familyDate, "time": familyTime, "timetz": familyTimeTZ, "timestamp": familyTimestamp, "timestamptz": familyTimestampTZ,
	"interval": familyInterval, "point": familyPoint,
	"line": familyGeometric, "lseg": familyGeometric, "box": familyGeometric, "path": familyGeometric, "polygon": familyGeometric, "circle": familyGeometric,
}

// textRanges are the ranges that Debezium knows.
var textRanges = map[string]bool{
	"int4range": true, "int8range": true, "numrange": true, "tsrange": true, "tstzrange": true, "daterange": true,
}

func familyOf(s catalog.SourceType) family {
	if f, ok := families[s.Base]; ok {
		return f
	}
	if s.Base == "range" && textRanges[s.Name] {
		return familyText
	}
	switch _, name, _ := strings.Cut(s.Base, "."); name {
	case "citext", "ltree", "isbn":
		return familyText
	case "hstore":
		return familyHstore
	}
	return familyOpaque
}

// column is how one column's values are read. A schema that comes with a record
// changes what the configuration said.
type column struct {
	name   string
	quoted []byte // the name as it stands in JSON, with the colon; nil when it has escapes
	source catalog.SourceType
	typ    catalog.Type
	family family
	isKey  bool
	fixed  bool // as typ.Fixed
	// zoned says that instants stand inside the text, in the time zone of whoever
	// printed it.
	zoned bool
	// domain says that the type is a domain as an array's element: Debezium does not look
	// through it there.
	domain bool
	inList bool // it is a list's element

	unit      int64 // of numbers for times and timestamps, in nanoseconds
	told      bool  // a schema said how values come
	precision int   // digits of a second that the column keeps, of times and timestamps
	precise   bool  // decimals are bytes, not text
	scale     int   // of decimals in bytes
	binary    BinaryForm
	length    int // of a bit string; 0 when not known

	elem *column // of a list
	// unchanged is the list that stands for a large value that did not change, where
	// elements cannot be the placeholder's text.
	unchanged []byte
}

const (
	nanosPerMilli = 1_000_000
	nanosPerMicro = 1_000
)

// moneyScale is Debezium's money.fraction.digits unless somebody set another.
const moneyScale = 2

// maxFraction is how many digits of a second Postgres keeps.
const maxFraction = 6

func newColumn(cfg *Config, name string, source catalog.SourceType) *column {
	c := &column{name: name, source: source, typ: typemap.Postgres(source), binary: cfg.Binary, precise: cfg.Decimal == DecimalPrecise}
	if quoted, err := json.Marshal(name); err == nil && string(quoted) == `"`+name+`"` {
		c.quoted = fmt.Appendf(nil, "%s:", quoted)
	}
	if source.Base == "array" {
		c.list(cfg)
		return c
	}
	if _, name, _ := cutLast(source.Base, "."); strings.HasPrefix(name, "_") {
		c.family = familyListText // an array whose elements are not parted by commas
		return c
	}
	c.family = familyOf(source)
	c.zoned = (source.Base == "range" || source.Base == "multirange") && strings.HasPrefix(source.Name, "tstz")
	modifier := int(source.Modifier)
	if c.family == familyNumeric {
		c.scale = (modifier - 4) & 0x7ff // Debezium takes its eleven bits without a sign
	}
	if c.family == familyMoney {
		c.scale = moneyScale
	}
	if c.family == familyBit {
		c.length = max(0, modifier)
	}
	if c.family == familyTime || c.family == familyTimestamp {
		c.precision = maxFraction
		if modifier >= 0 && modifier < maxFraction {
			c.precision = modifier
		}
		c.unit = cfg.Time.unit(c.family, c.precision)
	}
	return c
}

// cutLast cuts a text around its last separator; without one, all is behind it.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+len(separator):], true
}

func (c *column) list(cfg *Config) {
	c.family = familyListText
	if c.source.Elem == nil {
		return
	}
	elem := *c.source.Elem
	if elem.Modifier < 0 { // the array's column carries the modifier of its elements
		elem.Modifier = c.source.Modifier
	}
	c.elem = newColumn(cfg, c.name, elem)
	c.elem.domain = isDomain(elem)
	c.elem.inList = true
	if c.typ.Kind != catalog.List {
		return
	}
	c.family, c.elem.typ, c.elem.fixed = familyList, *c.typ.Elem, c.typ.Elem.Fixed()
	if k := c.elem.typ.Kind; k == catalog.Int32 || k == catalog.Int64 || k == catalog.Date {
		for _, b := range []byte(cfg.Placeholder) {
			c.unchanged = typemap.AppendElemFixed(c.unchanged, int64(b))
		}
	}
	if c.elem.typ.Kind == catalog.UUID {
		id := md5.Sum([]byte(cfg.Placeholder)) //nolint:gosec // as above
		id[6], id[8] = id[6]&0x0f|0x30, id[8]&0x3f|0x80
		c.unchanged = typemap.AppendElemBytes(nil, id[:])
	}
}

// isVector reports whether the type is one of Postgres's own catalogs that Debezium takes
// for an array and sends without its elements.
func (c *column) isVector() bool {
	return c.source.Base == "int2vector" || c.source.Base == "oidvector"
}

// isDomain reports whether a type is a domain: its name is one that somebody made, and
// its base is not.
func isDomain(s catalog.SourceType) bool {
	switch s.Base {
	case "enum", "array", "composite", "range", "multirange":
		return false
	}
	return strings.Contains(s.Name, ".") && s.Name != s.Base
}

// unit is what a number counts, in nanoseconds.
func (p TimePrecision) unit(f family, precision int) int64 {
	switch p {
	case Adaptive, AdaptiveTime:
		if precision <= 3 && (f == familyTimestamp || p == Adaptive) {
			return nanosPerMilli
		}
	case Milliseconds:
		return nanosPerMilli
	case Nanoseconds:
		return 1
	case Microseconds:
	}
	return nanosPerMicro
}

// describe takes from a schema how values come. It reports false when they cannot be
// of the column as the lake knows it.
func (c *column) describe(d described) bool {
	c.told = true
	switch c.family {
	case familyBool:
		return d.kind == kindBool
	case familyInt:
		return d.kind == kindInt && d.bits <= c.intBits()
	case familyIntText:
		return d.kind == kindInt
	case familyFloat:
		return d.kind == kindFloat && (d.bits == 32 || c.typ.Kind == catalog.Float64)
	case familyNumeric, familyMoney:
		c.precise = d.kind == kindBytes
		c.scale = d.scale
		// A float is refused where it stands, with what to do about it.
		return d.kind == kindString || d.kind == kindBytes && d.name == nameDecimal || d.kind == kindStruct || d.kind == kindFloat
	case familyBytes:
		c.bytesIn(d)
		return d.kind == kindBytes || d.kind == kindString
	case familyOpaque, familyGeometric, familyListText: // likewise
		c.bytesIn(d)
		return true
	case familyDate:
		return d.kind == kindInt && (d.name == nameDate || d.name == nameConnectDate) || d.kind == kindString
	case familyTime, familyTimestamp:
		if d.kind == kindString {
			return true
		}
		unit, ok := units[d.name]
		c.unit = unit
		return ok && d.kind == kindInt
	case familyInterval:
		return d.kind == kindInt || d.kind == kindString
	case familyBit:
		return d.kind == kindBool || d.kind == kindBytes
	case familyVarbit:
		return d.kind == kindBytes
	case familyText, familyTimeTZ, familyTimestampTZ, familyUUID:
		return d.kind == kindString
	case familyHstore:
		return d.kind == kindString || d.kind == kindMap
	case familyPoint:
		return d.kind == kindStruct
	case familyList:
		if d.kind == kindList && d.elem != nil {
			elem := *c.elem
			c.elem = &elem
			c.bytesIn(*d.elem)
			return elem.domain || c.elem.describe(*d.elem)
		}
		return d.kind != kindList // Debezium says boolean of bit(1)[]: the value decides
	}
	return false
}

// bytesIn notes that bytes come as bytes, whatever the configuration says.
func (c *column) bytesIn(d described) {
	if d.kind == kindBytes {
		c.binary = Bytes
	}
}

// intBits are those of the lake's type: a smallint that became an integer is no change
// to the lake.
func (c *column) intBits() int {
	if c.typ.Kind == catalog.Int32 {
		return 32
	}
	return 64
}

// described is what a schema, of Connect or of Avro, says of a field's values.
type described struct {
	kind  kind
	bits  int    // of integers and floats
	name  string // what the values mean, such as io.debezium.time.Date; may be empty
	scale int    // of decimals
	elem  *described
}

// kind is the shape of values.
type kind uint8

const (
	kindBool kind = iota + 1
	kindInt
	kindFloat
	kindString
	kindBytes
	kindList
	kindMap
	kindStruct
)

// Names that schemas give to what values mean.
const (
	nameDecimal     = "org.apache.kafka.connect.data.Decimal"
	nameConnectDate = "org.apache.kafka.connect.data.Date"
	nameDate        = "io.debezium.time.Date"
)

// units are what numbers count under such a name, in nanoseconds.
var units = map[string]int64{
	"io.debezium.time.Time":                   nanosPerMilli,
	"io.debezium.time.MicroTime":              nanosPerMicro,
	"io.debezium.time.NanoTime":               1,
	"io.debezium.time.Timestamp":              nanosPerMilli,
	"io.debezium.time.MicroTimestamp":         nanosPerMicro,
	"io.debezium.time.NanoTimestamp":          1,
	"org.apache.kafka.connect.data.Time":      nanosPerMilli,
	"org.apache.kafka.connect.data.Timestamp": nanosPerMilli,
}

// plan is how the rows of records with one schema, or with none, are read.
type plan struct {
	columns []column
	mute    []int          // columns whose large values come as NULL when they did not change
	byName  map[string]int // -1: known, and passed over
}

func newPlan(cfg *Config) *plan {
	p := &plan{byName: map[string]int{}}
	for i, col := range cfg.Schema.Columns {
		c := newColumn(cfg, col.Name, col.Source)
		c.typ, c.fixed = col.Type, col.Type.Fixed()
		c.isKey = cfg.Schema.IsKey(i)
		p.columns = append(p.columns, *c)
		p.byName[col.Name] = i
	}
	for _, name := range cfg.Ignored {
		if _, ok := p.byName[name]; !ok {
			p.byName[name] = -1
		}
	}
	p.findMute()
	return p
}

func (p *plan) findMute() {
	p.mute = nil
	for i := range p.columns {
		if p.columns[i].isMute() {
			p.mute = append(p.mute, i)
		}
	}
}

// with returns the plan of records whose schema describes the row's fields so.
func (p *plan) with(fields []field) (*plan, *catalog.Error) {
	out := &plan{columns: append([]column(nil), p.columns...), byName: p.byName}
	for _, f := range fields {
		i, ok := p.byName[f.name]
		if !ok {
			return nil, unknownColumn(f.name)
		}
		if i >= 0 && !out.columns[i].describe(f.described) {
			return nil, retyped(&p.columns[i], f.described)
		}
	}
	out.findMute()
	return out, nil
}

// field is a field of a row, as a schema describes it.
type field struct {
	name string
	described
}

// String says in words what is described, for errors.
func (d described) String() string {
	words := map[kind]string{
		kindBool: "boolean", kindInt: "int", kindFloat: "float", kindString: "string", kindBytes: "bytes",
		kindList: "array", kindMap: "map", kindStruct: "struct",
	}
	s := words[d.kind]
	if d.bits > 0 {
		s = fmt.Sprintf("%s%d", s, d.bits)
	}
	if d.name != "" {
		s += " (" + d.name + ")"
	}
	return s
}
