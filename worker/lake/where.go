package lake

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lakeweir/lakeweir/catalog"
)

// Comparison is how a condition compares a column with its value.
type Comparison string

// The comparisons.
const (
	Equal          Comparison = "="
	NotEqual       Comparison = "!="
	Less           Comparison = "<"
	LessOrEqual    Comparison = "<="
	Greater        Comparison = ">"
	GreaterOrEqual Comparison = ">="
	IsNull         Comparison = "is null"
	IsNotNull      Comparison = "is not null"
)

// Condition is one comparison of a column with a constant. A NULL is never equal,
// unequal, less or greater.
type Condition struct {
	Column  string
	Compare Comparison
	Value   string // as it was written, without quotes; empty for IsNull and IsNotNull
	where   string // the whole text and the places in it, for messages
	at      int
	valueAt int
}

// ParseWhere reads conditions joined by AND: status = 'paid' and amount >= 10.5
// and note is not null. Names with other characters than letters, digits, _ and .
// stand in double quotes. An error shows the place of the mistake.
func ParseWhere(text string) ([]Condition, error) {
	p := whereParser{text: text}
	var out []Condition
	for {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		t, err := p.next()
		switch {
		case err != nil:
			return nil, err
		case t.kind == tokenEnd:
			return out, nil
		case !t.is("and"):
			return nil, p.fault(t.at, "conditions are joined by AND; OR, NOT and parentheses are not available", "expected AND or the end, found %s", t)
		}
	}
}

type whereParser struct {
	text string
	pos  int
}

func (p *whereParser) condition() (Condition, error) {
	name, err := p.next()
	if err != nil {
		return Condition{}, err
	}
	if name.kind != tokenWord && name.kind != tokenName {
		return Condition{}, p.fault(name.at, `write a comparison such as status = 'paid'`, "expected a column, found %s", name)
	}
	c := Condition{Column: name.text, where: p.text, at: name.at}
	op, err := p.next()
	if err != nil {
		return c, err
	}
	if op.is("is") {
		c.Compare = IsNull
		word, err := p.next()
		if err == nil && word.is("not") {
			c.Compare = IsNotNull
			word, err = p.next()
		}
		if err == nil && !word.is("null") {
			err = p.fault(word.at, "write IS NULL or IS NOT NULL", "expected NULL, found %s", word)
		}
		return c, err
	}
	switch op.text {
	case "<>":
		c.Compare = NotEqual
	case "==":
		c.Compare = Equal
	case "=", "!=", "<", "<=", ">", ">=":
		c.Compare = Comparison(op.text)
	}
	if op.kind != tokenOperator || c.Compare == "" {
		return c, p.fault(op.at, "use =, !=, <, <=, >, >=, IS NULL or IS NOT NULL", "expected a comparison after %q, found %s", c.Column, op)
	}
	value, err := p.next()
	if err != nil {
		return c, err
	}
	if value.is("null") && value.kind == tokenWord {
		return c, p.fault(value.at, "write "+c.Column+" IS NULL or IS NOT NULL", "nothing is equal to or less than NULL")
	}
	if value.kind != tokenText && value.kind != tokenWord {
		return c, p.fault(value.at, "write a number, true, false, or a text in single quotes", "expected a value, found %s", value)
	}
	c.Value, c.valueAt = value.text, value.at
	return c, nil
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenName     // in double quotes
	tokenText     // in single quotes
	tokenOperator // also anything unknown
)

type token struct {
	kind tokenKind
	text string
	at   int // in bytes
}

func (t token) is(word string) bool { return t.kind == tokenWord && strings.EqualFold(t.text, word) }

func (t token) String() string {
	if t.kind == tokenEnd {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

func (p *whereParser) next() (token, error) {
	for p.pos < len(p.text) && strings.ContainsRune(" \t\r\n", rune(p.text[p.pos])) {
		p.pos++
	}
	at := p.pos
	if at == len(p.text) {
		return token{at: at}, nil
	}
	switch c := p.text[at]; {
	case c == '\'':
		return p.quoted(tokenText, '\'', "text")
	case c == '"':
		return p.quoted(tokenName, '"', "name")
	case strings.IndexByte("=<>!", c) >= 0:
		for p.pos < len(p.text) && strings.IndexByte("=<>!", p.text[p.pos]) >= 0 {
			p.pos++
		}
		return token{tokenOperator, p.text[at:p.pos], at}, nil
	}
	for p.pos < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-+:", r) {
			break
		}
		p.pos += n
	}
	if p.pos == at {
		_, n := utf8.DecodeRuneInString(p.text[at:])
		p.pos += n
		return token{tokenOperator, p.text[at:p.pos], at}, nil
	}
	return token{tokenWord, p.text[at:p.pos], at}, nil
}

// quoted reads to the closing quote; two quotes stand for one.
func (p *whereParser) quoted(kind tokenKind, quote byte, what string) (token, error) {
	at := p.pos
	var b strings.Builder
	for p.pos++; p.pos < len(p.text); p.pos++ {
		if p.text[p.pos] == quote {
			if p.pos++; p.pos == len(p.text) || p.text[p.pos] != quote {
				return token{kind, b.String(), at}, nil
			}
		}
		b.WriteByte(p.text[p.pos])
	}
	return token{}, p.fault(at, "close it with "+string(quote), "the %s that begins here has no end", what)
}

func (p *whereParser) fault(at int, hint, format string, args ...any) *catalog.Error {
	return whereFault(p.text, at, hint, format, args...)
}

// whereFault shows the text with a mark under the place of the mistake.
func whereFault(text string, at int, hint, format string, args ...any) *catalog.Error {
	column := utf8.RuneCountInString(text[:at])
	line := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
	message := fmt.Sprintf(format, args...) + "\n  " + line + "\n  " + strings.Repeat(" ", column) + "^"
	return catalog.Invalidf(catalog.CodeUsage, fmt.Sprintf("where:%d", column+1), hint, "%s", message)
}
