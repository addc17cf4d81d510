package typemap

import (
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

// decodeFloat reads what float4out and float8out print. Bits is 32 or 64.
func decodeFloat(text []byte, size int) (float64, error) {
	switch string(text) {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	if len(text) == 0 || len(text) > 64 {
		return 0, errNotNumber
	}
	for _, c := range text { // ParseFloat also reads words, hexadecimals and underscores
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return 0, errNotNumber
		}
	}
	// The string lives no longer than the call: ParseFloat copies it into its error.
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), size)
	if err != nil {
		return 0, errNotNumber
	}
	return f, nil
}

// appendFloat prints the shortest digits that read back as f, as Postgres 12 and
// later do: in plain notation while the exponent is from -4 to below the digits
// that the type always keeps, and never a number that lies exactly halfway
// between two floats.
func appendFloat(dst []byte, f float64, size int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case f == 0:
		if math.Signbit(f) {
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	if f < 0 {
		dst, f = append(dst, '-'), -f
	}
	var buf [32]byte
	digits, exp := shortest(buf[:0], f, size)
	keeps := 15
	if size == 32 {
		keeps = 6
	}
	switch n := len(digits); {
	case exp < -4 || exp >= keeps:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'e')
		sign := byte('+')
		if exp < 0 {
			sign, exp = '-', -exp
		}
		dst = append(dst, sign)
		if exp < 10 {
			dst = append(dst, '0')
		}
		return strconv.AppendInt(dst, int64(exp), 10)
	case exp < 0:
		dst = append(dst, "0.0000"[:1-exp]...)
		return append(dst, digits...)
	case n <= exp+1:
		dst = append(dst, digits...)
		return append(dst, "00000000000000"[:exp+1-n]...)
	default:
		dst = append(dst, digits[:exp+1]...)
		return append(append(dst, '.'), digits[exp+1:]...)
	}
}

// shortest returns the digits d of d[0].d[1]d[2]… × 10^exp, without trailing zeros.
func shortest(buf []byte, f float64, size int) (digits []byte, exp int) {
	digits, exp = cut(strconv.AppendFloat(buf, f, 'e', -1, size))
	b := newBinary(f, size)
	if !b.halfway(digits, exp) {
		if digits[len(digits)-1]&1 == 1 {
			if by := b.tied(digits, exp); by != 0 { // of two as near, the even one
				b.step(digits, exp, by, size)
			}
		}
		return digits, exp
	}
	for precision := len(digits); precision < 17; precision++ { // rare: 1e23 is 9.999999999999999e+22
		text := strconv.AppendFloat(buf, f, 'e', precision, 64)
		g, err := strconv.ParseFloat(string(text), size)
		d, e := cut(text)
		if err == nil && g == f && !b.halfway(d, e) {
			return d, e
		}
	}
	return cut(strconv.AppendFloat(buf, f, 'e', 16, 64))
}

// cut takes the point and the exponent out of "1.25e-07".
func cut(text []byte) (digits []byte, exp int) {
	mark := len(text) - 1
	for text[mark] != 'e' {
		mark--
	}
	for _, c := range text[mark+2:] {
		exp = exp*10 + int(c-'0')
	}
	if text[mark+1] == '-' {
		exp = -exp
	}
	digits = text[:1]
	if mark > 1 {
		digits = append(digits, text[2:mark]...)
	}
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, exp
}

// binaryFloat is a positive float as m × 2^exp.
type binaryFloat struct {
	value       float64
	m           uint64
	exp         int
	lowestOfExp bool // the neighbour below is half as far as the one above
}

func newBinary(f float64, size int) binaryFloat {
	mantissaBits, minExp := 52, -1074
	if size == 32 {
		mantissaBits, minExp = 23, -149
	}
	frac, e := math.Frexp(f) // f = frac × 2^e, frac in [0.5, 1)
	exp := max(e-mantissaBits-1, minExp)
	m := uint64(math.Ldexp(frac, e-exp))
	return binaryFloat{value: f, m: m, exp: exp, lowestOfExp: m == 1<<mantissaBits && exp > minExp}
}

// halfway reports whether the decimal lies exactly between b and a neighbour.
func (b binaryFloat) halfway(digits []byte, exp int) bool {
	if b.m&1 == 1 {
		return false // then a halfway point reads as the neighbour
	}
	d, exp10 := number(digits), exp-len(digits)+1
	switch {
	case sameNumber(d, exp10, 2*b.m+1, b.exp-1):
		return true
	case b.lowestOfExp:
		return sameNumber(d, exp10, 4*b.m-1, b.exp-2)
	}
	return sameNumber(d, exp10, 2*b.m-1, b.exp-1)
}

// tied reports whether b lies exactly between the decimal and the next one of as
// many digits, above (+1) or below (-1), else 0.
func (b binaryFloat) tied(digits []byte, exp int) int {
	d, exp10 := number(digits), exp-len(digits)
	twos := bits.TrailingZeros64(b.m)
	switch odd, exp2 := b.m>>twos, b.exp+twos; {
	case sameNumber(10*d+5, exp10, odd, exp2):
		return 1
	case sameNumber(10*d-5, exp10, odd, exp2):
		return -1
	}
	return 0
}

// step moves the last digit of the decimal up or down, unless that would carry or
// no longer read back as b.
func (b binaryFloat) step(digits []byte, exp, by, size int) {
	last := len(digits) - 1
	was := digits[last]
	next := was + byte(by)
	if next > '9' || next == '0' {
		return
	}
	digits[last] = next
	text := append([]byte{'.'}, digits...)
	text = strconv.AppendInt(append(text, 'e'), int64(exp+1), 10)
	if g, err := strconv.ParseFloat(string(text), size); err != nil || g != b.value || b.halfway(digits, exp) {
		digits[last] = was
	}
}

func number(digits []byte) (d uint64) {
	for _, c := range digits {
		d = d*10 + uint64(c-'0')
	}
	return d
}

// sameNumber reports whether d × 10^exp10 = odd × 2^exp2. The factors of two must
// agree, then those that are odd; a power of five that overflows cannot.
func sameNumber(d uint64, exp10 int, odd uint64, exp2 int) bool {
	twos := bits.TrailingZeros64(d)
	if twos+exp10 != exp2 {
		return false
	}
	d >>= twos
	for ; exp10 > 0; exp10-- {
		hi, lo := bits.Mul64(d, 5)
		if hi != 0 {
			return false
		}
		d = lo
	}
	for ; exp10 < 0; exp10++ {
		hi, lo := bits.Mul64(odd, 5)
		if hi != 0 {
			return false
		}
		odd = lo
	}
	return d == odd
}
