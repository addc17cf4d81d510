package main

import (
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
