package demo

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// place makes an order with all that belongs to it; sometimes its customer is new.
func (s *shopper) place(id int64) plan {
	var p plan
	customer := int64(0)
	if len(s.customers) == 0 || s.rng.IntN(12) == 0 {
		customer = s.ids.customer.Add(1)
		p.steps = append(p.steps, step{
			table: "customers", op: insert,
			sql:  "insert into customers (customer_id, email, full_name, phone, birth_date) values ($1, $2, $3, $4, date '1950-01-01' + $5::int)",
			args: []any{customer, fmt.Sprintf("customer%d@example.com", customer), fmt.Sprintf("Customer %d", customer), fmt.Sprintf("+1 555 01%02d", customer%100), s.rng.IntN(20000)},
		})
	}
	fresh := customer != 0
	if !fresh {
		customer = s.customers[s.rng.IntN(len(s.customers))]
	}
	o := &order{id: id, customer: customer, status: "placed", payment: uuid.New()}
	cents := 500 + s.rng.IntN(50000)
	note := &[]string{s.texts.of(0, 80)}[0]
	if s.rng.IntN(3) > 0 {
		note = nil
	}
	tags := [][]string{{}, {"web"}, {"app", "gift, wrapped"}, {`say "hi"`, "NULL", ""}}[s.rng.IntN(4)]
	p.steps = append(p.steps, step{
		table: "orders", op: insert,
		sql: `insert into orders (order_id, customer_id, amount, currency, shipping_address, note, tags, attributes)
			values ($1, $2, $3::int / 100.0, $4, $5, $6, $7, $8)`,
		args: []any{
			id, customer, cents, s.texts.one("EUR", "EUR", "USD", "GBP"), fmt.Sprintf("%d Harbour Road", 1+s.rng.IntN(300)), note, tags,
			fmt.Sprintf(`{"channel": %q, "visits": %d, "price": %d.50}`, s.texts.one("web", "app"), s.rng.IntN(30), s.rng.IntN(90)),
		},
	})
	for l := range int32(1 + s.rng.IntN(4)) {
		o.lines = append(o.lines, l+1)
	}
	p.steps = append(p.steps, s.addItems(id, o.lines), step{
		table: "payments", op: insert, sql: "insert into payments (payment_id, order_id, amount, provider) values ($1, $2, $3::int / 100.0, $4)",
		args: []any{o.payment, id, cents, s.texts.one("card", "transfer", "wallet")},
	})
	if s.rng.IntN(3) == 0 {
		o.document = s.ids.document.Add(1)
		p.steps = append(p.steps, step{
			table: "documents", op: insert, sql: "insert into documents (document_id, order_id, title, body) values ($1, $2, $3, $4)",
			args: []any{o.document, id, fmt.Sprintf("Invoice %d", id), s.texts.body()},
		})
	}
	p.steps = append(p.steps, s.log("order.placed", id))
	p.after = func() {
		s.orders = append(s.orders, o)
		s.cancelled = slices.DeleteFunc(s.cancelled, func(c int64) bool { return c == id })
		if fresh && len(s.customers) < kept {
			s.customers = append(s.customers, customer)
		}
	}
	return p
}

func (s *shopper) addItems(order int64, lines []int32) step {
	skus, quantities, cents := make([]string, len(lines)), make([]int32, len(lines)), make([]int32, len(lines))
	for i := range lines {
		skus[i] = fmt.Sprintf("SKU-%05d", s.rng.IntN(5000))
		quantities[i] = 1 + s.rng.Int32N(5)
		cents[i] = 100 + s.rng.Int32N(20000)
	}
	return step{
		table: "order_items", op: insert,
		sql: `insert into order_items (order_id, line_no, sku, quantity, unit_price)
			select $1::bigint, l, s, q, c / 100.0 from unnest($2::int[], $3::text[], $4::int[], $5::int[]) as i (l, s, q, c)`,
		args: []any{order, lines, skus, quantities, cents},
	}
}

