package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/catalog"
)

// shopper is one connection and the part of the shop that is its own: no two
// shoppers change the same order or customer, so they seldom wait for each other.
type shopper struct {
	*Workload
	conn      *pgx.Conn
	rng       *rand.Rand
	texts     *texts
	orders    []*order
	customers []int64
	cancelled []int64 // orders that were deleted and may come back
}

// order is what a shopper remembers of one of its orders.
type order struct {
	id, customer int64
	status       string
	lines        []int32
	payment      uuid.UUID
	captured     bool
	document     int64 // 0: none
}

// kept bounds what a shopper remembers; older orders are left in peace.
const kept = 4000

func (w *Workload) open(ctx context.Context, part, parts int) (*shopper, error) {
	conn, err := pgx.Connect(ctx, w.cfg.DSN)
	if err != nil {
		return nil, unreachable(err)
	}
	s := &shopper{Workload: w, conn: conn, rng: w.rand(part + 1)}
	s.texts = newTexts(s.rng)
	if err := s.load(ctx, part, parts); err != nil {
		return nil, errors.Join(fmt.Errorf("read the shop's rows: %w", err), conn.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// load remembers the newest orders and customers of this part.
func (s *shopper) load(ctx context.Context, part, parts int) error {
	rows, err := s.conn.Query(ctx, `
		select o.order_id, o.customer_id, o.status::text,
		       coalesce((select array_agg(line_no order by line_no) from order_items i where i.order_id = o.order_id), '{}'),
		       p.payment_id, p.captured,
		       coalesce((select min(document_id) from documents d where d.order_id = o.order_id), 0)
		from (select * from orders where order_id % $2 = $1 order by order_id desc limit $3) o
		join lateral (select * from payments p where p.order_id = o.order_id limit 1) p on true
		order by 1`, part, parts, kept/2)
	if err != nil {
		return err
	}
	s.orders, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*order, error) {
		var o order
		err := row.Scan(&o.id, &o.customer, &o.status, &o.lines, &o.payment, &o.captured, &o.document)
		return &o, err
	})
	if err != nil {
		return err
	}
	rows, err = s.conn.Query(ctx, "select customer_id from customers where customer_id % $2 = $1 order by 1 desc limit $3", part, parts, kept/2)
	if err != nil {
		return err
	}
	s.customers, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return err
}

// runShort does one short transaction after the other.
func (s *shopper) runShort(ctx context.Context) error {
	for {
		if err := s.pacer.turn(ctx); err != nil {
			return err
		}
		if err := s.short(ctx); err != nil {
			return err
		}
	}
}

// short does one transaction, in one round trip. Some are rolled back, whole or to
// a savepoint.
func (s *shopper) short(ctx context.Context) error {
	p := s.pick()
	ending := "commit"
	switch n := s.rng.IntN(100); {
	case n < 3:
		ending = "rollback"
	case n < 6:
		regretted := s.pick()
		p.steps = append(append([]step{{sql: "savepoint before", op: control}}, undone(regretted.steps)...),
			append([]step{{sql: "rollback to savepoint before", op: control}}, p.steps...)...)
	}
	steps := append([]step{{sql: "begin", op: control}}, p.steps...)
	done, err := s.send(ctx, append(steps, step{sql: ending, op: control}))
	return s.settle(ctx, p, done, ending == "commit", err)
}

// runLong holds one long transaction after the other.
func (s *shopper) runLong(ctx context.Context) error {
	for {
		if err := s.pacer.turn(ctx); err != nil {
			return err
		}
		if err := s.long(ctx); err != nil {
			return err
		}
	}
}

// long changes rows early, leaves the transaction open while others come and go,
// and changes more rows, some of them the others', before it commits: its first
// changes stand in the log before what was committed long before it.
func (s *shopper) long(ctx context.Context) error {
	early := s.pick()
	done, err := s.send(ctx, append([]step{{sql: "begin", op: control}}, early.steps...))
	if err != nil {
		return s.settle(ctx, early, done, false, err)
	}
	hold := time.NewTimer(s.cfg.MaxHold/10 + time.Duration(s.rng.Float64()*float64(s.cfg.MaxHold)*0.9))
	defer hold.Stop()
	select {
	case <-hold.C:
	case <-ctx.Done(): // finish what was begun
	}
	ending := "commit"
	if s.rng.IntN(10) == 0 {
		ending = "rollback"
	}
	late := []step{s.strangers()}
	if early.order != nil {
		late = append(late, s.note(early.order.id))
	}
	more, err := s.send(ctx, append(late, step{sql: ending, op: control}))
	return s.settle(ctx, early, append(done, more...), ending == "commit", err)
}

// settle counts a transaction that has ended and remembers what it left, or cleans
// up after one that was refused. Deadlocks and doubled keys happen in a busy shop
// and cost only their transaction; so does what somebody who tries things out has
// made impossible, such as a column that is gone, which is said once.
func (s *shopper) settle(ctx context.Context, p plan, done []outcome, committed bool, err error) error {
	if err != nil {
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || strings.HasPrefix(refused.Code, "57P") { // 57P01: the server is shutting down
			return catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable,
				"see the server's log; start again when it runs", "the shop's database was lost: %w", err)
		}
		if _, said := s.refused.LoadOrStore(refused.Code+refused.Message, true); !said && refused.Code != "40P01" && refused.Code != "23505" {
			s.cfg.Logger.WarnContext(ctx, "the shop's database refuses some of what the shop does; the rest goes on", "message", refused.Message, "sqlstate", refused.Code)
		}
		bounded, cancel := patient(ctx)
		defer cancel()
		if _, err := s.conn.Exec(bounded, "rollback"); err != nil {
			return fmt.Errorf("keep the shop busy: %w", err)
		}
		committed = false
	}
	if !committed {
		s.pacer.pay(1)
		s.tally.rolledBack()
		return nil
	}
	var rows int64
	for _, o := range done {
		rows += o.rows
	}
	s.pacer.pay(max(rows, 1))
	s.tally.committed(done)
	if p.after != nil {
		p.after()
	}
	return nil
}

// patient is a context for finishing a transaction although ctx may have ended.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

// send runs the steps in one round trip and returns what each did.
func (s *shopper) send(ctx context.Context, steps []step) (done []outcome, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	var batch pgx.Batch
	for _, st := range steps {
		batch.Queue(st.sql, st.args...)
	}
	results := s.conn.SendBatch(ctx, &batch)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	for _, st := range steps {
		tag, err := results.Exec()
		if err != nil {
			return done, err
		}
		if st.op != control && !st.undone {
			done = append(done, outcome{table: st.table, op: st.op, rows: tag.RowsAffected()})
		}
	}
	return done, nil
}
