package connectorconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Objection is what speaks against a value of a property.
type Objection struct {
	Severity catalog.Severity // Blocks: data would be lost or changed; Limits: it may be
	Message  string
	Instead  string // what to do
}

// Code is the finding's code.
func (o *Objection) Code() catalog.Code { return catalog.CodeConnectorSetting }

// rule says which values of a property are harmless.
type rule struct {
	name string
	// fine are the values, in any case, that nothing speaks against, the recommended one
	// first. Empty: none is.
	fine []string
	// risky are values that are allowed with a warning, each with what it costs.
	risky map[string]string
	harm  string // what any other value does
	mild  bool   // any other value is allowed with a warning
	// absent is the value that Debezium takes when the property is not there; "" when
	// leaving it out is harmless.
	absent string
}

// Rules by property. What a property without one is set to is its owner's affair.
var rules = []rule{
	{name: "connector.class", fine: []string{Class}, harm: "another connector's events have another form"},
	{name: "tasks.max", fine: []string{"1"}, harm: "a Postgres connector has one task"},
	{name: "plugin.name", fine: []string{"pgoutput"}, harm: "other plugins do not follow the publication, and print values another way", absent: "decoderbufs"},
	{name: "slot.drop.on.stop", fine: []string{"false"}, harm: "each stop drops the slot, and what is written until the next start is missing for ever"},
	{
		name: "publication.autocreate.mode", fine: []string{"disabled"}, absent: "all_tables",
		risky: map[string]string{"all_tables": "a publication that is missing is made for all tables, those without a replica identity too, whose updates the server then refuses", "no_tables": "a publication that is missing is made empty, and nothing is streamed"},
		harm:  "each start makes the publication what the include list says, and the tables of other readers leave it",
	},
	{
		name: "offset.mismatch.strategy", fine: []string{"trust_offset"}, absent: "no_validation",
		risky: map[string]string{"no_validation": "after the slot was made anew the connector goes on from there, and what lies between is missing without a word"},
		harm:  "where the slot is ahead, the changes between are skipped without a word",
	},
	{
		name: "slot.seek.to.known.offset.on.start", fine: []string{"true"},
		risky: map[string]string{"false": "after the slot was made anew the connector goes on from there, and what lies between is missing without a word"}, harm: "it is true or false",
	},
	{
		name: "lsn.flush.mode", fine: []string{"connector"},
		risky: map[string]string{"manual": "the slot never moves on by itself, and the source's log grows", "connector_and_driver": "the driver moves the slot beyond what the connector has handed on"},
		harm:  "Debezium does not know it",
	},
	{name: "flush.lsn.source", fine: []string{"true"}, risky: map[string]string{"false": "the slot never moves on by itself, and the source's log grows"}, harm: "it is true or false"},

	{
		name: "snapshot.mode", fine: []string{"initial"},
		risky: map[string]string{
			"always":      "every restart reads every table again",
			"when_needed": "a lost slot is answered by reading every table again, without anybody being asked; what was changed and deleted between is not in bronze",
		},
		harm: "rows that are there before the stream begins, or changes after them, would never be read",
	},
	{name: "snapshot.isolation.mode", fine: []string{"serializable", "repeatable_read"}, harm: "rows are not read as of one place in the log, and a change could be undone by an older read"},
	{name: "snapshot.max.threads", fine: []string{"1"}, mild: true, harm: "each thread is a connection and a long transaction at the source"},
	{name: "snapshot.include.collection.list", harm: "tables that are not on it are never read, only their later changes"},
	{name: "snapshot.query.mode", fine: []string{"select_all"}, harm: "another query may leave rows out"},

	{name: "skipped.operations", fine: []string{"none"}, absent: "t", harm: "operations that are skipped never reach the lake, which keeps rows and values that the source has not"},
	{name: "skip.messages.without.change", fine: []string{"false"}, harm: "updates are left out, and bronze lacks events"},
	{name: "tombstones.on.delete", fine: []string{"true"}, risky: map[string]string{"false": "a compacted topic cannot forget a deleted key, and readers of it never learn of the delete"}, harm: "it is true or false"},
	{name: "event.processing.failure.handling.mode", fine: []string{"fail"}, harm: "events that cannot be handled are lost, with a line in a log at most"},
	{name: "event.converting.failure.handling.mode", fine: []string{"fail"}, absent: "warn", harm: "a value that does not fit its column's schema becomes NULL"},
	{name: "errors.tolerance", fine: []string{"none"}, harm: "records that fail on their way into the topic are lost"},

	{name: "decimal.handling.mode", fine: []string{"string"}, absent: "precise", risky: map[string]string{"precise": "NaN becomes NULL, and numeric(p,-s) becomes very long"}, harm: "numbers lose digits"},
	{
		name: "time.precision.mode", fine: []string{"microseconds", "adaptive", "adaptive_time_microseconds"},
		harm: "times are cut, overflow or cannot be told apart: connect keeps milliseconds, nanoseconds end in 2262, isostring destroys 24:00:00",
	},
	{name: "binary.handling.mode", fine: []string{"bytes"}, risky: map[string]string{"base64": "a large value that did not change arrives as NULL, and a table without REPLICA IDENTITY FULL stops there"}, harm: "the worker reads base64, and cannot tell another text from it"},
	{name: "interval.handling.mode", fine: []string{"string"}, absent: "numeric", harm: "a month becomes 30.4 days, and what it was cannot be told any more"},
	{name: "hstore.handling.mode", fine: []string{"json", "map"}, harm: "Debezium does not know it"},
	{name: "include.unknown.datatypes", fine: []string{"true"}, absent: "false", harm: "columns of ranges and composite types are missing without a word"},
	{name: "unavailable.value.placeholder", fine: []string{"__debezium_unavailable_value"}, harm: "the worker knows large values that were not sent by Debezium's own mark; another one would be stored as the value"},
	{name: "schema.refresh.mode", fine: []string{"columns_diff"}, risky: map[string]string{"columns_diff_exclude_unchanged_toast": "a change of a column whose value was not sent is noticed late"}, harm: "Debezium does not know it"},
	{name: "field.name.adjustment.mode", fine: []string{"none"}, risky: map[string]string{"avro": "columns that Avro cannot name come under other names, and their tables stop", "avro_unicode": "columns that Avro cannot name come under other names, and their tables stop"}, harm: "Debezium does not know it"},

	{name: "key.converter.replace.null.with.default", fine: []string{"false"}, harm: "a NULL would arrive as the column's default"},
	{name: "value.converter.replace.null.with.default", fine: []string{"false"}, absent: "true", harm: "a NULL in a column that has a default arrives as the default"},
	{name: "value.converter.decimal.format", fine: []string{"base64"}, harm: "the worker reads the exact bytes of a decimal, not a number of JSON"},

	{name: "topic.delimiter", fine: []string{"."}, harm: "the worker looks for <prefix>.<schema>.<table>"},
	{name: "topic.naming.strategy", fine: []string{"io.debezium.schema.SchemaTopicNamingStrategy"}, harm: "the worker looks for <prefix>.<schema>.<table>"},
	{name: "topic.creation.default.cleanup.policy", fine: []string{"delete"}, harm: "compaction forgets all but the newest change of a key: history would have holes"},
	{name: "topic.creation.default.partitions", fine: []string{"1"}, mild: true, harm: "changes of a table are in commit order only within a partition"},
	{name: "producer.override.acks", fine: []string{"all", "-1"}, harm: "a change that one broker alone had is lost with it"},
	{name: "producer.override.max.in.flight.requests.per.connection", fine: []string{"1"}, mild: true, harm: "without producer.override.enable.idempotence a request that is sent again overtakes others, and changes come out of order"},
}

