package tableconfig

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/lakeweir/lakeweir/catalog"
)

// Bounds of what a person would write; beyond them a file is refused before it is
// parsed, since the parser recurses, and takes time with the square of the lines.
const (
	maxFileBytes = 256 << 10
	maxLines     = 5000
	maxNesting   = 64
	maxShown     = 4096 // bytes of a line that an excerpt is taken from
)

// place is where something stands in a document: a line and column from 1, and
// its length in characters on that line.
type place struct{ line, column, length int }

// document is one YAML file: its text, its tree and the places of its keys and
// values, which outlive decoding so that a semantic problem has a place too.
type document struct {
	file  string // as shown
	lines []string
	shown []string // the lines as they may be shown; nil before parse
	body  ast.Node // nil when empty
	// keys and values are by path: "heartbeat.interval", "primary_key[1]",
	// "pii.email".
	keys, values map[string]place
	refused      map[string]bool // the paths whose value has a problem of form
	problems     Problems
}

func newDocument(file, text string) *document {
	text = strings.TrimPrefix(text, "\ufeff")
	// The parser counts a line twice when a comment ends in CR LF.
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return &document{file: file, lines: strings.Split(text, "\n"), keys: map[string]place{}, values: map[string]place{}, refused: map[string]bool{}}
}

// parse fills body, or says why it cannot.
func (d *document) parse() (problem *Problem) {
	text := strings.Join(d.lines, "\n")
	if p := d.refuse(text); p != nil {
		return p
	}
	d.shown = maskLines(d.lines, path.Base(d.file) == sourceFileName)
	defer func() {
		if r := recover(); r != nil { // bad input never panics
			problem = d.problem(catalog.CodeConfigSyntax, place{1, 1, 1}, "the file is not YAML that can be read", "check its quotes, brackets and indentation")
		}
	}()
	f, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := place{1, 1, 1}, "not YAML"
		if se, ok := errors.AsType[*yaml.SyntaxError](err); ok && se.Token != nil {
			at, message = d.placeOf(se.Token.Position.Line, se.Token.Position.Column, se.Token.Value), se.Message
		}
		return d.problem(catalog.CodeConfigSyntax, at, message, syntaxHint(message))
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) > 1 {
		return d.problem(catalog.CodeConfigSyntax, d.nodePlace(bodies[1]), "a second document after ---", "write one file per table")
	}
	if len(bodies) == 1 {
		d.body = bodies[0]
	}
	return nil
}

// refuse finds what the parser should not be given.
func (d *document) refuse(text string) *Problem {
	if len(text) > maxFileBytes {
		return d.problem(catalog.CodeConfigSyntax, place{1, 1, 1}, fmt.Sprintf("the file is larger than %d KiB", maxFileBytes>>10), "write one file per table")
	}
	if len(d.lines) > maxLines {
		return d.problem(catalog.CodeConfigSyntax, place{maxLines + 1, 1, 1}, fmt.Sprintf("the file has more than %d lines", maxLines), "write one file per table")
	}
	depth := 0
	for i, line := range d.lines {
		if !utf8.ValidString(line) || strings.IndexByte(line, 0) >= 0 {
			return d.problem(catalog.CodeConfigSyntax, place{i + 1, 1, 1}, "the line is not UTF-8 text", "save the file as UTF-8")
		}
		dashes := 0
		for column, r := range []rune(line) {
			switch r {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			case '-', '?', ':':
				dashes++
			case ' ', '\t':
			default:
				dashes = 0
			}
			if depth > maxNesting || dashes > maxNesting || (column > 4*maxNesting && strings.TrimLeft(line[:4*maxNesting], " ") == "") {
				return d.problem(catalog.CodeConfigSyntax, place{i + 1, column + 1, 1}, fmt.Sprintf("nested more than %d deep", maxNesting), "check the brackets before it")
			}
		}
	}
	return nil
}

func syntaxHint(message string) string {
	switch {
	case strings.Contains(message, "tab character"), strings.Contains(message, "'\t'"):
		return "indent with spaces"
	case strings.Contains(message, "mapping value is not allowed"):
		return "check the indentation of this line and the next, and quote a value that has \": \" in it"
	case strings.Contains(message, "end token"), strings.Contains(message, "end character"):
		return "close what the marked character opens"
	}
	return "check indentation, quotes and brackets at this place"
}

