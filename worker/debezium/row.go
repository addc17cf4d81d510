package debezium

import (
	"bytes"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// shape checks that each row has each of the table's columns once.
type shape struct {
	seen  []uint32 // by column: the row that it was last seen in
	row   uint32
	count int
}

func (h *shape) begin(columns int) {
	if len(h.seen) < columns {
		h.seen = make([]uint32, columns)
	}
	if h.row++; h.row == 0 {
		clear(h.seen)
		h.row = 1
	}
	h.count = 0
}

// mark notes a column; it reports false when it was noted before.
func (h *shape) mark(col int) bool {
	if h.seen[col] == h.row {
		return false
	}
	h.seen[col] = h.row
	h.count++
	return true
}

// whole returns the fault of a row that lacks a column, or nil.
func (h *shape) whole(p *plan) error {
	if h.count == len(p.columns) {
		return nil
	}
	for i := range p.columns {
		if h.seen[i] != h.row {
			return missingColumn(&p.columns[i])
		}
	}
	return nil
}

// jsonRow reads the object at s into a new row. Of a row that is not to be trusted only
// the key's columns are taken.
func (d *Decoder) jsonRow(s *scanner, p *plan, rows *change.Rows, trusted bool) (int, error) {
	if err := s.take('{'); err != nil {
		return -1, err
	}
	row := rows.Add()
	d.shape.begin(len(p.columns))
	next, m := 0, members{}
	for {
		col := next
		if !m.expect(s, p, col) {
			more, err := m.next(s)
			if err != nil {
				return -1, err
			}
			if !more {
				return row, d.shape.whole(p)
			}
			var known bool
			if col, known = p.byName[string(m.key)]; !known {
				return -1, unknownColumn(string(m.key))
			}
		}
		if col < 0 {
			if err := s.skip(); err != nil {
				return -1, err
			}
			continue
		}
		if !d.shape.mark(col) {
			return -1, undecodable("it has column %s twice", p.columns[col].name)
		}
		next = col + 1
		c := &p.columns[col]
		if !trusted && !c.isKey {
			if err := s.skip(); err != nil {
				return -1, err
			}
			continue
		}
		value, err := d.jsonValue(s, c)
		if err != nil {
			return -1, err
		}
		store(rows, row, col, c.fixed, value)
	}
}

// expect passes the key of the column that comes next if columns stand in the table's
// order, as they do; false leaves s where it is.
func (m *members) expect(s *scanner, p *plan, col int) bool {
	if col >= len(p.columns) {
		return false
	}
	i := s.i
	if m.later {
		if i >= len(s.b) || s.b[i] != ',' {
			return false
		}
		i++
	}
	quoted := p.columns[col].quoted
	if len(quoted) == 0 || !bytes.HasPrefix(s.b[i:], quoted) {
		return false
	}
	s.i, m.later = i+len(quoted), true
	return true
}

// jsonValue reads one value of a column or of a list's element.
func (d *Decoder) jsonValue(s *scanner, c *column) (cell, error) {
	switch b := s.space(); b {
	case '"':
		raw, escaped, err := s.str()
		if err == nil && escaped {
			d.text, err = unescape(d.text[:0], raw)
			raw = d.text
		}
		if err != nil {
			return cell{}, err
		}
		return d.scalar(c, token{kind: tokenString, text: raw})
	case 'n':
		return cell{mark: change.Null}, s.literal("null")
	case 't':
		if err := s.literal("true"); err != nil {
			return cell{}, err
		}
		return d.scalar(c, token{kind: tokenBool, n: 1})
	case 'f':
		if err := s.literal("false"); err != nil {
			return cell{}, err
		}
		return d.scalar(c, token{kind: tokenBool})
	case '[':
		return d.jsonList(s, c)
	case '{':
		return d.jsonStruct(s, c)
	}
	text, err := s.number()
	if err != nil {
		return cell{}, err
	}
	return d.scalar(c, token{kind: tokenNumber, text: text})
}

// jsonList reads an array, at whose bracket s stands.
func (d *Decoder) jsonList(s *scanner, c *column) (cell, error) {
	if c.isVector() {
		return unfit, s.skip()
	}
	if c.family != familyList && c.family != familyListText {
		return cell{}, c.refuse("it comes as an array")
	}
	if c.family == familyListText {
		return d.jsonListText(s)
	}
	s.i++
	l := listOf{values: &d.values, column: c}
	l.begin()
	for s.space() != ']' {
		if l.count > 0 {
			if err := s.take(','); err != nil {
				return cell{}, err
			}
		}
		if s.space() == '[' {
			if err := s.skip(); err != nil {
				return cell{}, err
			}
			l.nested()
			continue
		}
		value, err := d.jsonValue(s, c.elem)
		if err != nil {
			return cell{}, err
		}
		l.add(value)
	}
	s.i++
	return l.end(), nil
}

// jsonListText reads an array of which the lake has the server's text: that of an empty
// one is known.
func (d *Decoder) jsonListText(s *scanner) (cell, error) {
	start := s.i
	if err := s.skip(); err != nil {
		return cell{}, err
	}
	raw := s.b[start:s.i]
	if slices.Contains(d.listPlaceholders, string(raw)) {
		return unavailable, nil
	}
	if len(bytes.Trim(raw[1:len(raw)-1], " \t\r\n")) == 0 {
		return bytesCell([]byte("{}")), nil
	}
	return unfit, nil
}

// listOf puts a list together.
type listOf struct {
	values *values
	column *column
	count  int
	unfit  bool // an element is
	absent bool // an element is the placeholder
}

func (l *listOf) begin() { l.values.list = l.values.list[:0] }

// nested counts an element that is an array itself, or one of an array whose elements
// are not kept.
func (l *listOf) nested() { l.count, l.unfit = l.count+1, true }

func (l *listOf) add(value cell) {
	v := l.values
	l.count++
	switch value.mark {
	case change.Null:
		v.list = typemap.AppendElemNull(v.list)
	case change.Unfit:
		l.unfit = true
	case change.Unavailable:
		l.absent = true
		if l.keepsText() { // beside others it is what it says
			v.list = typemap.AppendElemBytes(v.list, v.placeholder)
		}
	case change.Absent, change.Present, change.Filled:
		if l.column.elem.fixed {
			v.list = typemap.AppendElemFixed(v.list, value.fixed)
		} else {
			v.list = typemap.AppendElemBytes(v.list, value.bytes)
		}
	}
}

// isJavaObject reports whether an element is what Java prints for an array inside an
// array, such as "[Ljava.lang.String;@19bdefbf": the value had several dimensions, and is
// lost.
func isJavaObject(text []byte) bool {
	if len(text) == 0 || text[0] != '[' {
		return false
	}
	name := bytes.TrimLeft(text, "[")
	at := bytes.Index(name, []byte(";@"))
	return at > 0 && bytes.HasPrefix(name, []byte("Ljava.")) && len(bytes.TrimLeft(name[at+2:], "0123456789abcdef")) == 0
}

func (l *listOf) end() cell {
	list := l.values.list
	switch {
	case l.column.family == familyListText && l.count == 0:
		return bytesCell([]byte("{}"))
	case l.absent && l.count == 1, len(list) > 0 && bytes.Equal(list, l.column.unchanged):
		return unavailable
	case l.unfit, l.absent && !l.keepsText():
		return unfit
	case list == nil:
		return bytesCell([]byte{})
	}
	return bytesCell(list)
}

func (l *listOf) keepsText() bool {
	k := l.column.elem.typ.Kind
	return k == catalog.Text || k == catalog.Binary
}

// jsonStruct reads an object, at whose brace s stands.
func (d *Decoder) jsonStruct(s *scanner, c *column) (cell, error) {
	if c.family == familyHstore {
		pairs, err := s.pairs()
		if err != nil {
			return cell{}, err
		}
		return d.hstoreOf(c, pairs)
	}
	if c.family != familyNumeric && c.family != familyPoint {
		return cell{}, c.refuse("it comes as an object")
	}
	s.i++
	var parts parts
	var m members
	for {
		more, err := m.next(s)
		if err != nil {
			return cell{}, err
		}
		if !more {
			return d.assemble(c, parts)
		}
		part := parts.named(string(m.key))
		if part == nil {
			if err := s.skip(); err != nil {
				return cell{}, err
			}
			continue
		}
		if part.kind != 0 {
			return cell{}, c.refuse("a part of it comes twice")
		}
		if *part, err = s.part(); err != nil {
			return cell{}, err
		}
	}
}

// part reads a part of a struct: a number or a text.
func (s *scanner) part() (token, error) {
	if s.space() == '"' {
		raw, escaped, err := s.str()
		if escaped && err == nil {
			raw, err = unescape(nil, raw)
		}
		return token{kind: tokenString, text: raw}, err
	}
	text, err := s.number()
	return token{kind: tokenNumber, text: text}, err
}

// parts are those of the structs that Debezium makes of a numeric without a scale, and
// of a point.
type parts struct{ scale, value, x, y token }

func (p *parts) named(name string) *token {
	switch name {
	case "scale":
		return &p.scale
	case "value":
		return &p.value
	case "x":
		return &p.x
	case "y":
		return &p.y
	}
	return nil
}

// assemble reads the value that the parts are of.
func (d *Decoder) assemble(c *column, p parts) (cell, error) {
	if c.family == familyPoint {
		at := column{name: c.name, source: c.source, typ: float64Type, family: familyFloat}
		x, err := d.scalar(&at, p.x)
		if err != nil {
			return cell{}, err
		}
		y, err := d.scalar(&at, p.y)
		if err != nil {
			return cell{}, err
		}
		d.buf = pointText(d.buf[:0], x.fixed, y.fixed)
		return bytesCell(d.buf), nil
	}
	at := column{name: c.name, source: c.source, typ: catalog.Type{Kind: catalog.Int32}, family: familyInt}
	scale, err := d.scalar(&at, p.scale)
	if err != nil {
		return cell{}, err
	}
	told := *c
	told.told, told.precise, told.scale = true, true, int(scale.fixed)
	return d.decimal(&told, p.value)
}
