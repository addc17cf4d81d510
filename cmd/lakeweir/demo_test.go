package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

func TestOneDemoAtATimeRunsInAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := lockDemo(dir)
	require.NoError(t, err)
	_, err = lockDemo(dir)
	require.Equal(t, catalog.Conflict, catalog.KindOf(err))
	require.Regexp(t, `^another demo \(process \d+\) runs in `, err.Error())
	release()
	release, err = lockDemo(dir)
	require.NoError(t, err, "it is free again")
	release()
}

func TestTheDemoTellsOnceThatATableStopsAndThatItGoesOn(t *testing.T) {
	t.Parallel()
	table := monitor.Table{Health: monitor.Fresh}
	table.Source, table.Name = "shop", catalog.TableName{Schema: "public", Name: "orders"}
	report := &monitor.Report{Tables: []monitor.Table{table}}
	known := map[string]string{}
	require.Empty(t, stops(report, known))

	stopped := &report.Tables[0]
	stopped.Health = monitor.Quarantined
	stopped.TableView = registry.TableView{
		Source: table.Source, Name: table.Name,
		Fault: &registry.Fault{Code: catalog.CodeSchemaChanged, Message: "column note is gone", Hint: "add it again"},
	}
	require.Equal(t, []string{"stopped   shop/public.orders: schema.changed: column note is gone → add it again"}, stops(report, known))
	require.Empty(t, stops(report, known), "said already")

	stopped.Health, stopped.Fault = monitor.Fresh, nil
	require.Equal(t, []string{"goes on   shop/public.orders"}, stops(report, known))
}

func TestWordsForTheShellAreQuotedWhenNeeded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"file:///tmp/lake": "file:///tmp/lake",
		"file:///my lake":  "'file:///my lake'",
		"it's":             `'it'\''s'`,
	} {
		require.Equal(t, want, shellWord(in))
	}
}

func TestTheDemoThroughKafkaSaysWhereItIs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	for _, opts := range []DemoOptions{
		{Brokers: []string{"127.0.0.1:9092"}, Connect: "http://127.0.0.1:8083"},
		{Brokers: []string{"a:1", "b:2"}, Connect: "http://c:3"}, // it has moved
	} {
		require.NoError(t, writeKafkaSource(dir, &opts))
		require.NoError(t, copyConfigs(dir))
		source, tables, err := loadSource(dir)
		require.NoError(t, err)
		require.Equal(t, catalog.Debezium, source.Capture)
		require.Equal(t, opts.Brokers, source.Kafka.Brokers)
		require.Equal(t, opts.Connect, source.Connector.URL)
		require.Len(t, tables, 7)
	}
}

func TestADemoThatCapturesDirectlyIsNotGivenToDebezium(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	require.NoError(t, copyConfigs(dir))
	err := writeKafkaSource(dir, &DemoOptions{Dir: "lakeweir-demo", Brokers: []string{"a:1"}, Connect: "http://c:3"})
	require.Equal(t, catalog.Invalid, catalog.KindOf(err))
	require.ErrorContains(t, err, "the shop in lakeweir-demo is captured directly")
	source, _, err := loadSource(dir)
	require.NoError(t, err)
	require.Equal(t, catalog.Direct, source.Capture, "the file is as it was")
}
