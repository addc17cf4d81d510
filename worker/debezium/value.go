package debezium

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// token is a value that has no parts, from JSON or Avro.
type token struct {
	kind tokenKind
	text []byte // of a string, of bytes, and of a number from JSON
	n    int64  // of an integer from Avro
	f    float64
}

type tokenKind uint8

const (
	tokenString tokenKind = iota + 1
	tokenNumber           // from JSON: text
	tokenBool             // n is 0 or 1
	tokenBytes            // from Avro
	tokenInt              // from Avro
	tokenFloat            // from Avro
)

// cell is what becomes of a value. Its bytes are valid until the next value is read.
type cell struct {
	mark  change.Mark
	fixed int64
	bytes []byte
}

var (
	unfit       = cell{mark: change.Unfit}
	unavailable = cell{mark: change.Unavailable}
)

func fixedCell(v int64) cell  { return cell{mark: change.Present, fixed: v} }
func bytesCell(v []byte) cell { return cell{mark: change.Present, bytes: v} }

// store puts a cell into its place.
func store(rows *change.Rows, row, col int, fixed bool, c cell) {
	switch {
	case c.mark != change.Present:
		rows.SetMark(row, col, c.mark)
	case fixed:
		rows.SetFixed(row, col, c.fixed)
	default:
		rows.SetBytes(row, col, c.bytes)
	}
}

// values turns values into cells. It keeps room for what it makes on the way.
type values struct {
	placeholder      []byte
	listPlaceholders []string // in JSON
	monetary         monetary

	text []byte // an unescaped string
	buf  []byte // a decoded value
	list []byte // a list under construction
	iso  [64]byte
}

// keepable bounds the room that is kept for the next value.
const keepable = change.Large

func (v *values) trim() {
	if cap(v.text) > keepable {
		v.text = nil
	}
	if cap(v.buf) > keepable {
		v.buf = nil
	}
	if cap(v.list) > keepable {
		v.list = nil
	}
}

func (v *values) isPlaceholder(text []byte) bool {
	return len(text) == len(v.placeholder) && string(text) == string(v.placeholder)
}

// scalar reads a value that is not NULL.
func (v *values) scalar(c *column, t token) (cell, error) {
	if t.kind == tokenString {
		if v.isPlaceholder(t.text) {
			return unavailable, nil
		}
		if c.inList && isJavaObject(t.text) {
			return unfit, nil
		}
		if c.family == familyText && !c.zoned && !c.domain { // the most by far
			if !utf8.Valid(t.text) {
				return cell{}, c.refuse("it is not UTF-8")
			}
			return bytesCell(t.text), nil
		}
	}
	if c.domain {
		return v.domain(c, t)
	}
	switch c.family {
	case familyText:
		if t.kind == tokenString {
			return v.printed(c, t.text)
		}
	case familyOpaque, familyGeometric, familyListText:
		if t.kind == tokenString && c.source.Base == "range" && isRange(t.text) {
			return v.printed(c, t.text) // a domain over one that Debezium knows
		}
		if raw, err := v.binary(c, t); err != nil {
			return cell{}, err
		} else if raw != nil {
			return v.printed(c, raw)
		}
	case familyList:
		raw, err := v.binary(c, t)
		if err != nil {
			return cell{}, err
		}
		if raw == nil {
			break
		}
		return v.arrayText(c, raw)
	case familyBytes:
		raw, err := v.binary(c, t)
		if err != nil {
			return cell{}, err
		}
		if raw == nil {
			break
		}
		if v.isPlaceholder(raw) {
			return unavailable, nil
		}
		return bytesCell(raw), nil
	case familyBool:
		if t.kind == tokenBool {
			return fixedCell(t.n), nil
		}
	case familyInt:
		return v.integer(c, t)
	case familyIntText:
		switch t.kind {
		case tokenNumber:
			if isInteger(t.text) {
				return bytesCell(t.text), nil
			}
		case tokenInt:
			v.buf = strconv.AppendInt(v.buf[:0], t.n, 10)
			return bytesCell(v.buf), nil
		case tokenString, tokenBool, tokenBytes, tokenFloat:
		}
	case familyFloat:
		return v.float(c, t)
	case familyNumeric, familyMoney:
		return v.decimal(c, t)
	case familyDate, familyTime, familyTimestamp, familyTimestampTZ:
		return v.temporal(c, t)
	case familyTimeTZ:
		if t.kind == tokenString {
			return unfit, nil // moved to UTC: the zone that it had is lost
		}
	case familyInterval:
		return v.interval(c, t)
	case familyUUID:
		if t.kind == tokenString {
			return v.decoded(c, t.text)
		}
	case familyBit:
		return v.bits(c, t)
	case familyVarbit:
		if t.kind == tokenString || t.kind == tokenBytes {
			return unfit, nil // its length is lost
		}
	case familyHstore:
		if t.kind == tokenString {
			return v.hstoreText(c, t.text)
		}
	case familyPoint:
	}
	return cell{}, c.refuseForm(t)
}

