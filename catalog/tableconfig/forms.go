package tableconfig

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// form is a kind of text: the pattern that the schema has, and what to write
// instead when a value does not match.
type form struct {
	pattern *regexp.Regexp
	want    string // completes "want …"
	hint    string
	secret  bool // the value is never shown
}

// forms are by the name in a field's tag. Patterns are those of ECMAScript, which
// JSON Schema has.
var forms = map[string]form{
	"text":       {regexp.MustCompile(`\S`), "some text", "write a value, or remove the key", false},
	"table":      {regexp.MustCompile(`^("([^"]|"")+"|[^".][^.]*)\.("([^"]|"")+"|[^"].*)$`), "schema.table", `write schema and table, such as public.orders; a part with dots or quotes of its own is quoted: "my.schema".orders`, false},
	"column":     {regexp.MustCompile(`^[^\x00]+$`), "the name of a column", "name a column of the table", false},
	"connection": {regexp.MustCompile(`\S`), "a connection string", "write postgres://user:${env:PGPASSWORD}@host:5432/database, or ${env:NAME} for the whole", true},
	"reference":  {regexp.MustCompile(`^\$\{(env|file):[^}]+\}$`), "a reference to a secret", "write ${env:NAME} or ${file:PATH}", true},
	"slot":       {regexp.MustCompile(`^[a-z0-9_]{1,63}$`), "the name of a replication slot", "use lower-case letters, digits and underscores, 63 at most", false},
	"identifier": {regexp.MustCompile(`^[^\x00-\x1f]{1,63}$`), "a name of Postgres", "write a name of 63 characters at most", false},
	"duration":   {regexp.MustCompile(`^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`), "a time", `write a number with ms, s, m or h, such as 10s or 1m30s`, false},
	"size":       {regexp.MustCompile(`^[0-9]+(\.[0-9]+)? ?(B|KiB|MiB|GiB|TiB)$`), "a size", "write a number with B, KiB, MiB, GiB or TiB, such as 10GiB", false},
	"broker":     {regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$`), "host:port", "write a broker's host and port, such as kafka-1:9092", false},
	"connector":  {regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`), "the name of a connector", "use letters, digits, dots, dashes and underscores, 100 at most", false},
	"topic":      {regexp.MustCompile(`^[A-Za-z0-9._-]{1,120}$`), "the beginning of a topic's name", "use letters, digits, dots, dashes and underscores, 120 at most", false},
	"url":        {regexp.MustCompile(`^(https?://|\$\{)\S+$`), "an http or https URL", "write http://host:port, or ${env:NAME} for the whole", true},
	"namespace":  {regexp.MustCompile(`^[^.\x00-\x1f]+(\.[^.\x00-\x1f]+)*$`), "a namespace", "write a name, or names joined by dots, such as shop or lake.shop", false},
}

// maxIdentifier is Postgres's NAMEDATALEN less one: longer names cannot exist.
const maxIdentifier = 63

// parseTable reads schema.table, each part optionally quoted as in SQL. A table
// name without quotes may hold dots.
func parseTable(s string) (catalog.TableName, error) {
	schema, rest, err := tablePart(s, true)
	if err != nil {
		return catalog.TableName{}, err
	}
	if !strings.HasPrefix(rest, ".") || len(rest) == 1 {
		return catalog.TableName{}, errors.New("it has no schema")
	}
	table, rest, err := tablePart(rest[1:], false)
	if err != nil {
		return catalog.TableName{}, err
	}
	if rest != "" {
		return catalog.TableName{}, fmt.Errorf("%q stands after the quoted name", rest)
	}
	for _, part := range []string{schema, table} {
		if len(part) > maxIdentifier {
			return catalog.TableName{}, fmt.Errorf("%q has %d bytes, and a name of Postgres has %d at most", part, len(part), maxIdentifier)
		}
	}
	return catalog.TableName{Schema: schema, Name: table}, nil
}

// tablePart takes one part off s: up to the first dot, the whole, or what is
// between quotes.
func tablePart(s string, toDot bool) (part, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		part, rest = s, ""
		if toDot {
			if i := strings.IndexByte(s, '.'); i >= 0 {
				part, rest = s[:i], s[i:]
			}
		}
		if part == "" {
			return "", "", errors.New("a name is empty")
		}
		return part, rest, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '"':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '"':
			b.WriteByte('"')
			i++
		case b.Len() == 0:
			return "", "", errors.New("a name is empty")
		default:
			return b.String(), s[i+1:], nil
		}
	}
	return "", "", errors.New("a quote is not closed")
}

// fileNameFor is the file that holds the table written as s in its file. Slashes,
// which no file name has, are written %2F.
func fileNameFor(s string) string {
	return strings.NewReplacer("/", "%2F", string(filepath.Separator), "%2F", "\x00", "%00").Replace(s) + ".yaml"
}

var sizeUnits = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// parseSize reads what form "size" has matched.
func parseSize(s string) (int64, error) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		return 0, errors.New("no unit")
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return 0, fmt.Errorf("parse size: %w", err)
	}
	bytes := n * sizeUnits[strings.TrimSpace(s[i:])]
	if bytes >= math.MaxInt64 {
		return 0, errors.New("too large")
	}
	return int64(bytes), nil
}

// parseDuration reads what form "duration" has matched.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("parse duration: %w", err)
	}
	return d, nil
}
