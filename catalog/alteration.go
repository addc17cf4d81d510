package catalog

import "strings"

// Alteration is what changed of a table at its source, seen at the place from which on
// its rows have the new shape.
type Alteration struct {
	At Place `json:"at"`
	// Before is what was decided last; After is nil when the table is gone.
	Before *Definition `json:"before,omitempty"`
	After  *Definition `json:"after,omitempty"`
	// Columns are those that the source sends from here on, with the configured key as
	// far as it is among them; nil when the table is gone.
	Columns *Schema        `json:"-"`
	Changes []SchemaChange `json:"changes"`
	FoundBy Means          `json:"found_by"`
}

// Means is what showed an alteration.
type Means string

// The means.
const (
	ByDDLLog   Means = "ddl_log"  // the source's own log of its commands
	ByRelation Means = "relation" // what the stream says of the table before its rows
	ByEnvelope Means = "envelope" // the schema that comes with a change in a topic
	ByRows     Means = "rows"     // reading the table's rows failed
	ByCatalog  Means = "catalog"  // the source's catalog, when the worker was started
)

// String tells the changes in one line.
func (a *Alteration) String() string {
	parts := make([]string, len(a.Changes))
	for i := range a.Changes {
		parts[i] = a.Changes[i].String()
	}
	return strings.Join(parts, "; ")
}
