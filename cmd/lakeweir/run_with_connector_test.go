package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/connect/connecttest"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// captured is a source that a connector captures, with what runWithConnector needs: a
// Postgres, brokers, a Kafka Connect, a registry and a lake.
type captured struct {
	t      *testing.T
	dsn    string
	server *connecttest.Server
	kafka  *kgo.Client
	reg    *registry.Registry
	cfg    worker.Config
	log    *lines
	app    *App
	end    context.CancelFunc
	done   chan error
}

// lines are a log, safe to read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// newCaptured makes a source of one table; more is added to its source.yaml, in which
// CONNECT stands for the URL of Kafka Connect.
func newCaptured(t *testing.T, connector, more string) *captured {
	t.Helper()
	c := &captured{t: t, dsn: localpgtest.Database(t), server: connecttest.New(t), log: &lines{}}
	c.sql("CREATE TABLE orders (id int PRIMARY KEY, v text)")
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "shop.public.orders"))
	require.NoError(t, err)
	t.Cleanup(brokers.Close)
	c.kafka, err = kgo.NewClient(kgo.SeedBrokers(brokers.ListenAddrs()...))
	require.NoError(t, err)
	t.Cleanup(c.kafka.Close)
	dir := filepath.Join(t.TempDir(), "shop")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{
		"source.yaml": fmt.Sprintf("kind: postgres\ncapture: debezium\nconnection: %q\nkafka: {brokers: [%q]}\nconnector: %s\n%s",
			c.dsn, brokers.ListenAddrs()[0], strings.ReplaceAll(connector, "CONNECT", c.server.URL), more),
		"public.orders.yaml": "table: public.orders\nowner: team\nprimary_key: [id]\nscd: [1]\nfreshness_tier: realtime\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	source, tables, err := loadSource(dir)
	require.NoError(t, err)
	c.reg, err = registry.Open(t.Context(), catalog.Secret(c.dsn))
	require.NoError(t, err)
	t.Cleanup(c.reg.Close)
	require.NoError(t, syncConfig(t.Context(), c.reg, source, tables))
	logger := slog.New(slog.NewTextHandler(c.log, nil))
	c.app = &App{Stdout: io.Discard, Stderr: io.Discard, Log: logger, Env: os.LookupEnv}
	c.cfg = worker.Config{
		Source: source, Tables: tables, DSN: catalog.Secret(c.dsn), Registry: c.reg, Logger: logger,
		Lake: lake.Config{Catalog: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: "file://" + filepath.Join(dir, "lake")},
	}
	return c
}

func (c *captured) sql(sql string) {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.dsn)
	require.NoError(c.t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(c.t.Context())) }()
	_, err = conn.Exec(c.t.Context(), sql)
	require.NoError(c.t, err, sql)
}

// name is the connector's.
func (c *captured) name() string { return c.cfg.Source.Connector.Name }

// row writes what a connector would of the only row that the table has.
func (c *captured) row() {
	c.t.Helper()
	const event = `{"before":null,"after":{"id":1,"v":"one"},"op":"r","source":{"lsn":4096,"sequence":"[null,\"4096\"]","txId":7,"ts_us":1772359201000000,"ts_ms":1772359201000,"snapshot":"last","schema":"public","table":"orders"}}`
	record := &kgo.Record{Topic: "shop.public.orders", Key: []byte(`{"id":1}`), Value: []byte(event)}
	require.NoError(c.t, c.kafka.ProduceSync(c.t.Context(), record).FirstErr())
}

func (c *captured) start() {
	ctx, cancel := context.WithCancel(c.t.Context())
	c.end, c.done = cancel, make(chan error, 1)
	done := c.done
	go func() { done <- runWithConnector(ctx, c.app, c.cfg) }()
	c.t.Cleanup(func() { cancel(); <-done })
}

// stop ends the run as an interrupt does.
func (c *captured) stop() {
	c.t.Helper()
	c.end()
	require.NoError(c.t, <-c.done)
	close(c.done)
}

