package worker_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// desk does to the source what a test says and writes to topics what a connector would.
type desk struct {
	*rig
	client *kgo.Client
	commit catalog.LSN // the end of the last transaction
	read   catalog.LSN // where the existing rows were read
	tx     int
	run    string // of the connector's task; empty: records do not say
}

// newDesk makes a rig whose source is read from topics.
func newDesk(t *testing.T, files map[string]string) *desk {
	t.Helper()
	return newDeskOn(t, localpgtest.Database(t), files)
}

// newDeskOn is newDesk on a database that is there.
func newDeskOn(t *testing.T, dsn string, files map[string]string) *desk {
	t.Helper()
	r := newRigOn(t, dsn, "", files)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	r.source.Capture = catalog.Debezium
	r.source.Kafka = &catalog.Kafka{Brokers: cluster.ListenAddrs()}
	r.source.Connector = &catalog.Connector{Name: "lakeweir-shop", TopicPrefix: "shop", Format: catalog.FormatJSON}
	r.sync()
	r.exec("CREATE SCHEMA IF NOT EXISTS lakeweir; CREATE TABLE IF NOT EXISTS lakeweir.heartbeat (id int PRIMARY KEY, at timestamptz)")
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.AllowAutoTopicCreation())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &desk{rig: r, client: client}
}

func (d *desk) end() catalog.LSN {
	var text string
	require.NoError(d.t, d.conn.QueryRow(d.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&text))
	lsn, err := catalog.ParseLSN(text)
	require.NoError(d.t, err)
	return lsn
}

// tell runs a statement and writes what it did as one event; body is its before, after
// and op.
func (d *desk) tell(sql, table, key, body, snapshot string) {
	d.t.Helper()
	lsn := d.end()
	if sql != "" {
		d.exec(sql)
	}
	var at int64
	require.NoError(d.t, d.conn.QueryRow(d.t.Context(), "select (extract(epoch from clock_timestamp()) * 1e6)::int8").Scan(&at))
	d.tx++
	sequence, how := any(nil), any(nil)
	if snapshot != "" {
		if d.read == 0 {
			d.read = lsn
		}
		lsn, how = d.read, snapshot
	}
	if snapshot == "" && d.commit > 0 {
		sequence = strconv.FormatUint(uint64(d.commit), 10)
	}
	pair, err := json.Marshal([]any{sequence, strconv.FormatUint(uint64(lsn), 10)})
	require.NoError(d.t, err)
	value := map[string]any{}
	require.NoError(d.t, json.Unmarshal([]byte(body), &value))
	schema, name, _ := strings.Cut(table, ".")
	value["source"] = map[string]any{"lsn": lsn, "sequence": string(pair), "txId": d.tx, "ts_us": at, "ts_ms": at / 1000, "snapshot": how, "schema": schema, "table": name}
	text, err := json.Marshal(value)
	require.NoError(d.t, err)
	d.produce(table, key, string(text))
	d.commit = d.end()
}

func (d *desk) produce(table, key, value string) {
	d.t.Helper()
	rec := &kgo.Record{Topic: "shop." + table, Value: []byte(value)}
	if key != "" {
		rec.Key = []byte(key)
	}
	if d.run != "" {
		rec.Headers = []kgo.RecordHeader{{Key: "__debezium.context.runId", Value: []byte(d.run)}}
	}
	require.NoError(d.t, d.client.ProduceSync(d.t.Context(), rec).FirstErr())
}

// beat writes a heartbeat.
func (d *desk) beat() {
	d.tell("", "lakeweir.heartbeat", `{"id":1}`, `{"before":null,"after":{"id":1,"at":"2026-11-30T00:00:00Z"},"op":"u"}`, "")
}

// beatUntil writes heartbeats until every table is as ok says.
func (d *desk) beatUntil(ok func(*registry.TableView) bool) {
	d.t.Helper()
	d.wait(func(v *registry.TableView) bool {
		if !ok(v) {
			d.beat()
			return false
		}
		return true
	})
}

// whileBeating does something while heartbeats go on.
func whileBeating[T any](d *desk, do func() T) T {
	d.t.Helper()
	done := make(chan T, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case out := <-done:
			return out
		case <-tick.C:
			d.beat()
		}
	}
}

// proved compares all tables, while heartbeats go on.
func (d *desk) proved() {
	d.t.Helper()
	results := whileBeating(d, func() map[string]*reconcile.Result { return d.compare(reconcile.Config{}) })
	require.Len(d.t, results, len(d.tables))
	for name, result := range results {
		require.True(d.t, result.Equal(), result.Text())
		require.Equal(d.t, result.SourceRows, result.LakeRows, name)
	}
}

