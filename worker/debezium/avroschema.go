package debezium

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// avroType is a type of an Avro schema, with references to named ones resolved.
type avroType struct {
	kind     avroKind
	fields   []avroField
	elem     *avroType   // of an array, and of a map's values
	branches []*avroType // of a union
	symbols  []string
	size     int // of a fixed

	means string // connect.name, or what a logical type is called in Connect
	scale int    // of a decimal
	// columns are, of the record of a row, the columns that its fields are; -1 for what
	// is passed over.
	columns []int
}

type avroField struct {
	name string
	typ  *avroType
}

type avroKind uint8

const (
	avroNull avroKind = iota + 1
	avroBool
	avroInt
	avroLong
	avroFloat
	avroDouble
	avroBytes
	avroString
	avroArray
	avroMap
	avroEnum
	avroFixed
	avroRecord
	avroUnion
)

var avroPrimitives = map[string]avroKind{
	"null": avroNull, "boolean": avroBool, "int": avroInt, "long": avroLong, "float": avroFloat, "double": avroDouble,
	"bytes": avroBytes, "string": avroString,
}

// logicalNames are Connect's names for Avro's logical types.
var logicalNames = map[string]string{
	"decimal": nameDecimal, "date": nameConnectDate,
	"time-millis": "org.apache.kafka.connect.data.Time", "time-micros": "io.debezium.time.MicroTime",
	"timestamp-millis": "org.apache.kafka.connect.data.Timestamp", "timestamp-micros": "io.debezium.time.MicroTimestamp",
	"local-timestamp-millis": "io.debezium.time.Timestamp", "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
}

var errAvroSchema = errors.New("its schema is not one of Avro's")

// avroParser resolves names on its way through a schema.
type avroParser struct{ named map[string]*avroType }

func parseAvroSchema(text string) (*avroType, error) {
	var raw any
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, errAvroSchema
	}
	p := avroParser{named: map[string]*avroType{}}
	return p.parse(raw, "", maxDepth)
}

func (p *avroParser) parse(raw any, namespace string, depth int) (*avroType, error) {
	if depth == 0 {
		return nil, errAvroSchema
	}
	switch v := raw.(type) {
	case string:
		if kind, ok := avroPrimitives[v]; ok {
			return &avroType{kind: kind}, nil
		}
		if t := p.named[fullName(v, namespace)]; t != nil {
			return t, nil
		}
	case []any:
		t := &avroType{kind: avroUnion}
		for _, branch := range v {
			b, err := p.parse(branch, namespace, depth-1)
			if err != nil {
				return nil, err
			}
			t.branches = append(t.branches, b)
		}
		return t, nil
	case map[string]any:
		return p.parseObject(v, namespace, depth)
	}
	return nil, errAvroSchema
}

func (p *avroParser) parseObject(v map[string]any, namespace string, depth int) (*avroType, error) {
	word, isWord := v["type"].(string)
	t := &avroType{}
	switch word {
	case "record", "error", "enum", "fixed":
		name, _ := v["name"].(string)
		if space, ok := v["namespace"].(string); ok && !strings.Contains(name, ".") {
			namespace = space
		} else if i := strings.LastIndexByte(name, '.'); i >= 0 {
			namespace = name[:i]
		}
		p.named[fullName(name, namespace)] = t
	}
	var err error
	switch {
	case word == "record" || word == "error":
		t.kind = avroRecord
		err = p.fields(t, v["fields"], namespace, depth)
	case word == "enum":
		t.kind = avroEnum
		symbols, _ := v["symbols"].([]any)
		for _, s := range symbols {
			symbol, _ := s.(string)
			t.symbols = append(t.symbols, symbol)
		}
	case word == "fixed":
		size, _ := v["size"].(float64)
		t.kind, t.size = avroFixed, int(size)
		if t.size < 0 || float64(t.size) != size {
			err = errAvroSchema
		}
	case word == "array":
		t.kind = avroArray
		t.elem, err = p.parse(v["items"], namespace, depth-1)
	case word == "map":
		t.kind = avroMap
		t.elem, err = p.parse(v["values"], namespace, depth-1)
	case isWord && avroPrimitives[word] != 0:
		t.kind = avroPrimitives[word]
	default: // a type inside a type, or the name of one
		var inner *avroType
		if inner, err = p.parse(v["type"], namespace, depth-1); err == nil {
			*t = *inner
		}
	}
	if err != nil {
		return nil, err
	}
	t.annotate(v)
	return t, nil
}

