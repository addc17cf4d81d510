package typemap

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"strconv"

	"github.com/lakeweir/lakeweir/catalog"
)

// SessionSettings returns what a Postgres session must have set for its text to
// be what Decode reads and AppendText writes. See ClientEncoding for an exception.
func SessionSettings() map[string]string {
	return map[string]string{
		"DateStyle":          "ISO, MDY",
		"IntervalStyle":      "postgres",
		"TimeZone":           "UTC",
		"extra_float_digits": "3",
		"bytea_output":       "hex",
		"client_encoding":    "UTF8",
	}
}

// ClientEncoding returns what client_encoding must be for a database of the given
// server_encoding: UTF8, save for SQL_ASCII. Such a database holds whatever bytes
// somebody wrote, and its server refuses to send those that are not UTF-8 to a
// client that asks for UTF-8, in a query and in the stream alike.
func ClientEncoding(serverEncoding string) string {
	if serverEncoding == "SQL_ASCII" {
		return serverEncoding
	}
	return "UTF8"
}

// AppendText appends the text that Postgres prints for a value of type t, held as
// Decode returns it, under SessionSettings.
func AppendText(dst []byte, t catalog.Type, fixed int64, bytes []byte) []byte {
	switch t.Kind {
	case catalog.Text:
		return append(dst, bytes...)
	case catalog.Bool:
		if fixed != 0 {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case catalog.Int32, catalog.Int64:
		return strconv.AppendInt(dst, fixed, 10)
	case catalog.Float32:
		return appendFloat(dst, float64(math.Float32frombits(uint32(fixed))), 32)
	case catalog.Float64:
		return appendFloat(dst, math.Float64frombits(uint64(fixed)), 64)
	case catalog.Decimal:
		if t.Fixed() {
			return appendDecimal(dst, uint64(fixed>>63), uint64(fixed), t.Scale)
		}
		if len(bytes) != 16 {
			return dst
		}
		return appendDecimal(dst, binary.BigEndian.Uint64(bytes), binary.BigEndian.Uint64(bytes[8:]), t.Scale)
	case catalog.Date:
		return appendDate(dst, fixed, true)
	case catalog.Time:
		return appendTime(dst, fixed)
	case catalog.Timestamp, catalog.TimestampTZ:
		return appendTimestamp(dst, fixed, t.Kind == catalog.TimestampTZ)
	case catalog.UUID:
		return appendUUID(dst, bytes)
	case catalog.Binary:
		return hex.AppendEncode(append(dst, '\\', 'x'), bytes)
	case catalog.List:
		return appendArray(dst, *t.Elem, bytes)
	}
	return dst
}

// appendDecimal prints a 128-bit two's complement unscaled integer.
func appendDecimal(dst []byte, hi, lo uint64, scale int) []byte {
	if int64(hi) < 0 {
		dst = append(dst, '-')
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		hi = ^hi + carry
	}
	// 38 digits and a point, from the right.
	var digits [48]byte
	i := len(digits)
	for n := 0; n <= scale || hi != 0 || lo != 0; n++ {
		if n == scale && scale > 0 {
			i--
			digits[i] = '.'
		}
		var r uint64
		if hi == 0 {
			lo, r = lo/10, lo%10
		} else {
			hi, r = hi/10, hi%10
			lo, r = bits.Div64(r, lo, 10)
		}
		i--
		digits[i] = byte('0' + r)
	}
	return append(dst, digits[i:]...)
}

func appendUUID(dst, u []byte) []byte {
	if len(u) != 16 {
		return dst
	}
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}

const hexDigits = "0123456789abcdef"
