package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
)

// errMalformed is a message that does not follow the protocol.
var errMalformed = errors.New("malformed replication message")

// postgresEpoch is 2000-01-01 in microseconds since 1970.
const postgresEpoch = 946684800000000

// cursor walks a message. A read past the end sets bad and yields zeros.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.bad = true
		c.b = nil
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) u8() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if v := c.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if v := c.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if v := c.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (c *cursor) text() string {
	i := bytes.IndexByte(c.b, 0)
	if i < 0 {
		c.bad = true
		c.b = nil
		return ""
	}
	s := string(c.b[:i])
	c.b = c.b[i+1:]
	return s
}

// done returns errMalformed when a read went past the end.
func (c *cursor) done() error {
	if c.bad {
		return errMalformed
	}
	return nil
}

// begin opens a transaction.
type begin struct {
	commit catalog.LSN // of the commit record
	time   int64       // microseconds since 1970
	xid    uint32
}

func parseBegin(b []byte) (begin, error) {
	c := cursor{b: b}
	m := begin{commit: catalog.LSN(c.u64()), time: int64(c.u64()) + postgresEpoch, xid: c.u32()}
	return m, c.done()
}

// commit closes a transaction.
type commit struct {
	end  catalog.LSN // the end of the commit record
	time int64       // microseconds since 1970
}

func parseCommit(b []byte) (commit, error) {
	c := cursor{b: b}
	c.take(1 + 8) // flags, LSN of the commit record
	m := commit{end: catalog.LSN(c.u64()), time: int64(c.u64()) + postgresEpoch}
	return m, c.done()
}

// wireColumn is a column as the stream or a result describes it.
type wireColumn struct {
	name     string
	oid      uint32
	modifier int32
	identity bool // part of the replica identity
}

func (w wireColumn) sameType(o wireColumn) bool {
	return w.name == o.name && w.oid == o.oid && w.modifier == o.modifier
}

// logicalMessage is a message that somebody wrote into the log.
type logicalMessage struct {
	transactional bool
	prefix        string
	content       []byte
}

func parseLogical(b []byte) (logicalMessage, error) {
	c := cursor{b: b}
	m := logicalMessage{transactional: c.u8()&1 != 0}
	c.take(8) // its LSN, which the frame has too
	m.prefix = c.text()
	n := c.u32()
	if n > 1<<30 {
		return m, errMalformed
	}
	m.content = c.take(int(n))
	return m, c.done()
}

// relationMessage describes a table as it was at a point of the log.
type relationMessage struct {
	id       uint32
	name     catalog.TableName
	identity byte // d, f, i, n
	columns  []wireColumn
}

func parseRelation(b []byte) (relationMessage, error) {
	c := cursor{b: b}
	m := relationMessage{id: c.u32()}
	m.name.Schema = c.text()
	m.name.Name = c.text()
	m.identity = c.u8()
	if m.name.Schema == "" {
		m.name.Schema = "pg_catalog"
	}
	n := int(c.u16())
	if n > len(c.b) { // each takes at least ten bytes
		return m, errMalformed
	}
	m.columns = make([]wireColumn, 0, n)
	for range n {
		flags := c.u8()
		m.columns = append(m.columns, wireColumn{identity: flags&1 != 0, name: c.text(), oid: c.u32(), modifier: int32(c.u32())})
	}
	return m, c.done()
}

// truncateMessage names the tables of one TRUNCATE.
func parseTruncate(b []byte) ([]uint32, error) {
	c := cursor{b: b}
	n := int(c.u32())
	c.take(1) // CASCADE, RESTART IDENTITY
	if n < 0 || n > len(c.b)/4 {
		return nil, errMalformed
	}
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = c.u32()
	}
	return ids, c.done()
}

// tuple is an undecoded row: column count and cells.
type tuple struct {
	n     int
	cells []byte
}

// skipTuple reads over a row and returns it undecoded.
func (c *cursor) tuple() tuple {
	t := tuple{n: int(c.u16()), cells: c.b}
	for range t.n {
		c.cell()
	}
	t.cells = t.cells[:len(t.cells)-len(c.b)]
	return t
}

// cell reads a cell: its kind (n NULL, u unchanged and not sent, t text) and text.
func (c *cursor) cell() (byte, []byte) {
	kind := c.u8()
	switch kind {
	case 'n', 'u':
		return kind, nil
	case 't':
		n := c.u32()
		if n > 1<<30 {
			c.bad = true
			return 0, nil
		}
		return kind, c.take(int(n))
	}
	c.bad = true
	return 0, nil
}

// rowMessage is an Insert, Update or Delete.
type rowMessage struct {
	relation uint32
	oldKind  byte // 0 none, K key columns only, O the whole row
	old, new tuple
	hasNew   bool
}

func parseRow(op byte, b []byte) (rowMessage, error) {
	c := cursor{b: b}
	m := rowMessage{relation: c.u32()}
	kind := c.u8()
	if kind == 'K' || kind == 'O' {
		if op == 'I' {
			return m, errMalformed
		}
		m.oldKind = kind
		m.old = c.tuple()
		if op == 'U' {
			kind = c.u8()
		}
	}
	if op != 'D' {
		if kind != 'N' {
			return m, errMalformed
		}
		m.new = c.tuple()
		m.hasNew = true
	} else if m.oldKind == 0 {
		return m, errMalformed
	}
	return m, c.done()
}