// families are properties by the beginning of their names: none of them may be set.
var families = []struct{ prefix, harm, instead string }{
	{"transforms", "transforms reroute, unwrap, filter or change events before the worker sees them", "remove it; let other readers transform topics of their own"},
	{"predicates", "predicates serve transforms, which reroute, unwrap, filter or change events", "remove it"},
	{"converters", "a converter of one's own changes values before the worker sees them", "remove it"},
	{"post.processors", "a post processor changes events: re-selected values are those of now, not of the change", "remove it"},
	{"column.truncate.to.", "values are cut before they reach the log of changes", "remove it"},
	{"column.mask.", "values are replaced before the worker sees them", "protect columns under pii in the table's file"},
	{"column.include.list", "columns are left out without a word", "leave columns out in the publication: ALTER PUBLICATION … SET TABLE t (columns)"},
	{"column.exclude.list", "columns are left out without a word", "leave columns out in the publication: ALTER PUBLICATION … SET TABLE t (columns)"},
	{"table.exclude.list", "the tables are those that have files", "remove it; remove a table's file instead"},
	{"schema.include.list", "the tables are those that have files", "remove it"},
	{"schema.exclude.list", "the tables are those that have files", "remove it"},
	{"database.include.list", "a Postgres connector knows one database, that of connection", "remove it"},
	{"database.exclude.list", "a Postgres connector knows one database, that of connection", "remove it"},
	{"message.key.columns", "the key of a message says which row a delete is of, and the worker takes it for the table's own", "remove it"},
	{"snapshot.select.statement.overrides", "a query of one's own leaves rows out or changes them", "remove it"},
	{"topic.creation.default.include", "the group default is for all topics", "remove it"},
}