// problem makes a Problem at a place of this document, with its excerpt.
func (d *document) problem(code catalog.Code, at place, message, hint string) *Problem {
	at = d.clamp(at)
	return &Problem{Code: code, File: d.file, Line: at.line, Column: at.column, Message: mask(printable(message)), Hint: printable(hint), Excerpt: d.excerpt(at)}
}

// report records a problem.
func (d *document) report(code catalog.Code, at place, message, hint string) {
	d.problems = append(d.problems, d.problem(code, at, message, hint))
}

// value returns the place of the value at a path, else of its key, else the top.
func (d *document) value(at string) place {
	if p, ok := d.values[at]; ok {
		return p
	}
	return d.key(at)
}

// key returns the place of the key at a path, else the top of the file.
func (d *document) key(at string) place {
	if p, ok := d.keys[at]; ok {
		return p
	}
	return place{1, 1, 0}
}

// has reports whether the key at a path is in the file.
func (d *document) has(at string) bool {
	_, ok := d.keys[at]
	return ok
}

// nodePlace is where a node starts.
func (d *document) nodePlace(n ast.Node) place {
	switch x := n.(type) {
	case *ast.MappingNode:
		if !x.IsFlowStyle && len(x.Values) > 0 {
			return d.nodePlace(x.Values[0])
		}
	case *ast.MappingValueNode:
		return d.nodePlace(x.Key)
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return place{1, 1, 1}
	}
	text := t.Value
	if n.Type() == ast.NullType && t.Value == "null" && t.Position.Column > 1 { // an absent value: point behind the colon
		text = " "
	}
	return d.placeOf(t.Position.Line, t.Position.Column, text)
}

// placeOf is the place of a token, its length as written on its line.
func (d *document) placeOf(line, column int, value string) place {
	p := d.clamp(place{line, column, 1})
	rest := []rune(d.lines[p.line-1])[p.column-1:]
	if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
		for i := 1; i < len(rest); i++ {
			if rest[i] == rest[0] {
				p.length = i + 1
				return p
			}
		}
	}
	first, _, _ := strings.Cut(value, "\n")
	p.length = max(1, min(utf8.RuneCountInString(first), len(rest)))
	return p
}

// clamp moves a place into the document. A column may stand one behind the line's
// last character, where something is missing.
func (d *document) clamp(p place) place {
	p.line = min(max(p.line, 1), len(d.lines))
	p.column = min(max(p.column, 1), utf8.RuneCountInString(d.lines[p.line-1])+1)
	return p
}

// excerpt shows a place: the line before it, the line, and a mark under it.
// Secrets are masked in it.
//
//	  3 | owner: team
//	> 4 | wrokers: 3
//	    | ^^^^^^^
func (d *document) excerpt(at place) string {
	if at.length == 0 || d.shown == nil || (len(d.lines) == 1 && d.lines[0] == "") {
		return "" // the problem is what is not there, or the file as a whole
	}
	if len(d.lines[at.line-1]) > maxShown {
		return ""
	}
	const width = 100
	number := len(strconv.Itoa(at.line))
	var b strings.Builder
	if at.line > 1 {
		if before := printable(d.shown[at.line-2]); strings.TrimSpace(before) != "" {
			fmt.Fprintf(&b, "  %*d | %s\n", number, at.line-1, clip(before, 0, width))
		}
	}
	line := []rune(printable(d.lines[at.line-1]))
	masked := printable(d.shown[at.line-1])
	from := 0
	if at.column > width {
		from = at.column - width/2
	}
	length := at.length
	if masked != string(line) { // the mark stays inside what is shown
		length = min(length, max(1, utf8.RuneCountInString(masked)-at.column+1))
	}
	length = max(1, min(length, width-(at.column-1-from)))
	fmt.Fprintf(&b, "> %*d | %s\n", number, at.line, clip(masked, from, width))
	fmt.Fprintf(&b, "  %*s | %s%s", number, "", strings.Repeat(" ", max(0, at.column-1-from)), strings.Repeat("^", length))
	return b.String()
}

// clip cuts a line for showing.
func clip(s string, from, width int) string {
	r := []rune(s)
	from = min(from, len(r))
	out := strings.TrimRight(string(r[from:min(len(r), from+width)]), " ")
	if len(r) > from+width {
		out += "…"
	}
	return out
}

// printable keeps a file's control characters out of a terminal. It keeps the
// number of characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, s)
}
