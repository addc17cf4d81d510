package typemap

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/lakeweir/lakeweir/catalog"
)

// decodeArray reads what array_out prints for a one-dimensional array that starts
// at 1, and appends it as a list. One element that does not fit makes the whole
// array unfit.
func decodeArray(list []byte, elem catalog.Type, text []byte) ([]byte, error) {
	if len(text) > 0 && text[0] == '[' {
		if bytes.Contains(text, []byte("]={")) {
			return list, errDimensions
		}
		return list, errNotArray
	}
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return list, errNotArray
	}
	if len(text) == 2 {
		return list, nil
	}
	if text[1] == '{' {
		return list, errDimensions
	}
	var scratch elemScratch
	for pos := 1; ; pos++ {
		raw, quoted, next, ok := scratch.next(text, pos)
		if !ok {
			return list, errNotArray
		}
		var err error
		if !quoted && string(raw) == "NULL" {
			list = AppendElemNull(list)
		} else if list, err = scratch.appendElem(list, elem, raw); err != nil {
			return list, err
		}
		if pos = next; text[pos] == '}' {
			if pos != len(text)-1 {
				return list, errNotArray
			}
			return list, nil
		}
	}
}

// elemScratch is room for one element's unescaped text and its decoded bytes.
type elemScratch struct{ text, value []byte }

// next reads the element that starts at pos and returns it with its escapes taken
// out, and the place of the comma or brace that ends it.
func (s *elemScratch) next(text []byte, pos int) (raw []byte, quoted bool, end int, ok bool) {
	if text[pos] != '"' {
		for end = pos; end < len(text); end++ {
			switch text[end] {
			case ',', '}':
				return text[pos:end], false, end, end > pos
			case '{', '"', '\\':
				return nil, false, 0, false
			}
		}
		return nil, false, 0, false
	}
	pos++
	for end = pos; end < len(text); end++ { // most have no escape and need no copy
		if text[end] == '\\' {
			break
		}
		if text[end] == '"' {
			return closed(text, text[pos:end], end+1)
		}
	}
	s.text = s.text[:0]
	for end = pos; end < len(text); end++ {
		switch text[end] {
		case '"':
			return closed(text, s.text, end+1)
		case '\\':
			if end++; end == len(text) {
				return nil, false, 0, false
			}
		}
		s.text = append(s.text, text[end])
	}
	return nil, false, 0, false
}

// closed checks that a quoted element ends where an element may.
func closed(text, raw []byte, end int) ([]byte, bool, int, bool) {
	if end >= len(text) || text[end] != ',' && text[end] != '}' {
		return nil, false, 0, false
	}
	return raw, true, end, true
}

func (s *elemScratch) appendElem(list []byte, elem catalog.Type, raw []byte) ([]byte, error) {
	if elem.Kind == catalog.Text {
		if !utf8.Valid(raw) {
			return list, errNotUTF8
		}
		return AppendElemBytes(list, raw), nil
	}
	fixed, value, err := Decode(elem, raw, s.value)
	if err != nil {
		return list, err
	}
	if elem.Fixed() {
		return AppendElemFixed(list, fixed), nil
	}
	s.value = value
	return AppendElemBytes(list, value), nil
}

// appendArray prints a list as array_out does. A list that is not whole is
// printed as far as it goes.
func appendArray(dst []byte, elem catalog.Type, list []byte) []byte {
	dst = append(dst, '{')
	isFixed := elem.Fixed()
	for first := true; len(list) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		null := list[0] == 0
		list = list[1:]
		if null {
			dst = append(dst, "NULL"...)
			continue
		}
		start := len(dst)
		if isFixed {
			if len(list) < 8 {
				break
			}
			dst = AppendText(dst, elem, int64(binary.LittleEndian.Uint64(list)), nil)
			list = list[8:]
		} else {
			n, w := binary.Uvarint(list)
			if w <= 0 || n > uint64(len(list)-w) {
				break
			}
			dst = AppendText(dst, elem, 0, list[w:w+int(n)])
			list = list[w+int(n):]
		}
		dst = quoteElem(dst, start)
	}
	return append(dst, '}')
}

// quoteElem quotes the element that dst ends with, when array_out would.
func quoteElem(dst []byte, start int) []byte {
	elem := dst[start:]
	escapes, quote := 0, len(elem) == 0 || len(elem) == 4 && bytes.EqualFold(elem, []byte("NULL"))
	for _, c := range elem {
		switch c {
		case '"', '\\':
			escapes++
			quote = true
		case '{', '}', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			quote = true
		}
	}
	if !quote {
		return dst
	}
	n := len(elem)
	for range escapes + 2 {
		dst = append(dst, '"')
	}
	to := len(dst) - 2 // before the closing quote, from the back, so that nothing is overwritten
	for i := start + n - 1; i >= start; i-- {
		c := dst[i]
		dst[to] = c
		to--
		if c == '"' || c == '\\' {
			dst[to] = '\\'
			to--
		}
	}
	dst[start] = '"'
	return dst
}
