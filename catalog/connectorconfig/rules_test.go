package connectorconfig

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func debezium() *catalog.Source {
	return &catalog.Source{
		Name: "shop", Kind: catalog.Postgres, Capture: catalog.Debezium, Snapshot: catalog.SnapshotOptions{ChunkRows: 10_000},
		Heartbeat: catalog.Heartbeat{Interval: 10 * time.Second, Table: catalog.TableName{Schema: "lakeweir", Name: "heartbeat"}},
		Slot:      "lakeweir_shop", Publication: "lakeweir_shop", Connection: "postgres://u:${env:P}@h/d", File: "shop/source.yaml",
		Connector: &catalog.Connector{Name: "lakeweir-shop", TopicPrefix: "shop", Format: catalog.FormatJSONSchema},
	}
}

func table(schema, name string) *catalog.Table {
	return &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: schema, Name: name}}
}

// TestPropertiesThatLoseOrChangeDataAreRefused has one line for each way that is known.
func TestPropertiesThatLoseOrChangeDataAreRefused(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]catalog.Severity{
		"skipped.operations=t": catalog.Blocks, "skipped.operations=t,d": catalog.Blocks, "skipped.operations=NONE": "",
		"tombstones.on.delete=false":                     catalog.Limits,
		"value.converter.replace.null.with.default=true": catalog.Blocks,
		"decimal.handling.mode=double":                   catalog.Blocks, "decimal.handling.mode=precise": catalog.Limits,
		"time.precision.mode=connect": catalog.Blocks, "time.precision.mode=isostring": catalog.Blocks, "time.precision.mode=nanoseconds": catalog.Blocks, "time.precision.mode=adaptive": "",
		"interval.handling.mode=numeric": catalog.Blocks, "binary.handling.mode=hex": catalog.Blocks, "binary.handling.mode=bytes": "",
		"include.unknown.datatypes=false": catalog.Blocks,
		"snapshot.mode=no_data":           catalog.Blocks, "snapshot.mode=never": catalog.Blocks, "snapshot.mode=initial_only": catalog.Blocks, "snapshot.mode=custom": catalog.Blocks, "snapshot.mode=always": catalog.Limits, "snapshot.mode=when_needed": catalog.Limits,
		"snapshot.select.statement.overrides": catalog.Blocks, "snapshot.select.statement.overrides.public.orders=SELECT 1": catalog.Blocks, "snapshot.include.collection.list=x": catalog.Blocks,
		"snapshot.isolation.mode=read_committed": catalog.Blocks,
		"publication.name=x":                     catalog.Blocks, "slot.name=x": catalog.Blocks, "topic.prefix=x": catalog.Blocks, "database.dbname=x": catalog.Blocks,
		"publication.autocreate.mode=filtered": catalog.Blocks, "slot.drop.on.stop=true": catalog.Blocks,
		"offset.mismatch.strategy=trust_slot": catalog.Blocks, "offset.mismatch.strategy=trust_greater_lsn": catalog.Blocks, "offset.mismatch.strategy=no_validation": catalog.Limits,
		"table.include.list=x": catalog.Blocks, "table.exclude.list=x": catalog.Blocks, "schema.include.list=x": catalog.Blocks, "database.include.list=x": catalog.Blocks,
		"column.exclude.list=x": catalog.Blocks, "column.include.list=x": catalog.Blocks, "column.truncate.to.20.chars=x": catalog.Blocks, "column.mask.hash.SHA-256.with.salt.x=x": catalog.Blocks, "column.propagate.source.type=.*": "",
		"transforms=unwrap": catalog.Blocks, "transforms.route.type=x": catalog.Blocks, "predicates=x": catalog.Blocks, "converters=x": catalog.Blocks, "post.processors=x": catalog.Blocks,
		"message.key.columns=x": catalog.Blocks, "topic.naming.strategy=x": catalog.Blocks, "topic.naming.strategy=io.debezium.schema.SchemaTopicNamingStrategy": "", "snapshot.max.threads=4": catalog.Limits, "topic.delimiter=_": catalog.Blocks,
		"event.processing.failure.handling.mode=warn": catalog.Blocks, "event.converting.failure.handling.mode=skip": catalog.Blocks, "errors.tolerance=all": catalog.Blocks,
		"skip.messages.without.change=true": catalog.Blocks, "unavailable.value.placeholder=x": catalog.Blocks, "plugin.name=decoderbufs": catalog.Blocks,
		"producer.override.acks=1": catalog.Blocks, "producer.override.acks=-1": "", "producer.override.max.in.flight.requests.per.connection=5": catalog.Limits,
		"topic.creation.default.cleanup.policy=compact,delete": catalog.Blocks, "topic.creation.default.partitions=6": catalog.Limits, "topic.creation.large.cleanup.policy=compact": catalog.Blocks, "topic.creation.large.retention.ms=1": catalog.Limits,
		"topic.creation.default.retention.ms=60000": catalog.Limits, "topic.creation.default.retention.ms=-1": "", "topic.creation.default.retention.ms=7d": catalog.Blocks,
		"value.converter=x": catalog.Blocks, "value.converter.schemas.enable=false": catalog.Blocks, "heartbeat.interval.ms=1": catalog.Blocks, "signal.data.collection=x": catalog.Blocks,
		"tasks.max=2": catalog.Blocks, "connector.class=x": catalog.Blocks, "name=x": catalog.Blocks,
		"database.hostname=h": "", "database.user=u": "", "max.batch.size=1": "", "producer.override.security.protocol=SSL": "", "slot.failover=true": "", "provide.transaction.metadata=true": "",
		"max_batch_size=1": catalog.Blocks, "snapshot.mod=initial": catalog.Blocks, "something.new=1": catalog.Limits,
	} {
		name, value, _ := strings.Cut(property, "=")
		o := Object(debezium(), name, value)
		if want == "" {
			require.Nil(t, o, property)
			continue
		}
		require.NotNil(t, o, property)
		require.Equal(t, want, o.Severity, property)
		require.Contains(t, o.Message, name)
		require.NotEmpty(t, o.Instead, property)
	}
}

