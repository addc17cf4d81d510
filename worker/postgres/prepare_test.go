package postgres

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// withConnector makes the lab's source one that a connector captures.
func withConnector(l *lab) {
	l.cfg.Source.Capture = catalog.Debezium
	l.cfg.Source.Connector = &catalog.Connector{Name: "lakeweir-shop", TopicPrefix: "shop", SignalTable: catalog.TableName{Schema: "lakeweir", Name: "signals"}}
}

func TestWhatAConnectorNeedsIsMade(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table a (id int primary key);\ncreate table b (id int);\ncreate table c (id int primary key);")
	withConnector(l)
	l.table("a", "id")
	l.table("b", "id")
	published := func() (out []string) {
		rows, err := l.db.Query(t.Context(), "select schemaname || '.' || tablename from pg_publication_tables where pubname = 'lakeweir_shop' order by 1")
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var name string
			require.NoError(t, rows.Scan(&name))
			out = append(out, name)
		}
		return out
	}
	for range 2 {
		found, err := PrepareConnector(t.Context(), l.cfg, l.tables)
		require.NoError(t, err)
		require.NotEmpty(t, found)
		for _, f := range found {
			require.Equal(t, "public.b", f.Table, "a table without a key is left out, and said: %v", f)
		}
		require.Equal(t, []string{"lakeweir.heartbeat", "lakeweir.signals", "public.a"}, published())
	}
	l.table("c", "id")
	_, err := PrepareConnector(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	require.Contains(t, published(), "public.c")

	l.exec("select pg_create_logical_replication_slot('" + l.cfg.Source.Slot + "', 'pgoutput')")
	require.NoError(t, DropSlot(t.Context(), l.cfg))
	require.NoError(t, DropSlot(t.Context(), l.cfg), "again")
}

func TestPreflightOfAConnector(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table a (id int primary key);
create table outside (id int primary key);
create table parts (id int primary key) partition by range (id);
create schema lakeweir;
create table lakeweir.heartbeat (source text primary key, beat_at timestamptz not null, beats bigint not null);
create publication lakeweir_shop for table a, parts with (publish_via_partition_root = true);`)
	withConnector(l)
	l.cfg.Source.CreateSlot = false
	l.table("a", "id")
	l.table("outside", "id")
	l.table("parts", "id")
	role := "reader_" + l.cfg.Source.Slot
	l.exec("create role " + role + " login replication")
	l.exec("grant select on a, outside, parts to " + role)
	l.cfg.DSN = catalog.Secret(strings.Replace(l.dsn, "postgres@", role+"@", 1))
	list, err := Preflight(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	golden(t, "preflight-connector.golden", strings.NewReplacer(role, "reader", l.cfg.Source.Slot, "slot").Replace(printFindings(list)))

	_, err = PrepareConnector(t.Context(), l.cfg, l.tables)
	require.NoError(t, err, "what the role may not do is a finding")
	l.exec("alter publication lakeweir_shop add table lakeweir.heartbeat")
	found, err := PrepareConnector(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	for _, f := range found {
		require.NotContains(t, f.Message, "lakeweir.heartbeat cannot be added", "it is there already")
	}
	l.exec("drop publication lakeweir_shop")
	_, err = PrepareConnector(t.Context(), l.cfg, l.tables)
	require.Equal(t, catalog.CodeSourcePublication, catalog.Public(err).Code)
	require.Equal(t, catalog.Denied, catalog.KindOf(err))

	l.cfg.Source.Connector.Properties = map[string]string{"database.user": "cdc"}
	l.exec("create publication lakeweir_shop for table a")
	list, err = Preflight(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	for _, f := range list {
		require.NotContains(t, f.Message, "may not write", "the connector has a role of its own, whose rights are not seen")
	}
}
