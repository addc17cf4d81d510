package debezium

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/lakeweir/lakeweir/worker/change"
)

// block is the schema that Connect's JSON converter puts before each payload. It is the
// same from record to record until somebody alters the table, so it is compared, not
// parsed.
type block struct {
	raw  []byte
	plan *plan
}

// readJSON reads an envelope with or without its schema. null reports a payload that is
// null.
func (d *Decoder) readJSON(value []byte, into *change.Rows) (null bool, err error) {
	s := scanner{b: value}
	p := d.plain
	if s.space() != '{' {
		return false, errJSON
	}
	start := s.i
	s.i++
	var m members
	more, err := m.next(&s)
	if err != nil {
		return false, err
	}
	if !more || string(m.key) != "schema" {
		s.i = start
		if err := d.jsonEnvelope(&s, p, into); err != nil {
			return false, err
		}
		return false, s.end()
	}
	if p, err = d.blockAt(&s); err != nil {
		return false, err
	}
	d.used = p
	more, err = m.next(&s)
	if err != nil {
		return false, err
	}
	if !more || string(m.key) != "payload" {
		return false, undecodable("it has a schema and no payload")
	}
	if s.space() == 'n' {
		null, err = true, s.literal("null")
	} else {
		err = d.jsonEnvelope(&s, p, into)
	}
	if err == nil {
		err = s.take('}')
	}
	if err == nil {
		err = s.end()
	}
	return null, err
}

// blockAt passes a schema and returns the plan for rows that are of it.
func (d *Decoder) blockAt(s *scanner) (*plan, error) {
	s.space()
	if len(d.block.raw) > 0 && bytes.HasPrefix(s.b[s.i:], d.block.raw) {
		s.i += len(d.block.raw)
		return d.block.plan, nil
	}
	start := s.i
	if err := s.skip(); err != nil {
		return nil, err
	}
	raw := s.b[start:s.i]
	p, err := d.planOf(raw)
	if err != nil {
		return nil, err
	}
	d.block = block{raw: bytes.Clone(raw), plan: p}
	return p, nil
}

// connectSchema is a schema as the JSON converter writes it.
type connectSchema struct {
	Type       string            `json:"type"`
	Name       string            `json:"name"`
	Field      string            `json:"field"`
	Parameters map[string]string `json:"parameters"`
	Fields     []connectSchema   `json:"fields"`
	Items      *connectSchema    `json:"items"`
}

// planOf parses a schema. One that has no rows, of a control record, or null, has the
// plan of records without one.
func (d *Decoder) planOf(raw []byte) (*plan, error) {
	var envelope connectSchema
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, undecodable("its schema is not one of Connect's")
	}
	for _, f := range envelope.Fields {
		if f.Field != "after" || f.Type != "struct" {
			continue
		}
		fields := make([]field, len(f.Fields))
		for i, col := range f.Fields {
			fields[i] = field{name: col.Field, described: col.describe(maxDepth)}
		}
		p, err := d.plain.with(fields)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return d.plain, nil
}

// describe says what a schema means, going no deeper than depth.
func (c *connectSchema) describe(depth int) described {
	d := described{name: c.Name}
	switch c.Type {
	case "boolean":
		d.kind = kindBool
	case "int8", "int16", "int32", "int64":
		d.kind = kindInt
		d.bits, _ = strconv.Atoi(c.Type[len("int"):])
	case "float", "double":
		d.kind, d.bits = kindFloat, 64
		if c.Type == "float" {
			d.bits = 32
		}
	case "string":
		d.kind = kindString
	case "bytes":
		d.kind = kindBytes
	case "array":
		d.kind = kindList
		if c.Items != nil && depth > 0 {
			elem := c.Items.describe(depth - 1)
			d.elem = &elem
		}
	case "map":
		d.kind = kindMap
	case "struct":
		d.kind = kindStruct
	}
	d.scale, _ = strconv.Atoi(c.Parameters["scale"])
	return d
}