func TestWhatWeRecommendHasNothingAgainstIt(t *testing.T) {
	t.Parallel()
	for _, format := range []catalog.MessageFormat{catalog.FormatJSON, catalog.FormatJSONSchema, catalog.FormatAvro} {
		s := debezium()
		s.Connector.Format, s.Connector.SignalTable = format, catalog.TableName{Schema: "lakeweir", Name: "signals"}
		c, err := Render(s, []*catalog.Table{table("public", "orders"), table("My.Schema", "a,b$c")})
		require.NoError(t, err)
		require.Empty(t, c.Notes)
		for name, value := range c.Properties {
			require.Nil(t, judge(name, value), name)
			require.Nil(t, unknown(name), name)
		}
		require.Empty(t, Review(s, []*catalog.Table{table("public", "orders"), table("My.Schema", "a,b$c")}, c.Properties))
	}
}

func TestADefaultThatLosesDataIsFoundToo(t *testing.T) {
	t.Parallel()
	s := debezium()
	c, err := Render(s, nil)
	require.NoError(t, err)
	for _, name := range []string{"skipped.operations", "value.converter.replace.null.with.default", "include.unknown.datatypes", "interval.handling.mode", "event.converting.failure.handling.mode", "decimal.handling.mode", "publication.autocreate.mode", "plugin.name", "offset.mismatch.strategy"} {
		deployed := maps.Clone(c.Properties)
		delete(deployed, name)
		found := Review(s, nil, deployed)
		require.Len(t, found, 1, name)
		require.Contains(t, found[0].Message, "does not set "+name)
	}
}

