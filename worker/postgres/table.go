package postgres

import (
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// place is a position without its generation: the order in which one table's
// changes come, whatever reading they belong to.
type place struct {
	commit  catalog.LSN
	ordinal uint64
}

func (p place) after(o place) bool {
	return p.commit > o.commit || p.commit == o.commit && p.ordinal > o.ordinal
}

// table is one table that is being read.
type table struct {
	cfg    *catalog.Table
	name   string
	oid    uint32
	schema *catalog.Schema
	// deferred says that rows may share the key until their transaction ends.
	deferred bool
	// wire is how relation messages describe the columns, fields how results do:
	// they look through domains.
	wire, fields []wireColumn

	generation uint32
	last       place // of the newest change decoded, or the cursor
	read       place // of the newest row read
	// floor is a place in the log that the first reading is surely beyond: what
	// committed before it is not handed over.
	floor catalog.LSN
	batch *builder // to be handed over; nil when empty
	snap  *snapshot
	// rereads is what is to be read again by key.
	rereads rereads
	// seen are transactions whose changes were handed over, or dropped, and that a
	// reader may not see yet.
	seen seenXIDs
	// window is open while a chunk is read.
	window  *window
	stopped bool // by a fault
	// park keeps what comes while the table cannot go on; nil while it can.
	park *parking
	// late is told when the log does not; nil when there is nothing to tell.
	late  *lateShape
	shape shape

	buf []byte // for Decode
	// lasting says that texts given to set are never changed, so that large ones need
	// no copy.
	lasting bool
}

// into returns where the table's next change goes.
func (t *table) into() *builder {
	if t.window != nil {
		return t.window.held
	}
	if t.batch == nil {
		t.batch = newBuilder(t.schema)
	}
	return t.batch
}

func (t *table) at(p catalog.LSN) string { return t.cfg.ID() + " at " + p.String() }

// set stores a value from its text. It fails when the text cannot be read.
func (t *table) set(rows *change.Rows, row, col int, text []byte) error {
	typ := t.schema.Columns[col].Type
	fixed, bytes, err := typemap.Decode(typ, text, t.buf)
	if err != nil {
		rows.SetMark(row, col, change.Unfit)
		if isUnfit(err) {
			return nil
		}
		return &valueError{column: t.schema.Columns[col], err: err}
	}
	if typ.Fixed() {
		rows.SetFixed(row, col, fixed)
		return nil
	}
	switch {
	case typ.Kind == catalog.Text && !t.lasting:
		rows.SetBytes(row, col, bytes)
	case typ.Kind == catalog.Text:
		rows.SetShared(row, col, bytes)
	case len(bytes) >= change.Large: // too much to keep for the next value
		rows.SetShared(row, col, bytes)
		t.buf = nil
	default:
		rows.SetBytes(row, col, bytes)
		if cap(bytes) > cap(t.buf) {
			t.buf = bytes
		}
	}
	return nil
}

// valueError is a value that cannot be read; it does not show it.
type valueError struct {
	column catalog.Column
	err    error
}

func (e *valueError) Error() string {
	return fmt.Sprintf("column %s of type %s: %v", e.column.Name, e.column.Source.Name, e.err)
}

func (e *valueError) Unwrap() error { return e.err }

// keyText names a row for a message, when its key may be shown.
func (t *table) keyText(rows *change.Rows, row int) string {
	var out []byte
	if row < 0 {
		return ""
	}
	for _, col := range t.schema.Key {
		c := t.schema.Columns[col]
		if _, masked := t.cfg.PII[c.Name]; masked || !rows.HasValue(row, col) {
			return ""
		}
		if len(out) > 0 {
			out = append(out, ", "...)
		}
		out = append(append(out, c.Name...), " = "...)
		out = appendValue(out, rows, row, col)
		if len(out) > 200 {
			return ""
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (row " + string(out) + ")"
}

// appendValue prints a cell as the server does.
func appendValue(dst []byte, rows *change.Rows, row, col int) []byte {
	typ := rows.Schema().Columns[col].Type
	if typ.Fixed() {
		return typemap.AppendText(dst, typ, rows.Fixed(row, col), nil)
	}
	return typemap.AppendText(dst, typ, 0, rows.Bytes(row, col))
}

// undecodable is the fault of a table with a value that cannot be read.
func (t *table) undecodable(rows *change.Rows, row int, at catalog.LSN, err error) *catalog.Error {
	e := catalog.Errorf(catalog.Internal, catalog.CodeDecode,
		"the change stays at the source; please report the column's type and the server's version",
		"a change cannot be read: %w%s", err, t.keyText(rows, row))
	e.At = t.at(at)
	return e
}
