package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
)

// throughKafka reports whether Debezium is to capture the shop.
func (o *DemoOptions) throughKafka() bool { return len(o.Brokers) > 0 || o.Connect != "" }

// kafkaSource is the source.yaml of a shop that Debezium captures. Heartbeats come each
// second, since they say how far the topics have been read.
var kafkaSource = template.Must(template.New("source.yaml").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(
	`# The shop's database, captured by Debezium. lakeweir demo writes this file anew at each
# start with --kafka: where Kafka and Connect are may have changed.

kind: postgres
capture: debezium
connection: ${env:LAKEWEIR_SHOP_DSN}
token_key: ${env:LAKEWEIR_TOKEN_KEY}

kafka: {brokers: [{{range $i, $b := .Brokers}}{{if $i}}, {{end}}{{quote $b}}{{end}}]}
connector: {connect_url: {{quote .Connect}}}
heartbeat: {interval: 1s}

defaults:
  owner: team-shop
  freshness_tier: 1min
`))

// writeKafkaSource writes the source.yaml of a shop that Debezium captures. A shop that
// was captured directly is left alone: what its lake has read is not in any topic.
func writeKafkaSource(dir string, opts *DemoOptions) error {
	file := filepath.Join(dir, "source.yaml")
	if _, err := os.Stat(file); err == nil {
		source, _, err := loadSource(dir)
		if err != nil {
			return err
		}
		if source.Capture != catalog.Debezium {
			return catalog.Invalidf(catalog.CodeUsage, "--kafka", "give another folder with --dir, or remove this one", "the shop in %s is captured directly", opts.Dir)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for the shop's configuration: %w", err)
	}
	var text strings.Builder
	if err := kafkaSource.Execute(&text, opts); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // configuration, for everybody to read
		return fmt.Errorf("make the folder of the shop's configuration: %w", err)
	}
	return os.WriteFile(file, []byte(text.String()), 0o644) //nolint:gosec // configuration, for everybody to read
}

// wakeConnector lets the connector go on that an earlier demo has stopped. It is the
// first to speak to Kafka Connect.
func (s *shop) wakeConnector(ctx context.Context) error {
	if s.source.Capture != catalog.Debezium || s.source.Connector.URL == "" {
		return nil
	}
	client, err := connectClient(s.source, s.source.Connector.URL)
	if err != nil {
		return err
	}
	s.say("          Debezium on %s captures it into Kafka at %s", client.At(), strings.Join(s.source.Kafka.Brokers, ", "))
	status, err := client.Status(ctx, s.source.Connector.Name)
	switch {
	case err != nil && catalog.KindOf(err) == catalog.NotFound:
	case err != nil:
		return err
	case status.State == catalog.ConnectorStopped:
		if err := client.Resume(ctx, status.Name); err != nil {
			return err
		}
	}
	s.connect = client
	return nil
}

const (
	connectorSends = 15 * time.Second // of what was committed last
	connectorStops = 20 * time.Second
)

// restConnector stops the connector before its private Postgres stops, which would wait
// for it. All that was committed is let through first: a task that ends between the
// halves of a key move never sends the second.
func (s *shop) restConnector(ctx context.Context) error {
	if s.connect == nil || s.opts.DSN != "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	name := s.source.Connector.Name
	if err := s.awaitConnector(ctx); err != nil {
		s.app.Log.WarnContext(ctx, "the connector may not have sent everything yet", "connector", name, "error", err, "caution", connect.Caution)
	}
	if err := s.connect.Stop(ctx, name); err != nil {
		return err
	}
	return poll(ctx, connectorStops, func(ctx context.Context) (bool, error) {
		status, err := s.connect.Status(ctx, name)
		return err == nil && status.State == catalog.ConnectorStopped && len(status.Tasks) == 0, err
	})
}

// awaitConnector waits until the slot has confirmed what is in the log by now.
func (s *shop) awaitConnector(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn.Reveal())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var end string
	if err := conn.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&end); err != nil {
		return err
	}
	return poll(ctx, connectorSends, func(ctx context.Context) (sent bool, err error) {
		err = conn.QueryRow(ctx, "select coalesce(confirmed_flush_lsn >= $1::pg_lsn, false) from pg_replication_slots where slot_name = $2", end, s.source.Slot).Scan(&sent)
		if errors.Is(err, pgx.ErrNoRows) { // the connector has not even begun
			return true, nil
		}
		return sent, err
	})
}

// poll asks until the answer is yes, an error, or the time is over.
func poll(ctx context.Context, within time.Duration, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := ask(ctx); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
