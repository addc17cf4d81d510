package catalog

// Severity says what a finding prevents.
type Severity string

// The severities, the gravest first.
const (
	Blocks Severity = "error"   // the source or table does not start
	Limits Severity = "warning" // it starts, with less than was asked for
	Notes  Severity = "note"    // worth knowing
)

// Finding is one result of a check, with what to do about it. All findings of a
// check are reported together.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Source   string   `json:"source"`
	Table    string   `json:"table,omitempty"` // empty when it concerns the whole source
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"` // an instruction or the SQL to run
}
