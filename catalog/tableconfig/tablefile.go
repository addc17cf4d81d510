package tableconfig

// Tags of the fields below, read by spec.go and by the schema's generator:
//
//	required     the key must be there
//	enum         the allowed values
//	later        values that are known and not available yet
//	unavailable  the key is known and not available yet; the tag says what to do
//	form         the text's form, see forms in forms.go
//	min, max     bounds of a number
//	default      for the docs; the value itself is filled in where the file is read
//	example      for the docs

// TableFile is one table: tableconfigs/<source>/<schema>.<table>.yaml. Every key
// but `table` has a default or can be left out; no key is ever ignored.
type TableFile struct {
	// The table at its source, as schema.table. The file carries the same name with .yaml after it. A part that has a dot or a double quote of its own is quoted as in SQL: "my.schema".orders.
	Table string `yaml:"table" required:"true" form:"table" example:"public.orders"`
	// Who is asked when the table breaks: a team or a person.
	Owner string `yaml:"owner" form:"text" default:"defaults.owner of source.yaml; one of the two is required" example:"team-checkout"`
	// The columns that identify a row, in key order. They must be unique and NOT NULL at the source and part of its replica identity. Leave it out, or empty, only for a table without a key, which is kept in bronze alone.
	PrimaryKey []string `yaml:"primary_key" form:"column" example:"[order_id]"`
	// Which silver layers are kept. 1 is current state (silver.orders), 2 is history (silver.orders_history). Bronze, the log of every change, is always kept; [] keeps it alone.
	SCD []int `yaml:"scd" enum:"1|2" default:"defaults.scd of source.yaml, else [1, 2]; [] when primary_key is empty" example:"[1, 2]"`
	// How fresh the table is promised to be. The promise is measured: a table that misses it is shown as lagging. realtime means 5 seconds.
	FreshnessTier string `yaml:"freshness_tier" enum:"realtime|1min|5min|15min|1h|1d" default:"defaults.freshness_tier of source.yaml, else 1min" example:"1min"`
	// What orders the changes of the table. lsn, the position of the commit in the log, is the only order of a Postgres source.
	SequenceBy string `yaml:"sequence_by" enum:"lsn" later:"binlog" default:"lsn" example:"lsn"`
	// The only columns whose change makes a new version in history; the others follow in the open version. Needs 2 in scd. Excludes track_history_except_columns. Empty: every column is tracked.
	TrackHistoryColumns []string `yaml:"track_history_columns" form:"column" default:"[]" example:"[status, amount]"`
	// The columns whose change makes no new version in history; all others do. Needs 2 in scd. Excludes track_history_columns.
	TrackHistoryExceptColumns []string `yaml:"track_history_except_columns" form:"column" default:"[]" example:"[last_seen_at]"`
	// The columns with personal data and how each is protected. Before anything is stored, tokenize puts a token in the value's place (keyed HMAC-SHA-256, the same value gives the same token, so it can be joined and be a key; needs token_key in source.yaml), and redact a fixed mark (refused for keys and for columns named in track_history_columns). A bare list means tokenize.
	PII PII `yaml:"pii" enum:"tokenize|redact" later:"encrypt" default:"{}" example:"{email: tokenize, phone: redact}"`
	// Whether a deleted row stays in silver, marked by _is_deleted. false removes it. Bronze and history keep every delete either way. Needs 1 in scd.
	SoftDelete bool `yaml:"soft_delete" default:"defaults.soft_delete of source.yaml, else false" example:"false"`
	// Whether a TRUNCATE at the source empties (or marks) the silver tables. false stops the table instead, so that a person looks first.
	ApplyTruncates bool `yaml:"apply_truncates" default:"defaults.apply_truncates of source.yaml, else true" example:"true"`

	// Conditions on the row's columns, checked before a change reaches silver.
	Expectations unavailable `yaml:"expectations" unavailable:"remove it; check the silver table after the load until expectations are built"`
	// Partitioning of the silver tables. Bronze is always partitioned by the day of ingestion. An empty list is allowed.
	PartitionBy unavailable `yaml:"partition_by" unavailable:"remove it, or write []; silver tables are not partitioned yet" empty:"true"`
	// How long bronze rows and snapshots are kept.
	Retention unavailable `yaml:"retention" unavailable:"remove it; everything is kept until retention is built"`
	// Which engine folds the table.
	Engine unavailable `yaml:"engine" unavailable:"remove it; the worker folds every table itself"`
}

// PII maps column names to how they are protected. In the file it is a mapping,
// or a bare list of columns, which means tokenize.
type PII map[string]string

// unavailable is the type of a key whose feature is not built yet.
type unavailable struct{}
