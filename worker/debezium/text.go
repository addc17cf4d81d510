package debezium

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// Types that Debezium takes apart, or prints in Java's way, are put together again as
// the server prints them.

var float64Type = catalog.Type{Kind: catalog.Float64}

// reprintNumbers prints each number of a geometric value as the server does: Java has
// "{1.0,2.0,3.0}" for "{1,2,3}".
func reprintNumbers(dst, text []byte) ([]byte, bool) {
	for len(text) > 0 {
		n := bytes.IndexAny(text, `()[]{}<>,;" `)
		if n < 0 {
			n = len(text)
		}
		if n > 0 {
			f, _, err := typemap.Decode(float64Type, text[:n], nil)
			switch {
			case err == nil:
				dst = typemap.AppendText(dst, float64Type, f, nil)
			case string(text[:n]) == "NULL": // in an array
				dst = append(dst, text[:n]...)
			default:
				return dst, false
			}
		}
		if n < len(text) {
			dst = append(dst, text[n])
			n++
		}
		text = text[n:]
	}
	return dst, true
}

// pointText prints a point.
func pointText(dst []byte, x, y int64) []byte {
	dst = typemap.AppendText(append(dst, '('), float64Type, x, nil)
	dst = typemap.AppendText(append(dst, ','), float64Type, y, nil)
	return append(dst, ')')
}

// reprintInstants prints each instant of a range as the server does in UTC. They stand
// in quotes, save those without an end.
func reprintInstants(dst, text []byte) ([]byte, bool) {
	zoned := catalog.Type{Kind: catalog.TimestampTZ}
	for {
		open := bytes.IndexByte(text, '"')
		if open < 0 {
			return append(dst, text...), true
		}
		length := bytes.IndexByte(text[open+1:], '"')
		if length < 0 {
			return dst, false
		}
		dst = append(dst, text[:open+1]...)
		instant := text[open+1 : open+1+length]
		micros, _, err := typemap.Decode(zoned, instant, nil)
		switch {
		case err == nil:
			dst = typemap.AppendText(dst, zoned, micros, nil)
		case isUnfit(err) && bytes.HasSuffix(instant, []byte("+00")):
			dst = append(dst, instant...)
		default:
			return dst, false
		}
		dst = append(dst, '"')
		text = text[open+length+2:]
	}
}

// isRange reports whether the text is a range, which no base64 begins as.
func isRange(text []byte) bool {
	return len(text) > 0 && (text[0] == '[' || text[0] == '(' || string(text) == "empty")
}

// pair is an entry of an hstore.
type pair struct {
	key, value []byte
	null       bool
}

// hstoreOf prints an hstore: shorter keys first, then by their bytes, as the server
// keeps them.
func (v *values) hstoreOf(c *column, pairs []pair) (cell, error) {
	if len(pairs) == 1 && v.isPlaceholder(pairs[0].key) {
		return unavailable, nil
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(a.key), len(b.key)), bytes.Compare(a.key, b.key))
	})
	out := v.buf[:0]
	for i, p := range pairs {
		if i > 0 {
			if bytes.Equal(p.key, pairs[i-1].key) {
				return cell{}, c.refuse("it has a key twice")
			}
			out = append(out, ", "...)
		}
		out = appendQuoted(out, p.key)
		out = append(out, "=>"...)
		if p.null {
			out = append(out, "NULL"...)
		} else {
			out = appendQuoted(out, p.value)
		}
	}
	v.buf = out
	return v.decoded(c, out)
}

func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, b := range text {
		if b == '"' || b == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}

// hstoreText reads an hstore that is JSON inside a string.
func (v *values) hstoreText(c *column, text []byte) (cell, error) {
	s := scanner{b: text}
	if s.space() != '{' {
		return cell{}, c.refuse("it is not an object")
	}
	pairs, err := s.pairs()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return cell{}, c.refuse("it is not an object of texts")
	}
	return v.hstoreOf(c, pairs)
}

// pairs reads an object of texts and nulls, at whose opening brace s stands.
func (s *scanner) pairs() ([]pair, error) {
	s.i++
	var out []pair
	var m members
	for {
		more, err := m.next(s)
		if err != nil || !more {
			return out, err
		}
		p := pair{key: bytes.Clone(m.key)}
		switch s.space() {
		case 'n':
			p.null = true
			err = s.literal("null")
		case '"':
			var escaped bool
			if p.value, escaped, err = s.str(); err == nil && escaped {
				p.value, err = unescape(nil, p.value)
			}
		default:
			err = errJSON
		}
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
}
