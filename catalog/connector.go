package catalog

import (
	"slices"
	"strings"
	"unicode/utf16"
)

// Kafka is how the topics of a source are reached.
type Kafka struct {
	Brokers []string // host:port of some; the others are found
	TLS     *KafkaTLS
	SASL    *KafkaSASL
}

// KafkaTLS encrypts the connection; the zero value trusts the system's authorities.
type KafkaTLS struct {
	CAFile   string // PEM; empty: the system's
	CertFile string // PEM of a client's certificate, with KeyFile; empty: none
	KeyFile  string
	Insecure bool // accept any certificate
}

// SASLMechanism is how a client says who it is.
type SASLMechanism string

// The mechanisms.
const (
	SASLPlain  SASLMechanism = "PLAIN"
	SASLSHA256 SASLMechanism = "SCRAM-SHA-256"
	SASLSHA512 SASLMechanism = "SCRAM-SHA-512"
)

// KafkaSASL is who the client is.
type KafkaSASL struct {
	Mechanism SASLMechanism
	Username  string
	Password  SecretRef
}

// MessageFormat is how a connector writes values into its topics.
type MessageFormat string

// The formats.
const (
	FormatJSON       MessageFormat = "json"        // without schema: cannot show every change of one
	FormatJSONSchema MessageFormat = "json_schema" // each message with its schema
	FormatAvro       MessageFormat = "avro"        // Confluent's wire format, schemas in a registry
)

// Connector is the Debezium connector of a source, on Kafka Connect.
type Connector struct {
	Name           string // default lakeweir-<source>
	URL            string // Kafka Connect's REST interface; empty: somebody else keeps the connector
	TopicPrefix    string // default the source's name; a table's topic is <prefix>.<schema>.<table>
	Format         MessageFormat
	SchemaRegistry string            // URL; for Avro
	Properties     map[string]string // further properties, over the recommended ones; values may hold references
	SignalTable    TableName         // receives Debezium's signals; zero: none
}

// Topic returns the topic of a table. As Debezium does it, what a topic's name cannot
// hold becomes an underscore, and what is longer than a name may be is cut.
func (c *Connector) Topic(table TableName) string {
	const longest = 249
	units := utf16.Encode([]rune(c.TopicPrefix + "." + table.Schema + "." + table.Name))
	name := make([]byte, 0, len(units))
	for _, u := range units {
		switch {
		case u >= 'a' && u <= 'z', u >= 'A' && u <= 'Z', u >= '0' && u <= '9', u == '.', u == '_', u == '-':
			name = append(name, byte(u))
		default:
			name = append(name, '_')
		}
	}
	return string(name[:min(len(name), longest)])
}

// ConnectorState is what Kafka Connect calls the state of a connector or of a task, or
// one of ours where it says none.
type ConnectorState string

// The states.
const (
	ConnectorRunning    ConnectorState = "RUNNING"
	ConnectorPaused     ConnectorState = "PAUSED"
	ConnectorStopped    ConnectorState = "STOPPED"
	ConnectorFailed     ConnectorState = "FAILED"
	ConnectorUnassigned ConnectorState = "UNASSIGNED"
	ConnectorRestarting ConnectorState = "RESTARTING"

	ConnectorMissing     ConnectorState = "MISSING"     // ours: Kafka Connect has none of that name
	ConnectorUnreachable ConnectorState = "UNREACHABLE" // ours: Kafka Connect does not answer
	ConnectorRefused     ConnectorState = "REFUSED"     // ours: Kafka Connect does not take the configuration
)

// ConnectorStatus is what is known of a connector.
type ConnectorStatus struct {
	Name  string
	State ConnectorState
	// Trace is why it has failed, as Kafka Connect tells it, or why our own states hold;
	// else empty. Values of rows in it are hidden as far as they can be told.
	Trace string
	Tasks []ConnectorTask
}

// ConnectorTask is one task of a connector.
type ConnectorTask struct {
	ID     int            `json:"id"`
	State  ConnectorState `json:"state"`
	Worker string         `json:"worker"` // of Kafka Connect, as host:port
	Trace  string         `json:"trace,omitempty"`
}

// Failed reports whether the connector or one of its tasks has failed.
func (s *ConnectorStatus) Failed() bool {
	return s.State == ConnectorFailed || slices.ContainsFunc(s.Tasks, func(t ConnectorTask) bool { return t.State == ConnectorFailed })
}

// Running reports whether it works: the connector and at least one task run, and no
// task does anything else.
func (s *ConnectorStatus) Running() bool {
	return s.State == ConnectorRunning && len(s.Tasks) > 0 && !slices.ContainsFunc(s.Tasks, func(t ConnectorTask) bool { return t.State != ConnectorRunning })
}

// Reason is the gist of the trace of what has failed; empty when nothing has one.
func (s *ConnectorStatus) Reason() string {
	for _, t := range s.Tasks {
		if t.Trace != "" {
			return TraceGist(t.Trace)
		}
	}
	return TraceGist(s.Trace)
}

// TraceGist is the first line of a stack trace, and the innermost cause where it says
// another thing, without the names of exceptions' packages.
func TraceGist(trace string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(trace), "\n")
	gist := exceptionText(first)
	if i := strings.LastIndex(rest, "Caused by: "); i >= 0 {
		cause, _, _ := strings.Cut(rest[i+len("Caused by: "):], "\n")
		if c := exceptionText(cause); c != "" && !strings.Contains(gist, c) {
			gist += ": " + c
		}
	}
	return gist
}

// exceptionText drops the package from org.example.SomeException: message.
func exceptionText(line string) string {
	line = strings.TrimSpace(line)
	class, message, ok := strings.Cut(line, ": ")
	if !ok || strings.ContainsAny(class, " \t") {
		return line
	}
	return class[strings.LastIndexByte(class, '.')+1:] + ": " + message
}
