package debezium

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

func isUnfit(err error) bool { return errors.Is(err, typemap.ErrUnfit) }

// reason is what typemap says of a text, without its preamble.
func reason(err error) string {
	s := err.Error()
	if _, after, ok := strings.Cut(s, ": "); ok {
		return after
	}
	return s
}

// refusal is a value that cannot be read. It never shows the value.
type refusal struct {
	column  *column
	why     string
	changed bool // the column is not what it was
}

func (r *refusal) Error() string {
	return fmt.Sprintf("column %s (%s): %s", r.column.name, r.column.source.Name, r.why)
}

func (c *column) refuse(why string) error { return &refusal{column: c, why: why} }

// outgrown refuses a value that the column's type, as the lake knows it, cannot have.
func (c *column) outgrown() error {
	return &refusal{column: c, why: "a value is larger than the type: was the column altered?", changed: true}
}

// refuseForm refuses a kind of value that is none of the type's.
func (c *column) refuseForm(t token) error {
	words := map[tokenKind]string{
		tokenString: "text", tokenNumber: "a number", tokenBool: "a boolean", tokenBytes: "bytes", tokenInt: "an integer", tokenFloat: "a float",
	}
	return c.refuse("it comes as " + words[t.kind])
}

// String names the form as in binary.handling.mode.
func (f BinaryForm) String() string {
	switch f {
	case Base64:
		return "base64"
	case Base64URL:
		return "base64-url-safe"
	case Hex:
		return "hex"
	case Bytes:
		return "bytes in base64"
	}
	return "unknown"
}

const (
	undoHint   = "undo the change, or read the table anew"
	decodeHint = "compare the connector's settings with docs/debezium-values.md; or pass the record by with: lakeweir skip"
)

// fault turns what stopped the reading of a record into what a person sees.
func fault(err error) *catalog.Error {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return e
	}
	if r, ok := errors.AsType[*refusal](err); ok && r.changed {
		return catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged, undoHint, "%w", err)
	}
	return catalog.Errorf(catalog.Invalid, catalog.CodeDecode, decodeHint, "a record cannot be read: %w", err)
}

func undecodable(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.Invalid, catalog.CodeDecode, decodeHint, "a record cannot be read: "+format, args...)
}

func unknownColumn(name string) *catalog.Error {
	return catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged, undoHint, "a record has column %s, which the lake's table has not", name)
}

func missingColumn(c *column) *catalog.Error {
	hint := undoHint
	if c.family == familyOpaque || c.family == familyGeometric || c.family == familyListText {
		hint = "set include.unknown.datatypes to true: Debezium leaves columns of type " + c.source.Name + " out without it"
	}
	if c.elem != nil && c.family == familyList {
		hint += "; Debezium leaves arrays of some types out, as docs/debezium-values.md lists"
	}
	return catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged, hint, "a record lacks column %s", c.name)
}

func retyped(c *column, d described) *catalog.Error {
	return catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged, undoHint,
		"column %s was %s and now comes as %s", c.name, c.source.Name, d)
}
