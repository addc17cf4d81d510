package debezium

import (
	"math"
	"math/bits"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// What Postgres can hold. Debezium makes values outside of it of what is infinite or
// too far for Java.
const (
	firstDay    = -2440588   // 4714-11-24 BC
	lastDay     = 2145042905 // 5874897-12-31
	firstMicro  = firstDay * microsPerDay
	microsToDay = 1_000_000

	microsPerDay = 24 * 60 * 60 * microsToDay

	firstYear, lastYear = -4713, 5874897
)

// gregorianMicros is when Java's older calendar is Gregorian for sure: that begins on
// 1582-10-15, and the ten days before, which it has not, come as the ten after.
const gregorianMicros = (-141427 + 10) * microsPerDay

// What Debezium sends for timestamps without an end, in microseconds.
const (
	infinityMicros      = 9223372036825200000
	minusInfinityMicros = -9223372036832400000
)

// temporal reads a date, a time or a timestamp.
func (v *values) temporal(c *column, t token) (cell, error) {
	if c.inList && c.family == familyTime && c.precision > 3 {
		return unfit, nil // in arrays they are cut to milliseconds
	}
	switch t.kind {
	case tokenString:
		return v.isoValue(c, t.text)
	case tokenInt:
		return c.moment(t.n)
	case tokenNumber:
		if c.family == familyTimestampTZ {
			break
		}
		n, _, err := typemap.Decode(catalog.Type{Kind: catalog.Int64}, t.text, nil)
		if err == nil {
			return c.moment(n)
		}
	case tokenBool, tokenBytes, tokenFloat:
	}
	return cell{}, c.refuseForm(t)
}

// moment reads a number that counts days, or units of time.
func (c *column) moment(n int64) (cell, error) {
	if c.family == familyDate {
		if n < firstDay || n > lastDay {
			return unfit, nil // infinity, or -infinity
		}
		return fixedCell(n), nil
	}
	if c.family == familyTimestampTZ {
		return cell{}, c.refuse("it is a number")
	}
	if c.unit == nanosPerMilli && c.precision > 3 {
		return cell{}, c.refuse("milliseconds cannot hold it: set time.precision.mode to microseconds")
	}
	micros, ok := toMicros(n, c.unit)
	if c.family == familyTime {
		switch {
		case !ok || micros < 0 || micros > microsPerDay:
			return cell{}, c.refuse("it is no time of a day: is time.precision.mode as configured?")
		case micros == microsPerDay:
			return unfit, nil // 24:00:00
		}
		return c.exact(micros)
	}
	if !ok {
		return unfit, nil
	}
	return c.timestamp(micros)
}

// toMicros turns a count of units into microseconds; false when that does not fit. Of
// nanoseconds, those below a microsecond are no value of Postgres.
func toMicros(n, unit int64) (int64, bool) {
	if unit < nanosPerMicro {
		return n / nanosPerMicro, n%nanosPerMicro == 0
	}
	factor := unit / nanosPerMicro
	hi, lo := bits.Mul64(uint64(max(n, -n)), uint64(factor))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	return n * factor, true
}

// timestamp checks microseconds since 1970.
func (c *column) timestamp(micros int64) (cell, error) {
	if micros < firstMicro || micros == infinityMicros || micros == minusInfinityMicros {
		return unfit, nil
	}
	if c.inList && micros < gregorianMicros {
		return unfit, nil // Java took it for a date of the Julian calendar
	}
	return c.exact(micros)
}

// exact refuses more digits of a second than the column keeps: then it is not what it
// was, or numbers count something else than they are taken for.
func (c *column) exact(micros int64) (cell, error) {
	if c.precision < maxFraction {
		step := int64(1)
		for range maxFraction - c.precision {
			step *= 10
		}
		if micros%step != 0 {
			return cell{}, c.refuse("it has more digits of a second than the column: is time.precision.mode as configured, or was the column altered?")
		}
	}
	return fixedCell(micros), nil
}

// isoValue reads a text of ISO 8601.
func (v *values) isoValue(c *column, text []byte) (cell, error) {
	if c.family == familyTime {
		if n := len(text); n > 0 && text[n-1] == 'Z' {
			text = text[:n-1]
		}
		return v.decoded(c, text)
	}
	if s := string(text); s == "infinity" || s == "-infinity" {
		return unfit, nil
	}
	printed, far, ok := v.fromISO(text, c.family)
	switch {
	case far:
		return unfit, nil
	case !ok:
		return cell{}, c.refuse("it is not in ISO 8601's form")
	}
	out, err := v.decoded(c, printed)
	if c.family != familyDate && out.fixed == infinityMicros { // the other one is far
		return unfit, err
	}
	return out, err
}

// fromISO turns "-0043-03-15T12:00:00.5Z" into "0044-03-15 12:00:00.5+00 BC", the form
// that the server prints. far says that the year is one that Postgres does not have.
func (v *values) fromISO(text []byte, f family) (printed []byte, far, ok bool) {
	i := 0
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		i++
	}
	year, start := int64(0), i
	for ; i < len(text) && i-start < 10 && text[i]-'0' < 10; i++ {
		year = year*10 + int64(text[i]-'0')
	}
	if i-start < 4 || len(text) < i+6 {
		return nil, false, false
	}
	if negative {
		year = -year
	}
	if year < firstYear || year > lastYear {
		return nil, true, false
	}
	out := v.iso[:0]
	bc := year <= 0
	if bc {
		year = 1 - year
	}
	out = appendYear(out, year)
	out = append(out, text[i:i+6]...)
	text = text[i+6:]
	if f == familyDate {
		if len(text) == 1 && text[0] == 'Z' {
			text = nil
		}
		if len(text) > 0 {
			return nil, false, false
		}
	} else if out, ok = appendClock(out, text, f == familyTimestampTZ); !ok {
		return nil, false, false
	}
	if bc {
		out = append(out, " BC"...)
	}
	return out, false, true
}

// appendClock appends "T12:00:00.5Z" as the server prints it.
func appendClock(dst, text []byte, zone bool) ([]byte, bool) {
	if len(text) < 9 || text[0] != 'T' || len(text) > 32 {
		return dst, false
	}
	dst = append(dst, ' ')
	text = text[1:]
	if text[len(text)-1] == 'Z' {
		dst = append(dst, text[:len(text)-1]...)
		if zone {
			dst = append(dst, "+00"...)
		}
		return dst, true
	}
	return append(dst, text...), true // an offset is a form of the server's too
}

func appendYear(dst []byte, year int64) []byte {
	var digits [20]byte
	i := len(digits)
	for n := 0; year > 0 || n < 4; n++ {
		i--
		digits[i] = byte('0' + year%10)
		year /= 10
	}
	return append(dst, digits[i:]...)
}
