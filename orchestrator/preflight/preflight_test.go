package preflight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/orchestrator/connect/connecttest"
)

func source(brokers ...string) *catalog.Source {
	return &catalog.Source{
		Name: "shop", Kind: catalog.Postgres, Capture: catalog.Debezium, Connection: "host=db user=cdc", Slot: "lakeweir_shop", Publication: "lakeweir_shop", File: "shop/source.yaml",
		Kafka:     &catalog.Kafka{Brokers: brokers},
		Connector: &catalog.Connector{Name: "lakeweir-shop", TopicPrefix: "shop", Format: catalog.FormatJSONSchema},
	}
}

func table(name string) *catalog.Table {
	return &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: name}, Tier: catalog.Tier1m}
}

// words are findings in lines.
func words(list []catalog.Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s %s: %s\n", f.Severity, f.Code, f.Table, f.Message)
	}
	return b.String()
}

func TestTopicsAreLookedAt(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	s := source(cluster.ListenAddrs()...)
	client, err := NewClient(s, "")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	topic := func(name string, partitions int32, config map[string]string) *catalog.Table {
		values := map[string]*string{}
		for k, v := range config {
			values[k] = &v
		}
		_, err := admin.CreateTopic(t.Context(), partitions, 1, values, "shop.public."+name)
		require.NoError(t, err)
		return table(name)
	}
	good := map[string]string{"cleanup.policy": "delete", "retention.ms": "604800000", "max.message.bytes": "16777216"}
	with := func(key, value string) map[string]string {
		out := map[string]string{key: value}
		for k, v := range good {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	list := Topics(t.Context(), client, s, []*catalog.Table{
		topic("good", 1, good), topic("wide", 6, good), topic("compacted", 1, with("cleanup.policy", "compact")), topic("both", 1, with("cleanup.policy", "compact,delete")),
		topic("day", 1, with("retention.ms", "86400000")), topic("minute", 1, with("retention.ms", "60000")), topic("ever", 1, with("retention.ms", "-1")),
		topic("bytes", 1, with("retention.bytes", "1000000")), topic("small", 1, with("max.message.bytes", "1048588")), table("nowhere"),
	})
	for _, f := range list {
		require.NotEmpty(t, f.Fix)
		require.Equal(t, "shop", f.Source)
	}
	require.Equal(t, `warning topic.partitions public.wide: topic shop.public.wide has 6 partitions: changes of public.wide are in commit order only within each, a transaction may be seen in parts, and keys moved between partitions in the wrong order
error topic.compacted public.compacted: topic shop.public.compacted is compacted (cleanup.policy=compact): all but the newest change of a key is lost, and history has holes
error topic.compacted public.both: topic shop.public.both is compacted (cleanup.policy=compact,delete): all but the newest change of a key is lost, and history has holes
warning topic.retention public.day: topic shop.public.day keeps changes for 24h0m0s (retention.ms), less than three days: a table that is stopped over a weekend has a gap
error topic.retention public.minute: topic shop.public.minute keeps changes for 1m0s (retention.ms), and public.minute is folded within 1m0s: changes would be gone before they are read
warning topic.retention public.bytes: topic shop.public.bytes keeps 1000000 bytes of each partition (retention.bytes): how long that is depends on the load
warning topic.message_bytes public.small: topic shop.public.small takes messages of 1048588 bytes at most: a larger row of public.small stops the connector, and with it every table
warning topic.missing public.nowhere: public.nowhere has no topic shop.public.nowhere yet
`, words(list))
}

func TestATierOfADayNeedsMoreThanADay(t *testing.T) {
	t.Parallel()
	slow := table("slow")
	slow.Tier = catalog.Tier1d
	list := judge(source("x"), slow, "shop.public.slow", topicFacts{exists: true, partitions: 1, config: map[string]string{"retention.ms": "90000000"}})
	require.Len(t, list, 1)
	require.Equal(t, catalog.Blocks, list[0].Severity)
	require.Empty(t, judge(source("x"), slow, "x", topicFacts{exists: true, partitions: 1, config: map[string]string{"retention.ms": "9223372036854775807"}}))
	list = judge(source("x"), slow, "x", topicFacts{exists: true, partitions: 1})
	require.Equal(t, catalog.Notes, list[0].Severity, "settings that are not told are no reason to stop")
}

func TestBrokersThatDoNotAnswerAreAFinding(t *testing.T) {
	t.Parallel()
	s := source("127.0.0.1:1")
	client, err := NewClient(s, "")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	list := Topics(t.Context(), client, s, []*catalog.Table{table("orders")})
	require.Len(t, list, 1)
	require.Equal(t, catalog.CodeKafkaUnreachable, list[0].Code)
	require.Contains(t, list[0].Message, "127.0.0.1:1")
}

func TestAClientThatIsLetInSeesTheTopicsAndOneThatIsNotIsAFinding(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []catalog.SASLMechanism{catalog.SASLPlain, catalog.SASLSHA256, catalog.SASLSHA512} {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(string(mechanism), "lakeweir", "hunter2"))
		require.NoError(t, err)
		t.Cleanup(cluster.Close)
		s := source(cluster.ListenAddrs()...)
		s.Kafka.SASL = &catalog.KafkaSASL{Mechanism: mechanism, Username: "lakeweir"}
		look := func(password catalog.Secret) []catalog.Finding {
			client, err := NewClient(s, password)
			require.NoError(t, err)
			defer client.Close()
			return Topics(t.Context(), client, s, []*catalog.Table{table("orders")})
		}
		require.Equal(t, "warning topic.missing public.orders: public.orders has no topic shop.public.orders yet\n", words(look("hunter2")))

		cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) { // as brokers answer; these close the connection
			cluster.KeepControl()
			resp, ok := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
			if ok {
				resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
			}
			return resp, nil, ok
		})
		list := look("a-wrong-one")
		require.Equal(t, "error kafka.denied : source shop: the brokers refuse the client: SASL_AUTHENTICATION_FAILED: SASL Authentication failed.\n", words(list))
		require.Contains(t, list[0].Fix, "kafka.sasl")
	}
}

func TestTheConnectorIsLookedAt(t *testing.T) {
	t.Parallel()
	server := connecttest.New(t)
	client, err := connect.NewClient(catalog.Secret(server.URL), connect.Limits{First: time.Millisecond})
	require.NoError(t, err)
	s, tables := source("x:1"), []*catalog.Table{table("orders"), table("payments")}
	look := func(kept bool) string { return words(Connector(t.Context(), client, s, tables, kept)) }
	require.Equal(t, "note connector.not_found : connector lakeweir-shop does not exist and will be made\n", look(true))
	require.Contains(t, look(false), "warning connector.not_found : ")

	want, err := connectorconfig.Render(s, tables[:1])
	require.NoError(t, err)
	server.Set("lakeweir-shop", want.Properties)
	require.Equal(t, "error connector.setting public.payments: public.payments is not on table.include.list of connector lakeweir-shop\n", look(false))
	require.Contains(t, look(true), "note connector.setting public.payments")
	server.FailTask("lakeweir-shop", "org.example.Trouble: no more\n\tat x")
	require.Contains(t, look(false), "warning connector.failed : connector lakeweir-shop is RUNNING, task 0 FAILED: Trouble: no more")
}