// TestASourceIsReplicatedFromTopics: rows, history, where they stood, a proof that all
// is equal, a record that cannot be read, and a restart.
func TestASourceIsReplicatedFromTopics(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{
		"public.orders.yaml": "table: public.orders\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.idle.yaml":   "table: public.idle\nprimary_key: [id]\nscd: [1]\n",
	})
	d.exec("CREATE TABLE orders (id int PRIMARY KEY, note text, amount numeric(12,2), twice int GENERATED ALWAYS AS (id * 2) STORED)")
	d.exec("CREATE TABLE idle (id int PRIMARY KEY)")
	d.tell("INSERT INTO orders VALUES (1, 'one', 1.10)", "public.orders", `{"id":1}`, `{"before":null,"after":{"id":1,"note":"one","amount":"1.10","twice":2},"op":"r"}`, "first")
	d.tell("INSERT INTO orders VALUES (2, 'two', 2.20)", "public.orders", `{"id":2}`, `{"before":null,"after":{"id":2,"note":"two","amount":"2.20","twice":4},"op":"r"}`, "last")
	d.tell("UPDATE orders SET note = 'uno' WHERE id = 1", "public.orders", `{"id":1}`, `{"before":null,"after":{"id":1,"note":"uno","amount":"1.10"},"op":"u"}`, "")
	d.tell("DELETE FROM orders WHERE id = 2", "public.orders", `{"id":2}`, `{"before":{"id":2,"note":"","amount":"0"},"after":null,"op":"d"}`, "")
	d.produce("public.orders", `{"id":2}`, "")
	d.tell("INSERT INTO orders VALUES (3, 'drei', NULL)", "public.orders", `{"id":3}`, `{"before":null,"after":{"id":3,"note":"drei","amount":null},"op":"c"}`, "")
	d.start()
	want := d.end()
	streams := func(v *registry.TableView) bool { return v.State == catalog.Streaming && v.BronzeThrough >= want }
	d.beatUntil(streams)
	d.proved()
	require.False(t, d.state("public.idle").FreshAt.IsZero(), "an idle table that was read up to now is fresh")
	columns, bronze := d.rows("public.orders", catalog.Bronze)
	require.Subset(t, columns, []string{"_topic", "_topic_partition", "_offset"})
	require.Len(t, bronze, 5)
	offsets := map[string]bool{}
	for _, row := range bronze {
		require.Equal(t, "shop.public.orders", row["_topic"])
		require.Equal(t, "0", row["_topic_partition"])
		offsets[row["_offset"]] = true
	}
	require.Equal(t, map[string]bool{"0": true, "1": true, "2": true, "3": true, "5": true}, offsets)

	// A record that cannot be read stops its table alone, until it is passed by.
	d.produce("public.orders", `{"id":4}`, `{"after":{"id":4`)
	d.tell("INSERT INTO orders VALUES (5, 'five', 5)", "public.orders", `{"id":5}`, `{"before":null,"after":{"id":5,"note":"five","amount":"5.00"},"op":"c"}`, "")
	d.beatUntil(func(v *registry.TableView) bool { return v.Name.Name == "idle" || v.State == catalog.Quarantined })
	want = d.end()
	d.beatUntil(func(v *registry.TableView) bool { return v.Name.Name == "orders" || streams(v) })
	fault := d.state("public.orders").Fault
	require.Equal(t, catalog.CodeDecode, fault.Code)
	require.Contains(t, fault.Message, "topic shop.public.orders, partition 0, offset 6")
	require.NoError(t, d.registry.AddSkip(t.Context(), "shop", registry.Skip{Table: "public.orders", Partition: 0, Offset: 6, Reason: "broken by hand", By: "ann"}))
	d.stop()
	d.start()
	d.beatUntil(streams)
	d.proved()
	_, bronze = d.rows("public.orders", catalog.Bronze)
	require.Len(t, bronze, 6, "no event stands twice")
	d.stop()
	view, err := d.registry.Table(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	var kinds []registry.EventKind
	for _, e := range view.Events {
		kinds = append(kinds, e.Kind)
	}
	require.Contains(t, kinds, registry.SkipAsked)
	require.Contains(t, kinds, registry.RecordSkipped)
}

