package tableconfig

import "github.com/lakeweir/lakeweir/catalog"

// SourceFile is one source: tableconfigs/<source>/source.yaml. The folder's name
// is the source's name.
type SourceFile struct {
	// The kind of database.
	Kind string `yaml:"kind" required:"true" enum:"postgres" later:"mysql|mariadb" example:"postgres"`
	// How changes are read. direct: the worker itself follows the database's logical replication; no Kafka, no JVM.
	Capture string `yaml:"capture" enum:"direct" later:"debezium" default:"direct" example:"direct"`
	// The connection string of a role with the REPLICATION attribute and SELECT on the tables. Passwords stand in it only by reference: ${env:NAME} is an environment variable, ${file:PATH} a file's content without its line end.
	Connection catalog.SecretRef `yaml:"connection" required:"true" form:"connection" example:"${env:SHOP_DSN}"`
	// The replication slot. Postgres allows lower-case letters, digits and underscores.
	Slot string `yaml:"slot" form:"slot" default:"lakeweir_<source>" example:"lakeweir_shop"`
	// The publication that names the tables to stream.
	Publication string `yaml:"publication" form:"identifier" default:"lakeweir_<source>" example:"lakeweir_shop"`
	// Whether slot, publication and heartbeat table are created when absent, and new tables added to the publication. false only checks them and prints the SQL that is missing.
	Create bool `yaml:"create" default:"true" example:"true"`
	// A row written at intervals, so that the slot moves on while the replicated tables are quiet and other tables write.
	Heartbeat HeartbeatFile `yaml:"heartbeat"`
	// How much write-ahead log the slot may retain. Leave room on the source's disk beyond it.
	WALBudget string `yaml:"wal_budget" form:"size" default:"10GiB" example:"10GiB"`
	// The percentage of wal_budget from which status and the page warn, and capturing goes before folding: current and history wait while bronze catches up.
	WALBudgetNear int `yaml:"wal_budget_near" min:"1" max:"99" default:"70" example:"70"`
	// What happens to a slot that has stayed at wal_budget for half a minute. keep: nothing but a loud warning; the source's disk may fill. drop: the slot is dropped and the source's tables become gap: changes are missing, and they have to be read anew.
	OnWALBudget string `yaml:"on_wal_budget" enum:"keep|drop" default:"keep" example:"keep"`
	// What reading the existing rows may ask of the source.
	Snapshot SnapshotFile `yaml:"snapshot"`
	// Where in the lake the source's tables go. Two sources with tables of the same name need namespaces of their own.
	Namespaces NamespacesFile `yaml:"namespaces"`
	// The Iceberg format of new tables: 3 marks deleted rows by deletion vectors, 2 by position delete files, for readers that do not know version 3. Existing tables keep theirs.
	FormatVersion int `yaml:"format_version" enum:"2|3" default:"3" example:"3"`
	// The key of tokenize, at least 32 bytes, by reference alone. The same key gives the same tokens; a lost key cannot be replaced.
	TokenKey catalog.SecretRef `yaml:"token_key" form:"reference" default:"none; required once a table tokenizes a column" example:"${file:/run/secrets/token_key}"`
	// What holds for each of the source's tables unless its own file says otherwise.
	Defaults DefaultsFile `yaml:"defaults"`

	// The Kafka Connect connector that captures the source.
	Connector unavailable `yaml:"connector" unavailable:"remove it; capture: direct needs no connector"`
	// The table that receives Debezium's signals.
	SignalTable unavailable `yaml:"signal_table" unavailable:"remove it; capture: direct takes snapshots without signals"`
}

// HeartbeatFile is the key heartbeat of source.yaml.
type HeartbeatFile struct {
	// Time between two heartbeats, at least 1s and at most 1h; 0s switches them off.
	Interval string `yaml:"interval" form:"duration" default:"10s" example:"10s"`
	// The table they are written to, as schema.table. It is created when create is true and holds one row per source.
	Table string `yaml:"table" form:"table" default:"lakeweir.heartbeat" example:"lakeweir.heartbeat"`
}

// SnapshotFile is the key snapshot of source.yaml.
type SnapshotFile struct {
	// Rows read by one query. Each is a short transaction of its own.
	ChunkRows int `yaml:"chunk_rows" min:"1" max:"1000000" default:"10000" example:"10000"`
	// Tables read at the same time, with one connection each.
	Parallel int `yaml:"parallel" min:"1" max:"64" default:"2" example:"2"`
}

// NamespacesFile is the key namespaces of source.yaml.
type NamespacesFile struct {
	// The namespace of the change logs; nested ones are joined by dots.
	Bronze string `yaml:"bronze" form:"namespace" default:"bronze" example:"bronze"`
	// The namespace of current state and history; nested ones are joined by dots.
	Silver string `yaml:"silver" form:"namespace" default:"silver" example:"silver"`
}

// DefaultsFile is the key defaults of source.yaml. Its keys mean what they mean in
// a table's file.
type DefaultsFile struct {
	// Who is asked when a table breaks, where its file names nobody.
	Owner string `yaml:"owner" form:"text" default:"none" example:"team-shop"`
	// The layers kept, where the table's file does not say. Tables without a key keep bronze alone in any case.
	SCD []int `yaml:"scd" enum:"1|2" default:"[1, 2]" example:"[1, 2]"`
	// The freshness promised, where the table's file does not say.
	FreshnessTier string `yaml:"freshness_tier" enum:"realtime|1min|5min|15min|1h|1d" default:"1min" example:"5min"`
	// Whether deleted rows stay in silver, marked, where the table's file does not say.
	SoftDelete bool `yaml:"soft_delete" default:"false" example:"false"`
	// Whether a TRUNCATE is applied, where the table's file does not say.
	ApplyTruncates bool `yaml:"apply_truncates" default:"true" example:"true"`
}
