package postgres

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
)

// A run is changes of one table as the stream sent them, with all that it takes to
// decode them later, wherever that is: descriptions of the table, the transactions, and
// each message with its place. Its form is versioned; what is stored must stay readable.
//
//	run     = "LWPR" version:byte generation:uvarint record* end
//	record  = kind:byte length:uvarint payload
//
// Kinds are those below. A row message stands under the newest transaction and the
// newest description of its relation before it, in the same run.
const (
	runMagic   = "LWPR"
	runVersion = 1
)

// The kinds of records beside I, U and D, whose payloads are row messages.
const (
	recordBegin    = 'B' // commit:8 xid:8 time:8
	recordRelation = 'R' // length:uvarint relation-message definition-json
	recordDDL      = 'L' // at:8 ordinal:uvarint entry of the DDL log
	recordTruncate = 'T' // at:8 ordinal:uvarint relation:4
	recordEnd      = 'E' // 1 when the last transaction goes on, else 0; events:uvarint
)

// runWriter builds a run.
type runWriter struct {
	buf       []byte
	events    int
	low       catalog.LSN // commit of its first record
	from, to  place       // of its first and last record
	commit    catalog.LSN // of the transaction that was written last
	described map[uint32]*relation
}

func newRunWriter(generation uint32) *runWriter {
	w := &runWriter{described: map[uint32]*relation{}}
	w.buf = append(append(w.buf, runMagic...), runVersion)
	w.buf = binary.AppendUvarint(w.buf, uint64(generation))
	return w
}

func (w *runWriter) record(kind byte, parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	w.buf = append(w.buf, kind)
	w.buf = binary.AppendUvarint(w.buf, uint64(n))
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
}

// begin writes the transaction of the next records, once.
func (w *runWriter) begin(tx *transaction) {
	if w.low == 0 {
		w.low = tx.commit
	}
	if w.commit == tx.commit {
		return
	}
	w.commit = tx.commit
	b := binary.BigEndian.AppendUint64(nil, uint64(tx.commit))
	b = binary.BigEndian.AppendUint64(b, tx.xid)
	w.record(recordBegin, binary.BigEndian.AppendUint64(b, uint64(tx.time)))
}

// describe writes what a relation is, unless that is known already.
func (w *runWriter) describe(r *relation) error {
	if w.described[r.id] == r {
		return nil
	}
	w.described[r.id] = r
	var doc []byte
	if r.definition != nil {
		var err error
		if doc, err = json.Marshal(r.definition.Definition); err != nil {
			return err
		}
	}
	w.record(recordRelation, binary.AppendUvarint(nil, uint64(len(r.body))), r.body, doc)
	return nil
}

func placed(at catalog.LSN, ordinal uint64) []byte {
	return binary.AppendUvarint(binary.BigEndian.AppendUint64(nil, uint64(at)), ordinal)
}

// ddl writes an entry of the DDL log, which came before the change of an ordinal.
func (w *runWriter) ddl(tx *transaction, at catalog.LSN, ordinal uint64, doc []byte) {
	w.begin(tx)
	w.record(recordDDL, placed(at, ordinal), doc)
	w.reach(beforeChange(tx.commit, ordinal))
}

// beforeChange is a place behind every change before one, and before that.
func beforeChange(commit catalog.LSN, ordinal uint64) place {
	if ordinal == 0 {
		return place{commit - 1, 1<<62 | 1} // odd, as behind a message
	}
	return place{commit, ordinal - 1}
}

func (w *runWriter) reach(p place) {
	if w.from == (place{}) {
		w.from = p
	}
	w.to = p
}

// change writes a row message, or a TRUNCATE of the relation.
func (w *runWriter) change(tx *transaction, kind byte, at catalog.LSN, p place, body []byte) {
	w.begin(tx)
	w.record(kind, placed(at, p.ordinal), body)
	w.reach(p)
	w.events++
}

// end closes the run.
func (w *runWriter) end(open bool) []byte {
	flag := []byte{0}
	if open {
		flag[0] = 1
	}
	w.record(recordEnd, flag, binary.AppendUvarint(nil, uint64(w.events)))
	return w.buf
}

