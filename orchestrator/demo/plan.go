package demo

import "fmt"

// op is what a step does to rows.
type op byte

const (
	control op = iota // begin, commit, savepoints
	insert
	update
	remove
)

// step is one statement of a transaction.
type step struct {
	table  string
	op     op
	sql    string
	args   []any
	undone bool // rolled back to a savepoint: not counted
}

// outcome is how many rows a step changed.
type outcome struct {
	table string
	op    op
	rows  int64
}

// plan is what one transaction does, and what to remember once it is committed.
type plan struct {
	steps []step
	after func()
	order *order // an order it changes, that lives on
}

func undone(steps []step) []step {
	for i := range steps {
		steps[i].undone = true
	}
	return steps
}

// pick chooses what happens next. It changes no state: a plan may never be done.
func (s *shopper) pick() plan {
	if len(s.orders) < 20 || len(s.customers) == 0 {
		return s.place(s.ids.order.Add(1))
	}
	o := s.anyOrder()
	switch n := s.rng.IntN(100); {
	case n < 18 && len(s.orders) < kept:
		return s.place(s.ids.order.Add(1))
	case n < 32:
		return s.advance(o)
	case n < 42:
		return s.cancel(o)
	case n < 45 && len(s.cancelled) > 0:
		return s.place(s.cancelled[s.rng.IntN(len(s.cancelled))])
	case n < 55:
		return s.reconsider(o)
	case n < 63:
		return s.changeItems(o)
	case n < 68:
		return s.renumber(o)
	case n < 78:
		return s.touchDocuments()
	case n < 80 && o.document != 0:
		return s.rewriteDocument(o)
	case n < 82 && o.document != 0:
		return s.moveDocument(o)
	case n < 83:
		return s.moveCustomer()
	case n < 88:
		return s.changeCustomer()
	case n < 94:
		return s.visit()
	case n < 97:
		return s.changeNothing()
	default:
		return s.refund(o)
	}
}

// anyOrder is one of the newest two times in three: that is where things happen.
func (s *shopper) anyOrder() *order {
	n := len(s.orders)
	if s.rng.IntN(3) > 0 {
		return s.orders[n-1-s.rng.IntN(min(n, 150))]
	}
	return s.orders[s.rng.IntN(n)]
}

func (s *shopper) log(kind string, order int64) step {
	return step{
		table: "event_log", op: insert, sql: "insert into event_log (kind, order_id, payload) values ($1, $2, $3)",
		args: []any{kind, order, fmt.Sprintf(`{"by": "shop", "attempt": %d}`, 1+s.rng.IntN(3))},
	}
}

func (s *shopper) note(order int64) step {
	return step{
		table: "orders", op: update, sql: "update orders set note = $2 where order_id = $1",
		args: []any{order, s.texts.of(0, 120)},
	}
}
