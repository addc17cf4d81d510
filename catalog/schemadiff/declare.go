package schemadiff

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

var (
	columnName = regexp.MustCompile(`^("(?:[^"]|"")+"|[^\s",]+)\s+(.+)$`)
	enumType   = regexp.MustCompile(`(?i)^enum\s*\(([^)]*)\)(.*)$`)
	// A column's further words begin at one of these.
	clause = regexp.MustCompile(`(?i)\s+(?:not\s+null|null|default|generated|primary\s+key|references|check|unique|collate)\b`)

	literal = regexp.MustCompile(`(?i)^(?:[-+]?[0-9.]+(?:e[-+]?\d+)?|'(?:[^']|'')*'|true|false|null)(?:::[a-z0-9_ .(),"\[\]]+)?$`)
	stable  = regexp.MustCompile(`(?i)^(?:now\(\)|transaction_timestamp\(\)|statement_timestamp\(\)|current_(?:timestamp|date|time|user)|localtimestamp|localtime|'(?:now|today)'::[a-z ]+)(?:\s*\(\d\))?$`)
)

// Declare reads a column as SQL declares it: "phone text", "amount numeric(12,2) not
// null default 0". An enum is written with its labels: "status enum(new, paid)". It is
// for proposals and tests; what a source really has is asked of its catalog.
func Declare(sql string) (catalog.ColumnDefinition, error) {
	m := columnName.FindStringSubmatch(strings.TrimSpace(sql))
	if m == nil {
		return catalog.ColumnDefinition{}, fmt.Errorf("%q is no column such as \"phone text\" or \"amount numeric(12,2) not null\"", sql)
	}
	c := catalog.ColumnDefinition{Name: unquote(m[1]), Nullable: true}
	rest := m[2]
	if e := enumType.FindStringSubmatch(rest); e != nil {
		c.Type = catalog.SourceType{Name: "enum", Base: "enum", Modifier: -1}
		for label := range strings.SplitSeq(e[1], ",") {
			c.Labels = append(c.Labels, catalog.EnumLabel{Name: strings.Trim(strings.TrimSpace(label), "'")})
		}
		return c, clauses(&c, e[2])
	}
	at := clause.FindStringIndex(rest)
	spelled := rest
	if at != nil {
		spelled, rest = rest[:at[0]], rest[at[0]:]
	} else {
		rest = ""
	}
	var err error
	if c.Type, err = typemap.Declared(spelled, strings.Contains(spelled, ".")); err != nil {
		return c, err
	}
	if strings.Contains(strings.ToLower(spelled), "serial") {
		c.Nullable, c.Default = false, &catalog.Default{Expression: "nextval", Volatility: catalog.Volatile}
	}
	return c, clauses(&c, rest)
}

var (
	notNull     = regexp.MustCompile(`(?i)^\s*(?:not\s+null|primary\s+key)\b`)
	nullable    = regexp.MustCompile(`(?i)^\s*null\b`)
	byDefault   = regexp.MustCompile(`(?i)^\s*default\s+(.+?)(\s+not\s+null\b.*)?$`)
	identity    = regexp.MustCompile(`(?i)^\s*generated\s+(?:always|by\s+default)\s+as\s+identity\b`)
	generatedAs = regexp.MustCompile(`(?i)^\s*generated\s+always\s+as\s*(\(.*\))\s*(stored|virtual)\b`)
)

// clauses reads what stands behind a column's type.
func clauses(c *catalog.ColumnDefinition, rest string) error {
	for strings.TrimSpace(rest) != "" {
		switch {
		case notNull.MatchString(rest):
			c.Nullable = false
			rest = notNull.ReplaceAllString(rest, "")
		case nullable.MatchString(rest):
			rest = nullable.ReplaceAllString(rest, "")
		case identity.MatchString(rest):
			c.Nullable, c.Default = false, &catalog.Default{Expression: "identity", Volatility: catalog.Volatile}
			rest = identity.ReplaceAllString(rest, "")
		case generatedAs.MatchString(rest):
			m := generatedAs.FindStringSubmatch(rest)
			c.Generated, c.Default = strings.ToLower(m[2]), &catalog.Default{Expression: m[1], Volatility: catalog.Stable}
			rest = generatedAs.ReplaceAllString(rest, "")
		case byDefault.MatchString(rest):
			m := byDefault.FindStringSubmatch(rest)
			c.Default = &catalog.Default{Expression: strings.TrimSpace(m[1]), Volatility: volatility(m[1])}
			rest = m[2]
		default:
			return errors.New("cannot read " + fmt.Sprintf("%q", strings.TrimSpace(rest)) + " of column " + c.Name + ": leave it out")
		}
	}
	return nil
}

// volatility judges an expression by its looks. What it does not know is volatile: the
// table is then read again, which is right whatever the expression does.
func volatility(expression string) catalog.Volatility {
	switch e := strings.TrimSpace(expression); {
	case literal.MatchString(e):
		return catalog.Constant
	case stable.MatchString(e):
		return catalog.Stable
	}
	return catalog.Volatile
}

func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return name
}
