package workload

import (
	"fmt"
	"time"
)

// Config says which workload.
type Config struct {
	Scale float64 // 1: the reference
	Seed  uint64
}

// Reference is the workload that figures are published for.
func Reference() Config { return Config{Scale: 1, Seed: 42} }

const (
	day      = int64(24 * time.Hour / time.Microsecond)
	snapLSN  = int64(0x1A2B3C40)
	snapTx   = int64(70_001)
	pageRows = 8 // charges in one transaction, at most
)

// begun is when the initial read began.
var begun = time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC).UnixMicro()

// life is the shop while its workload is made.
type life struct {
	*random
	sizes
	emit func(Record) error
	out  envelope

	orders   []order
	payments []payment
	refunds  []refund
	placed   []int // the new orders, by number, among orders
	history  history
	counts   map[string]map[string]int64 // events by table and op
	worth    map[string]int64            // of deleted orders, by currency

	lsn, tx, micros, commit int64
	before, after           []byte
	failed                  error
}

// Make makes the workload and hands over each record, in the order of commits; in a
// topic that is the order of offsets. It returns what must be there in the end. An
// error of emit ends it.
func Make(cfg Config, emit func(Record) error) (*Outcome, error) {
	if cfg.Scale <= 0 {
		return nil, fmt.Errorf("a scale of %v makes no events", cfg.Scale)
	}
	l := &life{random: &random{cfg.Seed}, sizes: sizesAt(cfg.Scale), emit: emit, counts: map[string]map[string]int64{}, worth: map[string]int64{}}
	for _, table := range Tables() {
		l.counts[table] = map[string]int64{}
	}
	l.placed = make([]int, l.sizes.placed)
	l.readAll()
	charges := 0
	l.lsn, l.tx = snapLSN+0x100, snapTx+10
	for _, s := range plan(l.random, l.sizes) {
		if s.kind == charge && charges > 0 && charges < pageRows {
			charges++
		} else {
			l.begin(s.at)
			charges = 0
			if s.kind == charge {
				charges = 1
			}
		}
		l.do(s)
		if l.failed != nil {
			return nil, l.failed
		}
	}
	return &Outcome{Config: cfg, Events: l.counts, DeletedWorth: l.worth, life: l}, nil
}

// begin begins a transaction.
func (l *life) begin(at float64) {
	l.tx++
	l.lsn += 48
	l.micros = begun + 60_000_000 + int64(at*float64(14*day))
	l.commit = l.lsn
}

// stamp gives the transaction's next change its place.
func (l *life) stamp(op byte) stamp {
	l.lsn += 8 * int64(14+l.below(40))
	return stamp{l.lsn, l.tx, l.micros / 1000, op}
}

func (l *life) send(e event) {
	if l.failed == nil {
		l.counts[e.table][string(e.last.op)]++
		l.failed = l.emit(l.out.write(e))
	}
}

func (l *life) newOrder(at int64) int {
	l.orders = append(l.orders, order{
		number: int64(len(l.orders) + 1), customer: int64(l.below(l.customers) + 1), country: l.pick(countries), channel: l.pick(channels),
		items: int64(1 + l.below(9)), total: int64(199 + l.below(49_800)), placed: at, updated: at, status: "placed", live: true, payment: -1,
	})
	return len(l.orders) - 1
}

func (l *life) newPayment(at int64, order int, amount int64) int {
	l.payments = append(l.payments, payment{
		number: int64(len(l.payments) + 1), order: order, amount: amount, currency: currencyOf[l.orders[order].country],
		provider: l.pick(providers), method: l.pick(methods), authorised: at, status: "authorised",
	})
	return len(l.payments) - 1
}

// sendOrder sends an order's change; before is its row before, nil for none.
func (l *life) sendOrder(i int, before []byte, micros int64, snapshot string) {
	o := &l.orders[i]
	e := event{table: Orders, key: o.key, before: before, last: o.last, micros: micros, commit: l.commit, snapshot: snapshot}
	if o.last.op != 'd' {
		l.after = o.json(l.after[:0])
		e.after = l.after
	}
	l.send(e)
}

func (l *life) sendPayment(i int, micros int64, snapshot string) {
	p := &l.payments[i]
	l.after = p.json(l.after[:0], l.orders)
	l.send(event{table: Payments, key: p.key, after: l.after, last: p.last, micros: micros, commit: l.commit, snapshot: snapshot})
}

// refund makes and sends a refund of some payment. at says when it was made, once
// chance has told the rest.
func (l *life) refund(last stamp, micros, at int64, snapshot string) {
	i := l.below(len(l.payments))
	p := &l.payments[i]
	l.refunds = append(l.refunds, refund{
		number: int64(len(l.refunds) + 1), order: p.order, payment: i, amount: 1 + int64(l.unit()*float64(p.amount)),
		currency: p.currency, reason: l.pick(reasons), at: at, last: last,
	})
	r := &l.refunds[len(l.refunds)-1]
	l.after = r.json(l.after[:0], l.orders, l.payments)
	l.send(event{table: Refunds, key: r.key, after: l.after, last: last, micros: micros, commit: l.commit, snapshot: snapshot})
}
