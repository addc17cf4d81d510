package migrations

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	first, err := Apply(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, Version(), first)
	before := objects(t, conn)
	require.Contains(t, before, "lakeweir.batches")

	second, err := Apply(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, before, objects(t, conn))
}

func TestEverythingIsInSchemaLakeweir(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	_, err := conn.Exec(t.Context(), `create schema other; create table public.tables (x int); create table public.sources (x int)`)
	require.NoError(t, err)
	cfg.RuntimeParams["search_path"] = "other, public"
	_, err = Apply(t.Context(), cfg)
	require.NoError(t, err)
	for _, name := range objects(t, conn) {
		if name != "public.tables" && name != "public.sources" {
			require.True(t, strings.HasPrefix(name, "lakeweir."), "%s is outside", name)
		}
	}
}

func TestConcurrentStartersMigrateOnce(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error {
			_, err := Apply(ctx, cfg.Copy())
			return err
		})
	}
	require.NoError(t, g.Wait())
	var applied int
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from lakeweir.goose_db_version where version_id > 0`).Scan(&applied))
	require.Equal(t, len(numbers(t, files)), applied)
}

func TestADeadMigratorLeavesNoLock(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	dead, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	_, err = dead.Exec(t.Context(), `select pg_advisory_lock($1)`, lockID)
	require.NoError(t, err)

	done := make(chan error, 1)
	go func() {
		_, err := Apply(t.Context(), cfg.Copy())
		done <- err
	}()
	waitForLockAttempt(t, conn)
	select {
	case err := <-done:
		t.Fatalf("it did not wait for the lock: %v", err)
	default:
	}
	_, err = conn.Exec(t.Context(), `select pg_terminate_backend($1)`, int32(dead.PgConn().PID()))
	require.NoError(t, err)
	require.NoError(t, <-done)
}

func TestAnOlderBinaryGoesOnBesideANewerRegistry(t *testing.T) {
	t.Parallel()
	cfg, _ := newDatabase(t)
	newer := with(t, files, "00099_later.sql", "-- +goose Up\ncreate table lakeweir.later (x int);\n")
	v, err := apply(t.Context(), cfg, newer)
	require.NoError(t, err)
	require.EqualValues(t, 99, v)

	v, err = Apply(t.Context(), cfg)
	require.NoError(t, err)
	require.EqualValues(t, 99, v)
}

func TestAnIncompatibleRegistryIsRefused(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	newer := with(t, files, "00099_break.sql", "-- +goose Up\nupdate lakeweir.compatibility set min_reader = 99;\n")
	_, err := apply(t.Context(), cfg, newer)
	require.NoError(t, err)
	before := objects(t, conn)

	_, err = Apply(t.Context(), cfg)
	var incompatible *IncompatibleError
	require.ErrorAs(t, err, &incompatible)
	require.Equal(t, IncompatibleError{Own: Version(), MinReader: 99}, *incompatible)
	require.Equal(t, before, objects(t, conn))
}

func TestAFailedMigrationLeavesNothingOfItself(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	broken := with(t, files, "00099_broken.sql", "-- +goose Up\ncreate table lakeweir.half (x int);\nselect 1/0;\n")
	_, err := apply(t.Context(), cfg, broken)
	require.ErrorContains(t, err, "division by zero")
	require.NotContains(t, objects(t, conn), "lakeweir.half")
	_, err = Apply(t.Context(), cfg)
	require.NoError(t, err)
}

// TestSkipsOfTopicsStay brings a registry up to date that has some already.
func TestSkipsOfTopicsStay(t *testing.T) {
	t.Parallel()
	cfg, conn := newDatabase(t)
	older := fstest.MapFS{}
	for _, n := range numbers(t, files) {
		b, err := fs.ReadFile(files, n)
		require.NoError(t, err)
		if n < "00006" {
			older[n] = &fstest.MapFile{Data: b}
		}
	}
	_, err := apply(t.Context(), cfg, older)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `insert into lakeweir.sources (name, kind, capture, config) values ('shop', '', '', '{}');
		insert into lakeweir.tables (source, schema_name, table_name, owner, tier, config) values ('shop', 'public', 'orders', '', '', '{}');
		insert into lakeweir.skips (table_id, partition, "offset", reason, actor) values (1, 0, 7, 'broken', 'ann')`)
	require.NoError(t, err)
	_, err = Apply(t.Context(), cfg)
	require.NoError(t, err)
	// As an older Lakeweir writes it.
	tag, err := conn.Exec(t.Context(), `insert into lakeweir.skips (table_id, partition, "offset", reason, actor)
		values (1, 0, 7, 'again', 'bob'), (1, 1, 7, 'another', 'bob') on conflict do nothing`)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
	for _, bad := range []string{"null, 7, null", "0, null, null", "0, 8, 'g1 0/1 #1'", "null, null, null"} {
		_, err = conn.Exec(t.Context(), `insert into lakeweir.skips (table_id, partition, "offset", position, reason, actor) values (1, `+bad+`, '', '')`)
		require.ErrorContains(t, err, "skips_of_one_change", bad)
	}
}

func TestDownRemovesWhatUpMade(t *testing.T) {
	t.Parallel()
	for _, number := range numbers(t, files) {
		b, err := fs.ReadFile(files, number)
		require.NoError(t, err)
		require.Contains(t, string(b), "-- +goose Down", number)
	}
}

func newDatabase(t *testing.T) (*pgx.ConnConfig, *pgx.Conn) {
	t.Helper()
	cfg, err := pgx.ParseConfig(localpgtest.Database(t))
	require.NoError(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return cfg, conn
}

// objects lists every table, index and sequence outside the system schemas.
func objects(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select c.relnamespace::regnamespace::text || '.' || relname from pg_class c
		where relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace) order by 1`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

// waitForLockAttempt returns once another session has asked for the lock in vain.
func waitForLockAttempt(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for asked := false; !asked; {
		err := conn.QueryRow(ctx, `select exists (select from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and query like '%pg_try_advisory_lock%')`).Scan(&asked)
		require.NoError(t, err)
	}
}

func numbers(t *testing.T, files fs.FS) []string {
	t.Helper()
	names, err := fs.Glob(files, "*.sql")
	require.NoError(t, err)
	if len(names) == 0 {
		t.Fatal(errors.New("no migrations"))
	}
	return names
}

// with returns the files and one more.
func with(t *testing.T, files fs.FS, name, text string) fs.FS {
	t.Helper()
	out := fstest.MapFS{name: {Data: []byte(text)}}
	for _, n := range numbers(t, files) {
		b, err := fs.ReadFile(files, n)
		require.NoError(t, err)
		out[n] = &fstest.MapFile{Data: b}
	}
	return out
}
