package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// bundle is an open registry that knows one source with two tables.
type bundle struct {
	*registry.Registry
	conn   *pgx.Conn // beside the registry, for what its API does not tell
	source catalog.Source
	tables []catalog.Table
}

func setup(t *testing.T) *bundle {
	t.Helper()
	dsn := localpgtest.Database(t)
	r, err := registry.Open(t.Context(), catalog.Secret(dsn))
	require.NoError(t, err)
	t.Cleanup(r.Close)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	b := &bundle{Registry: r, conn: conn, source: shop(), tables: []catalog.Table{table("orders"), table("payments")}}
	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{b.source}, b.tables))
	return b
}

func shop() catalog.Source {
	return catalog.Source{
		Name: "shop", Kind: catalog.Postgres, Capture: catalog.Direct, Connection: "postgres://app:${env:SECRET_NAME}@db/shop",
		Slot: "lakeweir_shop", Publication: "lakeweir_shop", CreateSlot: true, WALBudget: 10 << 30,
		Heartbeat:  catalog.Heartbeat{Interval: 10 * time.Second, Table: catalog.TableName{Schema: "lakeweir", Name: "heartbeat"}},
		Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}}, FormatVersion: 3,
		TokenKey: "${env:TOKEN_KEY_NAME}", File: "shop/source.yaml",
	}
}

func table(name string) catalog.Table {
	return catalog.Table{
		Source: "shop", Name: catalog.TableName{Schema: "public", Name: name}, Owner: "team-" + name, PrimaryKey: []string{"id"},
		Current: true, History: true, Tier: catalog.Tier1m, PII: map[string]catalog.Protection{"email": catalog.Tokenize},
		SoftDelete: true, ApplyTruncates: true, File: "shop/public." + name + ".yaml",
	}
}

func (b *bundle) view(t *testing.T, name string) registry.TableView {
	t.Helper()
	d, err := b.Table(t.Context(), "shop", name)
	require.NoError(t, err)
	return d.Table
}

func kinds(d *registry.Detail) []registry.EventKind {
	var out []registry.EventKind
	for i := range d.Events {
		out = append(out, d.Events[len(d.Events)-1-i].Kind)
	}
	return out
}

func TestConfigVersionsCountOnlyChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 { // the same files again
		require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{b.source}, b.tables))
	}
	require.Equal(t, 1, b.view(t, "public.orders").ConfigVersion)

	b.tables[0].TrackColumns, b.tables[0].Tier = []string{"status"}, catalog.Tier5m
	b.tables[1].File = "elsewhere/public.payments.yaml" // where a file lies is no config
	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{b.source}, b.tables))
	orders, payments := b.view(t, "public.orders"), b.view(t, "public.payments")
	require.Equal(t, 2, orders.ConfigVersion)
	require.Equal(t, catalog.Tier5m, orders.Config.Tier)
	require.Equal(t, "silver.orders_history", orders.Config.HistoryTable)
	require.Equal(t, 1, payments.ConfigVersion)
	require.Equal(t, "elsewhere/public.payments.yaml", payments.File)

	var history int
	require.NoError(t, b.conn.QueryRow(t.Context(), `select count(*) from lakeweir.table_configs`).Scan(&history))
	require.Equal(t, 3, history)
}

func TestATableThatFilesStopNamingStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{b.source}, b.tables[:1]))
	require.False(t, b.view(t, "public.payments").InFiles)
	require.True(t, b.view(t, "public.orders").InFiles)

	other := shop()
	other.Name = "crm"
	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{other}, nil))
	require.True(t, b.view(t, "public.orders").InFiles, "files of another source say nothing about it")

	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{b.source}, b.tables))
	d, err := b.Table(t.Context(), "shop", "public.payments")
	require.NoError(t, err)
	require.True(t, d.Table.InFiles)
	require.Equal(t, []registry.EventKind{registry.ConfigChanged, registry.LeftFiles, registry.CameBack}, kinds(d))
}

func TestNothingSecretIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.SetTableStatuses(t.Context(), "shop", []registry.TableStatus{{
		Table: "public.orders", State: catalog.Snapshotting,
		Snapshot: &catalog.SnapshotProgress{Generation: 1, Rows: 7, Bound: "alice@example.org", Keys: []string{"bob@example.org"}},
	}}))
	var all string
	require.NoError(t, b.conn.QueryRow(t.Context(), `select coalesce(string_agg(x, ' '), '') from (
		select s::text from lakeweir.sources s union all select t::text from lakeweir.tables t
		union all select c::text from lakeweir.table_status c) as all_rows(x)`).Scan(&all))
	require.Contains(t, all, "lakeweir_shop")
	for _, secret := range []string{"SECRET_NAME", "TOKEN_KEY_NAME", "alice", "bob"} {
		require.NotContains(t, all, secret)
	}
	require.EqualValues(t, 7, b.view(t, "public.orders").Snapshot.Rows)
}

