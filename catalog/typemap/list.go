package typemap

import "encoding/binary"

// A List value is the concatenation of its elements, each a byte (0 for NULL, 1
// for a value) followed, for a value, by eight little-endian bytes when the
// element type is fixed, or by a uvarint length and the bytes when it is not.

// AppendElemNull appends a NULL element to a list.
func AppendElemNull(list []byte) []byte { return append(list, 0) }

// AppendElemFixed appends an element of a fixed type to a list.
func AppendElemFixed(list []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(append(list, 1), uint64(v))
}

// AppendElemBytes appends an element of a type that is not fixed to a list.
func AppendElemBytes(list, v []byte) []byte {
	return append(binary.AppendUvarint(append(list, 1), uint64(len(v))), v...)
}

// EachElem calls f for each element of a list in order: null, or the value in
// fixed or bytes as the element type has it.
func EachElem(list []byte, isFixed bool, f func(null bool, fixed int64, bytes []byte)) {
	for len(list) > 0 {
		null := list[0] == 0
		list = list[1:]
		switch {
		case null:
			f(true, 0, nil)
		case isFixed:
			f(false, int64(binary.LittleEndian.Uint64(list)), nil)
			list = list[8:]
		default:
			n, w := binary.Uvarint(list)
			f(false, 0, list[w:w+int(n)])
			list = list[w+int(n):]
		}
	}
}
