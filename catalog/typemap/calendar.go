package typemap

import "bytes"

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 24 * 60 * 60 * microsPerSecond
)

// daysFromCivil counts the days from 1970-01-01 to a date of the proleptic
// Gregorian calendar. Year 0 is 1 BC.
func daysFromCivil(year int64, month, day int) int64 {
	if month <= 2 { // years that start in March have the leap day last
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := int64((153*(month-3)+2)/5 + day - 1)
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}

// civilFromDays is the inverse of daysFromCivil.
func civilFromDays(days int64) (year int64, month, day int) {
	days += 719468
	era := floorDiv(days, 146097)
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day = int(dayOfYear - (153*m+2)/5 + 1)
	year, month = era*400+yearOfEra, int(m)+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

var (
	suffixBC    = []byte(" BC")
	monthLength = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
)

// cutBC takes the mark of years before 1 AD off the end.
func cutBC(text []byte) (rest []byte, bc bool) { return bytes.CutSuffix(text, suffixBC) }

// readDate reads "2026-01-31" or "12026-01-31" at the start of text, the year
// counted backwards when bc, and returns what follows.
func readDate(text []byte, bc bool) (days int64, rest []byte, ok bool) {
	var year int64
	i := 0
	for ; i < len(text) && i < 8 && isDigit(text[i]); i++ {
		year = year*10 + int64(text[i]-'0')
	}
	if i < 4 || year == 0 || len(text) < i+6 || text[i] != '-' || text[i+3] != '-' {
		return 0, nil, false
	}
	month, ok1 := twoDigits(text[i+1:])
	day, ok2 := twoDigits(text[i+4:])
	if bc {
		year = 1 - year
	}
	if !ok1 || !ok2 || month < 1 || month > 12 || day < 1 || day > monthLength[month] ||
		month == 2 && day == 29 && !isLeap(year) {
		return 0, nil, false
	}
	return daysFromCivil(year, month, day), text[i+6:], true
}

func isLeap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// readTime reads "14:03:05" or "14:03:05.25" at the start of text, up to
// 24:00:00, and returns what follows.
func readTime(text []byte) (micros int64, rest []byte, ok bool) {
	if len(text) < 8 || text[2] != ':' || text[5] != ':' {
		return 0, nil, false
	}
	h, ok1 := twoDigits(text)
	m, ok2 := twoDigits(text[3:])
	s, ok3 := twoDigits(text[6:])
	if !ok1 || !ok2 || !ok3 || h > 24 || m > 59 || s > 59 {
		return 0, nil, false
	}
	micros = (int64(h)*3600 + int64(m)*60 + int64(s)) * microsPerSecond
	text = text[8:]
	if len(text) > 0 && text[0] == '.' {
		i := 1
		for unit := int64(microsPerSecond / 10); i < len(text) && isDigit(text[i]); i++ {
			if unit == 0 {
				return 0, nil, false
			}
			micros += int64(text[i]-'0') * unit
			unit /= 10
		}
		if i == 1 {
			return 0, nil, false
		}
		text = text[i:]
	}
	return micros, text, micros <= microsPerDay
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func twoDigits(text []byte) (int, bool) {
	if len(text) < 2 || !isDigit(text[0]) || !isDigit(text[1]) {
		return 0, false
	}
	return int(text[0]-'0')*10 + int(text[1]-'0'), true
}

// appendDate prints a date; the mark of a year before 1 AD only when wanted here.
func appendDate(dst []byte, days int64, mark bool) []byte {
	year, month, day := civilFromDays(days)
	bc := year <= 0
	if bc {
		year = 1 - year
	}
	dst = appendPadded(dst, uint64(year), 4)
	dst = appendPadded(append(dst, '-'), uint64(month), 2)
	dst = appendPadded(append(dst, '-'), uint64(day), 2)
	if bc && mark {
		dst = append(dst, suffixBC...)
	}
	return dst
}

func appendTime(dst []byte, micros int64) []byte {
	seconds, fraction := uint64(micros)/microsPerSecond, uint64(micros)%microsPerSecond
	dst = appendPadded(dst, seconds/3600, 2)
	dst = appendPadded(append(dst, ':'), seconds/60%60, 2)
	dst = appendPadded(append(dst, ':'), seconds%60, 2)
	if fraction == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), fraction, 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

func appendTimestamp(dst []byte, micros int64, zone bool) []byte {
	days := floorDiv(micros, microsPerDay)
	dst = appendDate(dst, days, false)
	dst = appendTime(append(dst, ' '), micros-days*microsPerDay)
	if zone {
		dst = append(dst, "+00"...)
	}
	if year, _, _ := civilFromDays(days); year <= 0 {
		dst = append(dst, suffixBC...)
	}
	return dst
}

func appendPadded(dst []byte, v uint64, width int) []byte {
	var digits [20]byte
	i := len(digits)
	for ; v > 0 || width > 0; width-- {
		i--
		digits[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, digits[i:]...)
}
