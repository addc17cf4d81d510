package tableconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
)

// refuseDebezium reports keys that mean nothing with capture direct.
func refuseDebezium(d *document) {
	for _, key := range []string{"kafka", "connector", "signal_table"} {
		if d.has(key) && !d.refused["capture"] {
			d.report(catalog.CodeConfigConflict, d.key(key), fmt.Sprintf("%q means something only with capture: debezium", key), "remove it, or set capture: debezium")
		}
	}
}

// buildDebezium fills in what only capture debezium has, and checks what the form
// cannot say.
func buildDebezium(s *catalog.Source, f *SourceFile, d *document) {
	if !d.has("kafka") {
		d.report(catalog.CodeConfigMissing, place{1, 1, 0}, `"kafka" is missing: capture debezium reads topics`, `add kafka: {brokers: [host:9092]}; see "lakeweir config explain kafka"`)
	}
	if s.OnBudget == catalog.DropSlot {
		d.report(catalog.CodeConfigConflict, d.value("on_wal_budget"), "\"on_wal_budget\" cannot be drop with capture: debezium: the connector holds the slot",
			"write keep, and let an alert on the slot stop the connector; max_slot_wal_keep_size lets the server itself drop what is too much")
	}
	if d.has("snapshot.parallel") {
		d.report(catalog.CodeConfigConflict, d.key("snapshot.parallel"), "\"snapshot.parallel\" means something only with capture: direct: the connector reads one table after the other",
			"remove it; snapshot.max.threads under connector.properties is the connector's own way")
	}
	s.Kafka = buildKafka(f, d)
	s.Connector = buildConnector(s, f, d)
	if !opaqueOrGood(f.Connection) {
		d.report(catalog.CodeConfigValue, d.value("connection"), "\"connection\" cannot be told to a connector, which takes one host, a user and a database", "write postgres://user:${env:PGPASSWORD}@host:5432/database, or ${env:NAME} for the whole")
	}
	checkProperties(s, f, d)
}

func opaqueOrGood(r catalog.SecretRef) bool {
	return r == "" || r.Check() != nil || connectorconfig.CheckConnection(r) == nil // others are reported elsewhere
}

func buildKafka(f *SourceFile, d *document) *catalog.Kafka {
	k := &catalog.Kafka{Brokers: f.Kafka.Brokers}
	if d.has("kafka.brokers") && len(k.Brokers) == 0 && !d.refused["kafka.brokers"] {
		d.report(catalog.CodeConfigValue, d.value("kafka.brokers"), `"kafka.brokers" names no broker`, "name one at least, such as [kafka-1:9092]")
	}
	if d.has("kafka.tls") {
		t := f.Kafka.TLS
		k.TLS = &catalog.KafkaTLS{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, Insecure: t.Insecure}
		if (t.CertFile == "") != (t.KeyFile == "") {
			d.report(catalog.CodeConfigConflict, d.key("kafka.tls"), `"kafka.tls" has one of cert_file and key_file without the other`, "name both, or none")
		}
		if t.Insecure && t.CAFile != "" {
			d.report(catalog.CodeConfigConflict, d.value("kafka.tls.insecure"), `"kafka.tls.insecure" accepts any certificate, so that ca_file does nothing`, "remove one of the two")
		}
	}
	if d.has("kafka.sasl") {
		k.SASL = &catalog.KafkaSASL{Mechanism: catalog.SASLMechanism(f.Kafka.SASL.Mechanism), Username: f.Kafka.SASL.Username, Password: f.Kafka.SASL.Password}
	}
	return k
}

func buildConnector(s *catalog.Source, f *SourceFile, d *document) *catalog.Connector {
	c := &catalog.Connector{
		Name:           orDefault(f.Connector.Name, "lakeweir-"+s.Name),
		URL:            f.Connector.ConnectURL,
		TopicPrefix:    orDefault(f.Connector.TopicPrefix, s.Name),
		Format:         catalog.MessageFormat(orDefault(f.Connector.Format, string(catalog.FormatJSONSchema))),
		SchemaRegistry: f.Connector.SchemaRegistry,
		Properties:     f.Connector.Properties,
	}
	for key, value := range map[string]string{"connector.connect_url": c.URL, "connector.schema_registry": c.SchemaRegistry} {
		if hasPassword(value) {
			d.report(catalog.CodeConfigSecret, d.value(key), fmt.Sprintf("%q holds a password", key), "put a reference in its place, such as http://user:${env:PASSWORD}@host:8083, and replace the password, since the file has shown it")
		}
		if catalog.SecretRef(value).Check() != nil {
			d.report(catalog.CodeConfigReference, d.value(key), fmt.Sprintf("%q has a reference that is neither ${env:NAME} nor ${file:PATH}", key), "write ${env:NAME} for an environment variable, ${file:PATH} for a file")
		}
	}
	_, own := c.Properties["value.converter"]
	switch {
	case c.Format == catalog.FormatAvro && c.SchemaRegistry == "" && !own && !d.refused["connector.schema_registry"]:
		d.report(catalog.CodeConfigMissing, d.value("connector.format"), `"connector.schema_registry" is missing: avro keeps its schemas there`, "add schema_registry: http://host:8081, or write another format")
	case c.Format != catalog.FormatAvro && c.SchemaRegistry != "" && !d.refused["connector.format"]:
		d.report(catalog.CodeConfigConflict, d.key("connector.schema_registry"), fmt.Sprintf(`"connector.schema_registry" means something only with format avro, and it is %s`, c.Format), "remove it, or write format: avro")
	}
	if f.SignalTable != "" {
		table, err := parseTable(f.SignalTable)
		if err != nil {
			d.report(catalog.CodeConfigValue, d.value("signal_table"), fmt.Sprintf("\"signal_table\": %s", err), forms["table"].hint)
		}
		c.SignalTable = table
		if table == s.Heartbeat.Table && err == nil {
			d.report(catalog.CodeConfigConflict, d.value("signal_table"), `"signal_table" is the heartbeat table`, "give the signals a table of their own")
		}
	}
	return c
}

// checkProperties refuses properties that lose or change data, that another key says, or
// that hold a secret.
func checkProperties(s *catalog.Source, f *SourceFile, d *document) {
	for _, name := range slices.Sorted(maps.Keys(f.Connector.Properties)) {
		value, path := f.Connector.Properties[name], "connector.properties."+name
		if catalog.SecretRef(value).Check() != nil {
			d.report(catalog.CodeConfigReference, d.value(path), fmt.Sprintf("%q has a reference that is neither ${env:NAME} nor ${file:PATH}", path), "write ${env:NAME} for an environment variable, ${file:PATH} for a file, of the machine that Lakeweir runs on")
			continue
		}
		if connectorconfig.HoldsSecret(name, value) {
			d.report(catalog.CodeConfigSecret, d.value(path), fmt.Sprintf("%q holds the secret itself", path), "write ${env:NAME} or ${file:PATH} instead, and replace the secret, since the file has shown it")
			continue
		}
		if o := connectorconfig.Object(s, name, value); o != nil && o.Severity == catalog.Blocks {
			d.report(catalog.CodeConfigValue, d.key(path), strings.Replace(o.Message, name, fmt.Sprintf("%q", path), 1), o.Instead)
		}
	}
}
