package catalog

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LakeName returns the identifier of the table's lake table in the layer: the
// table's name, outside schema public with the schema before it (audit.log becomes
// audit__log), and the layer's suffix. Case stays. Letters, digits, _ and - stand
// for themselves; any other character, and an underscore that would be read as part
// of something else, is written _x2e_, by its code point. Validation refuses two
// tables that end up with one identifier, case aside.
func (s *Source) LakeName(n TableName, layer Layer) []string {
	base := lakeBase(n)
	switch layer {
	case Bronze:
		return append(slices.Clone(s.Namespaces.Bronze), base+"_cdc")
	case Current:
		return append(slices.Clone(s.Namespaces.Silver), base)
	case History:
		return append(slices.Clone(s.Namespaces.Silver), base+"_history")
	}
	return nil
}

// joint stands between schema and table.
const joint = "__"

func lakeBase(n TableName) string {
	var b strings.Builder
	if n.Schema != "public" {
		lakePart(&b, n.Schema, true)
		b.WriteString(joint)
		lakePart(&b, n.Name, false)
		return b.String()
	}
	lakePart(&b, n.Name, true)
	return b.String()
}

// lakePart writes a name. first says that a joint in it would be taken for the one
// between schema and table.
func lakePart(b *strings.Builder, name string, first bool) {
	for i, r := range name {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)):
			escape(b, 0x110000+rune(name[i])) // a byte that is no character
		case r == '_':
			rest := name[i+1:]
			if looksEscaped(rest) || first && i > 0 && !startsPlain(rest) {
				escape(b, r)
				continue
			}
			b.WriteByte('_')
		case isPlain(r):
			b.WriteRune(r)
		default:
			escape(b, r)
		}
	}
}

func isPlain(r rune) bool { return r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// startsPlain reports whether s is written as it is to begin with: no underscore
// comes first.
func startsPlain(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isPlain(r)
}

func escape(b *strings.Builder, r rune) {
	b.WriteString("_x" + strconv.FormatInt(int64(r), 16) + "_")
}

// looksEscaped reports whether what follows an underscore makes it the start of an
// escape, here or once a joint follows.
func looksEscaped(rest string) bool {
	digits, ok := strings.CutPrefix(rest, "x")
	if !ok {
		return false
	}
	after := strings.TrimLeft(digits, "0123456789abcdef")
	return len(after) < len(digits) && !startsPlain(after)
}

// SourceName returns the table that a lake table of the layer is of, given the last
// part of LakeName; false for a name that LakeName does not make.
func SourceName(lake string, layer Layer) (TableName, bool) {
	switch layer {
	case Bronze:
		lake = strings.TrimSuffix(lake, "_cdc")
	case History:
		lake = strings.TrimSuffix(lake, "_history")
	case Current:
	}
	var parts [2][]byte
	part := 0
	for i := 0; i < len(lake); {
		rest := lake[i:]
		switch r, n, ok := unescape(rest); {
		case ok && r >= 0x110000:
			parts[part] = append(parts[part], byte(r-0x110000))
			i += n
		case ok:
			parts[part] = utf8.AppendRune(parts[part], r)
			i += n
		case part == 0 && i > 0 && strings.HasPrefix(rest, joint):
			part = 1
			i += len(joint)
		default:
			parts[part] = append(parts[part], lake[i])
			i++
		}
	}
	n := TableName{Schema: "public", Name: string(parts[0])}
	if part == 1 {
		n = TableName{Schema: string(parts[0]), Name: string(parts[1])}
	}
	return n, n.Name != "" && lakeBase(n) == lake
}

// unescape reads an escape at the start of s and returns its length.
func unescape(s string) (rune, int, bool) {
	if !strings.HasPrefix(s, "_x") {
		return 0, 0, false
	}
	end := strings.IndexByte(s[2:], '_')
	if end < 0 {
		return 0, 0, false
	}
	v, err := strconv.ParseUint(s[2:2+end], 16, 31)
	return rune(v), end + 3, err == nil && strings.ToLower(s[2:2+end]) == s[2:2+end]
}
