package typemap

import "github.com/lakeweir/lakeweir/catalog"

// Decode reads the text that Postgres prints for a value of a type that Postgres
// maps to t, under the settings of SessionSettings. A value of a fixed type is
// returned in fixed; any other in bytes, which shares text when t is Text, and
// else is written over buf, which is grown when needed: keep it as the next buf,
// unless t is Text. The error is ErrUnfit or ErrMalformed, wrapped.
func Decode(t catalog.Type, text, buf []byte) (fixed int64, bytes []byte, err error) {
	return 0, text, nil
}
