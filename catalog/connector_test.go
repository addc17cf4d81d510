package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestTopicsAreNamedAsDebeziumNamesThem(t *testing.T) {
	t.Parallel()
	c := &catalog.Connector{TopicPrefix: "shop"}
	for table, want := range map[catalog.TableName]string{
		{Schema: "public", Name: "orders"}:                 "shop.public.orders",
		{Schema: "My Schema", Name: `Order"Items`}:         "shop.My_Schema.Order_Items",
		{Schema: "a.b", Name: "c-d_e"}:                     "shop.a.b.c-d_e",
		{Schema: "öffentlich", Name: "\U0001F4E6"}:         "shop._ffentlich.__",
		{Schema: "s", Name: strings.Repeat("x", 63) + "/"}: "shop.s." + strings.Repeat("x", 63) + "_",
	} {
		require.Equal(t, want, c.Topic(table))
	}
	require.Len(t, (&catalog.Connector{TopicPrefix: strings.Repeat("p", 250)}).Topic(catalog.TableName{Schema: "s", Name: "t"}), 249)
}

func TestATraceHasAGist(t *testing.T) {
	t.Parallel()
	const trace = `org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change event producer. This connector will be stopped.
	at io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)
Caused by: io.debezium.DebeziumException: Could not obtain encoding
	... 5 more
Caused by: org.postgresql.util.PSQLException: FATAL: password authentication failed for user "cdc"
	at org.postgresql.core.v3.ConnectionFactoryImpl.doAuthentication(ConnectionFactoryImpl.java:1)
`
	s := catalog.ConnectorStatus{State: catalog.ConnectorRunning, Tasks: []catalog.ConnectorTask{{State: catalog.ConnectorFailed, Trace: trace}}}
	require.True(t, s.Failed())
	require.False(t, s.Running())
	require.Equal(t, `ConnectException: An exception occurred in the change event producer. This connector will be stopped.: PSQLException: FATAL: password authentication failed for user "cdc"`, s.Reason())
	require.Equal(t, "a plain line", catalog.TraceGist("a plain line"))
	require.Empty(t, catalog.TraceGist(""))
	require.False(t, (&catalog.ConnectorStatus{State: catalog.ConnectorRunning}).Running(), "a connector without tasks moves nothing")
}