// failed waits for the error that the run ends with by itself.
func (c *captured) failed() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		close(c.done)
		return err
	case <-time.After(time.Minute):
		require.FailNow(c.t, "the run does not end")
		return nil
	}
}

func (c *captured) until(what string, ok func() bool) {
	c.t.Helper()
	require.Eventually(c.t, ok, time.Minute, 20*time.Millisecond, what)
}

// landed waits until the row is in the lake.
func (c *captured) landed() {
	c.t.Helper()
	c.until("the row lands", func() bool {
		v, err := c.reg.Table(c.t.Context(), "shop", "public.orders")
		return err == nil && v.Table.State == catalog.Streaming && v.Table.Totals.CurrentRows == 1
	})
}

// state is the connector's, as the registry knows it.
func (c *captured) state() (s catalog.ConnectorStatus) {
	fleet, err := c.reg.Fleet(c.t.Context())
	if err == nil && fleet.Sources[0].Connector != nil {
		s = fleet.Sources[0].Connector.ConnectorStatus
	}
	return s
}

// TestRunKeepsTheConnectorBesideTheWorker makes what it needs at the source, then the
// connector, restarts what has failed, and reads the topics.
func TestRunKeepsTheConnectorBesideTheWorker(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, "{connect_url: CONNECT, format: json}", "signal_table: lakeweir.signals\n")
	want, err := connectorconfig.Render(c.cfg.Source, c.cfg.Tables)
	require.NoError(t, err)
	properties, err := want.Resolve()
	require.NoError(t, err)
	properties["poll.interval.ms"] = "7" // somebody changed it
	c.server.Set(c.name(), properties)
	c.server.FailTask(c.name(), "org.example.Trouble: no more\n\tat x")
	c.row()
	c.start()
	c.landed()
	c.until("the connector runs", func() bool { s := c.state(); return s.Running() })
	require.Equal(t, "100", c.server.Config(c.name())["poll.interval.ms"])
	require.Contains(t, strings.Join(c.server.Requests(), "\n"), "POST /connectors/lakeweir-shop/restart")
	require.True(t, c.log.has("started anew with another configuration"), "whoever changes a property may lose rows of a COPY")
	c.sql("SELECT 'lakeweir.heartbeat'::regclass, 'lakeweir.signals'::regclass")
	c.sql("DO $$ BEGIN ASSERT (SELECT count(*) FROM pg_publication_tables WHERE pubname = 'lakeweir_shop') = 3; END $$")
	c.stop()
}

// TestTheConnectorsSlotIsShown by status, get and describe as that of any source.
func TestTheConnectorsSlotIsShown(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, "{connect_url: CONNECT, format: json}", fmt.Sprintf("slot: shown_%d\n", time.Now().UnixNano()))
	c.sql("SELECT pg_create_logical_replication_slot('" + c.cfg.Source.Slot + "', 'pgoutput')") // as the connector does
	c.row()
	c.start()
	c.landed()
	c.until("the slot is seen", func() bool {
		fleet, err := c.reg.Fleet(t.Context())
		return err == nil && fleet.Sources[0].Log != nil && fleet.Sources[0].Log.SlotState == "reserved"
	})
	var out bytes.Buffer
	app := &App{Stdout: &out, Stderr: io.Discard, Log: c.app.Log, Env: os.LookupEnv, Output: "text"}
	require.NoError(t, runStatus(t.Context(), app, StatusOptions{Registry: c.dsn}))
	require.NoError(t, runDescribeSource(t.Context(), app, c.dsn, "shop"))
	require.Regexp(t, `slot reserved, not in use, holds [0-9.]+ [kKMG]?i?B of WAL, budget 10 GiB: ok`, out.String())
	require.Regexp(t, `Slot +reserved, not in use, holds .* budget 10 GiB: ok`, out.String())
	require.Regexp(t, `Log +ends at [0-9A-F]+/[0-9A-F]+, confirmed through [0-9A-F]+/[0-9A-F]+`, out.String())
	out.Reset()
	require.NoError(t, runGetSources(t.Context(), app, GetOptions{Registry: c.dsn}))
	require.Regexp(t, `shop +postgres +debezium .* reserved, not in use .* 10 GiB +ok`, out.String())
	c.stop()
}

