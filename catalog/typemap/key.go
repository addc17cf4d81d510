package typemap

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// KeyForm says how the server's idea of equal values shows in what it prints, and
// so how a value of a key column is brought into the one form that all its equals
// share.
type KeyForm uint8

// The forms.
const (
	KeyUnknown  KeyForm = iota // values may print differently and be equal in ways not known here: no key
	KeyExact                   // equal values print alike
	KeyFloat                   // -0 equals 0, and every NaN is one
	KeyNumeric                 // 1.0 equals 1.00
	KeyBlanks                  // blanks at the end do not count
	KeyInterval                // 1 day equals 24:00:00, and 1 mon equals 30 days
	KeySpelled                 // only the server knows which spellings are equal (citext): each counts as itself
)

// KeyFormOf returns the form of a Postgres type.
func KeyFormOf(s catalog.SourceType) KeyForm {
	switch s.Base {
	case "float4", "float8":
		return KeyFloat
	case "numeric":
		if Postgres(s).Kind == catalog.Decimal {
			return KeyExact
		}
		return KeyNumeric
	case "bpchar":
		return KeyBlanks
	case "interval":
		return KeyInterval
	case "array":
		return arrayKeyForm(s)
	case "range", "multirange":
		if exactRanges[s.Name] {
			return KeyExact
		}
		return KeyUnknown
	}
	switch {
	case exactKeys[s.Base]:
		return KeyExact
	case strings.HasSuffix(s.Base, ".citext"):
		return KeySpelled
	}
	return KeyUnknown
}

// exactKeys are the types whose equal values print alike. Times with a zone are
// here: two of them are equal only when their zones are.
var exactKeys = map[string]bool{
	"bool": true, "int2": true, "int4": true, "int8": true, "oid": true, "xid8": true, "pg_lsn": true, "tid": true, "money": true,
	"date": true, "time": true, "timetz": true, "timestamp": true, "timestamptz": true,
	"text": true, "varchar": true, "name": true, "char": true, "enum": true, "bytea": true, "bit": true, "varbit": true,
	"uuid": true, "inet": true, "cidr": true, "macaddr": true, "macaddr8": true,
}

// exactRanges are those over types of exactKeys. Ranges that people made may be
// over anything.
var exactRanges = map[string]bool{
	"int4range": true, "int8range": true, "daterange": true, "tsrange": true, "tstzrange": true,
	"int4multirange": true, "int8multirange": true, "datemultirange": true, "tsmultirange": true, "tstzmultirange": true,
}

func arrayKeyForm(s catalog.SourceType) KeyForm {
	if s.Elem == nil {
		return KeyUnknown
	}
	elem := *s.Elem
	if elem.Modifier < 0 {
		elem.Modifier = s.Modifier
	}
	if elem.Base == "array" || KeyFormOf(elem) != KeyExact {
		return KeyUnknown
	}
	return KeyExact
}

// KeyFixed brings a value of a fixed type into its key form.
func KeyFixed(kind catalog.ValueKind, v int64) int64 {
	switch kind {
	case catalog.Float32:
		switch f := math.Float32frombits(uint32(v)); {
		case f == 0:
			return 0
		case f != f: // NaN alone is not itself
			return int64(math.Float32bits(float32(math.NaN())))
		}
	case catalog.Float64:
		switch f := math.Float64frombits(uint64(v)); {
		case f == 0:
			return 0
		case math.IsNaN(f):
			return int64(math.Float64bits(math.NaN()))
		}
	case catalog.Text, catalog.Bool, catalog.Int32, catalog.Int64, catalog.Decimal, catalog.Date, catalog.Time, catalog.Timestamp,
		catalog.TimestampTZ, catalog.UUID, catalog.Binary, catalog.List:
	}
	return v
}

// KeyText brings the printed text of a value into its key form. What it returns
// may share text or buf. A text that is not of the form stays as it is.
func KeyText(form KeyForm, text, buf []byte) []byte {
	switch form {
	case KeyNumeric:
		return keyNumeric(text)
	case KeyBlanks:
		return bytes.TrimRight(text, " ")
	case KeyInterval:
		return keyInterval(text, buf)
	case KeyFloat:
		if string(text) == "-0" {
			return text[1:]
		}
	case KeyUnknown, KeyExact, KeySpelled:
	}
	return text
}

// keyNumeric cuts zeros off the end of a fraction.
func keyNumeric(text []byte) []byte {
	_, fraction, found := bytes.Cut(text, []byte("."))
	if !found {
		return text
	}
	for _, c := range fraction {
		if !isDigit(c) {
			return text
		}
	}
	return bytes.TrimRight(bytes.TrimRight(text, "0"), ".")
}

// keyInterval adds an interval up as the server does when it compares: a month has
// 30 days, and a day 24 hours.
func keyInterval(text, buf []byte) []byte {
	var days, micros int64
	rest := text
	for len(rest) > 0 {
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte(" "))
		if bytes.IndexByte(word, ':') >= 0 {
			var ok bool
			if micros, ok = intervalTime(word); !ok || len(rest) > 0 {
				return text
			}
			continue
		}
		n, err := strconv.ParseInt(strings.TrimPrefix(string(word), "+"), 10, 64)
		if err != nil {
			return text
		}
		var unit []byte
		unit, rest, _ = bytes.Cut(rest, []byte(" "))
		switch strings.TrimSuffix(string(unit), "s") {
		case "year":
			days += n * 360
		case "mon":
			days += n * 30
		case "day":
			days += n
		default:
			return text
		}
	}
	days += micros / microsPerDay
	if micros %= microsPerDay; micros < 0 {
		days, micros = days-1, micros+microsPerDay
	}
	buf = strconv.AppendInt(buf[:0], days, 10)
	return strconv.AppendInt(append(buf, ' '), micros, 10)
}

// intervalTime reads "[+-]H…:MM:SS[.ffffff]" in microseconds.
func intervalTime(word []byte) (int64, bool) {
	sign := int64(1)
	switch word[0] {
	case '-':
		sign, word = -1, word[1:]
	case '+':
		word = word[1:]
	}
	i := bytes.IndexByte(word, ':')
	hours, err := strconv.ParseInt(string(word[:max(i, 0)]), 10, 64)
	if err != nil || i < 0 || len(word) < i+6 || word[i+3] != ':' {
		return 0, false
	}
	minutes, ok1 := twoDigits(word[i+1:])
	seconds, ok2 := twoDigits(word[i+4:])
	micros := (hours*3600 + int64(minutes)*60 + int64(seconds)) * microsPerSecond * sign // wraps where the server's does: its least has no positive
	if fraction := word[i+6:]; len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) > 7 {
			return 0, false
		}
		scale := int64(microsPerSecond)
		for _, c := range fraction[1:] {
			if !isDigit(c) {
				return 0, false
			}
			scale /= 10
			micros += sign * int64(c-'0') * scale
		}
	}
	return micros, ok1 && ok2
}
