package typemap

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/lakeweir/lakeweir/catalog"
)

// Decode reads the text that Postgres prints, under SessionSettings, for a value
// of a type that Postgres maps to t. A value of a fixed type is returned in fixed;
// any other in bytes, which shares text when t is Text, and else is written over
// buf, which is grown when needed: keep it as the next buf, unless t is Text. The
// error is ErrUnfit or ErrMalformed, wrapped, and never shows the value.
func Decode(t catalog.Type, text, buf []byte) (fixed int64, bytes []byte, err error) {
	buf = buf[:0]
	switch t.Kind {
	case catalog.Text:
		if !utf8.Valid(text) {
			return 0, nil, errNotUTF8
		}
		return 0, text, nil
	case catalog.Bool:
		if len(text) != 1 || text[0] != 't' && text[0] != 'f' {
			return 0, buf, errNotBool
		}
		if text[0] == 't' {
			fixed = 1
		}
	case catalog.Int32:
		fixed, err = decodeInt(text)
		if err == nil && fixed != int64(int32(fixed)) {
			err = errNotNumber
		}
	case catalog.Int64:
		fixed, err = decodeInt(text)
	case catalog.Float32:
		f, ferr := decodeFloat(text, 32)
		fixed, err = int64(math.Float32bits(float32(f))), ferr
	case catalog.Float64:
		f, ferr := decodeFloat(text, 64)
		fixed, err = int64(math.Float64bits(f)), ferr
	case catalog.Decimal:
		hi, lo, derr := decodeDecimal(text, t.Precision, t.Scale)
		if derr != nil || t.Fixed() {
			return int64(lo), buf, derr
		}
		buf = binary.BigEndian.AppendUint64(buf, hi)
		buf = binary.BigEndian.AppendUint64(buf, lo)
	case catalog.Date:
		fixed, err = decodeDate(text)
	case catalog.Time:
		fixed, err = decodeTime(text)
	case catalog.Timestamp:
		fixed, err = decodeTimestamp(text, false)
	case catalog.TimestampTZ:
		fixed, err = decodeTimestamp(text, true)
	case catalog.UUID:
		buf, err = decodeUUID(buf, text)
	case catalog.Binary:
		buf, err = decodeBinary(buf, text)
	case catalog.List:
		buf, err = decodeArray(buf, *t.Elem, text)
	}
	return fixed, buf, err
}

var (
	errNotUTF8   = unfit("it is not UTF-8")
	errNotBool   = malformed("neither t nor f")
	errNotNumber = malformed("not a number of this type")
	errNotDate   = malformed("not a date or time")
	errNotUUID   = malformed("not a UUID")
	errNotBinary = malformed("not bytes in hexadecimal")
	errNotArray  = malformed("not an array")

	errNotFinite  = unfit("it is not finite")
	errDigits     = unfit("it has more digits than the column")
	errFarDate    = unfit("it is too far from 1970")
	errMidnight24 = unfit("24:00:00 is not a time of a day")
	errDimensions = unfit("the array has several dimensions or does not start at 1")
)

func decodeInt(text []byte) (int64, error) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, errNotNumber
	}
	var v uint64
	for _, c := range digits {
		if !isDigit(c) {
			return 0, errNotNumber
		}
		v = v*10 + uint64(c-'0')
	}
	if negative {
		if v > 1<<63 {
			return 0, errNotNumber
		}
		return -int64(v), nil
	}
	if v > math.MaxInt64 {
		return 0, errNotNumber
	}
	return int64(v), nil
}

