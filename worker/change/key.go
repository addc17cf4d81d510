package change

import (
	"encoding/binary"
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// A key is the encoding of a row's key columns in key order: eight big-endian
// bytes for a fixed type, else a uvarint length and the bytes, each value in the
// form that all share which the source holds equal to it (typemap.KeyForm): 1.0
// and 1.00 are one key. Two rows have the same key exactly when the encodings are
// equal. It has no useful order.

// Errors of AppendKey.
var (
	ErrKeyAbsent = errors.New("the change does not carry every key column")
	ErrKeyNull   = errors.New("a key column is NULL")
	ErrKeyUnfit  = errors.New("the value of a key column has no place in the lake's type")
)

// AppendKey appends the key of a row to dst. It fails with ErrKeyNull, ErrKeyUnfit
// or ErrKeyAbsent when a key column has no value; dst is then returned as it was.
func (r *Rows) AppendKey(dst []byte, row int) ([]byte, error) {
	n := len(dst)
	for _, col := range r.schema.Key {
		switch r.Mark(row, col) {
		case Present, Filled:
		case Null:
			return dst[:n], ErrKeyNull
		case Unfit:
			return dst[:n], ErrKeyUnfit
		case Absent, Unavailable:
			return dst[:n], ErrKeyAbsent
		}
		c := &r.cols[col]
		if c.isFixed {
			v := c.fixed[row]
			if c.keyForm == typemap.KeyFloat {
				v = typemap.KeyFixed(r.schema.Columns[col].Type.Kind, v)
			}
			dst = binary.BigEndian.AppendUint64(dst, uint64(v))
			continue
		}
		v := r.Bytes(row, col)
		if c.keyForm > typemap.KeyFloat {
			var buf [48]byte
			v = typemap.KeyText(c.keyForm, v, buf[:])
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
	}
	return dst, nil
}

// KeyExact reports whether a key column's part of a key is the value just as the lake
// holds it.
func KeyExact(c *catalog.Column) bool {
	f := keyForm(c)
	return f == typemap.KeyExact || f == typemap.KeySpelled
}

// keyForm is the form of a key column's values as the lake holds them. One that is
// not of the lake's type for its source is masked: a token is only itself.
func keyForm(c *catalog.Column) typemap.KeyForm {
	if !typemap.Postgres(c.Source).Equal(c.Type) {
		return typemap.KeyExact
	}
	return typemap.KeyFormOf(c.Source)
}
