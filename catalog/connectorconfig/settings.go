package connectorconfig

import (
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Class is the connector that is configured.
const Class = "io.debezium.connector.postgresql.PostgresConnector"

// Bounds that the topics and the connector's producer share.
const (
	MaxMessageBytes = 16 << 20             // the largest row's message
	RetentionMillis = 7 * 24 * 3600 * 1000 // of topics that the connector makes
	queueBytes      = 128 << 20
)

// Converters by format.
const (
	jsonConverter = "org.apache.kafka.connect.json.JsonConverter"
	avroConverter = "io.confluent.connect.avro.AvroConverter"
)

// Setting is one property that Lakeweir sets.
type Setting struct {
	Name string
	// Key is the key of source.yaml that the value comes from; empty when the value is
	// recommended and properties may say otherwise, as far as Objects lets it.
	Key string
	// Shown is the value for docs, with <…> for what differs from source to source.
	Shown  string
	Reason string
	value  func(*subject) string // "" leaves the property out; nil: Shown
}

// subject is what a configuration is made of.
type subject struct {
	source *catalog.Source
	tables []*catalog.Table
	where  endpoint
}

// Settings are all of them, in the order that docs and renderings show them.
func Settings() []Setting { return settings }

var settings = []Setting{
	{"connector.class", "kind", Class, "The connector for Postgres.", nil},
	{"tasks.max", "", "1", "A Postgres connector has one task: one slot is one stream in commit order.", nil},

	{"database.hostname", "connection", "<host>", "From `connection`. Set it under `properties` where Connect reaches the server by another name.", func(s *subject) string { return s.where.host }},
	{"database.port", "connection", "<port>", "From `connection`.", func(s *subject) string { return s.where.port }},
	{"database.user", "connection", "<user>", "From `connection`. Set it under `properties` where the connector has a role of its own.", func(s *subject) string { return s.where.user }},
	{"database.password", "connection", "<reference>", "From `connection`; printed as a reference, resolved only when it is sent.", func(s *subject) string { return s.where.password }},
	{"database.dbname", "connection", "<database>", "From `connection`: the database whose tables are configured.", func(s *subject) string { return s.where.database }},
	{"database.sslmode", "connection", "<sslmode>", "From `connection`, when it says one.", func(s *subject) string { return s.where.sslMode }},
	{"database.sslrootcert", "connection", "<sslrootcert>", "From `connection`, when it says one: a file on Connect's machine.", func(s *subject) string { return s.where.sslRoot }},

	{"topic.prefix", "connector.topic_prefix", "<source>", "A table's topic is `<prefix>.<schema>.<table>`. Another prefix is other topics, and the offsets of a new connector.", func(s *subject) string { return s.source.Connector.TopicPrefix }},
	{"plugin.name", "", "pgoutput", "The plugin that every Postgres has, and the one whose publication says what is streamed.", nil},
	{"slot.name", "slot", "<slot>", "The slot that Lakeweir watches.", func(s *subject) string { return s.source.Slot }},
	{"publication.name", "publication", "<publication>", "The publication that preflight compares with the tables.", func(s *subject) string { return s.source.Publication }},
	{"publication.autocreate.mode", "", "disabled", "A publication that the connector makes or alters holds what its include list says today; Lakeweir keeps it in step with the files, or prints the SQL.", nil},
	{"table.include.list", "", "<tables and heartbeat table>", "The tables that have files, and the heartbeat table, whose events prove that the connector is alive and how far it has come.", includeList},
	{"offset.mismatch.strategy", "", "trust_offset", "Where the slot stands beyond the connector's offset, changes are missing (a slot made anew). The default goes on from the slot without a word; this stops the connector, which is seen.", nil},

	{"snapshot.mode", "", "initial", "The rows that are there are read once, before the stream.", nil},
	{"incremental.snapshot.chunk.size", "snapshot.chunk_rows", "<snapshot.chunk_rows>", "Rows of one query of an incremental read.", func(s *subject) string { return strconv.Itoa(s.source.Snapshot.ChunkRows) }},
	{"signal.data.collection", "signal_table", "<signal_table>", "Where incremental reads are asked for, and where the connector marks their chunks. Left out without `signal_table`: then no table can be read again.", signalTable},
	{"signal.poll.interval.ms", "", "500", "A signal is taken up within half a second rather than five.", nil},
	{"notification.enabled.channels", "", "sink", "The end and the outcome of an incremental read are told in a topic: whether it read anything is seen nowhere else.", nil},
	{"notification.sink.topic.name", "", "<prefix>-notifications", "That topic.", func(s *subject) string { return s.source.Connector.TopicPrefix + "-notifications" }},

	{"heartbeat.interval.ms", "heartbeat.interval", "<heartbeat.interval>", "The connector's offset, and with it the slot, moves on while the tables are quiet.", func(s *subject) string {
		return strconv.FormatInt(s.source.Heartbeat.Interval.Milliseconds(), 10)
	}},
	{"heartbeat.action.query", "heartbeat.table", "INSERT INTO <heartbeat.table> …", "A row written in a transaction of its own gives the stream something to confirm while other databases of the server write. (A message outside of a transaction would stop a read-only incremental read.)", heartbeatQuery},

	{"skipped.operations", "", "none", "The default leaves truncates out: the lake would keep rows that the source has not.", nil},
	{"tombstones.on.delete", "", "true", "A compacted topic could forget a delete without its tombstone.", nil},
	{"event.processing.failure.handling.mode", "", "fail", "An event that cannot be handled stops the connector, which is seen; anything else loses it.", nil},
	{"event.converting.failure.handling.mode", "", "fail", "A value that does not fit its column's schema becomes NULL under the default, with a line in a log.", nil},
	{"errors.tolerance", "", "none", "Tolerated errors are lost records.", nil},

	{"decimal.handling.mode", "", "string", "Exact, also NaN, which becomes NULL under precise. double is not exact.", nil},
	{"time.precision.mode", "", "microseconds", "All that Postgres keeps, in one unit. connect cuts to milliseconds; isostring destroys 24:00:00.", nil},
	{"binary.handling.mode", "", "bytes", "The only form that marks a large value that did not change; under the others it arrives as NULL.", nil},
	{"interval.handling.mode", "", "string", "Months, days and microseconds stay apart; the default takes a month for 30.4 days.", nil},
	{"hstore.handling.mode", "", "json", "One text, whatever the keys are.", nil},
	{"include.unknown.datatypes", "", "true", "Otherwise columns of ranges and composite types are missing without a word.", nil},

	{"key.converter", "connector.format", "<converter>", "From `connector.format`.", converter},
	{"key.converter.schemas.enable", "connector.format", "<true for json_schema>", "From `connector.format`.", schemasEnable},
	{"value.converter", "connector.format", "<converter>", "From `connector.format`: " + jsonConverter + ", or " + avroConverter + " for avro.", converter},
	{"value.converter.schemas.enable", "connector.format", "<true for json_schema>", "Messages with schemas show when a column is widened or renamed; a worker compares the block, which repeats, and does not parse it again.", schemasEnable},
	{"key.converter.replace.null.with.default", "", "false", "As for values.", jsonOnly("false")},
	{"value.converter.replace.null.with.default", "", "false", "Otherwise a NULL in a column that has a default arrives as the default.", jsonOnly("false")},
	{"key.converter.schema.registry.url", "connector.schema_registry", "<URL>", "Where schemas of avro are kept.", registryURL},
	{"value.converter.schema.registry.url", "connector.schema_registry", "<URL>", "Where schemas of avro are kept.", registryURL},

	{"topic.creation.default.partitions", "", "1", "Changes of a table are in commit order only within a partition.", nil},
	{"topic.creation.default.replication.factor", "", "-1", "The brokers' own default.", nil},
	{"topic.creation.default.cleanup.policy", "", "delete", "Compaction forgets all but the newest change of a key: history would have holes.", nil},
	{"topic.creation.default.retention.ms", "", strconv.Itoa(RetentionMillis), "Seven days: how long the worker may be down, or a table stopped, before changes are missing. Three are the least.", nil},
	{"topic.creation.default.max.message.bytes", "", strconv.Itoa(MaxMessageBytes), "A row that does not fit stops the connector, and with it every table.", nil},
	{"producer.override.max.request.size", "", strconv.Itoa(MaxMessageBytes), "The same for the connector's producer.", nil},
	{"producer.override.enable.idempotence", "", "true", "A request that is sent again is not written twice.", nil},
	{"producer.override.acks", "", "all", "A change that one broker alone had is lost with it.", nil},
	{"producer.override.compression.type", "", "lz4", "Schemas in messages compress to almost nothing, at little cost.", nil},
	{"producer.override.linger.ms", "", "20", "Larger batches on the way to the brokers.", nil},
	{"producer.override.batch.size", "", "524288", "Larger batches on the way to the brokers.", nil},

	{"poll.interval.ms", "", "100", "Changes are handed on ten times a second.", nil},
	{"max.batch.size", "", "8192", "Events handed on at once.", nil},
	{"max.queue.size", "", "32768", "Events waiting; more than a batch.", nil},
	{"max.queue.size.in.bytes", "", strconv.Itoa(queueBytes), "Large rows do not fill Connect's memory.", nil},
}

// setting returns the setting of that name, or nil.
func setting(name string) *Setting {
	for i := range settings {
		if settings[i].Name == name {
			return &settings[i]
		}
	}
	return nil
}

// of is the setting's value for a source; "" when it is left out.
func (s *Setting) of(sub *subject) string {
	if s.value == nil {
		return s.Shown
	}
	return s.value(sub)
}

func converter(s *subject) string {
	if s.source.Connector.Format == catalog.FormatAvro {
		return avroConverter
	}
	return jsonConverter
}

func schemasEnable(s *subject) string {
	switch s.source.Connector.Format {
	case catalog.FormatJSON:
		return "false"
	case catalog.FormatJSONSchema:
		return "true"
	case catalog.FormatAvro:
	}
	return ""
}

// jsonOnly is a value that only the converter of JSON knows.
func jsonOnly(v string) func(*subject) string {
	return func(s *subject) string {
		if s.source.Connector.Format == catalog.FormatAvro {
			return ""
		}
		return v
	}
}

func registryURL(s *subject) string { return s.source.Connector.SchemaRegistry }

func signalTable(s *subject) string {
	if t := s.source.Connector.SignalTable; t != (catalog.TableName{}) {
		return t.String()
	}
	return ""
}

func includeList(s *subject) string {
	names := make([]string, 0, len(s.tables)+1)
	for _, t := range s.tables {
		names = append(names, pattern(t.Name))
	}
	if s.source.Heartbeat.Interval > 0 {
		names = append(names, pattern(s.source.Heartbeat.Table))
	}
	return strings.Join(names, ",")
}

// pattern is the regular expression of a list that matches one name and nothing else:
// Debezium cuts lists at commas without a backslash, and matches whole names in any
// case.
func pattern(t catalog.TableName) string {
	var b strings.Builder
	for _, r := range t.String() {
		if r != '_' && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z' && r < 0x80) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// heartbeatQuery is the statement of a beat, on the table that worker/postgres makes.
func heartbeatQuery(s *subject) string {
	h := s.source.Heartbeat
	if h.Interval <= 0 || h.Table.Name == "" {
		return ""
	}
	return "INSERT INTO " + quoteIdent(h.Table.Schema) + "." + quoteIdent(h.Table.Name) + " AS h (source, beat_at, beats) VALUES (" +
		quoteLiteral(s.source.Name) + ", clock_timestamp(), 1) ON CONFLICT (source) DO UPDATE SET beat_at = excluded.beat_at, beats = h.beats + 1"
}

func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
