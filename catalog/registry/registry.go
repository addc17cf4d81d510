package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/migrations"
)

const (
	connectTimeout = 3 * time.Second
	callTimeout    = 5 * time.Second
	migrateTimeout = 5 * time.Minute // another process may be migrating
	maxConns       = 8
)

// Registry is a pool of connections to the registry's database. Its methods may be
// called concurrently. Each fails within about five seconds with
// registry.unavailable when the database does not answer, so that a worker whose
// registry is down goes on.
type Registry struct {
	pool   *pgxpool.Pool
	where  string // for messages: host:port/database
	pruned atomic.Int64
}

// Open connects to the Postgres named by the connection string, brings its schema
// lakeweir up to this binary's version, and returns the registry. It waits while
// another process migrates.
func Open(ctx context.Context, dsn catalog.Secret) (*Registry, error) {
	cfg, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		// The parser's own message may quote parts of the connection string.
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeRegistryUnavailable,
			"write it as postgres://user@host:5432/database", "the registry's connection string cannot be read")
	}
	r := &Registry{where: whereIs(cfg.ConnConfig)}
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > connectTimeout {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "lakeweir registry"
	}
	migrating := cfg.ConnConfig.Copy()
	within, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if _, err := migrations.Apply(within, migrating); err != nil {
		return nil, r.fault(ctx, err)
	}
	cfg.MaxConns = maxConns
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(callTimeout.Milliseconds(), 10)
	if r.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, r.fault(ctx, err)
	}
	return r, nil
}

// Close waits for running calls and closes the connections.
func (r *Registry) Close() { r.pool.Close() }

// Ping reports whether the registry answers and still is one that this binary
// understands: registry.version when a newer one has changed it meanwhile.
func (r *Registry) Ping(ctx context.Context) error {
	var minReader int64
	err := r.query(ctx, `select min_reader from lakeweir.compatibility`, nil, &minReader)
	if err == nil && minReader > migrations.Version() {
		err = r.fault(ctx, &migrations.IncompatibleError{Own: migrations.Version(), MinReader: minReader})
	}
	return err
}

// exec runs one statement within the call's time.
func (r *Registry) exec(ctx context.Context, sql string, args ...any) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := r.pool.Exec(within, sql, args...)
	return r.fault(ctx, err)
}

// query reads one row within the call's time; no row is pgx.ErrNoRows, as it is.
func (r *Registry) query(ctx context.Context, sql string, args []any, into ...any) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.fault(ctx, r.pool.QueryRow(within, sql, args...).Scan(into...))
}

// inTx runs do in one transaction within the call's time.
func (r *Registry) inTx(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.fault(ctx, pgx.BeginFunc(within, r.pool, func(tx pgx.Tx) error { return do(within, tx) }))
}

// durably is inTx, waiting for the disk whatever the database's default is.
func (r *Registry) durably(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return r.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('synchronous_commit', 'on', true)`); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// lockTable returns the number of a table, whose row it locks against others that do so,
// and not against those that only refer to it. It fails with table.not_found.
func lockTable(ctx context.Context, tx pgx.Tx, source, table string) (id int64, err error) {
	err = tx.QueryRow(ctx, `select id from lakeweir.tables where source = $1 and name = $2 for no key update`, source, table).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, noTable(source, table)
	}
	if err != nil {
		return 0, fmt.Errorf("find table %s/%s: %w", source, table, err)
	}
	return id, nil
}