// decodeDecimal returns the unscaled integer as 128 bits of two's complement.
func decodeDecimal(text []byte, precision, scale int) (hi, lo uint64, err error) {
	switch string(text) {
	case "NaN", "Infinity", "-Infinity":
		return 0, 0, errNotFinite
	}
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	var significant, fraction, seen int
	point := false
	push := func(d uint64) {
		carry, low := bits.Mul64(lo, 10)
		hi = hi*10 + carry
		lo, carry = bits.Add64(low, d, 0)
		hi += carry
		if significant > 0 || d > 0 {
			significant++
		}
	}
	for i, c := range digits {
		if c == '.' && !point && i > 0 && i < len(digits)-1 {
			point = true
			continue
		}
		if !isDigit(c) {
			return 0, 0, errNotNumber
		}
		seen++
		if point {
			if fraction == scale {
				if c != '0' {
					return 0, 0, errDigits
				}
				continue
			}
			fraction++
		}
		if significant >= precision {
			return 0, 0, errDigits
		}
		push(uint64(c - '0'))
	}
	if seen == 0 {
		return 0, 0, errNotNumber
	}
	for ; fraction < scale; fraction++ {
		if significant >= precision {
			return 0, 0, errDigits
		}
		push(0)
	}
	if negative {
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		hi = ^hi + carry
	}
	return hi, lo, nil
}

// isInfinite reports the words that dates and timestamps have for no end.
func isInfinite(text []byte) bool { return string(text) == "infinity" || string(text) == "-infinity" }

func decodeDate(text []byte) (int64, error) {
	if isInfinite(text) {
		return 0, errNotFinite
	}
	text, bc := cutBC(text)
	days, rest, ok := readDate(text, bc)
	if !ok || len(rest) > 0 {
		return 0, errNotDate
	}
	return days, nil
}

func decodeTime(text []byte) (int64, error) {
	micros, rest, ok := readTime(text)
	if !ok || len(rest) > 0 {
		return 0, errNotDate
	}
	if micros == microsPerDay {
		return 0, errMidnight24
	}
	return micros, nil
}

func decodeTimestamp(text []byte, zone bool) (int64, error) {
	if isInfinite(text) {
		return 0, errNotFinite
	}
	text, bc := cutBC(text)
	days, rest, ok := readDate(text, bc)
	if !ok || len(rest) == 0 || rest[0] != ' ' {
		return 0, errNotDate
	}
	micros, rest, ok := readTime(rest[1:])
	if !ok || micros == microsPerDay {
		return 0, errNotDate
	}
	if zone {
		offset, ok := readOffset(rest)
		if !ok {
			return 0, errNotDate
		}
		micros -= offset
	} else if len(rest) > 0 {
		return 0, errNotDate
	}
	// Postgres goes on to 294276 AD, 64 bits of microseconds since 1970 to 294247.
	const maxDays = math.MaxInt64/microsPerDay - 2
	if days > maxDays || days < -maxDays {
		return farTimestamp(days, micros)
	}
	return days*microsPerDay + micros, nil
}

func farTimestamp(days, micros int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(max(days, -days)), microsPerDay)
	if days < 0 || hi != 0 || lo > math.MaxInt64 {
		return 0, errFarDate
	}
	sum := int64(lo) + micros
	if micros > 0 && sum < 0 {
		return 0, errFarDate
	}
	return sum, nil
}

// readOffset reads a whole "+00", "-03:30" or "+00:19:32" in microseconds.
func readOffset(text []byte) (int64, bool) {
	if len(text) < 3 || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	sign := int64(microsPerSecond)
	if text[0] == '-' {
		sign = -sign
	}
	var seconds int64
	unit := int64(3600)
	for text = text[1:]; ; text = text[3:] {
		v, ok := twoDigits(text)
		if !ok || unit == 0 || v > 59 {
			return 0, false
		}
		seconds += int64(v) * unit
		unit /= 60
		if len(text) == 2 {
			return seconds * sign, true
		}
		if len(text) < 5 || text[2] != ':' {
			return 0, false
		}
	}
}

func decodeUUID(buf, text []byte) ([]byte, error) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return buf, errNotUUID
	}
	var u [16]byte
	n := 0
	for i := 0; i < 36; i += 2 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			i++
		}
		a, b := unhex(text[i]), unhex(text[i+1])
		if a|b > 15 {
			return buf, errNotUUID
		}
		u[n] = a<<4 | b
		n++
	}
	return append(buf, u[:]...), nil
}

// unhex returns the value of a hexadecimal digit, or 255.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

func decodeBinary(buf, text []byte) ([]byte, error) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
		return buf, errNotBinary
	}
	n := len(buf)
	buf, err := hex.AppendDecode(buf, text[2:])
	if err != nil {
		return buf[:n], errNotBinary
	}
	return buf, nil
}
