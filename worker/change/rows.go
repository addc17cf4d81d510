package change

import (
	"bytes"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// Mark says what a cell holds.
type Mark uint8

// The marks; a new cell is Absent.
const (
	Absent      Mark = iota // not sent: a column outside a key-only before image
	Null                    // NULL at the source
	Present                 // a value
	Unavailable             // a large value that did not change and was not sent
	Filled                  // was Unavailable; the value that held at this point was put in
	Unfit                   // NULL in the lake because the source's value has no place in the column's type; counted
)

// Large is from how many bytes on a value is kept apart from the others: it is
// shared between stores instead of copied, and never moved.
const Large = 1 << 20

// Rows stores row images of one schema, column by column. Rows are numbered from
// 0 in the order they were added. Not safe for concurrent use while written.
type Rows struct {
	schema *catalog.Schema
	cols   []cells
	n      int
	size   int
	each   int // size of a row without the bytes of its values
}

type cells struct {
	marks []Mark
	fixed []int64 // of fixed types, by row
	// start and end are of the others, by row: the value's place in bytes, or in
	// large when start says isLarge.
	start, end []uint64
	bytes      []byte
	large      [][]byte
	longest    int // value
	isFixed    bool
	keyForm    typemap.KeyForm // of a key column
}

// isLarge marks a start that is an index in large.
const isLarge = 1 << 63

// NewRows returns an empty store for rows of the schema.
func NewRows(schema *catalog.Schema) *Rows {
	r := &Rows{schema: schema, cols: make([]cells, len(schema.Columns))}
	for i, c := range schema.Columns {
		if r.cols[i].isFixed = c.Type.Fixed(); r.cols[i].isFixed {
			r.each += 9
		} else {
			r.each += 17
		}
	}
	for _, i := range schema.Key {
		r.cols[i].keyForm = keyForm(&schema.Columns[i])
	}
	return r
}

// Schema returns the schema the rows are of.
func (r *Rows) Schema() *catalog.Schema { return r.schema }

// Len returns how many rows there are.
func (r *Rows) Len() int { return r.n }

// Size returns about how many bytes the rows take in memory.
func (r *Rows) Size() int { return r.size }

// Add appends a row whose cells are all Absent and returns its number.
func (r *Rows) Add() int {
	for i := range r.cols {
		c := &r.cols[i]
		c.marks = append(c.marks, Absent)
		if c.isFixed {
			c.fixed = append(c.fixed, 0)
		} else {
			c.start = append(c.start, 0)
			c.end = append(c.end, 0)
		}
	}
	r.n++
	r.size += r.each
	return r.n - 1
}

// AddMany appends n rows whose cells are all Absent and returns the number of the
// first.
func (r *Rows) AddMany(n int) int {
	first := r.n
	for i := range r.cols {
		c := &r.cols[i]
		c.marks = append(c.marks, make([]Mark, n)...)
		if c.isFixed {
			c.fixed = append(c.fixed, make([]int64, n)...)
		} else {
			c.start = append(c.start, make([]uint64, n)...)
			c.end = append(c.end, make([]uint64, n)...)
		}
	}
	r.n += n
	r.size += n * r.each
	return first
}

// SetMark gives the cell a mark and no value.
func (r *Rows) SetMark(row, col int, m Mark) { r.cols[col].marks[row] = m }

// SetFixed stores a value of a fixed type.
func (r *Rows) SetFixed(row, col int, v int64) {
	c := &r.cols[col]
	c.marks[row] = Present
	c.fixed[row] = v
}

// SetBytes stores a copy of a value of a type that is not fixed.
func (r *Rows) SetBytes(row, col int, v []byte) {
	if len(v) >= Large {
		v = bytes.Clone(v)
	}
	r.SetShared(row, col, v)
}

// SetShared stores a value as SetBytes does, save that a large one is kept as it is,
// not copied: it must never change.
func (r *Rows) SetShared(row, col int, v []byte) {
	c := &r.cols[col]
	c.marks[row] = Present
	c.longest = max(c.longest, len(v))
	r.size += len(v)
	if len(v) >= Large {
		c.start[row], c.end[row] = isLarge|uint64(len(c.large)), 0
		c.large = append(c.large, slices.Clip(v))
		return
	}
	c.start[row] = uint64(len(c.bytes))
	c.bytes = append(c.bytes, v...)
	c.end[row] = uint64(len(c.bytes))
}

// Longest returns the length of the longest value that was stored in a column; 0 for
// a fixed type.
func (r *Rows) Longest(col int) int { return r.cols[col].longest }

// HasLarge reports whether a value was stored that is Large.
func (r *Rows) HasLarge() bool {
	for i := range r.cols {
		if len(r.cols[i].large) > 0 {
			return true
		}
	}
	return false
}

// RowSize returns about how many bytes one row takes in memory.
func (r *Rows) RowSize(row int) int {
	n := r.each
	for i := range r.cols {
		if !r.cols[i].isFixed {
			n += len(r.Bytes(row, i))
		}
	}
	return n
}

// Mark returns what the cell holds.
func (r *Rows) Mark(row, col int) Mark { return r.cols[col].marks[row] }

// HasValue reports whether the cell holds a value, be it sent or filled in.
func (r *Rows) HasValue(row, col int) bool {
	m := r.cols[col].marks[row]
	return m == Present || m == Filled
}

// Fixed returns the value of a cell of a fixed type; 0 when it has none.
func (r *Rows) Fixed(row, col int) int64 { return r.cols[col].fixed[row] }

// Bytes returns the value of a cell of a type that is not fixed. It is shared,
// not a copy: do not change it.
func (r *Rows) Bytes(row, col int) []byte {
	c := &r.cols[col]
	if c.start[row]&isLarge != 0 {
		return c.large[c.start[row]&^isLarge]
	}
	return c.bytes[c.start[row]:c.end[row]:c.end[row]]
}

// Fill puts the value of another row into a cell whose mark is Unavailable, and
// marks it Filled, or leaves it when the other cell has nothing to give. Both
// columns must have one type. A NULL there is filled in as Null.
func (r *Rows) Fill(row, col int, from *Rows, fromRow, fromCol int) {
	switch from.Mark(fromRow, fromCol) {
	case Present, Filled:
		r.copyCell(row, col, from, fromRow, fromCol)
		r.cols[col].marks[row] = Filled
	case Null:
		r.cols[col].marks[row] = Null
	case Unfit:
		r.cols[col].marks[row] = Unfit
	case Absent, Unavailable:
	}
}

// Copy copies a cell with its mark. Both columns must have one type.
func (r *Rows) Copy(row, col int, from *Rows, fromRow, fromCol int) {
	m := from.Mark(fromRow, fromCol)
	if m == Present || m == Filled {
		r.copyCell(row, col, from, fromRow, fromCol)
	}
	r.cols[col].marks[row] = m
}

func (r *Rows) copyCell(row, col int, from *Rows, fromRow, fromCol int) {
	if r.cols[col].isFixed {
		r.SetFixed(row, col, from.Fixed(fromRow, fromCol))
		return
	}
	if from == r && col == fromCol { // share the bytes
		c := &r.cols[col]
		c.start[row], c.end[row] = c.start[fromRow], c.end[fromRow]
		c.marks[row] = Present
		return
	}
	r.SetShared(row, col, from.Bytes(fromRow, fromCol))
}

// CopyRow appends a copy of a row of a store with the same columns and returns
// its number.
func (r *Rows) CopyRow(from *Rows, fromRow int) int {
	row := r.Add()
	for col := range r.cols {
		r.Copy(row, col, from, fromRow, col)
	}
	return row
}

// Equal reports whether two cells of one type show the same in the lake: NULL
// equals NULL, and whatever has no value is NULL.
func Equal(a *Rows, aRow int, b *Rows, bRow, col int) bool {
	av, bv := a.HasValue(aRow, col), b.HasValue(bRow, col)
	if !av || !bv {
		return av == bv
	}
	if a.cols[col].isFixed {
		return a.Fixed(aRow, col) == b.Fixed(bRow, col)
	}
	return bytes.Equal(a.Bytes(aRow, col), b.Bytes(bRow, col))
}

// Count returns how many cells of a column have a mark.
func (r *Rows) Count(col int, m Mark) int {
	n := 0
	for _, mark := range r.cols[col].marks {
		if mark == m {
			n++
		}
	}
	return n
}
