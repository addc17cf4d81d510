package catalog

import (
	"slices"
	"strings"
	"time"
)

// TableName names a table at its source.
type TableName struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// String prints "public.orders". It is for people and map keys of one source;
// names with dots are ambiguous in it.
func (n TableName) String() string { return n.Schema + "." + n.Name }

// ParseTableName splits "public.orders" at its first dot; a name without a dot is
// in schema public.
func ParseTableName(s string) TableName {
	schema, name, ok := strings.Cut(s, ".")
	if !ok {
		return TableName{Schema: "public", Name: s}
	}
	return TableName{Schema: schema, Name: name}
}

// Tier is how fresh a table is promised to be; it is measured.
type Tier string

// The tiers; Bound is what each promises.
const (
	Realtime Tier = "realtime"
	Tier1m   Tier = "1min"
	Tier5m   Tier = "5min"
	Tier15m  Tier = "15min"
	Tier1h   Tier = "1h"
	Tier1d   Tier = "1d"
)

// Tiers lists all tiers from the freshest.
func Tiers() []Tier { return []Tier{Realtime, Tier1m, Tier5m, Tier15m, Tier1h, Tier1d} }

// Bound is the age that the tier promises to stay below; realtime means 5 s.
// An unknown tier has the bound of Tier1m.
func (t Tier) Bound() time.Duration {
	switch t {
	case Realtime:
		return 5 * time.Second
	case Tier1m:
		return time.Minute
	case Tier5m:
		return 5 * time.Minute
	case Tier15m:
		return 15 * time.Minute
	case Tier1h:
		return time.Hour
	case Tier1d:
		return 24 * time.Hour
	}
	return time.Minute
}

// Protection is what happens to a PII column before anything is stored.
type Protection string

// The protections.
const (
	Tokenize Protection = "tokenize" // keyed HMAC-SHA-256: deterministic, joinable, allowed in keys
	Redact   Protection = "redact"   // replaced by a fixed mark; refused for keys and tracked columns
)

// Table is one configured table: what its YAML file says, with every default
// filled in.
type Table struct {
	Source     string // the source's name
	Name       TableName
	Owner      string
	PrimaryKey []string // column names in key order; empty: bronze only
	Current    bool     // keep the current layer (SCD1)
	History    bool     // keep the history layer (SCD2)
	Tier       Tier
	// TrackColumns, when not empty, are the only columns whose change makes a new
	// history version; TrackExcept are those whose change does not. At most one
	// of the two is set; with neither, every column is tracked.
	TrackColumns   []string
	TrackExcept    []string
	PII            map[string]Protection // by column name
	SoftDelete     bool                  // keep deleted rows in current, marked
	ApplyTruncates bool                  // false: a TRUNCATE stops the table
	File           string                // the file it was read from, for messages
}

// ID names the table across sources: "shop/public.orders".
func (t *Table) ID() string { return t.Source + "/" + t.Name.String() }

// HasKey reports whether current and history can be kept.
func (t *Table) HasKey() bool { return len(t.PrimaryKey) > 0 }

// Tracks reports whether a change of the named column makes a history version. A
// redacted column never does: what is left of it says nothing.
func (t *Table) Tracks(column string) bool {
	if t.PII[column] == Redact {
		return false
	}
	if len(t.TrackColumns) > 0 {
		return slices.Contains(t.TrackColumns, column)
	}
	return !slices.Contains(t.TrackExcept, column)
}

// SourceKind is the kind of database a source is.
type SourceKind string

// Postgres is the only kind yet.
const Postgres SourceKind = "postgres"

// Capture is how a source's changes are read.
type Capture string

// The captures.
const (
	Direct   Capture = "direct"   // logical replication, read by the worker itself
	Debezium Capture = "debezium" // by a Debezium connector, through Kafka
)

// Source is one configured database: what source.yaml says, with every default
// filled in. Secrets are references until Resolve is called.
type Source struct {
	Name          string
	Kind          SourceKind
	Capture       Capture
	Connection    SecretRef // a Postgres connection string
	Slot          string    // default lakeweir_<name>
	Publication   string    // default lakeweir_<name>
	CreateSlot    bool      // create slot and publication when absent; default true
	Heartbeat     Heartbeat
	WALBudget     int64    // bytes a slot may retain; default 10 GiB
	NearBudget    int      // percent of WALBudget at which capture goes before folding; default 70
	OnBudget      OnBudget // what happens at WALBudget; default KeepSlot
	Snapshot      SnapshotOptions
	Namespaces    Namespaces
	FormatVersion int       // of new Iceberg tables: 2 or 3; default 3
	TokenKey      SecretRef // the key of tokenize; at least 32 bytes
	// Kafka and Connector are set for capture Debezium, and nil for Direct.
	Kafka     *Kafka
	Connector *Connector
	File      string // the file it was read from, for messages
}

// Heartbeat keeps an idle source's slot moving by writing one row.
type Heartbeat struct {
	Interval time.Duration // default 10 s; 0 switches it off
	Table    TableName     // default lakeweir.heartbeat; created when allowed
}

// SnapshotOptions bound what a snapshot asks of the source.
type SnapshotOptions struct {
	ChunkRows int // rows a chunk; default 10,000
	Parallel  int // tables read at once; default 2
}

// Namespaces are where a source's lake tables go; each may have several parts,
// joined by dots in the file.
type Namespaces struct {
	Bronze []string // default bronze
	Silver []string // default silver; current and history
}
