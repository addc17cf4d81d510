package e2e

import (
	"context"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack"
)

// captured is a database that Debezium captures with the settings that Lakeweir
// recommends.
type captured struct {
	t    *testing.T
	on   *stack.Stack
	name string
	conn *pgx.Conn
}

func newCaptured(t *testing.T, on *stack.Stack, name string, setup ...string) *captured {
	t.Helper()
	c := prepareCaptured(t, on, name, setup...)
	require.NoError(t, on.Connect.Put(t.Context(), name, c.config()))
	return c
}

// prepareCaptured makes the database, without its connector.
func prepareCaptured(t *testing.T, on *stack.Stack, name string, setup ...string) *captured {
	t.Helper()
	c := &captured{t: t, on: on, name: name}
	var err error
	c.conn, err = pgx.Connect(t.Context(), newDatabase(t, on, name))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.conn.Close(context.WithoutCancel(t.Context())) })
	c.exec("create schema dbz; create table dbz.signal(id varchar(64) primary key, type varchar(32) not null, data varchar(4096)); create table dbz.heartbeat(id int primary key, ts timestamptz not null)")
	for _, sql := range setup {
		c.exec(sql)
	}
	c.exec("create publication dbz for all tables")
	return c
}

// newDatabase makes an empty database and returns its DSN.
func newDatabase(t *testing.T, on *stack.Stack, name string) string {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), on.Postgres.DSN("postgres"))
	require.NoError(t, err)
	defer admin.Close(t.Context())
	_, err = admin.Exec(t.Context(), "create database "+name)
	require.NoError(t, err)
	return on.Postgres.DSN(name)
}

func (c *captured) exec(sql string) {
	c.t.Helper()
	_, err := c.conn.PgConn().Exec(c.t.Context(), sql).ReadAll()
	require.NoError(c.t, err)
}

func (c *captured) config() map[string]string {
	u, err := url.Parse(c.on.Postgres.DSN(c.name))
	require.NoError(c.t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(c.t, err)
	return map[string]string{
		"connector.class":                           "io.debezium.connector.postgresql.PostgresConnector",
		"tasks.max":                                 "1",
		"database.hostname":                         "127.0.0.1",
		"database.port":                             port,
		"database.user":                             u.User.Username(),
		"database.password":                         "unused",
		"database.dbname":                           c.name,
		"topic.prefix":                              c.name,
		"plugin.name":                               "pgoutput",
		"slot.name":                                 "dbz_" + c.name,
		"slot.max.retries":                          "60",
		"slot.retry.delay.ms":                       "500",
		"publication.name":                          "dbz",
		"publication.autocreate.mode":               "disabled",
		"table.include.list":                        "public\\..*",
		"snapshot.mode":                             "initial",
		"signal.data.collection":                    "dbz.signal",
		"signal.enabled.channels":                   "source",
		"skipped.operations":                        "none",
		"tombstones.on.delete":                      "true",
		"decimal.handling.mode":                     "string",
		"time.precision.mode":                       "microseconds",
		"binary.handling.mode":                      "bytes",
		"event.converting.failure.handling.mode":    "fail",
		"interval.handling.mode":                    "string",
		"hstore.handling.mode":                      "json",
		"include.unknown.datatypes":                 "true",
		"value.converter":                           "org.apache.kafka.connect.json.JsonConverter",
		"value.converter.schemas.enable":            "false",
		"value.converter.replace.null.with.default": "false",
		"signal.poll.interval.ms":                   "500",
		"poll.interval.ms":                          "100",
		"incremental.snapshot.chunk.size":           "1000",
		"max.batch.size":                            "2048",
		"max.queue.size":                            "8192",
		"producer.override.linger.ms":               "20",
		"producer.override.batch.size":              "524288",
		"producer.override.compression.type":        "lz4",
	}
}
