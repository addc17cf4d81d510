package debezium

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Records of Confluent's wire format begin with a zero byte and the number of their
// schema.
const (
	avroMagic  = 0
	avroHeader = 5
)

// maxAvroSchemas bounds the schemas that are kept: a table has one for each version of
// its columns.
const maxAvroSchemas = 256

var errAvro = errors.New("it is not what its Avro schema says")

// readAvro reads an envelope. null reports one that is null.
func (d *Decoder) readAvro(ctx context.Context, value []byte, into *change.Rows) (null bool, err error) {
	if len(value) < avroHeader {
		return false, errAvro
	}
	schema, err := d.avroSchema(ctx, binary.BigEndian.Uint32(value[1:]))
	if err != nil {
		return false, err
	}
	r := avroReader{b: value[avroHeader:], steps: minSteps + 4*len(value)}
	t := schema.root
	d.used = schema.plan
	if err := d.avroEnvelope(&r, schema, t, into); err != nil {
		return false, err
	}
	if len(r.b) > 0 {
		return false, errAvro
	}
	return false, nil
}

func (d *Decoder) avroSchema(ctx context.Context, id uint32) (*avroSchema, error) {
	if s := d.avro[id]; s != nil {
		return s, nil
	}
	text, err := d.schemaText(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := d.newAvroSchema(text)
	if err != nil {
		return nil, err
	}
	if len(d.avro) >= maxAvroSchemas {
		clear(d.avro)
	}
	d.avro[id] = s
	return s, nil
}

func (d *Decoder) schemaText(ctx context.Context, id uint32) (string, error) {
	if d.cfg.Registry == nil {
		return "", undecodable("it is in Avro, and no schema registry is configured")
	}
	text, err := d.cfg.Registry.Schema(ctx, id)
	if _, told := errors.AsType[*catalog.Error](err); err != nil && !told {
		err = catalog.Errorf(catalog.Unavailable, catalog.CodeDecode, "see that the schema registry answers",
			"the schema registry does not give schema %d: %w", id, err)
	}
	return text, err
}

func (d *Decoder) avroEnvelope(r *avroReader, schema *avroSchema, t *avroType, into *change.Rows) error {
	e := &d.e
	for i := range t.fields {
		f := &t.fields[i]
		var err error
		switch f.name {
		case "before":
			e.before, err = d.avroImage(r, schema.plan, f.typ, into, d.cfg.FullIdentity)
		case "after":
			e.after, err = d.avroImage(r, schema.plan, f.typ, into, true)
		case "source":
			err = e.source.readAvro(r, f.typ)
		case "op":
			var v token
			if v, _, err = r.scalar(f.typ); err == nil && len(v.text) == 1 {
				e.op, e.hasOp = v.text[0], true
			}
		default:
			e.keys |= keyNamed([]byte(f.name))
			err = r.skip(f.typ, maxDepth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// avroImage reads a row or null, for which it returns -1.
func (d *Decoder) avroImage(r *avroReader, p *plan, t *avroType, rows *change.Rows, trusted bool) (int, error) {
	t, err := r.branch(t)
	if err != nil || t.kind == avroNull {
		return -1, err
	}
	if t.kind != avroRecord || len(t.columns) != len(t.fields) {
		return -1, errAvro
	}
	row := rows.Add()
	d.shape.begin(len(p.columns))
	for i := range t.fields {
		col := t.columns[i]
		if col >= 0 && !d.shape.mark(col) {
			return -1, undecodable("it has column %s twice", p.columns[col].name)
		}
		if col < 0 || !trusted && !p.columns[col].isKey {
			if err := r.skip(t.fields[i].typ, maxDepth); err != nil {
				return -1, err
			}
			continue
		}
		c := &p.columns[col]
		value, err := d.avroValue(r, t.fields[i].typ, c)
		if err != nil {
			return -1, err
		}
		store(rows, row, col, c.fixed, value)
	}
	return row, d.shape.whole(p)
}

// avroValue reads one value of a column or of a list's element.
func (d *Decoder) avroValue(r *avroReader, t *avroType, c *column) (cell, error) {
	t, err := r.branch(t)
	if err != nil {
		return cell{}, err
	}
	switch t.kind {
	case avroArray:
		return d.avroList(r, t, c)
	case avroMap:
		return d.avroHstore(r, t, c)
	case avroRecord:
		return d.avroStruct(r, t, c)
	case avroNull, avroBool, avroInt, avroLong, avroFloat, avroDouble, avroBytes, avroString, avroEnum, avroFixed, avroUnion:
	}
	v, null, err := r.scalar(t)
	if err != nil || null {
		return cell{mark: change.Null}, err
	}
	return d.scalar(c, v)
}

func (d *Decoder) avroList(r *avroReader, t *avroType, c *column) (cell, error) {
	if c.isVector() {
		return unfit, r.skip(t, maxDepth)
	}
	if c.family != familyList && c.family != familyListText {
		return cell{}, c.refuse("it comes as an array")
	}
	l := listOf{values: &d.values, column: c}
	l.begin()
	err := r.blocks(func() error {
		if c.family == familyListText || t.elem.value() != nil && t.elem.value().kind == avroArray {
			l.nested()
			return r.skip(t.elem, maxDepth)
		}
		value, err := d.avroValue(r, t.elem, c.elem)
		if err == nil {
			l.add(value)
		}
		return err
	})
	if err != nil {
		return cell{}, err
	}
	return l.end(), nil
}

func (d *Decoder) avroHstore(r *avroReader, t *avroType, c *column) (cell, error) {
	if c.family != familyHstore {
		return cell{}, c.refuse("it comes as a map")
	}
	var pairs []pair
	err := r.blocks(func() error {
		key, err := r.bytes()
		if err != nil {
			return err
		}
		v, null, err := r.scalar(t.elem)
		if err == nil && !null && v.kind != tokenString {
			return errAvro
		}
		pairs = append(pairs, pair{key: key, value: v.text, null: null})
		return err
	})
	if err != nil {
		return cell{}, err
	}
	return d.hstoreOf(c, pairs)
}

func (d *Decoder) avroStruct(r *avroReader, t *avroType, c *column) (cell, error) {
	if c.family != familyNumeric && c.family != familyPoint {
		return cell{}, c.refuse("it comes as a record")
	}
	var parts parts
	for i := range t.fields {
		f := &t.fields[i]
		part := parts.named(f.name)
		if part == nil {
			if err := r.skip(f.typ, maxDepth); err != nil {
				return cell{}, err
			}
			continue
		}
		v, null, err := r.scalar(f.typ)
		if err != nil {
			return cell{}, err
		}
		if null {
			return cell{}, c.refuse("a part of it is null")
		}
		*part = v
	}
	return d.assemble(c, parts)
}

// readAvro reads a source block.
func (o *origin) readAvro(r *avroReader, t *avroType) error {
	t, err := r.branch(t)
	if err != nil || t.kind == avroNull {
		return err
	}
	if t.kind != avroRecord {
		return errAvro
	}
	o.seen = true
	for i := range t.fields {
		if err := o.readField(r, &t.fields[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *origin) readField(r *avroReader, f *avroField) error {
	switch f.name {
	case "lsn", "txId", "ts_us", "ts_ms", "snapshot", "connector", "sequence":
	default:
		return r.skip(f.typ, maxDepth)
	}
	v, null, err := r.scalar(f.typ)
	if err != nil || null {
		return err
	}
	if v.kind == tokenInt && v.n < 0 {
		return undecodable("a number of its source block is negative")
	}
	switch f.name {
	case "lsn":
		o.lsn, o.hasLSN = uint64(v.n), true
	case "txId":
		o.txID = uint64(v.n)
	case "ts_us":
		o.micros, o.hasMicros = v.n, true
	case "ts_ms":
		o.millis = v.n
	case "snapshot":
		o.snapshot = snapshotOf(v.text)
	case "connector":
		o.connector = connectorOther
		if string(v.text) == "postgresql" {
			o.connector = connectorPostgres
		}
	case "sequence":
		if !o.setSequence(v.text) {
			return undecodable("its sequence is not two positions")
		}
	}
	return nil
}

// avroReader reads Avro's binary form from the start of b.
type avroReader struct {
	b []byte
	// steps is how many values may still be passed over: a schema can have any number of
	// them that take no bytes.
	steps int
}

const minSteps = 1 << 16

func (r *avroReader) long() (int64, error) {
	u, n := binary.Uvarint(r.b)
	if n <= 0 {
		return 0, errAvro
	}
	r.b = r.b[n:]
	return int64(u>>1) ^ -int64(u&1), nil
}

func (r *avroReader) bytes() ([]byte, error) {
	n, err := r.long()
	if err != nil || n < 0 || n > int64(len(r.b)) {
		return nil, errAvro
	}
	return r.take(int(n))
}

func (r *avroReader) take(n int) ([]byte, error) {
	if n > len(r.b) {
		return nil, errAvro
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v, nil
}

// branch reads which branch of a union follows; any other type is its own.
func (r *avroReader) branch(t *avroType) (*avroType, error) {
	for depth := 0; t.kind == avroUnion; depth++ {
		i, err := r.long()
		if err != nil || i < 0 || i >= int64(len(t.branches)) || depth == maxDepth {
			return t, errAvro
		}
		t = t.branches[i]
	}
	return t, nil
}

// scalar reads a value without parts.
func (r *avroReader) scalar(t *avroType) (v token, null bool, err error) {
	if t, err = r.branch(t); err != nil {
		return v, false, err
	}
	switch t.kind {
	case avroNull:
		return v, true, nil
	case avroBool:
		v.kind = tokenBool
		if v.text, err = r.take(1); err == nil {
			v.n = int64(v.text[0])
			if v.n > 1 {
				err = errAvro
			}
		}
	case avroInt, avroLong:
		v.kind = tokenInt
		v.n, err = r.long()
		if t.kind == avroInt && v.n != int64(int32(v.n)) {
			err = errAvro
		}
	case avroFloat:
		v.kind = tokenFloat
		if v.text, err = r.take(4); err == nil {
			v.f = float64(math.Float32frombits(binary.LittleEndian.Uint32(v.text)))
		}
	case avroDouble:
		v.kind = tokenFloat
		if v.text, err = r.take(8); err == nil {
			v.f = math.Float64frombits(binary.LittleEndian.Uint64(v.text))
		}
	case avroBytes:
		v.kind = tokenBytes
		v.text, err = r.bytes()
	case avroFixed:
		v.kind = tokenBytes
		v.text, err = r.take(t.size)
	case avroString:
		v.kind = tokenString
		v.text, err = r.bytes()
	case avroEnum:
		v.kind = tokenString
		var i int64
		if i, err = r.long(); err == nil {
			if i < 0 || i >= int64(len(t.symbols)) {
				return v, false, errAvro
			}
			v.text = []byte(t.symbols[i])
		}
	case avroArray, avroMap, avroRecord, avroUnion:
	}
	if v.kind == 0 {
		err = errAvro
	}
	return v, false, err
}

// blocks calls item for each item of an array or map. Items that take no bytes are
// refused: a record could claim any number of them.
func (r *avroReader) blocks(item func() error) error {
	for {
		n, err := r.long()
		if err != nil || n == 0 {
			return err
		}
		if n < 0 {
			if n = -n; n < 0 {
				return errAvro
			}
			if _, err := r.long(); err != nil { // the block's size
				return err
			}
		}
		if n > int64(len(r.b)) {
			return errAvro
		}
		for range n {
			if err := item(); err != nil {
				return err
			}
		}
	}
}

// skip passes a value whose parts lie no deeper than depth.
func (r *avroReader) skip(t *avroType, depth int) error {
	t, err := r.branch(t)
	if err != nil {
		return err
	}
	if r.steps--; depth == 0 || r.steps < 0 {
		return errAvro
	}
	switch t.kind {
	case avroRecord:
		for i := range t.fields {
			if err := r.skip(t.fields[i].typ, depth-1); err != nil {
				return err
			}
		}
		return nil
	case avroArray:
		return r.blocks(func() error { return r.skip(t.elem, depth-1) })
	case avroMap:
		return r.blocks(func() error {
			if _, err := r.bytes(); err != nil {
				return err
			}
			return r.skip(t.elem, depth-1)
		})
	case avroNull, avroBool, avroInt, avroLong, avroFloat, avroDouble, avroBytes, avroString, avroEnum, avroFixed, avroUnion:
	}
	_, _, err = r.scalar(t)
	return err
}
