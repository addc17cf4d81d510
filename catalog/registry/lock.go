package registry

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

const (
	lockWait  = 5 * time.Second        // for a worker that has just died or is about to end
	lockRetry = 100 * time.Millisecond // between two tries
)

// SourceLock says that its holder, and no one else, runs a source. The registry's
// server gives it up as soon as the holder's connection ends, so it outlives no
// process. It needs that connection for itself: behind a pooler that shares
// sessions between transactions it proves nothing. It must not be used
// concurrently.
type SourceLock struct {
	registry *Registry
	source   string
	conn     *pgx.Conn // nil once it broke
}

// LockSource takes the lock of a source. It waits a few seconds for another holder
// to end, and fails with source.slot when that one stays. Release the lock.
func (r *Registry) LockSource(ctx context.Context, source string) (*SourceLock, error) {
	l := &SourceLock{registry: r, source: source}
	within, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		taken, err := l.take(ctx)
		if err != nil {
			l.Release(ctx)
			return nil, err
		}
		if taken {
			return l, nil
		}
		select {
		case <-within.Done():
			l.Release(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, r.otherRuns(ctx, source)
		case <-time.After(lockRetry):
		}
	}
}

// Check makes sure that the lock is still held, and takes it again when its
// connection broke. It fails with source.slot when another holder was faster, and
// with registry.unavailable when that cannot be told now.
func (l *SourceLock) Check(ctx context.Context) error {
	if l.conn != nil {
		within, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := l.conn.Ping(within); err == nil {
			return nil
		}
		l.Release(ctx)
	}
	taken, err := l.take(ctx)
	switch {
	case err != nil:
		l.Release(ctx)
		return err
	case !taken:
		l.Release(ctx)
		return l.registry.otherRuns(ctx, l.source)
	}
	return nil
}

// Release gives the lock up, also when the context has ended.
func (l *SourceLock) Release(ctx context.Context) {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if !l.conn.IsClosed() {
		// At once: the server learns of a closed connection only a moment later.
		_, _ = l.conn.Exec(ctx, `select pg_advisory_unlock_all()`)
	}
	_ = l.conn.Close(ctx)
	l.conn = nil
}

// take tries once, on a connection of its own.
func (l *SourceLock) take(ctx context.Context) (taken bool, err error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if l.conn == nil {
		cfg := l.registry.pool.Config().ConnConfig
		cfg.RuntimeParams["application_name"] = "lakeweir worker of " + l.source
		if l.conn, err = pgx.ConnectConfig(within, cfg); err != nil {
			l.conn = nil
			return false, l.registry.fault(ctx, err)
		}
		// A machine that vanishes says no goodbye.
		if _, err = l.conn.Exec(within, `select set_config('tcp_keepalives_idle', '10', false),
			set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`); err != nil {
			return false, l.registry.fault(ctx, err)
		}
	}
	err = l.conn.QueryRow(within, `select pg_try_advisory_lock(hashtextextended('lakeweir/source/' || $1::text, 0))`, l.source).Scan(&taken)
	return taken, l.registry.fault(ctx, err)
}

// otherRuns says who holds the source's lock, as far as the registry heard.
func (r *Registry) otherRuns(ctx context.Context, source string) error {
	who := "another worker"
	var pid int
	err := r.query(ctx, `select pid from lakeweir.workers where source = $1 order by seen_at desc limit 1`, []any{source}, &pid)
	switch {
	case err == nil:
		who += ", process " + strconv.Itoa(pid) + ","
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	return catalog.Errorf(catalog.Conflict, catalog.CodeSourceSlot, "stop it first; only one worker may run a source", "%s runs source %s", who, source)
}
