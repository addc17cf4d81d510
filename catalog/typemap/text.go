package typemap

import "github.com/lakeweir/lakeweir/catalog"

// SessionSettings are what a Postgres session must have for its text to be what
// Decode reads and AppendText writes.
var SessionSettings = map[string]string{
	"DateStyle":          "ISO, MDY",
	"IntervalStyle":      "postgres",
	"TimeZone":           "UTC",
	"extra_float_digits": "3",
	"bytea_output":       "hex",
	"client_encoding":    "UTF8",
}

// AppendText appends the text that Postgres prints for a value of type t, held as
// Decode returns it, under SessionSettings.
func AppendText(dst []byte, t catalog.Type, fixed int64, bytes []byte) []byte {
	return append(dst, bytes...)
}
