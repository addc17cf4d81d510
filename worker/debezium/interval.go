package debezium

import "strconv"

// interval reads ISO 8601's form, as interval.handling.mode=string gives it. As a
// number of microseconds an interval has lost its months and days, which are of no
// fixed length.
func (v *values) interval(c *column, t token) (cell, error) {
	switch t.kind {
	case tokenNumber, tokenInt:
		return unfit, nil
	case tokenString:
		span, ok := parseSpan(t.text)
		if !ok {
			return cell{}, c.refuse("it is not in ISO 8601's form")
		}
		v.buf = span.append(v.buf[:0])
		return bytesCell(v.buf), nil
	case tokenBool, tokenBytes, tokenFloat:
	}
	return cell{}, c.refuseForm(t)
}

// span is an interval as Postgres keeps it.
type span struct{ months, days, micros int64 }

// parseSpan reads "P1Y2M3DT4H5M6.789S", where each part may have a sign and any may
// be left out.
func parseSpan(text []byte) (span, bool) {
	var s span
	if len(text) < 3 || text[0] != 'P' {
		return s, false
	}
	text = text[1:]
	clock := false
	for len(text) > 0 {
		if text[0] == 'T' && !clock && len(text) > 1 {
			clock = true
			text = text[1:]
			continue
		}
		whole, micros, fractional, rest, ok := readPart(text)
		if !ok {
			return s, false
		}
		var into *int64
		factor := int64(1)
		switch unit := rest[0]; {
		case unit == 'Y' && !clock:
			into, factor = &s.months, 12
		case unit == 'M' && !clock:
			into = &s.months
		case unit == 'D' && !clock:
			into = &s.days
		case unit == 'H' && clock:
			into, factor = &s.micros, 3600*microsToDay
		case unit == 'M' && clock:
			into, factor = &s.micros, 60*microsToDay
		case unit == 'S' && clock:
			into, factor = &s.micros, microsToDay
		default:
			return s, false
		}
		if fractional && rest[0] != 'S' {
			return s, false
		}
		product := whole * factor
		if product/factor != whole {
			return s, false
		}
		*into += product + micros
		text = rest[1:]
	}
	return s, true
}

// readPart reads a number with its sign and returns what follows, of which there is
// some. A fraction is in millionths, with the sign.
func readPart(text []byte) (whole, millionths int64, fractional bool, rest []byte, ok bool) {
	i, sign := 0, int64(1)
	switch text[0] {
	case '-':
		sign, i = -1, 1
	case '+':
		i = 1
	}
	start := i
	for ; i < len(text) && text[i]-'0' < 10; i++ {
		if i-start > 17 {
			return 0, 0, false, nil, false
		}
		whole = whole*10 + int64(text[i]-'0')
	}
	if i == start {
		return 0, 0, false, nil, false
	}
	if i < len(text) && text[i] == '.' {
		fractional = true
		unit := int64(microsToDay)
		for i++; i < len(text) && text[i]-'0' < 10; i++ {
			if unit /= 10; unit == 0 && text[i] != '0' {
				return 0, 0, false, nil, false
			}
			millionths += int64(text[i]-'0') * unit
		}
	}
	if i >= len(text) {
		return 0, 0, false, nil, false
	}
	return sign * whole, sign * millionths, fractional, text[i:], true
}

// append prints the interval as the server does with IntervalStyle postgres: a part
// that follows a negative one shows its plus.
func (s span) append(dst []byte) []byte {
	first, negative := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if !first {
			dst = append(dst, ' ')
		}
		if negative && n > 0 {
			dst = append(dst, '+')
		}
		dst = append(strconv.AppendInt(dst, n, 10), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		first, negative = false, n < 0
	}
	part(s.months/12, " year")
	part(s.months%12, " mon")
	part(s.days, " day")
	if !first && s.micros == 0 {
		return dst
	}
	if !first {
		dst = append(dst, ' ')
	}
	micros := uint64(s.micros)
	switch {
	case s.micros < 0:
		dst, micros = append(dst, '-'), -micros
	case negative:
		dst = append(dst, '+')
	}
	seconds := micros / microsToDay
	dst = appendAtLeast2(dst, seconds/3600)
	dst = appendAtLeast2(append(dst, ':'), seconds/60%60)
	dst = appendAtLeast2(append(dst, ':'), seconds%60)
	if fraction := micros % microsToDay; fraction > 0 {
		digits := strconv.AppendUint(nil, microsToDay+fraction, 10)
		digits[0] = '.'
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		dst = append(dst, digits...)
	}
	return dst
}

func appendAtLeast2(dst []byte, n uint64) []byte {
	if n < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, n, 10)
}
