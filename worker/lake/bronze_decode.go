package lake

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/columnar"
)

// decoder reads changes out of one record.
type decoder struct {
	layer                                         *layer
	op                                            *array.String
	before, after, other                          structImages
	unavailable, unfit                            arrow.Array
	lsn, tx, commit, ordinal, gen, ts, full, late func(int) int64
}

// structImages is one struct column.
type structImages struct {
	arr    *array.Struct
	fields []int // the struct's field for each column of the schema, or -1
	named  func(name string) (int, bool)
}

func (r *eventReader) decoder(rec record) (*decoder, error) {
	d := &decoder{layer: r.layer, unavailable: rec.columns[r.own.ids[colUnavailable]], unfit: rec.columns[r.own.ids[colUnfit]]}
	var ok bool
	if d.op, ok = rec.columns[r.own.ids[colOp]].(*array.String); !ok {
		return nil, fmt.Errorf("column %s is not text", colOp)
	}
	var errs []error
	ints := func(name string, t catalog.Type) func(int) int64 {
		f, err := r.own.ints(rec, name, t)
		errs = append(errs, err)
		return f
	}
	d.lsn, d.tx, d.commit, d.ordinal = ints(colLSN, typeLong), ints(colTxID, typeLong), ints(colCommitLSN, typeLong), ints(colOrdinal, typeLong)
	d.gen, d.ts, d.full = ints(colGeneration, typeInt), ints(colSourceTS, typeInstant), ints(colBeforeComplete, typeBool)
	d.late = ints(colLate, typeLong)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d.before = r.structOf(rec, colBefore, r.layer.schema)
	d.after = r.structOf(rec, colAfter, r.layer.schema)
	d.other = r.structOf(rec, colOtherKey, r.layer.schema)
	return d, nil
}

// structOf finds the fields of a struct, for the columns of a schema, by their ids:
// other writers change names that Avro would not allow.
func (r *eventReader) structOf(rec record, name string, schema *catalog.Schema) structImages {
	arr, ok := rec.columns[r.layer.field(name)].(*array.Struct)
	if !ok {
		return structImages{}
	}
	st, ok := arr.DataType().(*arrow.StructType)
	if !ok {
		return structImages{}
	}
	byID := map[int]int{}
	for i, f := range st.Fields() {
		byID[fieldID(f)] = i
	}
	byName := map[string]int{}
	if f, ok := topField(r.layer.tbl.Schema(), name); ok {
		if inner, ok := f.Type.(*iceberg.StructType); ok {
			for _, f := range inner.FieldList {
				if i, ok := byID[f.ID]; ok {
					byName[f.Name] = i
				}
			}
		}
	}
	s := structImages{arr: arr, fields: make([]int, len(schema.Columns))}
	ids := make([]int, len(schema.Columns))
	for i, c := range schema.Columns {
		s.fields[i] = -1
		if n, ok := byName[c.Name]; ok {
			s.fields[i], ids[i] = n, fieldID(st.Field(n))
		}
	}
	s.named = r.layer.namesIn(st.Fields(), ids)
	return s
}

// rows adds the images at the indexes sel to rows and returns, for each, its row or
// -1 when there is none. missing is the mark of columns that the struct lacks.
func (s structImages) rows(rows *change.Rows, sel []int, missing change.Mark) ([]int, error) {
	out := make([]int, len(sel))
	var have []int
	first := rows.Len()
	for k, i := range sel {
		out[k] = -1
		if s.arr != nil && !s.arr.IsNull(i) {
			out[k] = rows.Add()
			have = append(have, i)
		}
	}
	if len(have) == 0 {
		return out, nil
	}
	for col, f := range s.fields {
		if f < 0 {
			for k := range have {
				rows.SetMark(first+k, col, missing)
			}
			continue
		}
		if err := columnar.Fill(rows, first, col, s.arr.Field(f), have); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *decoder) position(i int) catalog.Position {
	return stampPosition(d.gen(i), d.commit(i), d.ordinal(i))
}

// append adds the changes at the indexes sel to a batch.
func (d *decoder) append(b *change.Batch, sel []int) error {
	before, err1 := d.before.rows(b.Rows, sel, change.Null)
	after, err2 := d.after.rows(b.Rows, sel, change.Null)
	other, err3 := d.other.rows(b.Rows, sel, change.Absent)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	for k, i := range sel {
		c := change.Change{
			Before: before[k], After: after[k], Other: other[k],
			Position: d.position(i), LSN: catalog.LSN(d.lsn(i)), TxID: uint64(d.tx(i)), CommitTime: d.ts(i),
		}
		if s := d.op.Value(i); len(s) == 1 {
			c.Op = change.Op(s[0])
		}
		if err := d.finish(b.Rows, &c, i); err != nil {
			return err
		}
		for _, row := range []int{c.Before, c.After} {
			if row >= 0 {
				d.layer.fills.apply(0, b.Rows, row, c.Position)
			}
		}
		b.Changes = append(b.Changes, c)
	}
	return nil
}

// finish puts back a change's marks and keys.
func (d *decoder) finish(rows *change.Rows, c *change.Change, i int) (err error) {
	if c.Before >= 0 && d.full(i) == 0 {
		for col := range d.layer.schema.Columns {
			if !d.layer.schema.IsKey(col) {
				rows.SetMark(c.Before, col, change.Absent)
			}
		}
	}
	image, from := c.After, d.after
	if image < 0 {
		image, from = c.Before, d.before
	}
	if image >= 0 {
		from.mark(rows, image, d.unavailable, i, change.Unavailable)
		from.mark(rows, image, d.unfit, i, change.Unfit)
	}
	if len(d.layer.schema.Key) == 0 || c.Op == change.Truncate {
		return nil
	}
	if image < 0 {
		return fmt.Errorf("the change at %s has no image", c.Position)
	}
	if c.Key, err = rows.AppendKey(nil, image); err != nil {
		return fmt.Errorf("key of the change at %s: %w", c.Position, err)
	}
	if c.Other >= 0 {
		if c.OtherKey, err = rows.AppendKey(nil, c.Other); err != nil {
			return fmt.Errorf("other key of the change at %s: %w", c.Position, err)
		}
	}
	return nil
}

// mark gives a mark to the columns that a cell of a list names.
func (s structImages) mark(rows *change.Rows, row int, names arrow.Array, i int, m change.Mark) {
	if names == nil || names.IsNull(i) || s.named == nil {
		return
	}
	for _, n := range appendNames(nil, names, i) {
		if col, ok := s.named(n); ok {
			rows.SetMark(row, col, m)
		}
	}
}
