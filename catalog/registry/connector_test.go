package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func TestAConnectorIsSeenAndItsChangesAreEvents(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	require.NoError(t, r.SetConnector(ctx, "nobody", catalog.ConnectorStatus{Name: "x", State: catalog.ConnectorRunning}))
	see := func(s catalog.ConnectorStatus) *registry.ConnectorView {
		t.Helper()
		require.NoError(t, r.SetConnector(ctx, "shop", s))
		sources, err := r.Sources(ctx)
		require.NoError(t, err)
		require.Equal(t, s.State, sources[0].Connector.State)
		require.Len(t, sources[0].Connector.Tasks, len(s.Tasks))
		return sources[0].Connector
	}
	task := func(s catalog.ConnectorState, trace string) []catalog.ConnectorTask {
		return []catalog.ConnectorTask{{ID: 0, State: s, Worker: "connect:8083", Trace: trace}}
	}
	running := catalog.ConnectorStatus{Name: "lakeweir-shop", State: catalog.ConnectorRunning, Tasks: task(catalog.ConnectorRunning, "")}
	first := see(running)
	again := see(running)
	require.Equal(t, first.Since, again.Since)
	require.True(t, again.SeenAt.After(first.SeenAt))
	require.Equal(t, running, again.ConnectorStatus)
	failed := see(catalog.ConnectorStatus{Name: "lakeweir-shop", State: catalog.ConnectorRunning, Tasks: task(catalog.ConnectorFailed, "org.example.Trouble: no\x00more\n\tat x")})
	require.True(t, failed.Since.After(again.Since))

	events, err := r.SourceEvents(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, registry.ConnectorChanged, events[0].Kind)
	require.JSONEq(t, `{"connector": "lakeweir-shop", "from": "RUNNING", "to": "RUNNING", "tasks": ["FAILED"], "reason": "Trouble: no\ufffdmore"}`, string(events[0].Detail))
	require.JSONEq(t, `{"connector": "lakeweir-shop", "to": "RUNNING", "tasks": ["RUNNING"]}`, string(events[1].Detail))
}

func TestOfAConnectorOnlyItsNamesAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := shop()
	s.Capture, s.Connector = catalog.Debezium, &catalog.Connector{
		Name: "lakeweir-shop", TopicPrefix: "shop", Format: catalog.FormatJSONSchema, URL: "http://ops:${env:SECRET_NAME}@connect:8083",
		Properties: map[string]string{"database.password": "${env:SECRET_NAME}"}, SignalTable: catalog.TableName{Schema: "lakeweir", Name: "signals"},
	}
	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{s}, b.tables))
	var config, connector string
	require.NoError(t, b.conn.QueryRow(t.Context(), "select config::text, config->>'connector' from lakeweir.sources").Scan(&config, &connector))
	require.NotContains(t, config, "SECRET_NAME")
	require.JSONEq(t, `{"name": "lakeweir-shop", "topicPrefix": "shop", "format": "json_schema", "signalTable": {"schema": "lakeweir", "name": "signals"}}`, connector)
}
