package kafka

import (
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// anew is what heals a gap for now.
const anew = "to read the table anew, drop its tables in the lake, delete the topic, and have the connector take its snapshot again; see docs/debezium.md"

func gapf(t *catalog.Table, format string, args ...any) *catalog.Error {
	e := catalog.Errorf(catalog.Conflict, catalog.CodeGap, anew, format, args...)
	e.At = t.ID()
	return e
}

// undecodable says which record cannot be read, and how to pass it by. cause is the
// decoder's; it holds no value of a row.
func undecodable(t *catalog.Table, rec Record, cause error) *catalog.Error {
	inner := catalog.Public(cause)
	e := &catalog.Error{Kind: inner.Kind, Code: inner.Code, Err: cause, Hint: inner.Hint, At: t.ID()}
	e.Message = fmt.Sprintf("%s: %s", rec, inner.Message)
	const command = "lakeweir skip"
	skip := fmt.Sprintf("%s %s --partition %d --offset %d --reason …", command, t.ID(), rec.Partition, rec.Offset)
	switch {
	case strings.Contains(e.Hint, command):
		e.Hint = strings.Replace(e.Hint, command, skip, 1)
	case e.Hint != "":
		e.Hint += "; or pass the record by with: " + skip
	default:
		e.Hint = "pass the record by with: " + skip
	}
	return e
}
