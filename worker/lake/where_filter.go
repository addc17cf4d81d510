package lake

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// filter turns conditions into Iceberg's expression.
func (v *View) filter(conditions []Condition) (iceberg.BooleanExpression, error) {
	var out iceberg.BooleanExpression = iceberg.AlwaysTrue{}
	for _, c := range conditions {
		e, err := v.condition(c)
		if err != nil {
			return nil, err
		}
		out = iceberg.NewAnd(out, e)
	}
	return out, nil
}

func (v *View) condition(c Condition) (iceberg.BooleanExpression, error) {
	var column *viewColumn
	for i := range v.columns {
		if v.columns[i].Name == c.Column {
			column = &v.columns[i]
		}
	}
	if column == nil {
		e := v.noColumn(c.Column)
		return nil, whereFault(c.where, c.at, e.Hint, "%s", e.Message)
	}
	ref := iceberg.Reference(column.Name)
	switch c.Compare {
	case IsNull:
		return iceberg.IsNull(ref), nil
	case IsNotNull:
		return iceberg.NotNull(ref), nil
	case Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual:
	}
	literal, ok := literalOf(column.Type, c.Value)
	if !ok {
		if column.Type.Kind == 0 || column.Type.Kind == catalog.List {
			return nil, whereFault(c.where, c.at, "compare another column, or use IS NULL", "a column of type %s cannot be compared with a value", column.Type)
		}
		return nil, whereFault(c.where, c.valueAt, "write it as in "+c.Column+" "+string(c.Compare)+" "+example(column.Type), "%q is not a value of column %q, which is %s", c.Value, c.Column, column.Type)
	}
	ops := map[Comparison]iceberg.Operation{
		Equal: iceberg.OpEQ, NotEqual: iceberg.OpNEQ, Less: iceberg.OpLT, LessOrEqual: iceberg.OpLTEQ, Greater: iceberg.OpGT, GreaterOrEqual: iceberg.OpGTEQ,
	}
	return iceberg.LiteralPredicate(ops[c.Compare], ref, literal), nil
}

// literalOf reads a value as it is written in a condition.
func literalOf(t catalog.Type, text string) (iceberg.Literal, bool) {
	switch t.Kind { //nolint:exhaustive // the others are written as they print
	case catalog.Text:
		return iceberg.NewLiteral(text), true
	case catalog.Bool:
		switch strings.ToLower(text) {
		case "t", "true":
			return iceberg.NewLiteral(true), true
		case "f", "false":
			return iceberg.NewLiteral(false), true
		}
		return nil, false
	case catalog.Timestamp, catalog.TimestampTZ:
		text = instantText(text, t.Kind == catalog.TimestampTZ)
	}
	fixed, value, err := typemap.Decode(t, []byte(text), nil)
	if err != nil {
		return nil, false
	}
	switch t.Kind { //nolint:exhaustive // lists cannot be compared, texts and booleans were
	case catalog.Int32:
		return iceberg.NewLiteral(int32(fixed)), true
	case catalog.Int64:
		return iceberg.NewLiteral(fixed), true
	case catalog.Float32:
		return iceberg.NewLiteral(math.Float32frombits(uint32(fixed))), true
	case catalog.Float64:
		return iceberg.NewLiteral(math.Float64frombits(uint64(fixed))), true
	case catalog.Decimal:
		n := decimal128.FromI64(fixed)
		if !t.Fixed() {
			n = decimal128.New(int64(binary.BigEndian.Uint64(value)), binary.BigEndian.Uint64(value[8:]))
		}
		return iceberg.NewLiteral(iceberg.Decimal{Val: n, Scale: t.Scale}), true
	case catalog.Date:
		return iceberg.NewLiteral(iceberg.Date(fixed)), true
	case catalog.Time:
		return iceberg.NewLiteral(iceberg.Time(fixed)), true
	case catalog.Timestamp, catalog.TimestampTZ:
		return iceberg.NewLiteral(iceberg.Timestamp(fixed)), true
	case catalog.UUID:
		return iceberg.NewLiteral(uuid.UUID(value)), true
	case catalog.Binary:
		return iceberg.NewLiteral(value), true
	}
	return nil, false
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