// advance takes an order to its next state: paid, shipped, returned.
func (s *shopper) advance(o *order) plan {
	switch o.status {
	case "placed":
		return plan{order: o, steps: []step{
			{table: "orders", op: update, sql: "update orders set status = 'paid', paid_at = now() where order_id = $1", args: []any{o.id}},
			{table: "payments", op: update, sql: "update payments set captured = true where payment_id = $1", args: []any{o.payment}},
			s.log("order.paid", o.id),
		}, after: func() { o.status, o.captured = "paid", true }}
	case "paid":
		return plan{order: o, steps: []step{
			{table: "orders", op: update, sql: "update orders set status = 'shipped' where order_id = $1", args: []any{o.id}},
			{
				table: "documents", op: update, sql: "update documents set title = 'Delivery note', revision = revision + 1, updated_at = now() where order_id = $1",
				args: []any{o.id},
			},
			s.log("order.shipped", o.id),
		}, after: func() { o.status = "shipped" }}
	default:
		p := s.refund(o)
		p.steps = append(p.steps, step{table: "orders", op: update, sql: "update orders set status = 'returned' where order_id = $1", args: []any{o.id}})
		p.after = func() {
			o.status = "returned"
			if s.rng.IntN(4) == 0 {
				s.forget(o)
			}
		}
		return p
	}
}

// forget leaves an order in peace from now on, so that new ones have room.
func (s *shopper) forget(o *order) {
	if i := slices.Index(s.orders, o); i >= 0 {
		s.orders[i] = s.orders[len(s.orders)-1]
		s.orders = s.orders[:len(s.orders)-1]
	}
}

// cancel deletes an order for good, with its items and documents; what was paid is
// refunded.
func (s *shopper) cancel(o *order) plan {
	steps := []step{
		{table: "order_items", op: remove, sql: "delete from order_items where order_id = $1", args: []any{o.id}},
		{table: "documents", op: remove, sql: "delete from documents where order_id = $1", args: []any{o.id}},
		{table: "orders", op: remove, sql: "delete from orders where order_id = $1", args: []any{o.id}},
	}
	if o.captured {
		steps = append(steps, s.refund(o).steps...)
	} else {
		steps = append(steps, step{table: "payments", op: remove, sql: "delete from payments where payment_id = $1", args: []any{o.payment}})
	}
	return plan{steps: append(steps, s.log("order.cancelled", o.id)), after: func() {
		s.forget(o)
		s.cancelled = append(s.cancelled, o.id)
		s.cancelled = s.cancelled[max(0, len(s.cancelled)-100):]
	}}
}

func (s *shopper) refund(o *order) plan {
	return plan{order: o, steps: []step{{
		table: "refunds", op: insert, sql: "insert into refunds (refund_id, payment_id, amount, reason) values ($1, $2, $3::int / 100.0, $4)",
		args: []any{s.ids.refund.Add(1), o.payment, 100 + s.rng.IntN(5000), s.texts.one("returned", "damaged", "late", "cancelled")},
	}}}
}

// reconsider changes one order several times in one transaction; sometimes it ends
// as it began.
func (s *shopper) reconsider(o *order) plan {
	by := s.rng.IntN(3) * 50
	return plan{order: o, steps: []step{
		{table: "orders", op: update, sql: "update orders set amount = amount + 10 where order_id = $1", args: []any{o.id}},
		s.note(o.id),
		{table: "orders", op: update, sql: "update orders set shipping_address = $2 where order_id = $1", args: []any{o.id, fmt.Sprintf("%d Harbour Road", 1+s.rng.IntN(300))}},
		{table: "orders", op: update, sql: "update orders set amount = amount - 10 + $2::int / 100.0, tags = array_append(tags[1:3], 'changed') where order_id = $1", args: []any{o.id, by}},
	}}
}

// changeItems changes lines, and deletes one and adds it again under its key.
func (s *shopper) changeItems(o *order) plan {
	steps := []step{{
		table: "order_items", op: update, sql: "update order_items set quantity = 1 + quantity % 7 where order_id = $1", args: []any{o.id},
	}}
	if len(o.lines) > 0 && s.rng.IntN(3) == 0 {
		line := o.lines[s.rng.IntN(len(o.lines))]
		steps = append(steps,
			step{table: "order_items", op: remove, sql: "delete from order_items where order_id = $1 and line_no = $2", args: []any{o.id, line}},
			s.addItems(o.id, []int32{line}))
	}
	return plan{order: o, steps: append(steps, step{
		table: "orders", op: update, sql: "update orders set attributes = attributes || $2 where order_id = $1",
		args: []any{o.id, fmt.Sprintf(`{"edits": %d}`, s.rng.IntN(100))},
	})}
}

