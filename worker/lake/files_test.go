package lake

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

// s3Lake opens a lake in a bucket of its own.
func s3Lake(t *testing.T) *Lake {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("lake"))
	s3 := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(s3.Close)
	return openConfig(t, Config{
		Catalog: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: "s3://lake/ware house/",
		Properties: map[string]string{"s3.endpoint": s3.URL, "s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"},
	})
}

func openFiles(t *testing.T, l *Lake) *Files {
	t.Helper()
	table := catalog.TableName{Schema: "public", Name: "orders"}
	folder, err := l.ParkFolder(t.Context(), source(3), table)
	require.NoError(t, err)
	f, err := l.OpenFiles(t.Context(), source(3), table, folder)
	require.NoError(t, err)
	return f
}

func TestFilesBesideTheTables(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*Lake{
		"local":                                 open(t, t.TempDir()),
		"a folder with odd characters":          oddLake(t),
		"s3":                                    s3Lake(t),
		"a REST catalog that alone knows where": knowingLake(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			useFiles(t, openFiles(t, l))
		})
	}
}

func oddLake(t *testing.T) *Lake {
	t.Helper()
	return openConfig(t, Config{
		Catalog: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: filepath.Join(t.TempDir(), "ware house#1%20"),
	})
}

// knowingLake is one whose REST catalog alone knows where its warehouse is.
func knowingLake(t *testing.T) *Lake {
	t.Helper()
	server := httptest.NewServer(laketest.Serve(open(t, t.TempDir()).cat))
	t.Cleanup(server.Close)
	l := openConfig(t, Config{Catalog: server.URL})
	_, err := l.ParkFolder(t.Context(), source(3), ordersTable().Name)
	require.Equal(t, catalog.CodeLakeConfig, catalog.Public(err).Code, "there is no bronze yet that would tell")
	openLayers(t, l, 3, ordersTable(), ordersSchema())
	return l
}

func useFiles(t *testing.T, f *Files) {
	t.Helper()
	ctx := t.Context()
	names, err := f.List(ctx, "7-ab")
	require.NoError(t, err)
	require.Empty(t, names, "a folder that is not there is empty")
	_, err = f.Get(ctx, "7-ab/1", 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, f.Delete(ctx, "7-ab/1"), "what is not there is no error")

	large := []byte(strings.Repeat("sealed", 1_500_000)) // above the size that S3 takes in parts
	for name, content := range map[string][]byte{"7-ab/2": large, "7-ab/1": []byte("x"), "7-abc/1": {}, "8/1": []byte("y")} {
		require.NoError(t, f.Put(ctx, name, content))
		got, err := f.Get(ctx, name, int64(len(content)))
		require.NoError(t, err)
		require.Equal(t, content, got)
	}
	_, err = f.Get(ctx, "7-ab/2", 10)
	require.ErrorContains(t, err, "more than 10")
	names, err = f.List(ctx, "7-ab")
	require.NoError(t, err)
	require.Equal(t, []string{"7-ab/1", "7-ab/2"}, names, "and nothing of a folder whose name begins alike")

	require.NoError(t, f.Delete(ctx, "7-ab/1", "7-ab/3", "7-ab/2"))
	names, err = f.List(ctx, "7-ab")
	require.NoError(t, err)
	require.Empty(t, names)
	if local, ok := localPath(f.folder); ok {
		entries, err := os.ReadDir(local)
		require.NoError(t, err)
		require.Len(t, entries, 2, "empty folders go with their last file")
		require.Contains(t, local, "/_lakeweir/parked/shop/public_orders-")
	}
	require.NoError(t, f.Put(ctx, "7-ab/4", []byte("z")), "and come back")

	for _, name := range []string{"", "/x", "x/", "../x", "a/../x", "a//b", "a b", ".x", "file:"} {
		require.ErrorContains(t, f.Put(ctx, name, nil), "names no file", name)
		_, err := f.Get(ctx, name, 1)
		require.ErrorContains(t, err, "names no file", name)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = f.Get(ended, "8/1", 10)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, f.Put(ended, "8/2", []byte("x")), context.Canceled)
}

// TestAFileIsNotThereBeforeTheDiskSaysSo makes sure that Put looks at the disk's
// answer for the folders too: a power cut would take an entry that is only in memory.
func TestAFileIsNotThereBeforeTheDiskSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir)
	stop, err := laketest.Watch(filepath.Join(dir, "warehouse"), func(op laketest.Op) laketest.Fate {
		return laketest.Fate{Unsynced: op.Write && op.N == 1, Full: op.Write && op.N == 2}
	})
	require.NoError(t, err)
	t.Cleanup(stop)
	f := openFiles(t, l)
	for _, what := range []string{"not synced", "no space"} {
		err := f.Put(t.Context(), "1/1", []byte("sealed"))
		require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(err).Code, what)
	}
	require.NoError(t, f.Put(t.Context(), "1/1", []byte("sealed")))
	require.True(t, f.synced[filepath.Join(dir, "warehouse", "_lakeweir")], "the folders that were made are on the disk")
}

func TestAWarehouseThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	l := openConfig(t, Config{
		Catalog: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: "s3://lake/wh",
		Properties: map[string]string{"s3.endpoint": server.URL, "s3.access-key-id": "key", "s3.secret-access-key": "s3cr3t", "s3.region": "us-east-1"},
	})
	f := openFiles(t, l)
	server.Close()
	for what, do := range map[string]func(context.Context) error{
		"put":    func(ctx context.Context) error { return f.Put(ctx, "1/1", []byte("sealed")) },
		"get":    func(ctx context.Context) error { _, err := f.Get(ctx, "1/1", 10); return err },
		"list":   func(ctx context.Context) error { _, err := f.List(ctx, "1"); return err },
		"delete": func(ctx context.Context) error { return f.Delete(ctx, "1/1") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := do(t.Context())
			require.Equal(t, catalog.CodeLakeUnavailable, catalog.Public(err).Code)
			require.NotErrorIs(t, err, fs.ErrNotExist)
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}
