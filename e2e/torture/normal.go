package torture

import "strings"

// Session is the SQL under which a session prints values as the documentation says
// that the lake has them.
const Session = "SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 1"

// Normal is an SQL expression of the column's value in the form that
// readers/normal.py has for what a reader of the lake sees; NULL for a value that
// has no place in the lake:
//
//	boolean                  true, false
//	int, long                the digits
//	float, double            the IEEE 754 bits in hexadecimal; nan
//	decimal(p, s)            the digits, with exactly s behind the point
//	date                     days since 1970-01-01
//	time                     microseconds since midnight
//	timestamp, timestamptz   microseconds since 1970-01-01 00:00 (UTC)
//	uuid                     in lower case, with dashes
//	binary                   hexadecimal
//	string                   itself
//	list<x>                  a JSON array of the elements' forms, null for NULL
//
// These are the documented mappings of docs/reference/types.md, written in the
// source's own functions.
func (c Column) Normal() string {
	return "CASE WHEN " + isNull(c.Name) + " OR " + unfit(c.Lake, c.Name) + " THEN NULL ELSE " + normal(c.Lake, c.Name) + " END"
}

func elemOf(lake string) (elem string, ok bool) {
	rest, ok := strings.CutPrefix(lake, "list<")
	return strings.TrimSuffix(rest, ">"), ok
}

func normal(lake, v string) string {
	if elem, ok := elemOf(lake); ok {
		e := "(" + v + ")[i]"
		return "(SELECT coalesce(json_agg(CASE WHEN " + isNull(e) + " THEN NULL ELSE " + normal(elem, e) + " END ORDER BY i), '[]')::text FROM generate_series(1, cardinality(" + v + ")) i)"
	}
	switch lake {
	case "boolean", "int", "long", "uuid":
		return v + "::text"
	case "float":
		return "CASE WHEN " + v + " = 'NaN' THEN 'nan' ELSE encode(float4send(" + v + "), 'hex') END"
	case "double":
		return "CASE WHEN " + v + " = 'NaN' THEN 'nan' ELSE encode(float8send(" + v + "), 'hex') END"
	case "date":
		return "(" + v + " - date '1970-01-01')::text"
	case "time":
		return micros(v)
	case "timestamp", "timestamptz": // extract(epoch …) rounds what is far from 1970
		return "((" + v + "::date - date '1970-01-01') * 86400000000::numeric + " + micros(v+"::time") + "::numeric)::text"
	case "binary":
		return "encode(" + v + ", 'hex')"
	}
	if strings.HasPrefix(lake, "decimal(") {
		return v + "::text"
	}
	return "format('%s', " + v + ")"
}

// micros are the microseconds of a time of a day.
func micros(v string) string {
	return "(extract(epoch FROM " + v + ") * 1000000)::numeric(30,0)::text"
}

// isNull tells NULL from a composite value whose every field is NULL.
func isNull(v string) string { return "(" + v + ") IS NOT DISTINCT FROM NULL" }

// unfit is an SQL condition for values that have no place in a lake type.
func unfit(lake, v string) string {
	if elem, ok := elemOf(lake); ok {
		e := "(" + v + ")[i]"
		return "(array_ndims(" + v + ") > 1 OR array_lower(" + v + ", 1) <> 1 OR EXISTS (SELECT FROM generate_series(1, cardinality(" + v + ")) i WHERE " + unfit(elem, e) + "))"
	}
	switch lake {
	case "date":
		return "NOT isfinite(" + v + ")"
	case "timestamp":
		return "(NOT isfinite(" + v + ") OR " + v + " > timestamp '294247-01-10 04:00:54.775807')"
	case "timestamptz":
		return "(NOT isfinite(" + v + ") OR " + v + " > timestamptz '294247-01-10 04:00:54.775807+00')"
	case "time":
		return v + " = time '24:00:00'"
	}
	if strings.HasPrefix(lake, "decimal(") {
		return v + " = 'NaN'"
	}
	return "false"
}