// runReader reads a run. It is given stored bytes, and trusts none of them.
type runReader struct {
	cursor

	generation uint32
	tx         transaction
	events     int
	ended      bool // the end was read
	open       bool // then: the last transaction goes on
}

// record is one record of a run.
type record struct {
	kind       byte
	at         catalog.LSN
	ordinal    uint64
	body       []byte
	relation   *relation // of kind recordRelation
	truncates  uint32    // of kind recordTruncate: the relation
	definition []byte
}

func openRun(data []byte) (*runReader, error) {
	r := &runReader{cursor: cursor{b: data}}
	if string(r.take(len(runMagic))) != runMagic {
		return nil, fmt.Errorf("%w: no parked run", errMalformed)
	}
	if v := r.u8(); v != runVersion {
		return nil, fmt.Errorf("%w: a parked run of version %d, this program reads %d", errMalformed, v, runVersion)
	}
	r.generation = uint32(r.uvarint())
	return r, r.done()
}

// uvarint reads a number; a bad one sets bad.
func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad = true
		c.b = nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

// atEnd reports whether there is nothing more, which in a run that was closed is wrong
// before its end was read.
func (r *runReader) atEnd() bool { return r.ended || len(r.b) == 0 }

// next reads a record; those of kind recordBegin and recordEnd change r.
func (r *runReader) next() (record, error) {
	rec := record{kind: r.u8()}
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		return rec, fmt.Errorf("%w: a parked run that was cut off", errMalformed)
	}
	c := cursor{b: r.take(int(n))}
	if r.bad {
		return rec, r.done()
	}
	switch rec.kind {
	case recordBegin:
		r.tx = transaction{open: true, commit: catalog.LSN(c.u64()), xid: c.u64(), time: int64(c.u64())}
	case recordRelation:
		size := c.uvarint()
		if size > uint64(len(c.b)) {
			return rec, errMalformed
		}
		rec.body = c.take(int(size))
		rec.definition = c.b
		m, err := parseRelation(rec.body)
		if err != nil {
			return rec, err
		}
		rec.relation = &relation{relationMessage: m, body: rec.body}
		if len(rec.definition) > 0 {
			if rec.relation.definition, err = storedDefinition(rec.definition, m.columns); err != nil {
				return rec, err
			}
		}
	case recordDDL, 'I', 'U', 'D':
		rec.at, rec.ordinal, rec.body = catalog.LSN(c.u64()), c.uvarint(), c.b
	case recordTruncate:
		rec.at, rec.ordinal, rec.truncates = catalog.LSN(c.u64()), c.uvarint(), c.u32()
	case recordEnd:
		r.ended, r.open = true, c.u8() == 1
		if events := c.uvarint(); events != uint64(r.events) || len(r.b) > 0 {
			return rec, fmt.Errorf("%w: a parked run of %d changes that should have %d", errMalformed, r.events, events)
		}
	default:
		return rec, fmt.Errorf("%w: a record of kind %q in a parked run", errMalformed, rec.kind)
	}
	if err := c.done(); err != nil {
		return rec, err
	}
	switch rec.kind {
	case 'I', 'U', 'D', recordTruncate:
		r.events++
		fallthrough
	case recordDDL:
		if !r.tx.open {
			return rec, fmt.Errorf("%w: a change outside a transaction in a parked run", errMalformed)
		}
	}
	return rec, nil
}

// storedDefinition reads a definition of which the sent columns are those of a relation
// message, in its order.
func storedDefinition(doc []byte, columns []wireColumn) (*definition, error) {
	d := &catalog.Definition{}
	if err := json.Unmarshal(doc, d); err != nil {
		return nil, fmt.Errorf("%w: a definition in a parked run", errMalformed)
	}
	out := &definition{Definition: d, wire: make([]wireColumn, len(d.Columns))}
	n := 0
	for i, c := range d.Columns {
		out.wire[i] = wireColumn{name: c.Name, oid: c.Type.OID, modifier: c.Type.Modifier}
		if c.Unsent {
			continue
		}
		if n < len(columns) {
			out.wire[i] = columns[n]
		}
		n++
	}
	if n != len(columns) {
		return nil, fmt.Errorf("%w: a definition of %d columns for a relation of %d in a parked run", errMalformed, n, len(columns))
	}
	return out, nil
}