// TestRunGoesOnWithoutKafkaConnect: what the topics hold is read, and the registry says
// how the connector is.
func TestRunGoesOnWithoutKafkaConnect(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, "{connect_url: CONNECT, format: json}", "")
	c.server.Down(true)
	c.row()
	c.start()
	c.landed()
	c.until("it is said", func() bool { return c.state().State == catalog.ConnectorUnreachable })
	require.Nil(t, c.server.Config(c.name()))
	c.stop()
}

// TestRunLeavesAConnectorOfOthersAlone and makes only what it needs at the source; that
// this fails keeps nothing from being read.
func TestRunLeavesAConnectorOfOthersAlone(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("away %t", away), func(t *testing.T) {
			t.Parallel()
			c := newCaptured(t, "{format: json}", "")
			if away {
				c.cfg.Source.Connection = "postgres://nobody@127.0.0.1:1/nothing"
			}
			c.row()
			c.start()
			c.landed()
			c.stop()
			require.Equal(t, away, c.log.has("what the connector needs at the source could not be made"))
			c.sql(fmt.Sprintf("DO $$ BEGIN ASSERT %t = NOT EXISTS (SELECT FROM pg_publication_tables WHERE tablename = 'orders'); END $$", away))
			require.Empty(t, c.server.Requests())
			require.Empty(t, c.state().State, "nobody watches it")
		})
	}
}

// TestRunEndsWithItsWorker, and with nothing of the upkeep left; and the other way round.
func TestRunEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, "{connect_url: CONNECT, format: json}", "")
	c.cfg.Lake.Catalog = "ftp://nowhere"
	c.start()
	require.Equal(t, catalog.CodeLakeConfig, catalog.Public(c.failed()).Code)

	c = newCaptured(t, "{connect_url: CONNECT, format: json, properties: {database.user: \"${env:LAKEWEIR_TEST_NOT_SET}\"}}", "")
	c.start()
	err := c.failed()
	require.Equal(t, catalog.CodeConfigReference, catalog.Public(err).Code)
	require.ErrorContains(t, err, "LAKEWEIR_TEST_NOT_SET is not set")
	require.Empty(t, c.server.Requests())

	c = newCaptured(t, "{connect_url: \"${env:LAKEWEIR_TEST_NOT_SET}\", format: json}", "")
	c.start()
	require.Equal(t, catalog.CodeConfigReference, catalog.Public(c.failed()).Code)
	require.Empty(t, c.state().State)
}

// TestThePasswordOfKafkaIsResolvedBeforeAnythingIsAsked, by run and by its check.
func TestThePasswordOfKafkaIsResolvedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	source := &catalog.Source{Name: "shop", File: "shop/source.yaml", Connection: "postgres://x@127.0.0.1:1/x", Kafka: &catalog.Kafka{
		Brokers: []string{"127.0.0.1:1"}, SASL: &catalog.KafkaSASL{Mechanism: catalog.SASLPlain, Username: "app", Password: "${env:LAKEWEIR_TEST_NOT_SET}"},
	}, Connector: &catalog.Connector{Name: "lakeweir-shop", TopicPrefix: "shop"}}
	_, err := resolveKafkaPassword(source)
	require.Equal(t, "shop/source.yaml: kafka.sasl.password", catalog.Public(err).At)
	_, err = checkBetween(t.Context(), source, nil)
	require.Equal(t, catalog.CodeConfigReference, catalog.Public(err).Code)
	source.Kafka.SASL = nil
	password, err := resolveKafkaPassword(source)
	require.NoError(t, err)
	require.Empty(t, password)
}
