package lake

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

const (
	// propFills is a property of bronze: the fills of the table's columns, in the order
	// in which they came.
	propFills = "lakeweir.fills"
	// propFilled says, in a snapshot of current or history, which of those its rows have
	// the values of: it names the last.
	propFilled = "lakeweir.filled"
)

// A column that is added with a constant default gets its value in every row that is
// there, and nothing of it comes as a change. So bronze knows it as a fact about its
// changes, never as a value in them: whoever folds changes from before the place reads
// them with the value. Current's rows and history's open versions are written anew with
// it; versions that ended before never had it.

// fillDoc is a fill as propFills has it. The column is known by the id of its field in
// bronze's images after the change, whatever it is called.
type fillDoc struct {
	Field      int         `json:"field"`
	Value      string      `json:"value"`
	Float      bool        `json:"float,omitempty"` // it is a float, also where the column is a double by now
	Generation uint32      `json:"generation"`
	Commit     catalog.LSN `json:"commit"`
	Ordinal    uint64      `json:"ordinal"`
	Time       int64       `json:"time"`
}

func (d fillDoc) at() catalog.Position {
	return catalog.Position{Generation: d.Generation, Commit: d.Commit, Ordinal: d.Ordinal}
}

// decode returns the value as a column of the type has it.
func (d fillDoc) decode(t catalog.Type) (fixed int64, bytes []byte, err error) {
	if !d.Float || t.Kind != catalog.Float64 {
		return typemap.Decode(t, []byte(d.Value), nil)
	}
	fixed, _, err = typemap.Decode(catalog.Type{Kind: catalog.Float32}, []byte(d.Value), nil)
	return int64(math.Float64bits(float64(math.Float32frombits(uint32(fixed))))), nil, err
}

func readFillDocs(p iceberg.Properties) ([]fillDoc, error) {
	text := p[propFills]
	if text == "" {
		return nil, nil
	}
	var out []fillDoc
	return out, json.Unmarshal([]byte(text), &out)
}

// fills are a table's, shared by its layers.
type fills struct {
	text string // of propFills, as it was last read
	list []filling
}

// filling is a fill under a schema.
type filling struct {
	name   string
	column int // -1: one that the schema has not
	fixed  int64
	bytes  []byte
	at     catalog.Position
	time   int64
}

// load reads the fills that bronze tells of.
func (f *fills) load(schema *catalog.Schema, bronze *iceberg.Schema, p iceberg.Properties) error {
	if p[propFills] == f.text {
		return nil
	}
	docs, err := readFillDocs(p)
	if err != nil {
		return fmt.Errorf("property %s: %w", propFills, err)
	}
	after := structFields(bronze, colAfter)
	list := make([]filling, 0, len(docs))
	for _, d := range docs {
		one := filling{name: d.name(), column: -1, at: d.at(), time: d.Time}
		for name, id := range after {
			if id == d.Field {
				one.column = schema.Index(name)
			}
		}
		if one.column >= 0 {
			if one.fixed, one.bytes, err = d.decode(schema.Columns[one.column].Type); err != nil {
				return fmt.Errorf("property %s, column %q: %w", propFills, schema.Columns[one.column].Name, err)
			}
		}
		list = append(list, one)
	}
	f.text, f.list = p[propFills], list
	return nil
}

// structFields returns the ids of a top-level struct's fields by name.
func structFields(s *iceberg.Schema, name string) map[string]int {
	out := map[string]int{}
	if f, ok := topField(s, name); ok {
		if st, ok := f.Type.(*iceberg.StructType); ok {
			for _, inner := range st.FieldList {
				out[inner.Name] = inner.ID
			}
		}
	}
	return out
}

// name tells a fill from all others, for propFilled; two of one place are of different
// fields.
func (d fillDoc) name() string {
	return fmt.Sprintf("%d at %s", d.Field, d.at())
}

// through returns how many fills there are up to and including that of a name.
func (f *fills) through(name string) int {
	return 1 + slices.IndexFunc(f.list, func(one filling) bool { return one.name == name })
}

func (f *filling) set(rows *change.Rows, row int) {
	if rows.Schema().Columns[f.column].Type.Fixed() {
		rows.SetFixed(row, f.column, f.fixed)
		return
	}
	rows.SetBytes(row, f.column, f.bytes)
}

// apply gives a row of before the fills what it got by those after the first so many.
func (f *fills) apply(first int, rows *change.Rows, row int, at catalog.Position) {
	for i := first; i < len(f.list); i++ {
		if one := &f.list[i]; one.column >= 0 && at.Compare(one.at) < 0 && rows.Mark(row, one.column) == change.Null {
			one.set(rows, row)
		}
	}
}

// without returns the image without the values of fills that the row did not live to
// see; the image itself when there are none.
func (f *fills) without(img change.Ref, copies **change.Rows, gone func(one *filling) bool) change.Ref {
	for i := range f.list {
		one := &f.list[i]
		if one.column < 0 || !gone(one) || !img.Rows.HasValue(img.Row, one.column) {
			continue
		}
		if img.Rows != *copies {
			if *copies == nil {
				*copies = change.NewRows(img.Rows.Schema())
			}
			img = change.Ref{Rows: *copies, Row: (*copies).CopyRow(img.Rows, img.Row)}
		}
		img.Rows.SetMark(img.Row, one.column, change.Null)
	}
	return img
}

// trimCurrent takes the values out of a row that was deleted before it got them.
func (f *fills) trimCurrent(r fold.CurrentRow, copies **change.Rows) fold.CurrentRow {
	if r.Deleted {
		r.Image = f.without(r.Image, copies, func(one *filling) bool { return r.Stamp.Position.Compare(one.at) < 0 })
	}
	return r
}

// trimHistory takes the values out of a version that ended before it got them.
func (f *fills) trimHistory(v fold.Version, copies **change.Rows) fold.Version {
	if v.To != fold.Open {
		v.Image = f.without(v.Image, copies, func(one *filling) bool { return v.To <= one.time && v.Stamp.Position.Compare(one.at) < 0 })
	}
	return v
}

// trimmed returns the rows as they are shown.
func trimmed[Row any](f *fills, rows []Row, trim func(r Row, copies **change.Rows) Row) []Row {
	if len(f.list) == 0 {
		return rows
	}
	rows = slices.Clone(rows)
	var copies *change.Rows
	for i := range rows {
		rows[i] = trim(rows[i], &copies)
	}
	return rows
}
