package lake

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// rowCondition is a condition that is evaluated here, on the rows that were read.
type rowCondition struct {
	column  viewColumn
	at      int // its index among the columns read
	compare Comparison
	fixed   int64
	bytes   []byte
}

// filter turns conditions into Iceberg's expression and those that are left to us:
// all on fields of structs and on lists, which Iceberg's scan does not evaluate on
// rows, those on columns that were widened, and every one where it misreads filters, for
// which its expression then only chooses the files.
//
// In iceberg-go 0.7.0 a file's bounds are read by the type that the column has now
// (boundFor in table/evaluators.go), and a long's bound of four bytes, from before it was
// one, is an error; the format allows it. We found no report of it upstream;
// TestIcebergGoFailsOnBoundsFromBeforeAWidening tells when it is mended.
func (v *View) filter(conditions []Condition) (iceberg.BooleanExpression, []rowCondition, error) {
	var out iceberg.BooleanExpression = iceberg.AlwaysTrue{}
	var own []rowCondition
	all := v.misreadsFilters()
	widened := widened(v.tbl.Metadata())
	for _, c := range conditions {
		column, fixed, value, err := v.operand(c)
		if err != nil {
			return nil, nil, err
		}
		_, wide := widened[column.Number]
		ours := wide || column.field != "" || column.Type.Kind == catalog.List
		if ours || all {
			own = append(own, rowCondition{column: column, compare: c.Compare, fixed: fixed, bytes: value})
		}
		if !ours {
			out = iceberg.NewAnd(out, predicate(column, c.Compare, fixed, value))
		}
	}
	return out, own, nil
}

// operand returns the column of a condition and its value, as change.Rows has it.
func (v *View) operand(c Condition) (column viewColumn, fixed int64, value []byte, err error) {
	at := slices.IndexFunc(v.columns, func(col viewColumn) bool { return col.Name == c.Column })
	if at < 0 {
		if fields := v.fieldsOf(c.Column); len(fields) > 0 {
			return column, 0, nil, whereFault(c.where, c.at, "use one of its fields, such as "+fields[0], "column %q is a struct: conditions are on its fields", c.Column)
		}
		e := v.noColumn(c.Column)
		return column, 0, nil, whereFault(c.where, c.at, e.Hint, "%s", e.Message)
	}
	column = v.columns[at]
	if column.Type.Kind == 0 {
		return column, 0, nil, whereFault(c.where, c.at, "compare another column", "column %q has a type that Lakeweir cannot read", c.Column)
	}
	if c.Compare == IsNull || c.Compare == IsNotNull {
		return column, 0, nil, nil
	}
	if column.Type.Kind == catalog.List {
		return column, 0, nil, whereFault(c.where, c.at, "compare another column, or use IS NULL", "a column of type %s cannot be compared with a value", column.Type)
	}
	fixed, value, err = typemap.Decode(column.Type, []byte(valueText(column.Type, c.Value)), nil)
	if err != nil {
		return column, 0, nil, whereFault(c.where, c.valueAt, "write it as in "+c.Column+" "+string(c.Compare)+" "+example(column.Type), "%q is not a value of column %q, which is %s", c.Value, c.Column, column.Type)
	}
	return column, fixed, value, nil
}

func predicate(column viewColumn, compare Comparison, fixed int64, value []byte) iceberg.BooleanExpression {
	ref := iceberg.Reference(column.Name)
	switch compare {
	case IsNull:
		return iceberg.IsNull(ref)
	case IsNotNull:
		return iceberg.NotNull(ref)
	case Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual:
	}
	ops := map[Comparison]iceberg.Operation{
		Equal: iceberg.OpEQ, NotEqual: iceberg.OpNEQ, Less: iceberg.OpLT, LessOrEqual: iceberg.OpLTEQ, Greater: iceberg.OpGT, GreaterOrEqual: iceberg.OpGTEQ,
	}
	return iceberg.LiteralPredicate(ops[compare], ref, literalOf(column.Type, fixed, value))
}

