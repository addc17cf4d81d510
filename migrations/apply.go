package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed *.sql
var files embed.FS

// IncompatibleError says that the registry was migrated by a Lakeweir that older
// ones cannot work beside.
type IncompatibleError struct {
	Own       int64 // the newest migration this binary brings
	MinReader int64 // the oldest the registry asks for
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("the registry asks for version %d or newer, this binary has %d", e.MinReader, e.Own)
}

// Version returns the number of the newest migration in this binary.
func Version() int64 { return newest(files) }

// Apply brings the registry at cfg up to this binary's version and returns the
// registry's, which is higher when a newer binary was there first. It blocks while
// another process migrates. It needs a connection of its own, not one of a
// transaction pooler: the lock belongs to the session, so that a crash leaves none.
func Apply(ctx context.Context, cfg *pgx.ConnConfig) (int64, error) {
	return apply(ctx, cfg, files)
}

func apply(ctx context.Context, cfg *pgx.ConnConfig, files fs.FS) (version int64, err error) {
	// One connection and never another: the lock and the right to migrate end together.
	var connected atomic.Bool
	db := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(func(context.Context, *pgx.ConnConfig) error {
		if connected.Swap(true) {
			return errors.New("the connection that migrates was lost")
		}
		return nil
	}))
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }() // gives the lock back, too
	if err := lock(ctx, db); err != nil {
		return 0, err
	}
	if err := prepare(ctx, db, newest(files)); err != nil {
		return 0, err
	}
	p, err := goose.NewProvider(database.DialectPostgres, db, files,
		goose.WithTableName("lakeweir.goose_db_version"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("read the migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return 0, fmt.Errorf("migrate the registry: %w", err)
	}
	if err := db.QueryRowContext(ctx, `select max(version_id) from lakeweir.goose_db_version where is_applied`).Scan(&version); err != nil {
		return 0, fmt.Errorf("read the registry's version: %w", err)
	}
	return version, nil
}

func newest(files fs.FS) int64 {
	names, _ := fs.Glob(files, "*.sql") // the pattern is well formed
	var n int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if v, err := strconv.ParseInt(number, 10, 64); err == nil {
			n = max(n, v)
		}
	}
	return n
}

// lockID is the advisory lock that migrations of a database take turns under: the
// first eight letters of the name.
const lockID int64 = 0x6c616b6577656972

// lock takes the advisory lock for the session of db's one connection. It polls
// rather than waits inside the server: a waiting statement holds a snapshot, on which
// a migration that builds an index concurrently would wait.
func lock(ctx context.Context, db *sql.DB) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		var ok bool
		if err := db.QueryRowContext(ctx, `select pg_try_advisory_lock($1)`, lockID).Scan(&ok); err != nil {
			return fmt.Errorf("take the migration lock: %w", err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another process that migrates the registry: %w", ctx.Err())
		case <-poll.C:
		}
	}
}

// prepare makes the schema in which goose keeps its table, and refuses a registry that
// this binary does not understand before anything is changed.
func prepare(ctx context.Context, db *sql.DB, own int64) error {
	var schema, table bool
	err := db.QueryRowContext(ctx, `select exists (select from pg_namespace where nspname = 'lakeweir'),
		to_regclass('lakeweir.compatibility') is not null`).Scan(&schema, &table)
	if err != nil {
		return fmt.Errorf("look for the registry: %w", err)
	}
	if !schema { // create … if not exists asks for the right to create even when it is there
		if _, err := db.ExecContext(ctx, `create schema lakeweir`); err != nil {
			return fmt.Errorf("create schema lakeweir: %w", err)
		}
	}
	if !table {
		return nil
	}
	var minReader int64
	if err := db.QueryRowContext(ctx, `select min_reader from lakeweir.compatibility`).Scan(&minReader); err != nil {
		return fmt.Errorf("read the registry's oldest reader: %w", err)
	}
	if minReader > own {
		return &IncompatibleError{Own: own, MinReader: minReader}
	}
	return nil
}