// keyed are the keys of source.yaml that say the property instead, beside those of
// Settings. database.* but the database's name may be said again: Connect may reach the
// server under another name, with another role.
var keyed = map[string]string{
	"name": "connector.name", "database.server.name": "connector.topic_prefix",
}

// Object returns what speaks against a property under connector.properties, or nil.
func Object(source *catalog.Source, name, value string) *Objection {
	if key := keyOf(source, name); key != "" {
		instead := "set " + key + " instead"
		if name == "table.include.list" {
			instead = "add and remove files of tables"
		}
		return &Objection{catalog.Blocks, name + " is said by " + key, instead}
	}
	if o := judge(name, value); o != nil {
		return o
	}
	return unknown(name)
}

// keyOf is the key of source.yaml that the property comes from, "" when properties may
// set it.
func keyOf(source *catalog.Source, name string) string {
	if k := keyed[name]; k != "" {
		return k
	}
	s := setting(name)
	switch {
	case s == nil:
		return ""
	case name == "table.include.list":
		return "the tables' files"
	case s.Key == "connection" && name != "database.dbname":
		return ""
	case s.Key == "connector.schema_registry", s.Key == "connector.format":
		if source.Connector.Format == catalog.FormatAvro {
			return "" // other registries have converters and properties of their own
		}
		return "connector.format"
	}
	return s.Key
}

// judge returns what speaks against a value of a property, whoever set it.
func judge(name, value string) *Objection {
	for _, f := range families {
		if name == f.prefix || strings.HasPrefix(name, f.prefix) && (strings.HasSuffix(f.prefix, ".") || strings.HasPrefix(name[len(f.prefix):], ".")) {
			return &Objection{catalog.Blocks, name + " is refused: " + f.harm, f.instead}
		}
	}
	ruled := name
	if rest, ok := strings.CutPrefix(name, "topic.creation."); ok { // what holds for the default group holds for others
		if _, what, ok := strings.Cut(rest, "."); ok {
			ruled = "topic.creation.default." + what
		}
	}
	if ruled == "topic.creation.default.retention.ms" {
		return judgeRetention(name, value)
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == ruled })
	if i < 0 {
		return nil
	}
	r, v := rules[i], strings.ToLower(strings.TrimSpace(value))
	fine := func(w string) bool { return strings.EqualFold(w, v) }
	switch {
	case slices.ContainsFunc(r.fine, fine):
		return nil
	case r.risky[v] != "":
		return &Objection{catalog.Limits, fmt.Sprintf("%s is %s: %s", name, value, r.risky[v]), r.instead()}
	case r.mild:
		return &Objection{catalog.Limits, fmt.Sprintf("%s is %s: %s", name, value, r.harm), r.instead()}
	}
	return &Objection{catalog.Blocks, fmt.Sprintf("%s is %s: %s", name, value, r.harm), r.instead()}
}

func (r *rule) instead() string {
	if len(r.fine) == 0 {
		return "remove it"
	}
	return "set it to " + r.fine[0] + ", or remove it"
}

// LeastRetention is how long a topic should keep changes at least: what a worker may be
// down for over a weekend.
const LeastRetention = 3 * 24 * 3600 * 1000 // milliseconds

func judgeRetention(name, value string) *Objection {
	ms, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return &Objection{catalog.Blocks, name + " is " + value + ", which is no number of milliseconds", "write a number of milliseconds, or remove it"}
	case ms >= 0 && ms < LeastRetention:
		return &Objection{catalog.Limits, name + " is " + value + ", less than three days: changes may be gone before a stopped worker or table has them", "remove it, or set " + strconv.Itoa(RetentionMillis)}
	}
	return nil
}
