package tableconfig

import "github.com/lakeweir/lakeweir/catalog"

// SourceFile is one source: tableconfigs/<source>/source.yaml. The folder's name
// is the source's name.
type SourceFile struct {
	// The kind of database.
	Kind string `yaml:"kind" required:"true" enum:"postgres" later:"mysql|mariadb" example:"postgres"`
	// How changes are read. direct: the worker itself follows the database's logical replication; no Kafka, no JVM. debezium: a Debezium connector on Kafka Connect writes them into Kafka, and the worker reads them there.
	Capture string `yaml:"capture" enum:"direct|debezium" default:"direct" example:"direct"`
	// The connection string of a role with the REPLICATION attribute and SELECT on the tables. Passwords stand in it only by reference: ${env:NAME} is an environment variable, ${file:PATH} a file's content without its line end.
	Connection catalog.SecretRef `yaml:"connection" required:"true" form:"connection" example:"${env:SHOP_DSN}"`
	// The replication slot; with capture debezium it is the connector's, which makes it. Postgres allows lower-case letters, digits and underscores.
	Slot string `yaml:"slot" form:"slot" default:"lakeweir_<source>" example:"lakeweir_shop"`
	// The publication that names the tables to stream.
	Publication string `yaml:"publication" form:"identifier" default:"lakeweir_<source>" example:"lakeweir_shop"`
	// Whether slot, publication and heartbeat table are created when absent, and new tables added to the publication. false only checks them and prints the SQL that is missing. With capture debezium it is the same for publication, heartbeat table and signal table; the slot is made by the connector in any case.
	Create bool `yaml:"create" default:"true" example:"true"`
	// A row written at intervals, so that the slot moves on while the replicated tables are quiet and other tables write. With capture debezium the connector writes it.
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

	// Only with capture debezium: where the topics are.
	Kafka KafkaFile `yaml:"kafka"`
	// Only with capture debezium: the connector that captures the source. docs/connector.md lists what it is told, and why.
	Connector ConnectorFile `yaml:"connector"`
	// Only with capture debezium: the table that receives Debezium's signals, as schema.table. Without it no table can be read again while others stream. It is created when create is true.
	SignalTable string `yaml:"signal_table" form:"table" default:"none" example:"lakeweir.signals"`
}

// KafkaFile is the key kafka of source.yaml.
type KafkaFile struct {
	// Some of the brokers, as host:port; the others are found. Required with capture debezium.
	Brokers []string `yaml:"brokers" form:"broker" required:"true" example:"[kafka-1:9092, kafka-2:9092]"`
	// Encrypts the connection. tls: {} trusts the authorities that the system trusts; without the key nothing is encrypted.
	TLS KafkaTLSFile `yaml:"tls" default:"no encryption" example:"{ca_file: /etc/lakeweir/kafka-ca.pem}"`
	// Who the worker is to the brokers.
	SASL KafkaSASLFile `yaml:"sasl" default:"nobody is named" example:"{mechanism: SCRAM-SHA-512, username: lakeweir, password: \"${env:KAFKA_PASSWORD}\"}"`
}

// KafkaTLSFile is the key kafka.tls of source.yaml.
type KafkaTLSFile struct {
	// A PEM file of the authorities to trust.
	CAFile string `yaml:"ca_file" form:"text" default:"the system's" example:"/etc/lakeweir/kafka-ca.pem"`
	// A PEM file of the worker's certificate, for brokers that ask for one; with key_file.
	CertFile string `yaml:"cert_file" form:"text" default:"none" example:"/etc/lakeweir/kafka.pem"`
	// A PEM file of that certificate's key.
	KeyFile string `yaml:"key_file" form:"text" default:"none" example:"/etc/lakeweir/kafka.key"`
	// Accept any certificate, so that the worker does not know whom it talks to. For trials.
	Insecure bool `yaml:"insecure" default:"false" example:"false"`
}

// KafkaSASLFile is the key kafka.sasl of source.yaml.
type KafkaSASLFile struct {
	// How the password is proved. PLAIN sends it, so use it with tls alone.
	Mechanism string `yaml:"mechanism" enum:"PLAIN|SCRAM-SHA-256|SCRAM-SHA-512" required:"true" example:"SCRAM-SHA-512"`
	// The user.
	Username string `yaml:"username" form:"text" required:"true" example:"lakeweir"`
	// The password, by reference alone.
	Password catalog.SecretRef `yaml:"password" form:"reference" required:"true" example:"${env:KAFKA_PASSWORD}"`
}

// ConnectorFile is the key connector of source.yaml.
type ConnectorFile struct {
	// The connector's name in Kafka Connect.
	Name string `yaml:"name" form:"connector" default:"lakeweir-<source>" example:"lakeweir-shop"`
	// Kafka Connect's REST interface. With it, lakeweir run makes the connector, keeps it as the files say, watches it and restarts tasks that fail. Without it somebody else keeps the connector, from what lakeweir connector render prints. A password stands in it only by reference.
	ConnectURL string `yaml:"connect_url" form:"url" default:"none: somebody else keeps the connector" example:"http://connect:8083"`
	// The beginning of the topics' names: a table's topic is <prefix>.<schema>.<table>.
	TopicPrefix string `yaml:"topic_prefix" form:"topic" default:"<source>" example:"shop"`
	// How values are written. json_schema: each message with its schema, so that every change of a table's columns is seen. avro: the same in little room, with a schema registry. json: without schemas, where widened and renamed columns cannot be told from others.
	Format string `yaml:"format" enum:"json_schema|avro|json" default:"json_schema" example:"json_schema"`
	// The schema registry of avro. A password stands in it only by reference.
	SchemaRegistry string `yaml:"schema_registry" form:"url" default:"none; required with format avro" example:"http://schema-registry:8081"`
	// Further properties of the connector, over the recommended ones. Those that lose or change data are refused, each with its reason. Values may hold ${env:NAME} and ${file:PATH}, and passwords have to.
	Properties Properties `yaml:"properties" default:"none" example:"{max.batch.size: 4096}"`
}

// Properties are properties of a connector by name.
type Properties map[string]string

// HeartbeatFile is the key heartbeat of source.yaml.
type HeartbeatFile struct {
	// Time between two heartbeats, at least 1s and at most 1h; 0s switches them off.
	Interval string `yaml:"interval" form:"duration" default:"10s" example:"10s"`
	// The table they are written to, as schema.table. It is created when create is true and holds one row per source.
	Table string `yaml:"table" form:"table" default:"lakeweir.heartbeat" example:"lakeweir.heartbeat"`
}

// SnapshotFile is the key snapshot of source.yaml.
type SnapshotFile struct {
	// Rows read by one query. Each is a short transaction of its own. With capture debezium it is that of incremental reads.
	ChunkRows int `yaml:"chunk_rows" min:"1" max:"1000000" default:"10000" example:"10000"`
	// Only with capture direct: tables read at the same time, with one connection each.
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
