package schemadiff

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// wider reports whether every value of a column's old type is a value of the new one.
func wider(was, now *catalog.ColumnDefinition) bool {
	if was.Type.Base == "enum" && now.Type.Base == "enum" {
		return len(was.Labels) > 0 && !slices.ContainsFunc(was.Labels, func(l catalog.EnumLabel) bool { return !hasLabel(now.Labels, l.Name) })
	}
	return widerType(was.Type, now.Type)
}

func hasLabel(labels []catalog.EnumLabel, name string) bool {
	return slices.ContainsFunc(labels, func(l catalog.EnumLabel) bool { return l.Name == name })
}

// wholeDigits are the most digits before the point that an integer has.
var wholeDigits = map[string]int{"int2": 5, "int4": 10, "int8": 19}

func widerType(a, b catalog.SourceType) bool {
	if a.Base == "array" && b.Base == "array" && a.Elem != nil && b.Elem != nil {
		return (a.Dims > 1) == (b.Dims > 1) && (sameType(elem(a), elem(b)) || widerType(elem(a), elem(b)))
	}
	digits, integer := wholeDigits[a.Base]
	switch b.Base {
	case "int4", "int8":
		return integer && digits < wholeDigits[b.Base]
	case "float4":
		return a.Base == "int2"
	case "float8":
		return a.Base == "float4" || integer && digits <= 10
	case "numeric":
		return widerNumeric(a, b, digits)
	case "text", "varchar", "bpchar", "name":
		return widerText(a, b)
	case "varbit":
		return (a.Base == "varbit" || a.Base == "bit") && bounded(a.Modifier, b.Modifier)
	case "timestamp":
		return a.Base == "date" || a.Base == b.Base && precision(a) <= precision(b)
	case "timestamptz", "time", "timetz":
		return a.Base == b.Base && precision(a) <= precision(b)
	case "interval":
		return a.Base == b.Base && (fields(b) == allFields || fields(a) == fields(b)) && precision(a) <= precision(b)
	}
	return false
}

// elem is an array's element with the modifier that the array's column carries for it.
func elem(t catalog.SourceType) catalog.SourceType {
	e := *t.Elem
	if e.Modifier < 0 {
		e.Modifier = t.Modifier
	}
	return e
}

// widerNumeric compares digits before and after the point; whole are those of an
// integer, 0 when a is none.
func widerNumeric(a, b catalog.SourceType, whole int) bool {
	if a.Base != "numeric" && whole == 0 {
		return false
	}
	if b.Modifier < 4 {
		return true
	}
	beforePoint, scale := whole, 0
	if whole == 0 {
		if a.Modifier < 4 {
			return false
		}
		beforePoint, scale = numericDigits(a.Modifier)
	}
	widest, finest := numericDigits(b.Modifier)
	return beforePoint <= widest && scale <= finest
}

// numericDigits reads a modifier: the digits before the point and the scale.
func numericDigits(modifier int32) (beforePoint, scale int) {
	m := modifier - 4
	scale = int(m&0x7ff^1024) - 1024
	return int(m>>16)&0xffff - scale, scale
}

// widerText compares types of text by the characters they hold. The labels of an enum
// are texts of unknown length.
func widerText(a, b catalog.SourceType) bool {
	const nameLength = 63
	length := func(t catalog.SourceType) (n int32, text bool) {
		switch t.Base {
		case "text", "enum":
			return -1, true
		case "varchar", "bpchar":
			if t.Modifier < 4 {
				return -1, true
			}
			return t.Modifier - 4, true
		case "name":
			return nameLength, true
		}
		return 0, false
	}
	have, text := length(a)
	room, _ := length(b)
	switch {
	case !text:
		return false
	case b.Base == "bpchar" && a.Base != "bpchar": // what ends in blanks would lose them
		return false
	}
	return bounded(have, room)
}

// bounded reports whether a bound, negative for none, is within another.
func bounded(a, b int32) bool { return b < 0 || a >= 0 && a <= b }

// precision is the number of digits of a second's fraction.
func precision(t catalog.SourceType) int32 {
	if t.Modifier < 0 || t.Base == "interval" && t.Modifier&0xffff == 0xffff {
		return 6
	}
	return t.Modifier & 0xffff
}

// allFields is the mask of an interval that is not bounded to some.
const allFields = 0x7fff

func fields(t catalog.SourceType) int32 {
	if t.Modifier < 0 {
		return allFields
	}
	return t.Modifier >> 16 & allFields
}

var (
	textTypes  = []string{"text", "varchar", "name", "enum"}
	plainTypes = []string{"text", "varchar", "name", "enum", "varbit", "bit", "timetz", "interval", "time", "timestamp", "timestamptz", "int2", "int4", "int8"}
)

// sameText reports whether the server prints a value the same under both types, as far
// as is known. What a lake column of text holds is what was printed.
func sameText(was, now *catalog.ColumnDefinition) bool {
	a, b := was.Type, now.Type
	if a.Base == "array" && b.Base == "array" && a.Elem != nil && b.Elem != nil {
		a, b = elem(a), elem(b)
	}
	switch {
	case a.Base == "numeric" && b.Base == "numeric":
		_, before := numericDigits(a.Modifier)
		_, after := numericDigits(b.Modifier)
		return b.Modifier < 4 || a.Modifier >= 4 && before == after
	case b.Base == "numeric" && wholeDigits[a.Base] > 0:
		_, scale := numericDigits(b.Modifier)
		return b.Modifier < 4 || scale == 0
	case a.Base == b.Base:
		return slices.Contains(plainTypes, a.Base)
	case wholeDigits[a.Base] > 0:
		return wholeDigits[b.Base] > 0
	case slices.Contains(textTypes, a.Base):
		return slices.Contains(textTypes, b.Base)
	case a.Base == "bit" || a.Base == "varbit":
		return b.Base == "bit" || b.Base == "varbit"
	}
	return false
}