func (p *avroParser) fields(t *avroType, raw any, namespace string, depth int) error {
	list, ok := raw.([]any)
	if !ok {
		return errAvroSchema
	}
	for _, f := range list {
		v, _ := f.(map[string]any)
		name, ok := v["name"].(string)
		if !ok {
			return errAvroSchema
		}
		typ, err := p.parse(v["type"], namespace, depth-1)
		if err != nil {
			return err
		}
		t.fields = append(t.fields, avroField{name: name, typ: typ})
	}
	return nil
}

// annotate takes what a type says beyond its form.
func (t *avroType) annotate(v map[string]any) {
	if logical, ok := v["logicalType"].(string); ok && t.means == "" {
		t.means = logicalNames[logical]
	}
	if scale, ok := v["scale"].(float64); ok {
		t.scale = int(scale)
	}
	if name, ok := v["connect.name"].(string); ok {
		t.means = name
	}
	if parameters, ok := v["connect.parameters"].(map[string]any); ok {
		if text, ok := parameters["scale"].(string); ok {
			t.scale, _ = strconv.Atoi(text)
		}
	}
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

// value returns the type of a field's values that are not null, or nil.
func (t *avroType) value() *avroType {
	if t.kind != avroUnion {
		return t
	}
	var found *avroType
	for _, b := range t.branches {
		if b.kind == avroNull {
			continue
		}
		if found != nil {
			return nil
		}
		found = b
	}
	return found
}

func (t *avroType) describe(depth int) described {
	v := t.value()
	if v == nil {
		return described{}
	}
	d := described{name: v.means, scale: v.scale}
	switch v.kind {
	case avroBool:
		d.kind = kindBool
	case avroInt:
		d.kind, d.bits = kindInt, 32
	case avroLong:
		d.kind, d.bits = kindInt, 64
	case avroFloat:
		d.kind, d.bits = kindFloat, 32
	case avroDouble:
		d.kind, d.bits = kindFloat, 64
	case avroBytes, avroFixed:
		d.kind = kindBytes
	case avroString, avroEnum:
		d.kind = kindString
	case avroArray:
		d.kind = kindList
		if depth > 0 {
			elem := v.elem.describe(depth - 1)
			d.elem = &elem
		}
	case avroMap:
		d.kind = kindMap
	case avroRecord:
		d.kind = kindStruct
	case avroNull, avroUnion:
	}
	return d
}

// avroSchema is a schema with what it means for the table.
type avroSchema struct {
	root *avroType // a record
	plan *plan
}

// newAvroSchema parses a schema and finds the table's columns in it. One without rows
// is of a control record.
func (d *Decoder) newAvroSchema(text string) (*avroSchema, error) {
	root, err := parseAvroSchema(text)
	if err != nil {
		return nil, err
	}
	out := &avroSchema{root: root.value(), plan: d.plain}
	if out.root == nil || out.root.kind != avroRecord {
		return nil, errAvroSchema
	}
	for _, f := range out.root.fields {
		row := f.typ.value()
		if f.name != "after" && f.name != "before" || row == nil || row.kind != avroRecord {
			continue
		}
		fields := make([]field, len(row.fields))
		row.columns = make([]int, len(row.fields))
		for i, col := range row.fields {
			name := d.columnNamed(col.name)
			fields[i] = field{name: name, described: col.typ.describe(maxDepth)}
			if index, ok := d.plain.byName[name]; ok {
				row.columns[i] = index
			}
		}
		p, fault := d.plain.with(fields)
		if fault != nil {
			return nil, fault
		}
		out.plan = p
	}
	return out, nil
}

// columnNamed returns the column that a field of an Avro record is: Avro allows fewer
// names than Postgres, and Debezium writes others with an underscore for each character
// that is not allowed.
func (d *Decoder) columnNamed(name string) string {
	if _, ok := d.plain.byName[name]; ok {
		return name
	}
	found := name
	for column := range d.plain.byName {
		if avroName(column) == name {
			if found != name {
				return name // of two, it is not known which
			}
			found = column
		}
	}
	return found
}

func avroName(name string) string {
	out := []rune(name)
	for i, r := range out {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && (i == 0 || r < '0' || r > '9') {
			out[i] = '_'
		}
	}
	return string(out)
}
