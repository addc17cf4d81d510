package debezium

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// errJSON is of bytes that are not JSON as RFC 8259 has it, or have something else where
// an envelope has an object. Where they go wrong is
// not said: what stands there may be personal.
var errJSON = errors.New("it is not JSON, or not of an envelope's shape")

// maxDepth bounds how deep values may lie in values that are passed over; an envelope
// with its schema has fewer than ten levels.
const maxDepth = 64

// scanner reads JSON from its start to its end in one pass. Its methods fail with
// errJSON and then leave it where it is.
type scanner struct {
	b []byte
	i int
}

// space moves to the next byte that is not white space and returns it, or 0 at the
// end.
func (s *scanner) space() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// peek returns the byte at hand, or 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// take passes the byte c, and white space before it.
func (s *scanner) take(c byte) error {
	if s.space() != c {
		return errJSON
	}
	s.i++
	return nil
}

// end reports whether nothing but white space is left.
func (s *scanner) end() error {
	if s.space(); s.i < len(s.b) {
		return errJSON
	}
	return nil
}

// literal passes a word such as null.
func (s *scanner) literal(word string) error {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return errJSON
	}
	s.i += len(word)
	return nil
}

// special finds the bytes of eight that end the plain part of a string: a quote, a
// backslash, or a control character. The lowest bit that is set is in the first such
// byte; those above it may be false.
func special(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((w-ones*0x20) & ^w | (quote-ones) & ^quote | (slash-ones) & ^slash) & high
}

// str reads a string, at whose opening quote s stands. raw is what stands between the
// quotes; when it is escaped, unescape makes it the string.
func (s *scanner) str() (raw []byte, escaped bool, err error) {
	start := s.i + 1
	i := start
	for {
		for ; i+8 <= len(s.b); i += 8 {
			if m := special(binary.LittleEndian.Uint64(s.b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
		}
		if i >= len(s.b) {
			return nil, false, errJSON
		}
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return s.b[start:i], escaped, nil
		case c == '\\':
			escaped = true
			i += 2
		case c < 0x20:
			return nil, false, errJSON
		default:
			i++
		}
	}
}

// unescape appends the string that raw stands for. A half of a surrogate pair has no
// text that it stands for and is refused, as is NUL, which no Postgres text holds.
func unescape(dst, raw []byte) ([]byte, error) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), nil
		}
		dst = append(dst, raw[:i]...)
		if raw = raw[i+1:]; len(raw) == 0 {
			return dst, errJSON
		}
		c := raw[0]
		raw = raw[1:]
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, rest, ok := escapedRune(raw)
			if !ok {
				return dst, errJSON
			}
			raw = rest
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			return dst, errJSON
		}
		dst = append(dst, c)
	}
}

// escapedRune reads what follows \u, and a second escape when the first is half of a
// surrogate pair.
func escapedRune(raw []byte) (r rune, rest []byte, ok bool) {
	r, ok = hex4(raw)
	if !ok || r == 0 {
		return 0, nil, false
	}
	raw = raw[4:]
	if !utf16.IsSurrogate(r) {
		return r, raw, true
	}
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, nil, false
	}
	low, ok := hex4(raw[2:])
	r = utf16.DecodeRune(r, low)
	return r, raw[6:], ok && r != utf8.RuneError
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number and returns its text.
func (s *scanner) number() ([]byte, error) {
	start, i := s.i, s.i
	digits := func() bool {
		from := i
		for i < len(s.b) && s.b[i]-'0' < 10 {
			i++
		}
		return i > from
	}
	if i < len(s.b) && s.b[i] == '-' {
		i++
	}
	if i < len(s.b) && s.b[i] == '0' {
		i++
	} else if !digits() {
		return nil, errJSON
	}
	if i < len(s.b) && s.b[i] == '.' {
		if i++; !digits() {
			return nil, errJSON
		}
	}
	if i < len(s.b) && s.b[i]|0x20 == 'e' {
		if i++; i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		if !digits() {
			return nil, errJSON
		}
	}
	s.i = i
	return s.b[start:i], nil
}

// skip passes a whole value, whatever it is.
func (s *scanner) skip() error { return s.skipWithin(maxDepth) }

func (s *scanner) skipWithin(depth int) error {
	switch c := s.space(); c {
	case '"':
		raw, escaped, err := s.str()
		if err != nil || !escaped {
			return err
		}
		return checkEscapes(raw)
	case '{', '[':
		if depth == 0 {
			return errJSON
		}
		return s.skipInside(c, depth-1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	_, err := s.number()
	return err
}

// skipInside passes an object or array, at whose opening bracket s stands.
func (s *scanner) skipInside(open byte, depth int) error {
	s.i++
	closing := open + 2 // of both kinds of brackets, in ASCII
	if s.space() == closing {
		s.i++
		return nil
	}
	for {
		if open == '{' {
			if s.space() != '"' {
				return errJSON
			}
			raw, escaped, err := s.str()
			if err == nil && escaped {
				err = checkEscapes(raw)
			}
			if err != nil {
				return err
			}
			if err := s.take(':'); err != nil {
				return err
			}
		}
		if err := s.skipWithin(depth); err != nil {
			return err
		}
		switch s.space() {
		case ',':
			s.i++
		case closing:
			s.i++
			return nil
		default:
			return errJSON
		}
	}
}

// checkEscapes reports whether the escapes of a string that is passed over are such.
func checkEscapes(raw []byte) error {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return nil
		}
		if raw = raw[i+1:]; len(raw) == 0 {
			return errJSON
		}
		if raw[0] == 'u' {
			if _, ok := hex4(raw[1:]); !ok {
				return errJSON
			}
		} else if bytes.IndexByte([]byte(`"\/bfnrt`), raw[0]) < 0 {
			return errJSON
		}
		raw = raw[1:]
	}
}

// members goes through an object. Its key is that of the member whose value is to be
// read next; it is valid until then.
type members struct {
	key     []byte
	scratch []byte
	later   bool // a member was read
}

// next reads the next member's key and colon. At the object's end it passes the brace
// and reports false. The opening brace has been passed before the first call.
func (m *members) next(s *scanner) (bool, error) {
	c := s.space()
	if m.later {
		if c == '}' {
			s.i++
			return false, nil
		}
		if c != ',' {
			return false, errJSON
		}
		s.i++
		c = s.space()
	} else if c == '}' {
		s.i++
		return false, nil
	}
	m.later = true
	if c != '"' {
		return false, errJSON
	}
	raw, escaped, err := s.str()
	if err != nil {
		return false, err
	}
	if escaped {
		if m.scratch, err = unescape(m.scratch[:0], raw); err != nil {
			return false, err
		}
		raw = m.scratch
	}
	m.key = raw
	return true, s.take(':')
}
