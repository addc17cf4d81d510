package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/torture"
)

// destroyed is a class of values that Debezium destroys, each in the same way.
type destroyed struct {
	types, values, becomes string // in words
	says                   string // docs/debezium-values.md, in which words
	absent                 bool   // it counts as a value that was not sent
	has                    func(*value) bool
	makes                  func(*value) any // of it in the lake, in the readers' form
}

// destroys are all of them. What no entry has is the same through Debezium as in direct
// capture, and what one has is not.
var destroys = []destroyed{}

func entryOf(c *value) *destroyed {
	for i := range destroys {
		if destroys[i].has(c) {
			return &destroys[i]
		}
	}
	return nil
}

// limitsOfDebezium are what no table can have, or the connector does not start, fails
// for good, or leaves the column out: fidelity_stops_test.go tries that.
func limitsOfDebezium() torture.Limits {
	l := torture.Limits{Without: []torture.Without{
		{Type: "mood", Kinds: "df", Why: "a domain over an enum keeps the connector from starting"},
		{Type: "empty_enum", Kinds: "*", Why: "an enum without labels keeps the connector from starting"},
		{Type: "prices", Values: []string{"{NaN}"}, Why: "an array with NaN stops the connector"},
		{Type: "int2vector", Values: []string{""}, Why: "an empty one stops the connector"},
		{Type: "oidvector", Values: []string{""}, Why: "an empty one stops the connector"},
		{Type: "refcursor", Kinds: "cd", Why: "a value of it keeps the snapshot from ending"},
		{Type: "interval", Values: []string{"2562047788:00:54.775807", "-2562047788:00:54.775807"}, Why: "an interval of more than 2,147,483,647 hours fails the snapshot"},
		{Type: "timetz", Values: []string{"23:59:59.999999-08:30:15"}, Why: "a time with time zone whose offset has seconds fails the stream"},
	}}
	for _, t := range arraysLeftOut {
		l.Without = append(l.Without, torture.Without{Type: t, Kinds: "ae", Why: "Debezium leaves out arrays of it"})
	}
	for _, t := range torture.Types() {
		if strings.HasPrefix(t.SQL, "numeric") || t.SQL == "cents" || t.SQL == "paid" {
			l.Without = append(l.Without, torture.Without{Type: t.SQL, Kinds: "aeg", Values: []string{"NaN", "Infinity", "-Infinity"}, Why: "an array with NaN or an infinity stops the connector"})
		}
	}
	// Of these types Debezium sends NULL where a large value did not change, so that NULL
	// says nothing without the row before.
	mute := []string{"bit varying", "bit varying(5)", "grid", "matrix", "prices"}
	l.Full = func(c torture.Column) bool {
		return c.Kind != 'c' && c.Kind != 'd' || slices.Contains(mute, c.Type)
	}
	// An array with NULL among its elements stops the connector when Debezium does not
	// know their type.
	l.Whole = func(c torture.Column) bool {
		return c.Kind == 'f' || !slices.Contains(arraysKnown, c.Type) && !strings.HasPrefix(c.Type, "numeric")
	}
	return l
}

// arraysKnown are the types whose arrays Debezium knows, beside those of numeric.
var arraysKnown = []string{
	"boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "varchar", "varchar(7)", "char(8)", "char", `"char"`, "bytea", "uuid",
	"date", "time", "time(0)", "timetz", "timestamp", "timestamp(0)", "timestamptz", "timestamptz(3)", "json", "jsonb", "inet", "cidr", "macaddr", "macaddr8",
	"int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange", "oid", "hstore", "citext",
}

// The documentation names every value that is lost on the way.
func TestTheDocumentationNamesWhatDebeziumDestroys(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../docs/debezium-values.md")
	require.NoError(t, err)
	spaces := regexp.MustCompile(`\s+`)
	text := spaces.ReplaceAllString(string(file), " ")
	says := func(words string) {
		t.Helper()
		require.NotEmpty(t, words)
		require.Contains(t, text, words)
	}
	for _, e := range destroys {
		says(e.says)
	}
	for _, s := range stops {
		says(s.says)
	}
	_, left, _ := strings.Cut(text, "## What Debezium leaves out")
	for _, typ := range arraysLeftOut {
		if !strings.Contains(typ, "(") && !strings.Contains(typ, " to ") { // those with a modifier go with their type
			require.Contains(t, left, typ+"[]")
		}
	}
}