// renumber moves every line one on, the last first, so that each takes the key that
// another has just left, and puts a new line first; or moves all far away at once.
func (s *shopper) renumber(o *order) plan {
	if len(o.lines) == 0 || len(o.lines) > 8 || s.rng.IntN(3) == 0 {
		lines := make([]int32, len(o.lines))
		for i, l := range o.lines {
			lines[i] = l + 100
		}
		return plan{order: o, steps: []step{{
			table: "order_items", op: update, sql: "update order_items set line_no = line_no + 100 where order_id = $1", args: []any{o.id},
		}}, after: func() { o.lines = lines }}
	}
	var steps []step
	var lines []int32
	for _, l := range slices.Backward(o.lines) {
		steps = append(steps, step{
			table: "order_items", op: update, sql: "update order_items set line_no = line_no + 1 where order_id = $1 and line_no = $2", args: []any{o.id, l},
		})
		lines = append(lines, l+1)
	}
	first := o.lines[0]
	slices.Reverse(lines)
	lines = append([]int32{first}, lines...)
	return plan{order: o, steps: append(steps, s.addItems(o.id, []int32{first})), after: func() { o.lines = lines }}
}

// touchDocuments changes all but the large text of some documents.
func (s *shopper) touchDocuments() plan {
	var documents []int64
	for range 40 {
		if o := s.orders[s.rng.IntN(len(s.orders))]; o.document != 0 && len(documents) < 4 {
			documents = append(documents, o.document)
		}
	}
	slices.Sort(documents)
	return plan{steps: []step{{
		table: "documents", op: update, sql: "update documents set revision = revision + 1, updated_at = now() where document_id = any($1)", args: []any{documents},
	}}}
}

func (s *shopper) rewriteDocument(o *order) plan {
	return plan{order: o, steps: []step{{
		table: "documents", op: update, sql: "update documents set body = $2, revision = revision + 1, updated_at = now() where document_id = $1",
		args: []any{o.document, s.texts.body()},
	}}}
}

// moveDocument gives a document another key; its large text moves unseen.
func (s *shopper) moveDocument(o *order) plan {
	to := s.ids.document.Add(1)
	return plan{order: o, steps: []step{{
		table: "documents", op: update, sql: "update documents set document_id = $2 where document_id = $1", args: []any{o.document, to},
	}}, after: func() { o.document = to }}
}

// moveCustomer gives a customer another key. Its orders follow, except those that
// another connection is just changing.
func (s *shopper) moveCustomer() plan {
	i := s.rng.IntN(len(s.customers))
	from, to := s.customers[i], s.ids.customer.Add(1)
	return plan{steps: []step{
		{table: "customers", op: update, sql: "update customers set customer_id = $2 where customer_id = $1", args: []any{from, to}},
		{
			table: "orders", op: update,
			sql:  "update orders set customer_id = $2 where order_id in (select order_id from orders where customer_id = $1 for update skip locked)",
			args: []any{from, to},
		},
	}, after: func() { s.customers[i] = to }}
}

func (s *shopper) changeCustomer() plan {
	id := s.customers[s.rng.IntN(len(s.customers))]
	set, value := "email", fmt.Sprintf("customer%d+%d@example.com", id, s.rng.IntN(1000))
	switch s.rng.IntN(4) {
	case 0:
		set, value = "phone", fmt.Sprintf("+1 555 01%02d", s.rng.IntN(100))
	case 1:
		set, value = "segment", s.texts.one("new", "regular", "vip")
	}
	return plan{steps: []step{{
		table: "customers", op: update, sql: "update customers set " + set + " = $2 where customer_id = $1", args: []any{id, value},
	}}}
}

// visit changes what history does not track.
func (s *shopper) visit() plan {
	ids := []int64{s.customers[s.rng.IntN(len(s.customers))], s.customers[s.rng.IntN(len(s.customers))], s.customers[s.rng.IntN(len(s.customers))]}
	return plan{steps: []step{{
		table: "customers", op: update, sql: "update customers set last_seen_at = now() where customer_id = any($1)", args: []any{ids},
	}}}
}

func (s *shopper) changeNothing() plan {
	ids := []int64{s.orders[s.rng.IntN(len(s.orders))].id, s.orders[s.rng.IntN(len(s.orders))].id}
	return plan{steps: []step{{
		table: "orders", op: update, sql: "update orders set status = status, amount = amount where order_id = any($1)", args: []any{ids},
	}}}
}

// strangers changes a few orders of other connections, those that are not locked.
func (s *shopper) strangers() step {
	newest := s.ids.order.Load()
	ids := make([]int64, 8)
	for i := range ids {
		ids[i] = max(1, newest-s.rng.Int64N(500))
	}
	return step{
		table: "orders", op: update,
		sql:  "update orders set note = $2 where order_id in (select order_id from orders where order_id = any($1) for update skip locked)",
		args: []any{ids, s.texts.of(0, 60)},
	}
}
