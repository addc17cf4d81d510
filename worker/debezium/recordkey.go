package debezium

import (
	"bytes"
	"context"
	"encoding/binary"
)

// recordKeys tells whether the keys of records have the configured key's columns. An update
// that comes without the row before has not changed the record's key; that says something
// of the configured one only if it is part of that.
type recordKeys struct {
	schema []byte          // of the last key in JSON that had one
	avro   map[uint32]bool // by schema: whether it covers
}

// covers reports whether a record's key has each of the table's key columns. A record
// without a key says nothing, nor does one whose key cannot be read.
func (k *recordKeys) covers(ctx context.Context, d *Decoder, key []byte) (bool, error) {
	switch {
	case len(key) == 0 || len(d.cfg.Schema.Key) == 0:
		return true, nil
	case key[0] == avroMagic:
		return k.coversAvro(ctx, d, key)
	}
	found := k.count(&scanner{b: key}, d.plain)
	return found < 0 || found == len(d.cfg.Schema.Key), nil
}

// count returns how many of the table's key columns a key in JSON has, or -1 when it
// cannot be read.
func (k *recordKeys) count(s *scanner, p *plan) int {
	if k.payload(s) != nil || s.take('{') != nil {
		return -1
	}
	found := 0
	var m members
	for {
		more, err := m.next(s)
		if err != nil {
			return -1
		}
		if !more {
			return found
		}
		if p.hasKey(m.key) {
			found++
		}
		if s.skip() != nil {
			return -1
		}
	}
}

// payload moves to the payload of a key that comes with its schema; s stands at the start.
func (k *recordKeys) payload(s *scanner) error {
	const schema, payload = `{"schema":`, `,"payload":`
	if !bytes.HasPrefix(s.b, []byte(schema)) {
		return nil
	}
	s.i = len(schema)
	if len(k.schema) > 0 && bytes.HasPrefix(s.b[s.i:], k.schema) {
		s.i += len(k.schema)
	} else {
		start := s.i
		if err := s.skip(); err != nil {
			return err
		}
		k.schema = append(k.schema[:0], s.b[start:s.i]...)
	}
	return s.literal(payload)
}

func (k *recordKeys) coversAvro(ctx context.Context, d *Decoder, key []byte) (bool, error) {
	if len(key) < avroHeader {
		return true, nil
	}
	id := binary.BigEndian.Uint32(key[1:])
	if covers, ok := k.avro[id]; ok {
		return covers, nil
	}
	text, err := d.schemaText(ctx, id)
	if err != nil {
		return false, err
	}
	t, err := parseAvroSchema(text)
	if err != nil {
		return false, err
	}
	found := 0
	for _, f := range t.fields {
		if d.plain.hasKey([]byte(d.columnNamed(f.name))) {
			found++
		}
	}
	if k.avro == nil || len(k.avro) >= maxAvroSchemas {
		k.avro = map[uint32]bool{}
	}
	k.avro[id] = found == len(d.cfg.Schema.Key)
	return k.avro[id], nil
}

// hasKey reports whether a column of the name is part of the table's key.
func (p *plan) hasKey(name []byte) bool {
	i, ok := p.byName[string(name)]
	return ok && i >= 0 && p.columns[i].isKey
}
