package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// WorkloadConfig says how busy the shop is.
type WorkloadConfig struct {
	DSN string // a database that Setup has prepared
	// Rate is the number of row changes a second, over all tables; default 200. A
	// few times a minute it is tripled for two seconds. It is a ceiling: a machine
	// that cannot keep up does fewer.
	Rate float64
	// Seed makes the choices repeatable as far as they depend on chance and not on
	// which connection is faster. Any value.
	Seed uint64
	// Connections do short transactions; default 3. One or two more hold long ones.
	Connections int
	// MaxHold bounds how long a long transaction is left open between its first
	// and its last change; default 5 s. They are held for a tenth of it at least.
	MaxHold time.Duration
	Logger  *slog.Logger // nil discards
}

// WithDefaults returns c with what was left empty filled in.
func (c WorkloadConfig) WithDefaults() WorkloadConfig {
	if c.Rate <= 0 {
		c.Rate = 200
	}
	if c.Connections <= 0 {
		c.Connections = 3
	}
	if c.MaxHold <= 0 {
		c.MaxHold = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Workload is the shop's life.
type Workload struct {
	cfg   WorkloadConfig
	pacer *pacer
	tally *tally
	ids   ids
	// refused are the server's refusals that were said.
	refused *sync.Map
}

// NewWorkload returns a workload that has not begun.
func NewWorkload(cfg WorkloadConfig) *Workload {
	return &Workload{cfg: cfg.WithDefaults(), pacer: newPacer(), tally: newTally(), refused: &sync.Map{}}
}

// Stats returns what has been committed so far. It may be called at any time.
func (w *Workload) Stats() Stats { return w.tally.snapshot() }

// ids are the last identifiers given out.
type ids struct {
	customer, order, refund, document atomic.Int64
}

// longConnections hold long transactions beside each other.
const longConnections = 2

// Run keeps the shop busy until ctx ends, then finishes what is under way and
// returns nil: nothing is left open or half done. It goes on with the rows and
// identifiers that it finds. An error means that the database was lost or refuses
// what the shop does. Run once.
func (w *Workload) Run(ctx context.Context) (Stats, error) {
	if err := w.loadIDs(ctx); err != nil {
		return w.Stats(), stopped(ctx, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		w.pacer.run(ctx, w.cfg.Rate, w.rand(0))
		return nil
	})
	parts := w.cfg.Connections + longConnections
	for part := range parts {
		group.Go(func() error {
			s, err := w.open(ctx, part, parts)
			if err != nil {
				return stopped(ctx, err)
			}
			defer s.conn.Close(context.WithoutCancel(ctx))
			if part < longConnections {
				err = s.runLong(ctx)
			} else {
				err = s.runShort(ctx)
			}
			return stopped(ctx, err)
		})
	}
	err := group.Wait()
	return w.Stats(), err
}

// stopped is err, unless it came of being told to stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (w *Workload) rand(part int) *rand.Rand {
	return rand.New(rand.NewPCG(w.cfg.Seed, uint64(part))) //nolint:gosec // a workload, not a secret
}

func (w *Workload) loadIDs(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, w.cfg.DSN)
	if err != nil {
		return unreachable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// Identifiers of deleted rows must not come back by accident, only on purpose:
	// the event log still knows the orders.
	var customer, order, refund, document int64
	err = conn.QueryRow(ctx, `select
		(select coalesce(max(customer_id), 0) from customers),
		(select greatest(coalesce(max(order_id), 0), (select max(order_id) from event_log)) from orders),
		(select coalesce(max(refund_id), 0) from refunds),
		(select coalesce(max(document_id), 0) from documents)`).Scan(&customer, &order, &refund, &document)
	if err != nil {
		return fmt.Errorf("read the shop's identifiers: %w", err)
	}
	w.ids.customer.Store(customer)
	w.ids.order.Store(order)
	w.ids.refund.Store(refund)
	w.ids.document.Store(document)
	return nil
}