// domain reads an element whose type is a domain: whatever that is over, as the server
// prints it.
func (v *values) domain(c *column, t token) (cell, error) {
	raw, err := v.binary(c, t)
	if err != nil {
		return cell{}, err
	}
	if raw == nil {
		return cell{}, c.refuseForm(t)
	}
	if v.isPlaceholder(raw) {
		return unavailable, nil
	}
	return v.decoded(c, bytes.Clone(raw))
}

// arrayText reads an array of a type that Debezium does not know: as the server prints
// the whole.
func (v *values) arrayText(c *column, text []byte) (cell, error) {
	if v.isPlaceholder(text) {
		return unavailable, nil
	}
	switch {
	case c.elem.zoned:
		return cell{}, c.refuse("arrays of it come in a session's time zone")
	case c.elem.family == familyGeometric || c.elem.family == familyPoint:
		out, ok := reprintNumbers(nil, text)
		if !ok {
			return cell{}, c.refuse("it is not of the type's form")
		}
		text = out
	default:
		text = bytes.Clone(text) // it stands where the list is going to
	}
	return v.decoded(c, text)
}

// decoded reads a text that is in the server's own form.
func (v *values) decoded(c *column, text []byte) (cell, error) {
	fixed, b, err := typemap.Decode(c.typ, text, v.buf)
	if err != nil {
		if isUnfit(err) {
			return unfit, nil
		}
		return cell{}, c.refuse(reason(err))
	}
	if c.typ.Fixed() {
		return fixedCell(fixed), nil
	}
	if c.typ.Kind != catalog.Text && cap(b) > cap(v.buf) {
		v.buf = b
	}
	return bytesCell(b), nil
}

// binary returns the bytes that a value is of, or nil when it is none.
func (v *values) binary(c *column, t token) ([]byte, error) {
	switch t.kind {
	case tokenBytes:
		if t.text == nil {
			return []byte{}, nil
		}
		return t.text, nil
	case tokenString:
	case tokenNumber, tokenBool, tokenInt, tokenFloat:
		return nil, nil
	}
	if v.buf == nil {
		v.buf = make([]byte, 0, 64) // an empty value is not nil
	}
	var err error
	switch c.binary {
	case Base64, Bytes:
		v.buf, err = base64.StdEncoding.AppendDecode(v.buf[:0], t.text)
	case Base64URL:
		v.buf, err = base64.URLEncoding.AppendDecode(v.buf[:0], t.text)
	case Hex:
		v.buf, err = hex.AppendDecode(v.buf[:0], t.text)
	}
	if err != nil {
		return nil, c.refuse("it is not " + c.binary.String() + ": is that the connector's binary.handling.mode?")
	}
	return v.buf, nil
}

