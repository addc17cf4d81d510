package change

import (
	"encoding/binary"
	"errors"
)

// A key is the encoding of a row's key columns in key order: eight big-endian
// bytes for a fixed type, else a uvarint length and the bytes. Two rows have the
// same key exactly when the encodings are equal. It has no useful order.

// Errors of AppendKey.
var (
	ErrKeyAbsent = errors.New("the change does not carry every key column")
	ErrKeyNull   = errors.New("a key column is NULL")
)

// AppendKey appends the key of a row to dst. It fails with ErrKeyNull or
// ErrKeyAbsent when a key column has no value; dst is then returned as it was.
func (r *Rows) AppendKey(dst []byte, row int) ([]byte, error) {
	n := len(dst)
	for _, col := range r.schema.Key {
		switch r.Mark(row, col) {
		case Present, Filled:
		case Null, Unfit:
			return dst[:n], ErrKeyNull
		case Absent, Unavailable:
			return dst[:n], ErrKeyAbsent
		}
		if r.cols[col].isFixed {
			dst = binary.BigEndian.AppendUint64(dst, uint64(r.Fixed(row, col)))
			continue
		}
		v := r.Bytes(row, col)
		dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
	}
	return dst, nil
}
