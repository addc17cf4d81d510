package catalog

import "unicode/utf16"

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