// met reports whether a row meets the condition.
func (c *rowCondition) met(rows *change.Rows, row int) bool {
	has := rows.HasValue(row, c.at)
	switch c.compare {
	case IsNull:
		return !has
	case IsNotNull:
		return has
	case Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual:
	}
	if !has {
		return false
	}
	var order int
	switch t := c.column.Type; {
	case t.Kind == catalog.Float32:
		order = cmp.Compare(math.Float32frombits(uint32(rows.Fixed(row, c.at))), math.Float32frombits(uint32(c.fixed)))
	case t.Kind == catalog.Float64:
		order = cmp.Compare(math.Float64frombits(uint64(rows.Fixed(row, c.at))), math.Float64frombits(uint64(c.fixed)))
	case t.Fixed():
		order = cmp.Compare(rows.Fixed(row, c.at), c.fixed)
	case t.Kind == catalog.Decimal:
		have := rows.Bytes(row, c.at)
		order = cmp.Or(cmp.Compare(int64(binary.BigEndian.Uint64(have)), int64(binary.BigEndian.Uint64(c.bytes))), bytes.Compare(have[8:], c.bytes[8:]))
	default:
		order = bytes.Compare(rows.Bytes(row, c.at), c.bytes)
	}
	switch c.compare {
	case Equal:
		return order == 0
	case NotEqual:
		return order != 0
	case Less:
		return order < 0
	case LessOrEqual:
		return order <= 0
	case Greater:
		return order > 0
	case GreaterOrEqual:
		return order >= 0
	case IsNull, IsNotNull:
	}
	return false
}

// valueText brings a value as people write it into the form that Postgres prints.
func valueText(t catalog.Type, text string) string {
	switch t.Kind { //nolint:exhaustive // the others are written as they print
	case catalog.Bool:
		switch strings.ToLower(text) {
		case "true":
			return "t"
		case "false":
			return "f"
		}
	case catalog.Timestamp, catalog.TimestampTZ:
		return instantText(text, t.Kind == catalog.TimestampTZ)
	}
	return text
}

func literalOf(t catalog.Type, fixed int64, value []byte) iceberg.Literal {
	switch t.Kind {
	case catalog.Text:
		return iceberg.NewLiteral(string(value))
	case catalog.Bool:
		return iceberg.NewLiteral(fixed != 0)
	case catalog.Int32:
		return iceberg.NewLiteral(int32(fixed))
	case catalog.Int64:
		return iceberg.NewLiteral(fixed)
	case catalog.Float32:
		return iceberg.NewLiteral(math.Float32frombits(uint32(fixed)))
	case catalog.Float64:
		return iceberg.NewLiteral(math.Float64frombits(uint64(fixed)))
	case catalog.Decimal:
		n := decimal128.FromI64(fixed)
		if !t.Fixed() {
			n = decimal128.New(int64(binary.BigEndian.Uint64(value)), binary.BigEndian.Uint64(value[8:]))
		}
		return iceberg.NewLiteral(iceberg.Decimal{Val: n, Scale: t.Scale})
	case catalog.Date:
		return iceberg.NewLiteral(iceberg.Date(fixed))
	case catalog.Time:
		return iceberg.NewLiteral(iceberg.Time(fixed))
	case catalog.Timestamp, catalog.TimestampTZ:
		return iceberg.NewLiteral(iceberg.Timestamp(fixed))
	case catalog.UUID:
		return iceberg.NewLiteral(uuid.UUID(value))
	case catalog.Binary, catalog.List:
		return iceberg.NewLiteral(value)
	}
	return iceberg.NewLiteral(value)
}

// instantText brings 2026-01-31, 2026-01-31T10:00:00Z and the like into the form
// that Postgres prints.
func instantText(text string, zone bool) string {
	text = strings.Replace(text, "T", " ", 1)
	if rest, ok := strings.CutSuffix(text, "Z"); ok {
		text = rest + "+00"
	}
	if !strings.Contains(text, " ") {
		text += " 00:00:00"
	}
	if zone && !strings.ContainsAny(text[strings.IndexByte(text, ' '):], "+-") {
		text += "+00"
	}
	return text
}

func example(t catalog.Type) string {
	switch t.Kind {
	case catalog.Text:
		return "'paid'"
	case catalog.Bool:
		return "true"
	case catalog.Int32, catalog.Int64:
		return "5"
	case catalog.Float32, catalog.Float64:
		return "5.5"
	case catalog.Decimal:
		return "5." + strings.Repeat("0", max(t.Scale, 1))
	case catalog.Date:
		return "'2026-01-31'"
	case catalog.Time:
		return "'14:30:00'"
	case catalog.Timestamp, catalog.TimestampTZ:
		return "'2026-01-31 14:30:00'"
	case catalog.UUID:
		return "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"
	case catalog.Binary:
		return `'\x00ff'`
	case catalog.List:
		return ""
	}
	return ""
}