// jsonEnvelope reads the object at s into d.e and its rows into rows.
func (d *Decoder) jsonEnvelope(s *scanner, p *plan, rows *change.Rows) error {
	if err := s.take('{'); err != nil {
		return err
	}
	e := &d.e
	var m members
	var seen [4]bool
	for {
		more, err := m.next(s)
		if err != nil || !more {
			return err
		}
		var part int
		switch string(m.key) {
		case "before":
			part = 0
		case "after":
			part = 1
		case "source":
			part = 2
		case "op":
			part = 3
		default:
			e.keys |= keyNamed(m.key)
			if err := s.skip(); err != nil {
				return err
			}
			continue
		}
		if seen[part] {
			return undecodable("it has %s twice", m.key)
		}
		seen[part] = true
		switch part {
		case 0:
			e.before, err = d.jsonImage(s, p, rows, d.cfg.FullIdentity)
		case 1:
			e.after, err = d.jsonImage(s, p, rows, true)
		case 2:
			err = e.source.readJSON(s)
		case 3:
			err = e.readOp(s)
		}
		if err != nil {
			return err
		}
	}
}

// jsonImage reads a row or null, for which it returns -1.
func (d *Decoder) jsonImage(s *scanner, p *plan, rows *change.Rows, trusted bool) (int, error) {
	if s.space() == 'n' {
		return -1, s.literal("null")
	}
	return d.jsonRow(s, p, rows, trusted)
}

func (e *envelope) readOp(s *scanner) error {
	if s.space() != '"' {
		return undecodable("its op is not a text")
	}
	raw, _, err := s.str()
	if err == nil && len(raw) != 1 {
		return undecodable("its op is not a letter")
	}
	if err == nil {
		e.op, e.hasOp = raw[0], true
	}
	return err
}

// readJSON reads a source block; null counts as none.
func (o *origin) readJSON(s *scanner) error {
	if s.space() == 'n' {
		return s.literal("null")
	}
	if err := s.take('{'); err != nil {
		return err
	}
	o.seen = true
	var m members
	for {
		more, err := m.next(s)
		if err != nil || !more {
			return err
		}
		switch string(m.key) {
		case "lsn":
			o.lsn, o.hasLSN, err = s.unsigned()
		case "txId":
			o.txID, _, err = s.unsigned()
		case "ts_us":
			var n uint64
			n, o.hasMicros, err = s.unsigned()
			o.micros = int64(n)
		case "ts_ms":
			var n uint64
			n, _, err = s.unsigned()
			o.millis = int64(n)
		case "snapshot":
			var word []byte
			if word, err = s.word(); err == nil {
				o.snapshot = snapshotNone
				if word != nil {
					o.snapshot = snapshotOf(word)
				}
			}
		case "connector":
			var word []byte
			if word, err = s.word(); err == nil {
				o.connector = connectorOther
				if string(word) == "postgresql" {
					o.connector = connectorPostgres
				}
			}
		case "sequence":
			err = o.readSequence(s)
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
}

// unsigned reads a whole number or null.
func (s *scanner) unsigned() (n uint64, ok bool, err error) {
	if s.space() == 'n' {
		return 0, false, s.literal("null")
	}
	text, err := s.number()
	if err != nil {
		return 0, false, err
	}
	if n, ok = parseUint(text); !ok {
		return 0, false, undecodable("a number of its source block is not a whole one")
	}
	return n, true, nil
}

// word reads a text without escapes, a boolean, or null, for which it returns nil.
func (s *scanner) word() ([]byte, error) {
	start := s.i
	switch s.space() {
	case '"':
		raw, _, err := s.str()
		return raw, err
	case 'n':
		return nil, s.literal("null")
	}
	err := s.skip()
	return s.b[start:s.i], err
}

// readSequence reads the text of a sequence, whose quotes are escaped, or null.
func (o *origin) readSequence(s *scanner) error {
	if s.space() == 'n' {
		return s.literal("null")
	}
	if s.peek() != '"' {
		return undecodable("its sequence is not a text")
	}
	raw, _, err := s.str()
	if err != nil {
		return err
	}
	var room [64]byte
	text, err := unescape(room[:0], raw)
	if err == nil && !o.setSequence(text) {
		return undecodable("its sequence is not two positions")
	}
	return err
}
