package debezium

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// What Postgres's numeric can hold; what a record claims beyond it is not computed.
const (
	maxScale         = 16383
	maxDeclaredScale = 1000
	minScale         = -131072
	maxDecimalBytes  = 64 << 10
)

// decimal reads a numeric or an amount of money.
func (v *values) decimal(c *column, t token) (cell, error) {
	switch t.kind {
	case tokenBytes:
		return v.unscaled(c, t.text, c.scale)
	case tokenString:
		if !c.precise {
			return v.decimalText(c, t.text)
		}
		if c.family == familyNumeric && c.source.Modifier < 4 && !c.told {
			break // its scale is nowhere
		}
		raw, err := base64.StdEncoding.AppendDecode(nil, t.text)
		if err != nil {
			return cell{}, c.refuse("it is not base64: is decimal.handling.mode as configured?")
		}
		return v.unscaled(c, raw, c.scale)
	case tokenNumber, tokenFloat:
		return cell{}, c.refuse("it comes as a number, which may be rounded: set decimal.handling.mode to string")
	case tokenBool, tokenInt:
	}
	return cell{}, c.refuseForm(t)
}

// decimalText reads digits.
func (v *values) decimalText(c *column, text []byte) (cell, error) {
	if special := specialNumber(text); special != "" {
		if c.typ.Kind == catalog.Decimal || c.family == familyMoney {
			return unfit, nil
		}
		return bytesCell(append(v.buf[:0], special...)), nil
	}
	if !isPlainNumber(text) {
		return cell{}, c.refuse("it is not a plain number: is decimal.handling.mode as configured?")
	}
	if c.family == familyMoney {
		return v.money(text)
	}
	// Four digits may also be three bytes in base64; text of this type has a point.
	if !c.told && c.typ.Scale > 0 && len(text)%4 == 0 && text[0] != '-' && !strings.Contains(string(text), ".") {
		return cell{}, c.refuse("it may be text or bytes: is decimal.handling.mode as configured?")
	}
	if c.source.Modifier >= 4 && c.typ.Kind == catalog.Text && int(c.source.Modifier-4)&0x7ff > maxDeclaredScale {
		// A negative scale, taken without its sign, makes so many zeros behind the point.
		whole, zeros, _ := bytes.Cut(text, []byte("."))
		if len(bytes.Trim(zeros, "0")) == 0 {
			text = whole
		}
	}
	out, err := v.decoded(c, text)
	if err == nil && out.mark == change.Unfit {
		return cell{}, c.outgrown()
	}
	return out, err
}

// specialNumber returns how the server prints what is no number, or "".
func specialNumber(text []byte) string {
	switch string(text) {
	case "NaN", "NAN":
		return "NaN"
	case "Infinity", "INFINITY", "POSITIVE_INFINITY":
		return "Infinity"
	case "-Infinity", "-INFINITY", "NEGATIVE_INFINITY":
		return "-Infinity"
	}
	return ""
}

// isPlainNumber reports whether the text is digits with at most a sign and a point.
func isPlainNumber(text []byte) bool {
	digits, point := 0, false
	for i, b := range text {
		switch {
		case b-'0' < 10:
			digits++
		case b == '-' && i == 0:
		case b == '.' && !point && digits > 0 && i < len(text)-1:
			point = true
		default:
			return false
		}
	}
	return digits > 0
}

// unscaled reads an integer in big-endian two's complement, of which the last scale
// digits stand behind the point.
func (v *values) unscaled(c *column, raw []byte, scale int) (cell, error) {
	if v.isPlaceholder(raw) {
		return unavailable, nil
	}
	if len(raw) == 0 || len(raw) > maxDecimalBytes || scale > maxScale || scale < minScale {
		return cell{}, c.refuse("it is no decimal that Postgres can hold")
	}
	if len(raw) <= 8 && scale == c.typ.Scale && c.typ.Kind == catalog.Decimal && c.typ.Fixed() {
		n := int64(int8(raw[0]))
		for _, b := range raw[1:] {
			n = n<<8 | int64(b)
		}
		if limit := pow10[c.typ.Precision]; n >= limit || n <= -limit {
			return cell{}, c.outgrown()
		}
		return fixedCell(n), nil
	}
	n := new(big.Int).SetBytes(raw)
	if raw[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	told := *c
	told.told = true
	return v.decimalText(&told, point(n, scale))
}

// point prints n with its last scale digits behind the point.
func point(n *big.Int, scale int) []byte {
	digits := []byte(new(big.Int).Abs(n).String())
	var out []byte
	if n.Sign() < 0 {
		out = append(out, '-')
	}
	if scale <= 0 {
		out = append(out, digits...)
		if n.Sign() != 0 {
			out = append(out, strings.Repeat("0", -scale)...)
		}
		return out
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = append([]byte(strings.Repeat("0", missing)), digits...)
	}
	out = append(out, digits[:len(digits)-scale]...)
	return append(append(out, '.'), digits[len(digits)-scale:]...)
}

// pow10 are the powers of ten that an int64 holds.
var pow10 = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// monetary says how the server prints money, as far as known here.
type monetary uint8

const (
	monetaryUnknown monetary = iota
	monetaryDollar           // "$1,234.56", "-$1,234.56"
)

func monetaryOf(locale string) monetary {
	switch name, _, _ := strings.Cut(locale, "."); name {
	case "C", "POSIX", "en_US":
		return monetaryDollar
	}
	return monetaryUnknown
}

// money prints an amount as the server does.
func (v *values) money(text []byte) (cell, error) {
	if v.monetary != monetaryDollar {
		return unfit, nil
	}
	out := v.buf[:0]
	if text[0] == '-' {
		out, text = append(out, '-'), text[1:]
	}
	whole, cents, _ := strings.Cut(string(text), ".")
	if len(cents) > 2 {
		return unfit, nil
	}
	out = append(out, '$')
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, whole[i])
	}
	out = append(append(out, '.'), (cents + "00")[:2]...)
	v.buf = out
	return bytesCell(out), nil
}
