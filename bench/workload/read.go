package workload

// readAll makes the rows that are there at first and sends the initial read of them.
func (l *life) readAll() {
	for i := range l.sizes.orders {
		at := begun - 30*day + int64(l.unit()*float64(30*day-3_600_000_000))
		o := &l.orders[l.newOrder(at)]
		if l.unit() < 0.9 {
			o.status, o.updated = "fulfilled", at+int64(l.unit()*3.5e9)
		}
		micros := readAt(0, i, l.sizes.orders)
		o.last = read(micros)
		l.sendOrder(i, nil, micros, marker(0, i, l.sizes.orders))
		l.history.open(i, o)
	}
	for i := range l.sizes.payments {
		of := l.below(l.sizes.orders)
		at := l.orders[of].placed + int64(l.unit()*1e9)
		p := &l.payments[l.newPayment(at, of, int64(199+l.below(49_800)))]
		switch x := l.unit(); {
		case x < 0.95:
			p.status, p.captured = "captured", at+1+int64(l.unit()*2e9)
		case x < 0.97:
			p.status, p.voided = "voided", at+1+int64(l.unit()*2e9)
		}
		micros := readAt(1, i, l.sizes.payments)
		p.last = read(micros)
		l.sendPayment(i, micros, marker(1, i, l.sizes.payments))
	}
	for i := range l.sizes.refunds {
		micros := readAt(2, i, l.sizes.refunds)
		at := begun - int64(l.unit()*float64(20*day))
		l.refund(read(micros), micros, at, marker(2, i, l.sizes.refunds))
	}
}

func read(micros int64) stamp { return stamp{snapLSN, snapTx, micros / 1000, 'r'} }

// readAt is when the i-th of n rows of a table was read.
func readAt(table, i, n int) int64 {
	return begun + int64(table)*20_000_000 + int64(i)*15_000_000/int64(n)
}

// marker is source.snapshot of the i-th of n rows of a table.
func marker(table, i, n int) string {
	last := len(Tables()) - 1
	switch {
	case i == n-1 && table == last:
		return "last"
	case i == n-1:
		return "last_in_data_collection"
	case i == 0 && table == 0:
		return "first"
	case i == 0:
		return "first_in_data_collection"
	}
	return "true"
}
