package torture

import "strings"

// Type is one Postgres type with the values to be tried.
type Type struct {
	SQL  string // as a column declares it
	Lake string // the Iceberg type that is documented for it
	// Values are texts that the type's input function takes. NULL is added.
	Values []string
	// Setup makes the type, when it is not built in.
	Setup string
	// Extension must be installable for the type to be there.
	Extension string
	// Since is the first major version of Postgres that has the type; 0: any.
	Since int
	// ArrayText says that an array of the type is text in the lake, not a list.
	ArrayText bool
}

func values(v ...string) []string { return v }

// ascii is every byte that a text can hold.
func ascii() string {
	var b strings.Builder
	for c := byte(1); c < 128; c++ {
		b.WriteByte(c)
	}
	return b.String()
}

func hexOfEveryByte() string {
	const digits = "0123456789abcdef"
	out := []byte(`\x`)
	for c := range 256 {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

var nines = strings.Repeat("9", 38)

// Types lists them all.
func Types() []Type {
	all := numbers()
	all = append(all, texts()...)
	all = append(all, times()...)
	all = append(all, documents()...)
	all = append(all, internals()...)
	return append(all, made()...)
}

func numbers() []Type {
	return []Type{
		{SQL: "boolean", Lake: "boolean", Values: values("t", "f")},
		{SQL: "smallint", Lake: "int", Values: values("-32768", "32767", "0", "-1")},
		{SQL: "integer", Lake: "int", Values: values("-2147483648", "2147483647", "0", "-1")},
		{SQL: "bigint", Lake: "long", Values: values("-9223372036854775808", "9223372036854775807", "0", "9007199254740993")},
		{SQL: "real", Lake: "float", Values: values("0", "-0", "1e-45", "-1e-45", "1.17549435e-38", "3.4028235e38", "-3.4028235e38", "NaN", "Infinity", "-Infinity", "0.1", "16777217")},
		{SQL: "double precision", Lake: "double", Values: values("0", "-0", "5e-324", "-5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "-1.7976931348623157e308", "NaN", "Infinity", "-Infinity", "0.1", "1e23", "9007199254740993", "123456789012345680")},
		{SQL: "numeric", Lake: "string", Values: values("0", "-0.0000", "1.50", "1e100", "-1e-100", "NaN", "Infinity", "-Infinity", nines+nines+".5", "0.00000000000000000000000000000000000000000000000000001")},
		{SQL: "numeric(12,2)", Lake: "decimal(12, 2)", Values: values("0", "-0.01", "9999999999.99", "-9999999999.99", "NaN", "0.005", "12.5")},
		{SQL: "numeric(1,0)", Lake: "decimal(1, 0)", Values: values("0", "9", "-9", "NaN")},
		{SQL: "numeric(18,18)", Lake: "decimal(18, 18)", Values: values("0", "0.999999999999999999", "-0.000000000000000001", "NaN")},
		{SQL: "numeric(19,0)", Lake: "decimal(19, 0)", Values: values("0", "9999999999999999999", "-9999999999999999999", "NaN")},
		{SQL: "numeric(38,0)", Lake: "decimal(38, 0)", Values: values("0", nines, "-"+nines, "NaN", "-1")},
		{SQL: "numeric(38,10)", Lake: "decimal(38, 10)", Values: values("0", nines[:28]+"."+nines[:10], "-"+nines[:28]+"."+nines[:10], "NaN", "1.1", "-0.0000000001")},
		{SQL: "numeric(38,38)", Lake: "decimal(38, 38)", Values: values("0", "0."+nines, "-0."+nines, "NaN")},
		{SQL: "numeric(39,0)", Lake: "string", Values: values("0", "9"+nines, "-9"+nines, "NaN")},
		{SQL: "numeric(50,2)", Lake: "string", Values: values("0", nines+nines[:10]+".99", "-0.01", "NaN")},
		{SQL: "numeric(3,5)", Lake: "decimal(5, 5)", Since: 15, Values: values("0", "0.00123", "-0.00999", "NaN")},
		{SQL: "numeric(5,-2)", Lake: "decimal(7, 0)", Since: 15, Values: values("0", "12345", "9999949", "-9999900", "49", "NaN")},
		{SQL: "numeric(30,-9)", Lake: "string", Since: 15, Values: values("0", nines[:30]+"000000000", "-5000000000", "NaN")},
		{SQL: "numeric(3,40)", Lake: "string", Since: 15, Values: values("0", "0.0000000000000000000000000000000000000999", "NaN")},
		{SQL: "money", Lake: "string", Values: values("0", "-92233720368547758.08", "92233720368547758.07", "-0.01", "1234.5")},
	}
}

func texts() []Type {
	odd := values("", " ", "NULL", "null", "Zürich", "😀", "e\u0301", "שלום", `"`, `\`, `{}`, "a,b", "'", "\t\n\r\v\f", "__debezium_unavailable_value", "\\N", "\ufeff\uffff\U0010ffff", ascii())
	return []Type{
		{SQL: "text", Lake: "string", Values: append(odd, strings.Repeat("long ", 3000))},
		{SQL: "varchar", Lake: "string", Values: odd},
		{SQL: "varchar(7)", Lake: "string", Values: values("", "1234567", "üüüüüüü", "a  ")},
		{SQL: "char(8)", Lake: "string", Values: values("", "abc", "üü", "12345678", " x")},
		{SQL: "char", Lake: "string", Values: values("", "x", "ü")},
		{SQL: `"char"`, Lake: "string", Values: values("", "x", " ", `"`, `\`)},
		{SQL: "name", Lake: "string", Values: values("", "x y", strings.Repeat("n", 63), `"quoted"`)},
		{SQL: "bytea", Lake: "binary", Values: values(`\x`, `\x00`, `\xff00fe`, `\x5c78`, hexOfEveryByte())},
		{SQL: "bit(1)", Lake: "string", Values: values("0", "1")},
		{SQL: "bit(70)", Lake: "string", Values: values(strings.Repeat("0", 70), strings.Repeat("10", 35))},
		{SQL: "bit varying", Lake: "string", Values: values("", "0", "0010", strings.Repeat("1", 70))},
		{SQL: "bit varying(5)", Lake: "string", Values: values("", "10101")},
		{SQL: "uuid", Lake: "uuid", Values: values("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")},
	}
}

func times() []Type {
	dates := values("4714-11-24 BC", "5874897-12-31", "0001-12-31 BC", "0044-03-15 BC", "0001-01-01", "1582-10-10", "1752-09-05", "1900-02-28", "1969-12-31", "1970-01-01", "2000-02-29", "9999-12-31", "10000-01-01", "infinity", "-infinity")
	stamps := values("4714-11-24 00:00:00 BC", "294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808", "294276-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC", "0001-12-31 23:59:59.999999 BC",
		"0001-01-01 00:00:00", "1582-10-10 12:00:00", "1677-09-21 00:12:43", "1883-11-18 12:03:58", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2026-03-08 02:30:00", "2026-11-01 01:30:00.5", "2262-04-11 23:47:16.854776", "9999-12-31 23:59:59.999999", "infinity", "-infinity")
	spans := values("0", "1 year 2 mons 3 days 04:05:06.789", "-1 year 2 mons -3 days 04:05:06", "1 mon -1 day", "-1 mon 1 day -00:00:00.000001", "178956970 years 7 mons 2147483647 days", "-178956970 years -8 mons -2147483648 days", "2562047788:00:54.775807", "-2562047788:00:54.775807", "36:00:00", "1 day")
	return []Type{
		{SQL: "date", Lake: "date", Values: dates},
		{SQL: "time", Lake: "time", Values: values("00:00:00", "23:59:59.999999", "24:00:00", "12:00:00.5", "00:00:00.000001")},
		{SQL: "time(0)", Lake: "time", Values: values("00:00:00", "23:59:59", "24:00:00")},
		{SQL: "timetz", Lake: "string", Values: values("00:00:00+15:59", "24:00:00-15:59", "23:59:59.999999-08:30:15", "12:34:56.5+00", "24:00:00+00")},
		{SQL: "timestamp", Lake: "timestamp", Values: stamps},
		{SQL: "timestamp(0)", Lake: "timestamp", Values: values("2026-01-01 00:00:00.5", "infinity")},
		{SQL: "timestamptz", Lake: "timestamptz", Values: append(stamps, "2026-01-01 00:00:00+14", "2026-01-01 00:00:00-12:30")},
		{SQL: "timestamptz(3)", Lake: "timestamptz", Values: values("2026-01-01 00:00:00.0005+00", "-infinity")},
		{SQL: "interval", Lake: "string", Values: spans},
		{SQL: "interval year to month", Lake: "string", Values: values("0", "-1-2", "178956970-7")},
		{SQL: "interval day to second(3)", Lake: "string", Values: values("0", "3 04:05:06.7895", "-1 day 2 hours")},
	}
}