func TestASchemaGetsAVersionWhenItDiffers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none, err := b.Schema(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	require.Nil(t, none)

	one := everyType()
	got, err := b.RecordSchema(t.Context(), "shop", "public.orders", one)
	require.NoError(t, err)
	require.Equal(t, 1, got.Version)
	require.Zero(t, one.Version, "the caller's schema is left alone")
	again, err := b.RecordSchema(t.Context(), "shop", "public.orders", one)
	require.NoError(t, err)
	require.Equal(t, 1, again.Version)

	two := everyType()
	two.Columns[1].Nullable = true
	two.Columns = append(two.Columns, catalog.Column{Name: "note", Number: 99, Type: catalog.Type{Kind: catalog.Text}})
	got, err = b.RecordSchema(t.Context(), "shop", "public.orders", two)
	require.NoError(t, err)
	require.Equal(t, 2, got.Version)

	back, err := b.RecordSchema(t.Context(), "shop", "public.orders", one)
	require.NoError(t, err)
	require.Equal(t, 3, back.Version, "versions only go up")

	d, err := b.Table(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	require.Len(t, d.Schemas, 3)
	require.Equal(t, 3, d.Table.SchemaVersion)
	require.JSONEq(t, `{"version": 2, "columns": 16, "added": ["note"], "changed": ["c2"]}`, string(d.Events[1].Detail))
	require.JSONEq(t, `{"version": 3, "columns": 15, "dropped": ["note"], "changed": ["c2"]}`, string(d.Events[0].Detail))

	_, err = b.RecordSchema(t.Context(), "shop", "public.nothing", one)
	requireCode(t, err, catalog.CodeNoTable)
}

func TestASchemaComesBackAsItWas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	schema := everyType()
	schema.Columns[3].Dropped = true
	schema.Columns[4] = schema.Columns[4].Renamed("new").Renamed("newer")
	want, err := b.RecordSchema(t.Context(), "shop", "public.orders", schema)
	require.NoError(t, err)
	require.Equal(t, []string{"c5", "new"}, want.Columns[4].Was)
	got, err := b.Schema(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
}

// everyType has a column of each kind.
func everyType() *catalog.Schema {
	s := &catalog.Schema{Key: []int{1, 0}}
	add := func(t catalog.Type, src catalog.SourceType) {
		n := len(s.Columns) + 1
		s.Columns = append(s.Columns, catalog.Column{Name: fmt.Sprintf("c%d", n), Number: n * 2, Source: src, Type: t, Nullable: n > 2})
	}
	for k := catalog.Text; k <= catalog.List; k++ {
		switch k { //nolint:exhaustive // these two need more than their kind
		case catalog.Decimal:
			add(catalog.Type{Kind: k, Precision: 12, Scale: 2}, catalog.SourceType{Name: "numeric(12,2)", Base: "numeric", OID: 1700, Modifier: 786438})
		case catalog.List:
			elem := catalog.Type{Kind: catalog.Decimal, Precision: 38}
			add(catalog.Type{Kind: k, Elem: &elem}, catalog.SourceType{Name: "numeric[]", Base: "array", Modifier: -1, Elem: &catalog.SourceType{Name: "numeric", Base: "numeric", Modifier: -1}})
		default:
			add(catalog.Type{Kind: k}, catalog.SourceType{Name: "any", Base: "any", Modifier: -1})
		}
	}
	s.Columns = append(s.Columns, catalog.Column{Name: `odd "name".`, Number: 1, Type: catalog.Type{Kind: catalog.Text}})
	return s
}

func requireCode(t *testing.T, err error, code catalog.Code) {
	t.Helper()
	var e *catalog.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code)
}

func TestAnUnreachableRegistrySaysWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	live, err := url.Parse(localpgtest.Database(t))
	require.NoError(t, err)
	absent := *live
	absent.Path = "/no_such_database"
	for name, c := range map[string]struct {
		dsn  string
		kind catalog.Kind
		want string
	}{
		"refused":     {"postgres://app:hunter2@" + nobody + "/shop", catalog.Unavailable, "the registry at " + nobody + "/shop cannot be reached: connection refused"},
		"no database": {absent.String(), catalog.Invalid, "the registry at " + live.Host + "/no_such_database does not exist"},
		"no dsn":      {"postgres://app:hunter2@:port/%%", catalog.Invalid, "the registry's connection string cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := registry.Open(t.Context(), catalog.Secret(c.dsn))
			e, ok := errors.AsType[*catalog.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, catalog.CodeRegistryUnavailable, e.Code)
			require.Equal(t, c.kind, e.Kind)
			require.Equal(t, c.want, e.Message)
			require.NotEmpty(t, e.Hint)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestARoleWithoutRightsIsToldWhichItNeeds(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(localpgtest.Database(t))
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), dsn.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	role := "registry_" + dsn.Path[1:]
	exec := func(sql string) {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	exec(`create role ` + pgx.Identifier{role}.Sanitize() + ` login`)
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), `drop schema if exists lakeweir cascade; drop role `+pgx.Identifier{role}.Sanitize())
		require.NoError(t, err)
	})
	dsn.User = url.User(role)
	_, err = registry.Open(t.Context(), catalog.Secret(dsn.String()))
	requireCode(t, err, catalog.CodeRegistryUnavailable)
	require.Equal(t, catalog.Denied, catalog.KindOf(err))
	require.ErrorContains(t, err, "permission denied for database")

	exec(`create schema lakeweir authorization ` + pgx.Identifier{role}.Sanitize())
	r, err := registry.Open(t.Context(), catalog.Secret(dsn.String()))
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.Ping(t.Context()))
}

func TestABlockedRegistryDoesNotBlockItsCaller(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `lock table lakeweir.table_status`)
	require.NoError(t, err)
	began := time.Now()
	err = b.SetTableStatuses(t.Context(), "shop", []registry.TableStatus{{Table: "public.orders", State: catalog.Streaming}})
	requireCode(t, err, catalog.CodeRegistryUnavailable)
	require.Less(t, time.Since(began), 8*time.Second)
}

func TestAnOlderBinaryIsToldToStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.Ping(t.Context()))
	_, err := b.conn.Exec(t.Context(), `update lakeweir.compatibility set min_reader = 1000`)
	require.NoError(t, err)
	requireCode(t, b.Ping(t.Context()), catalog.CodeRegistryVersion)
	requireCode(t, b.Heartbeat(t.Context(), registry.Worker{ID: "w", Source: "shop", StartedAt: time.Now()}), catalog.CodeRegistryVersion)
}
