package registry

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// listenEvery is how long Listen waits at most before it has its caller look again:
// behind a pooler that shares sessions between transactions no notice arrives.
const listenEvery = 2 * time.Second

// Listen yields when a schema change, a decision, a quarantine or a skip of a source may
// be new, or of any source when it is empty: at once, whenever the registry tells of
// something, and every so often in any case (0: 2 s), since a notice may be lost. What
// comes while the caller is busy is told of in one. It ends with the context, and
// needs no answer from the registry to go on: what the caller then reads says whether it
// is there. It must not be used concurrently.
//
//	for range r.Listen(ctx, "shop", 0) {
//		changes, err := r.PendingSchemaChanges(ctx, "shop")
//		…
//	}
func (r *Registry) Listen(ctx context.Context, source string, every time.Duration) func(yield func() bool) {
	if every <= 0 {
		every = listenEvery
	}
	return func(yield func() bool) {
		l := listener{registry: r, source: source}
		defer l.close(ctx)
		for {
			l.connect(ctx) // before the caller looks, so that nothing falls between
			if ctx.Err() != nil || !yield() {
				return
			}
			l.wait(ctx, every)
		}
	}
}

// listener hears notices on a connection of its own.
type listener struct {
	registry *Registry
	source   string
	conn     *pgx.Conn // nil while there is none
	told     bool      // since the last wait
}

func (l *listener) connect(ctx context.Context) {
	if l.conn != nil || ctx.Err() != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cfg := l.registry.pool.Config().ConnConfig
	cfg.RuntimeParams["application_name"] = "lakeweir listens"
	cfg.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		l.told = l.told || l.source == "" || n.Payload == l.source
	}
	conn, err := pgx.ConnectConfig(within, cfg)
	if err != nil {
		return // the caller's own reading says so; the next round tries again
	}
	l.conn = conn
	if _, err := conn.Exec(within, `listen lakeweir`); err != nil {
		l.close(ctx)
	}
}

// wait returns when something was told, or after a while.
func (l *listener) wait(ctx context.Context, every time.Duration) {
	within, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	for !l.told && within.Err() == nil {
		if l.conn == nil {
			<-within.Done()
			return
		}
		if err := l.conn.PgConn().WaitForNotification(within); err != nil && within.Err() == nil {
			l.close(ctx) // a new one is made when the caller is due to look again
		}
	}
	if l.told && l.conn != nil {
		// What else is on its way is of the same news.
		ping, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err := l.conn.Ping(ping); err != nil {
			l.close(ctx)
		}
	}
	l.told = false
}

func (l *listener) close(ctx context.Context) {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}
