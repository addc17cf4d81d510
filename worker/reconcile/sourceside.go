package reconcile

import (
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// Masking replaces the text of a personal column as it is replaced in the lake.
type Masking interface {
	Append(dst []byte, p catalog.Protection, text []byte) ([]byte, error)
}

// expectation turns the source's rows into what the lake should show: values that
// have no place in the lake's type are NULL, personal columns are masked. All else
// is the server's text, as it is.
type expectation struct {
	columns []expectedColumn
	masking Masking
	unfit   []int64 // by column
	arena   []byte
	scratch []byte
	row     rowText
}

type expectedColumn struct {
	name       string
	typ        catalog.Type // before masking
	mayBeUnfit bool
	protection catalog.Protection // "" for most
}

func newExpectation(table *catalog.Table, columns []sourceColumn, masking Masking) *expectation {
	e := &expectation{masking: masking, unfit: make([]int64, len(columns))}
	for _, c := range columns {
		e.columns = append(e.columns, expectedColumn{name: c.name, typ: c.typ, mayBeUnfit: mayBeUnfit(c.typ), protection: table.PII[c.name]})
	}
	return e
}

func mayBeUnfit(t catalog.Type) bool {
	switch t.Kind {
	case catalog.Text, catalog.Decimal, catalog.Date, catalog.Time, catalog.Timestamp, catalog.TimestampTZ, catalog.List:
		return true
	case catalog.Bool, catalog.Int32, catalog.Int64, catalog.Float32, catalog.Float64, catalog.UUID, catalog.Binary:
		return false
	}
	return false
}

// of returns what the lake should show of a row, until the next call. What did not
// fit is counted by count.
func (e *expectation) of(source rowText) (rowText, error) {
	e.row = append(e.row[:0], source...)
	e.arena = e.arena[:0]
	for i := range e.columns {
		c := &e.columns[i]
		text := source[i]
		if text == nil || !c.mayBeUnfit && c.protection == "" {
			continue
		}
		if c.mayBeUnfit {
			_, value, err := typemap.Decode(c.typ, text, e.scratch)
			if c.typ.Kind != catalog.Text {
				e.scratch = value
			}
			if errors.Is(err, typemap.ErrUnfit) {
				e.row[i] = nil
				continue
			}
		}
		if c.protection == "" {
			continue
		}
		start := len(e.arena)
		var err error
		if e.arena, err = e.masking.Append(e.arena, c.protection, text); err != nil {
			return nil, err
		}
		// An arena that grows leaves earlier texts where they are.
		e.row[i] = e.arena[start:len(e.arena):len(e.arena)]
	}
	return e.row, nil
}

// count notes which values of the row that of was given last did not fit.
func (e *expectation) count(source rowText) {
	for i, text := range source {
		if text != nil && e.row[i] == nil {
			e.unfit[i]++
		}
	}
}
