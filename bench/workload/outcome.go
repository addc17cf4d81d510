package workload

import "iter"

// Outcome is what any engine must end with. It costs the rows' memory for as long as
// it is held.
type Outcome struct {
	Config Config
	// Events are how many there are, by table and op (r, c, u, d).
	Events map[string]map[string]int64
	// DeletedWorth is what the deleted orders were worth, in minor units by currency.
	// Only their before images tell.
	DeletedWorth map[string]int64

	life *life
}

// Row is a row as it must be in the end: the source's columns as JSON, and the last
// event that made it.
type Row struct {
	JSON        []byte // holds until the next row
	LSN, TxID   int64
	CommitMilli int64
	Op          byte
}

// Live returns how many rows a table must have.
func (o *Outcome) Live(table string) int {
	n := 0
	for range o.Rows(table) {
		n++
	}
	return n
}

// Total returns how many events a table has.
func (o *Outcome) Total(table string) int64 {
	var n int64
	for _, events := range o.Events[table] {
		n += events
	}
	return n
}

// Rows yields a table's rows in the order of their keys' numbers.
func (o *Outcome) Rows(table string) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		var b []byte
		give := func(last stamp) bool {
			return yield(Row{JSON: b, LSN: last.lsn, TxID: last.tx, CommitMilli: last.millis, Op: last.op})
		}
		l := o.life
		switch table {
		case Orders:
			for i := range l.orders {
				if !l.orders[i].live {
					continue
				}
				if b = l.orders[i].json(b[:0]); !give(l.orders[i].last) {
					return
				}
			}
		case Payments:
			for i := range l.payments {
				if b = l.payments[i].json(b[:0], l.orders); !give(l.payments[i].last) {
					return
				}
			}
		case Refunds:
			for i := range l.refunds {
				if b = l.refunds[i].json(b[:0], l.orders, l.payments); !give(l.refunds[i].last) {
					return
				}
			}
		}
	}
}
