package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// The shop comes as Avro in Confluent's wire format, its schemas from a registry, from
// the first row to changes that are made while it is read. Then source and lake are equal.
// Changes that the connector never saw are found, and their rows read again through it.
func TestShopThroughDebeziumAsAvro(t *testing.T) {
	stacktest.Require(t)
	bin := program(t)
	on := stacktest.Start(t, stack.Config{Debezium: true, Postgres: true})
	schemas, err := stack.NewSchemaRegistry(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = schemas.Close() })
	converters := schemas.Converter("value.converter")
	maps.Copy(converters, schemas.Converter("key.converter"))
	properties, err := json.Marshal(converters) // which is YAML, too
	require.NoError(t, err)

	dir := t.TempDir()
	s := &stand{t: t, bin: bin, dsn: on.Postgres.DSN("postgres")}
	s.flags = []string{"--catalog", "sqlite://" + filepath.Join(dir, "catalog.db"), "--warehouse", "file://" + filepath.Join(dir, "lake")}
	s.prepare("debezium", "heartbeat: {interval: 1s}\nkafka: {brokers: ["+strconv.Quote(on.Kafka.Address)+"]}\n"+
		"connector: {connect_url: "+strconv.Quote(on.Connect.URL)+", format: avro, schema_registry: "+strconv.Quote(schemas.URL)+", properties: "+string(properties)+"}\nsignal_table: lakeweir.signals\n", shopFiles())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	require.NoError(t, demo.Setup(t.Context(), s.dsn, 300))
	s.start()
	s.landed(len(demo.Tables()))
	shop := openShop(t, s.dsn, 100, seed)
	s.moved("orders")
	s.kill() // the next one asks the registry for its schemas anew
	s.start()
	s.moved("orders")
	changes := shop.close()
	t.Logf("%d changes in %d transactions", changes.Changes(), changes.Transactions)
	s.landed(len(demo.Tables()))
	s.reconciled()
	s.changedUnseen()
	out, err := s.command("reconcile", "--config", s.config, "--repair").Output()
	require.NoError(t, err, "%s", out)
	t.Logf("reconcile --repair:\n%s", out)
	s.reconciled()
	s.stop()
	requireAvro(t, on, "shop.public.orders")
}

// changedUnseen changes rows while the publication does not have their tables: by keys
// that are numbers, several columns, and a uuid.
func (s *stand) changedUnseen() {
	s.t.Helper()
	var publication string
	require.NoError(s.t, s.conn.QueryRow(s.t.Context(), "select pubname::text from pg_publication").Scan(&publication))
	const tables = "documents, order_items, payments"
	s.exec("alter publication " + publication + " drop table " + tables)
	for _, sql := range []string{
		"update documents set title = 'unseen' where document_id = (select min(document_id) from documents)",
		"delete from documents where document_id = (select max(document_id) from documents)",
		"insert into documents (document_id, order_id, title, body) values (99999999, 1, 'unseen', repeat('y', 9000))",
		"update order_items set quantity = quantity + 1 where (order_id, line_no) = (select order_id, line_no from order_items order by 1, 2 limit 1)",
		"delete from order_items where (order_id, line_no) = (select order_id, line_no from order_items order by 1 desc, 2 desc limit 1)",
		"update payments set provider = 'unseen' where payment_id = (select payment_id from payments order by 1 limit 1)",
	} {
		s.exec(sql)
	}
	s.exec("alter publication " + publication + " add table " + tables)
}

// requireAvro requires that a topic's first record has key and value in Avro.
func requireAvro(t *testing.T, on *stack.Stack, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(on.Kafka.Address), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	records := client.PollFetches(ctx).Records()
	require.NotEmpty(t, records)
	require.Zero(t, records[0].Value[0], "Confluent's magic byte")
	require.Zero(t, records[0].Key[0])
	require.Less(t, len(records[0].Value), 1000, "without its schema")
}