func TestADeployedConnectorIsComparedWithItsSource(t *testing.T) {
	t.Parallel()
	s := debezium()
	tables := []*catalog.Table{table("public", "orders"), table("public", "payments")}
	c, err := Render(s, tables)
	require.NoError(t, err)
	for change, want := range map[string]string{
		"table.include.list=public\\.orders":      "public.payments is not on table.include.list",
		"table.include.list=PUBLIC.*":             "",
		"table.include.list=":                     "",
		"table.exclude.list=public.pay.*":         "public.payments is on table.exclude.list",
		"schema.include.list=app":                 "schema public is not on schema.include.list",
		"schema.exclude.list=public":              "schema public is on schema.exclude.list",
		"topic.prefix=other":                      "topic.prefix is other, not shop",
		"slot.name=other":                         "slot.name is other, not lakeweir_shop",
		"publication.name=other":                  "publication.name is other",
		"value.converter.schemas.enable=false":    "writes json, source.yaml says json_schema",
		"transforms=route":                        "transforms is refused",
		"column.truncate.to.9.chars=public.x.y":   "column.truncate.to.9.chars is refused",
		"table.include.list=[,public\\.orders.*,": "public.payments is not on",
	} {
		name, value, _ := strings.Cut(change, "=")
		deployed := maps.Clone(c.Properties)
		deployed[name] = value
		found := Review(s, tables, deployed)
		if want == "" {
			require.Empty(t, found, change)
			continue
		}
		require.NotEmpty(t, found, change)
		require.True(t, slices.ContainsFunc(found, func(f catalog.Finding) bool { return strings.Contains(f.Message, want) && f.Fix != "" }), "%s: %v", change, found)
	}
}

func TestSecretsAreKnownByNameAndForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, shown string }{
		{"database.password", "hunter2", "***"},
		{"database.password", "${env:P}", "${env:P}"},
		{"value.converter.basic.auth.user.info", "u:p", "***"},
		{"producer.override.sasl.jaas.config", `M required username="u" password="p";`, "***"},
		{"producer.override.sasl.jaas.config", `M required username="${env:U}" password="p";`, `M required username="${env:U}" password=***;`},
		{"value.converter.schema.registry.url", "http://u:p@h", "http://u:***@h"},
		{"value.converter.schema.registry.url", "http://u:${env:P}@h", "http://u:${env:P}@h"},
		{"topic.prefix", "shop", "shop"},
	} {
		require.Equal(t, c.shown, Show(c.name, c.value))
		require.Equal(t, c.shown != c.value, HoldsSecret(c.name, c.value))
	}
}

// TestSettingsReferenceIsGenerated also is the generator, with -update.
func TestSettingsReferenceIsGenerated(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString(`# What the connector is told, and why

<!-- Generated by go test ./catalog/connectorconfig -update. Do not edit. -->

The properties of a source's Debezium connector, as ` + "`lakeweir connector render SOURCE`" + ` prints
them. [connector.md](../connector.md) says who deploys it and how.

## Set by Lakeweir

Where a key of source.yaml is named, that key says the property; the others may be set under
` + "`connector.properties`" + `, as far as the second table lets them.

| property | value | from | why |
| --- | --- | --- | --- |
`)
	for _, s := range Settings() {
		require.NotEmpty(t, s.Reason, s.Name)
		key := ""
		if s.Key != "" {
			key = "`" + s.Key + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, cell(s.Shown), key, cell(s.Reason))
	}
	b.WriteString(`
## Refused, or allowed with a warning

` + "`lakeweir validate`" + ` refuses these under ` + "`connector.properties`" + `, and the checks of
` + "`lakeweir run --check`" + ` find them in a connector that somebody else has deployed, also where a
property is left out and Debezium's default does harm.

| property | fine | with a warning | otherwise |
| --- | --- | --- | --- |
`)
	for _, r := range rules {
		var risky []string
		for _, v := range slices.Sorted(maps.Keys(r.risky)) {
			risky = append(risky, "`"+v+"`: "+r.risky[v])
		}
		harm := r.harm
		switch {
		case r.absent != "":
			harm += fmt.Sprintf(" (default: `%s`)", r.absent)
		case r.mild:
			harm = "with a warning: " + harm
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, code(r.fine), cell(strings.Join(risky, "; ")), cell(harm))
	}
	b.WriteString("\nNone of these may be set at all:\n\n| property | why | instead |\n| --- | --- | --- |\n")
	for _, f := range families {
		fmt.Fprintf(&b, "| `%s` and what begins with it | %s | %s |\n", strings.TrimSuffix(f.prefix, "."), cell(f.harm), cell(f.instead))
	}
	golden(t, "../../docs/reference/connector-settings.md", b.Bytes())
}

// cell is a text in a table of Markdown; what is in backquotes needs no escape.
func cell(s string) string {
	parts := strings.Split(s, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "<", "\\<")
	}
	return strings.ReplaceAll(strings.Join(parts, "`"), "|", "\\|")
}

func code(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}
