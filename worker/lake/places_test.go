package lake

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

func TestALakeInAnS3Bucket(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			backend := s3mem.New()
			require.NoError(t, backend.CreateBucket("lake"))
			s3 := httptest.NewServer(gofakes3.New(backend).Server())
			t.Cleanup(s3.Close)
			dir := t.TempDir()
			liveThrough(t, func() *Lake {
				return openConfig(t, Config{
					Catalog: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: "s3://lake/ware house/",
					Properties: map[string]string{"s3.endpoint": s3.URL, "s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"},
				})
			}, version, 2, true)
		})
	}
}

func TestACatalogInPostgres(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			dsn, dir := localpgtest.Database(t), t.TempDir()
			liveThrough(t, func() *Lake {
				return openConfig(t, Config{Catalog: dsn, Warehouse: dir})
			}, version, 4, false)
		})
	}
}

func TestARESTCatalog(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			backing := open(t, t.TempDir())
			server := httptest.NewServer(laketest.Serve(backing.cat))
			t.Cleanup(server.Close)
			liveThrough(t, func() *Lake {
				return openConfig(t, Config{Catalog: server.URL})
			}, version, 2, false)
		})
	}
}

func TestAWrongConfigurationIsExplained(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"none of sqlite://":            {Catalog: "mysql://x", Warehouse: "/tmp/x"},
		"names no file":                {Catalog: "sqlite://", Warehouse: "/tmp/x"},
		"not a valid URL":              {Catalog: "http://", Warehouse: "/tmp/x"},
		"no warehouse is set":          {Catalog: "sqlite:///tmp/x.db"},
		"names no bucket":              {Catalog: "sqlite:///tmp/x.db", Warehouse: "s3:///prefix"},
		"neither file:// nor s3://":    {Catalog: "sqlite:///tmp/x.db", Warehouse: "gs://bucket"},
		"not a valid Postgres URL":     {Catalog: "postgres://u:p ss@[/db", Warehouse: "/tmp/x"},
		"the warehouse cannot be crea": {Catalog: "sqlite:///tmp/x.db", Warehouse: "/dev/null/x"},
	} {
		_, err := Open(t.Context(), cfg, nil)
		require.ErrorContains(t, err, name)
		e := catalog.Public(err)
		require.NotEqual(t, catalog.CodeInternal, e.Code, name)
		require.NotEmpty(t, e.Hint, name)
		require.NotContains(t, err.Error(), "p ss")
	}
}

func TestACatalogThatCannotBeCreatedIsAWrongConfiguration(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/dev/null/x.db", "/proc/nope/x.db", t.TempDir()} {
		_, err := Open(t.Context(), Config{Catalog: "sqlite://" + path, Warehouse: t.TempDir()}, nil)
		e := catalog.Public(err)
		require.Equal(t, catalog.CodeLakeConfig, e.Code, path)
		require.Equal(t, catalog.Invalid, e.Kind, path)
		require.Contains(t, e.Message, "the catalog's file cannot be created")
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Catalog: "postgres://app:hunter2%21@127.0.0.1:1/lake?connect_timeout=2", Warehouse: t.TempDir()}, nil)
	require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(err).Code)
	require.NotContains(t, err.Error(), "hunter2")

	l := &Lake{secrets: Config{Catalog: "https://c", Properties: map[string]string{"s3.secret-access-key": "s3cr3t", "token": "t0ken", "s3.region": "eu"}}.secrets()}
	require.Equal(t, "*** *** eu", l.redact("s3cr3t t0ken eu"))
}

func TestAWarehouseIsAnAbsoluteURI(t *testing.T) {
	t.Parallel()
	t.Run("relative", func(t *testing.T) {
		t.Parallel()
		abs, err := filepath.Abs("lake")
		require.NoError(t, err)
		for _, w := range []string{"lake", "./lake/", "file://lake", "file://" + abs, abs} {
			got, err := warehouse(w, sqliteCatalog)
			require.NoError(t, err)
			require.Equal(t, "file://"+abs, got, w)
			require.True(t, strings.HasPrefix(got, "file:///"))
		}
	})
	got, err := warehouse("s3://bucket/prefix/", postgresCatalog)
	require.NoError(t, err)
	require.Equal(t, "s3://bucket/prefix", got)
	got, err = warehouse("main", restCatalog)
	require.NoError(t, err)
	require.Equal(t, "main", got)
}

func TestTablesAreListed(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir())
	openLayers(t, l, 3, ordersTable(), ordersSchema())
	got, err := l.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []TableInfo{
		{Ident: []string{"bronze", "orders_cdc"}, Table: "shop/public.orders", Layer: catalog.Bronze},
		{Ident: []string{"silver", "orders"}, Table: "shop/public.orders", Layer: catalog.Current},
		{Ident: []string{"silver", "orders_history"}, Table: "shop/public.orders", Layer: catalog.History},
	}, got)
}