// TestRowsThatMayBeMissingAreToldInTheTablesLife: a connector that was restarted in the
// midst of a COPY went on behind the rows that share a place.
func TestRowsThatMayBeMissingAreToldInTheTablesLife(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"public.orders.yaml": "table: public.orders\nprimary_key: [id]\nscd: [1]\n"})
	d.exec("CREATE TABLE orders (id int PRIMARY KEY)")
	d.tell("INSERT INTO orders VALUES (1)", "public.orders", `{"id":1}`, `{"before":null,"after":{"id":1},"op":"r"}`, "last")
	d.run = "01a228d2-5967-7305-804a-000000000001"
	at := d.end()
	d.exec("INSERT INTO orders VALUES (2), (3)")
	for id := 2; id <= 3; id++ {
		d.produce("public.orders", fmt.Sprintf(`{"id":%d}`, id), fmt.Sprintf(
			`{"before":null,"after":{"id":%d},"op":"c","source":{"lsn":%d,"sequence":"[\"%d\",\"%d\"]","txId":900,"ts_us":1,"snapshot":null,"schema":"public","table":"orders"}}`, id, at, d.commit, at))
	}
	d.run = "01a228d2-5967-7305-804a-000000000002"
	d.tell("INSERT INTO orders VALUES (7)", "public.orders", `{"id":7}`, `{"before":null,"after":{"id":7},"op":"c"}`, "")
	d.start()
	want := d.end()
	d.beatUntil(func(v *registry.TableView) bool { return v.State == catalog.Streaming && v.BronzeThrough >= want })
	d.stop()
	view, err := d.registry.Table(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	var told []string
	for _, e := range view.Events {
		if e.Kind == registry.MaybeMissing {
			told = append(told, string(e.Detail))
		}
	}
	require.Len(t, told, 1)
	for _, part := range []string{"topic shop.public.orders, partition 0, offset 3", at.String(), "row 2", "lakeweir reconcile shop/public.orders", "01a228d259677305804a000000000001"} {
		require.Contains(t, told[0], part)
	}
}

// TestWhatAConnectorWillLoseIsFoundBeforeItRuns by the check of the source, in the words
// of docs/debezium-values.md.
func TestWhatAConnectorWillLoseIsFoundBeforeItRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"public.orders.yaml": "table: public.orders\nprimary_key: [id]\nscd: [1]\n", "public.fine.yaml": "table: public.fine\nprimary_key: [id]\nscd: [1]\n"})
	d.exec(`CREATE TABLE orders (id int PRIMARY KEY, spans interval[], prices numeric(8,2)[], opens timetz, lasts interval, tags text[]);
		CREATE TABLE fine (id int PRIMARY KEY, v text); CREATE DOMAIN short_spans AS interval[]; ALTER TABLE orders ADD short short_spans`)
	about := func() map[catalog.Severity][]string {
		list, err := worker.Preflight(t.Context(), d.source, d.tables, catalog.Secret(d.dsn))
		require.NoError(t, err)
		out := map[catalog.Severity][]string{}
		for _, f := range list {
			if f.Code == catalog.CodeSourceDebezium {
				require.Equal(t, "public.orders", f.Table)
				out[f.Severity] = append(out[f.Severity], f.Message)
			}
		}
		return out
	}
	found := about()
	require.Len(t, found[catalog.Blocks], 1)
	require.Contains(t, found[catalog.Blocks][0], "spans (interval[]), short (short_spans) of public.orders never comes")
	require.Len(t, found[catalog.Limits], 3)
	require.Contains(t, found[catalog.Limits][0], "prices (numeric(8,2)[])")
	require.NotContains(t, found[catalog.Limits][0], "tags")
	require.Contains(t, found[catalog.Limits][2], "stops the connector")
	require.Len(t, found[catalog.Notes], 1)

	// What the fixes say mends it.
	d.exec(`ALTER TABLE "public"."orders" REPLICA IDENTITY FULL`)
	found = about()
	require.Len(t, found[catalog.Limits], 2)
	require.NotContains(t, strings.Join(found[catalog.Limits], ""), "prices")
	d.exec("ALTER TABLE orders REPLICA IDENTITY DEFAULT") // whole rows and column lists exclude each other
	d.exec("CREATE PUBLICATION " + d.source.Publication + " FOR TABLE orders (id, lasts, tags), fine")
	found = about()
	require.Empty(t, found[catalog.Blocks])
	require.Empty(t, found[catalog.Limits])
	d.exec(`ALTER TABLE "public"."orders" ADD CHECK (extract(timezone FROM "opens")::int % 60 = 0)`)
	d.exec(`ALTER TABLE "public"."orders" ADD CHECK (abs(extract(hour FROM "lasts")) <= 2147483647)`)
	_, err := d.conn.Exec(t.Context(), "INSERT INTO orders (id, opens) VALUES (1, '12:00:00-08:30:15')")
	require.ErrorContains(t, err, "check constraint")
	_, err = d.conn.Exec(t.Context(), "INSERT INTO orders (id, lasts) VALUES (2, '2147483648:00:00')")
	require.ErrorContains(t, err, "check constraint")
	d.exec("INSERT INTO orders (id, opens, lasts) VALUES (3, '12:00:00+05:30', '2147483647:59:59')")
}
