package connect

import "regexp"

// maxTrace is the most of a trace that is kept.
const maxTrace = 16 << 10

// Where traces quote values of rows: Postgres's details of keys, and Connect's and
// Debezium's words for a value that does not fit.
var (
	keyDetail    = regexp.MustCompile(`(=\()[^\n]*(\))`)
	quotedValue  = regexp.MustCompile(`(?i)((?:invalid|unexpected|bad|convert(?:ing)?|parse|parsing) (?:\w+ )*?(?:value|input|text|string|data|integer|timestamp|date)s?\b[^'"\n:]*[:'" ]+)[^\n]*`)
	failingRow   = regexp.MustCompile(`(?i)(failing row contains )\([^\n]*`)
	offsets      = regexp.MustCompile(`(OffsetContext) \[[^\n]*\]`) // long, and of no use to a reader
	recordFields = regexp.MustCompile(`(Struct|SourceRecord|ConnectRecord)\{[^\n]*`)
)

// withoutValues hides what of a trace may be values of rows (I7), and bounds it. It is
// as good as the forms that are known: a connector's log has the rest.
func withoutValues(trace string) string {
	if len(trace) > maxTrace {
		trace = trace[:maxTrace]
	}
	trace = offsets.ReplaceAllString(trace, "$1")
	trace = keyDetail.ReplaceAllString(trace, "$1***$2")
	trace = failingRow.ReplaceAllString(trace, "$1***")
	trace = recordFields.ReplaceAllString(trace, "$1{***")
	return quotedValue.ReplaceAllString(trace, "$1***")
}