// printed finishes a text that is as the server prints it, but for what Java or a
// session's time zone made of it.
func (v *values) printed(c *column, text []byte) (cell, error) {
	if v.isPlaceholder(text) {
		return unavailable, nil
	}
	family := c.family
	if family == familyListText && c.elem != nil {
		family = c.elem.family
	}
	if family == familyGeometric {
		out, ok := reprintNumbers(nil, text)
		if !ok {
			return cell{}, c.refuse("it is not of the type's form")
		}
		text = out
	}
	if c.zoned || c.elem != nil && c.elem.zoned {
		out, ok := reprintInstants(nil, text)
		if !ok {
			return cell{}, c.refuse("its instants are not in ISO form: is the database's DateStyle?")
		}
		text = out
	}
	if !utf8.Valid(text) {
		return cell{}, c.refuse("it is not UTF-8")
	}
	return bytesCell(text), nil
}

func (v *values) integer(c *column, t token) (cell, error) {
	switch t.kind {
	case tokenInt:
		if c.typ.Kind == catalog.Int32 && t.n != int64(int32(t.n)) {
			return cell{}, c.outgrown()
		}
		return fixedCell(t.n), nil
	case tokenNumber:
		n, _, err := typemap.Decode(c.typ, t.text, nil)
		if err == nil {
			return fixedCell(n), nil
		}
		if isInteger(t.text) {
			return cell{}, c.outgrown()
		}
	case tokenString, tokenBool, tokenBytes, tokenFloat:
	}
	return cell{}, c.refuseForm(t)
}

// isInteger reports whether a number of JSON has neither fraction nor exponent.
func isInteger(text []byte) bool {
	for i, b := range text {
		if b-'0' > 9 && (i > 0 || b != '-') {
			return false
		}
	}
	return len(text) > 0
}

func (v *values) float(c *column, t token) (cell, error) {
	switch t.kind {
	case tokenFloat:
		if c.typ.Kind == catalog.Float32 {
			return fixedCell(int64(math.Float32bits(float32(t.f)))), nil
		}
		return fixedCell(int64(math.Float64bits(t.f))), nil
	case tokenString: // JSON has no numbers for these
		switch string(t.text) {
		case "NaN", "Infinity", "-Infinity":
			return v.decoded(c, t.text)
		}
	case tokenNumber:
		return v.decoded(c, t.text)
	case tokenBool, tokenBytes, tokenInt:
	}
	return cell{}, c.refuseForm(t)
}

// bits reads a bit string: a boolean when it is one bit, else its bits as a number,
// the least byte first.
func (v *values) bits(c *column, t token) (cell, error) {
	if t.kind == tokenBool {
		if c.length > 1 {
			return cell{}, c.outgrown()
		}
		v.buf = append(v.buf[:0], '0'+byte(t.n))
		return bytesCell(v.buf), nil
	}
	raw := t.text
	switch t.kind {
	case tokenString: // whatever binary.handling.mode says
		var err error
		if raw, err = base64.StdEncoding.AppendDecode(nil, t.text); err != nil {
			return cell{}, c.refuse("it is not base64")
		}
	case tokenBytes:
	case tokenNumber, tokenBool, tokenInt, tokenFloat:
		return cell{}, c.refuseForm(t)
	}
	if v.isPlaceholder(raw) {
		return unavailable, nil
	}
	if c.length == 0 {
		return unfit, nil
	}
	for i, b := range raw {
		if over := c.length - 8*i; over < 8 && b>>max(over, 0) != 0 {
			return cell{}, c.outgrown()
		}
	}
	v.buf = v.buf[:0]
	for i := c.length - 1; i >= 0; i-- {
		bit := byte(0)
		if i/8 < len(raw) {
			bit = raw[i/8] >> (i % 8) & 1
		}
		v.buf = append(v.buf, '0'+bit)
	}
	return bytesCell(v.buf), nil
}
