package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/connect/connecttest"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// TestCheckLooksAtSourceConnectorAndTopicsAtOnce has something to say about each.
func TestCheckLooksAtSourceConnectorAndTopicsAtOnce(t *testing.T) {
	t.Setenv("CHECK_TEST_DSN", localpgtest.Database(t))
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "shop.public.orders"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	server := connecttest.New(t)
	server.Set("lakeweir-shop", map[string]string{"topic.prefix": "other", "transforms": "unwrap"})
	dir := filepath.Join(t.TempDir(), "shop")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{
		"source.yaml":        "kind: postgres\ncapture: debezium\nconnection: ${env:CHECK_TEST_DSN}\nkafka: {brokers: [\"" + cluster.ListenAddrs()[0] + "\"]}\nconnector: {connect_url: \"" + server.URL + "\"}\n",
		"public.orders.yaml": "table: public.orders\nowner: team\nprimary_key: [id]\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var stdout bytes.Buffer
	app := &App{Stdout: &stdout, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler), Output: "text", Env: os.LookupEnv}
	err = runRun(t.Context(), app, RunOptions{Dir: dir, Check: true})
	require.Equal(t, catalog.CodeSourceTable, catalog.Public(err).Code)
	for _, line := range []string{
		"✗ source.no_table   shop/public.orders",
		"· source.slot   shop\n    slot lakeweir_shop does not exist; the connector makes it",
		"· connector.setting   shop\n    connector lakeweir-shop: topic.prefix is other, not shop",
		"transforms is refused",
		"! topic.partitions   shop/public.orders",
	} {
		require.Contains(t, stdout.String(), line)
	}
	require.Empty(t, server.Requests(), "a check changes nothing")
	require.Positive(t, strings.Count(stdout.String(), "→ "))
}
