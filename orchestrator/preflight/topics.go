package preflight

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/catalog/kafkaclient"
)

// topicFacts are what is known of a table's topic.
type topicFacts struct {
	exists     bool
	err        error // why nothing is known
	partitions int
	// Settings as Kafka has them; nil when the brokers do not tell them.
	config map[string]string
}

const askTimeout = 20 * time.Second

// Topics looks at the topic of each table. The client is the caller's; it is not closed.
func Topics(ctx context.Context, client *kgo.Client, source *catalog.Source, tables []*catalog.Table) []catalog.Finding {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = source.Connector.Topic(t.Name)
	}
	facts, err := gather(ctx, kadm.NewClient(client), names)
	if e := kafkaclient.Refused(source, err); e != nil {
		return []catalog.Finding{{Severity: catalog.Blocks, Code: e.Code, Source: source.Name, Message: e.Message, Fix: e.Hint}}
	}
	if err != nil {
		return []catalog.Finding{{
			Severity: catalog.Blocks, Code: catalog.CodeKafkaUnreachable, Source: source.Name, Fix: "see that the brokers run, and that kafka.brokers, tls and sasl in source.yaml are right",
			Message: fmt.Sprintf("Kafka at %s does not answer: %s", strings.Join(source.Kafka.Brokers, ", "), err),
		}}
	}
	var out []catalog.Finding
	for i, t := range tables {
		out = append(out, judge(source, t, names[i], facts[names[i]])...)
	}
	return out
}

func gather(ctx context.Context, admin *kadm.Client, names []string) (map[string]topicFacts, error) {
	out := map[string]topicFacts{}
	if len(names) == 0 {
		return out, nil
	}
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, d := range details {
		f := topicFacts{exists: details.Has(d.Topic), partitions: len(d.Partitions)}
		if !f.exists && d.Err != nil && !isUnknown(d.Err) {
			f.err = d.Err
		}
		if f.exists {
			there = append(there, d.Topic)
		}
		out[d.Topic] = f
	}
	if len(there) == 0 {
		return out, nil
	}
	configs, err := admin.DescribeTopicConfigs(ctx, there...)
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		f := out[c.Name]
		if f.err = c.Err; c.Err == nil {
			f.config = map[string]string{}
			for _, e := range c.Configs {
				f.config[e.Key] = e.MaybeValue()
			}
		}
		out[c.Name] = f
	}
	return out, nil
}

// judge says what is wrong with the topic of one table.
func judge(source *catalog.Source, t *catalog.Table, topic string, f topicFacts) []catalog.Finding {
	var out []catalog.Finding
	add := func(severity catalog.Severity, code catalog.Code, fix, format string, args ...any) {
		out = append(out, catalog.Finding{Severity: severity, Code: code, Source: source.Name, Table: t.Name.String(), Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	if !f.exists {
		if f.err != nil {
			add(catalog.Limits, catalog.CodeKafkaUnreachable, "grant DESCRIBE on the topic to the worker's user", "topic %s cannot be looked at: %s", topic, f.err)
			return out
		}
		add(catalog.Limits, catalog.CodeTopicMissing, "start the connector, which makes it; a table without rows gets its topic with its first change",
			"%s has no topic %s yet", t.Name, topic)
		return out
	}
	if f.partitions > 1 {
		add(catalog.Limits, catalog.CodeTopicPartitions, "make topics of one partition: topic.creation.default.partitions=1, which is what Lakeweir sets; a topic's partitions cannot be taken away, so the table needs a new one",
			"topic %s has %d partitions: changes of %s are in commit order only within each, a transaction may be seen in parts, and keys moved between partitions in the wrong order", topic, f.partitions, t.Name)
	}
	if f.config == nil {
		add(catalog.Notes, catalog.CodeKafkaUnreachable, "grant DESCRIBE_CONFIGS on the topic to the worker's user", "the settings of topic %s cannot be seen, and nothing is known of its retention", topic)
		return out
	}
	alter := "kafka-configs.sh --alter --entity-type topics --entity-name " + topic + " --add-config "
	if strings.Contains(f.config["cleanup.policy"], "compact") {
		add(catalog.Blocks, catalog.CodeTopicCompacted, alter+"cleanup.policy=delete", "topic %s is compacted (cleanup.policy=%s): all but the newest change of a key is lost, and history has holes", topic, f.config["cleanup.policy"])
	}
	if strings.Contains(cmp.Or(f.config["cleanup.policy"], "delete"), "delete") {
		judgeRetention(add, alter, topic, t, f.config)
	}
	if n, err := strconv.ParseInt(f.config["max.message.bytes"], 10, 64); err == nil && n < leastMessage {
		add(catalog.Limits, catalog.CodeTopicMessageSize, alter+"max.message.bytes="+strconv.Itoa(connectorconfig.MaxMessageBytes),
			"topic %s takes messages of %d bytes at most: a larger row of %s stops the connector, and with it every table", topic, n, t.Name)
	}
	return out
}

// leastMessage is a message that most rows fit into, before and after a change.
const leastMessage = 8 << 20

// judgeRetention asks whether a worker finds the changes that it has not read yet.
func judgeRetention(add func(catalog.Severity, catalog.Code, string, string, ...any), alter, topic string, t *catalog.Table, config map[string]string) {
	fix := alter + "retention.ms=" + strconv.Itoa(connectorconfig.RetentionMillis)
	if ms, err := strconv.ParseInt(config["retention.ms"], 10, 64); err == nil && ms >= 0 {
		kept := time.Duration(min(ms, int64(1<<62)/int64(time.Millisecond))) * time.Millisecond
		switch bound := t.Tier.Bound(); {
		case kept < 2*bound:
			add(catalog.Blocks, catalog.CodeTopicRetention, fix, "topic %s keeps changes for %s (retention.ms), and %s is folded within %s: changes would be gone before they are read", topic, kept, t.Name, bound)
		case ms < connectorconfig.LeastRetention:
			add(catalog.Limits, catalog.CodeTopicRetention, fix, "topic %s keeps changes for %s (retention.ms), less than three days: a table that is stopped over a weekend has a gap", topic, kept)
		}
	}
	if n, err := strconv.ParseInt(config["retention.bytes"], 10, 64); err == nil && n >= 0 {
		add(catalog.Limits, catalog.CodeTopicRetention, alter+"retention.bytes=-1", "topic %s keeps %d bytes of each partition (retention.bytes): how long that is depends on the load", topic, n)
	}
}
