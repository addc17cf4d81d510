package workload

const streamed = "false" // source.snapshot of what is no read

// do carries a step out.
func (l *life) do(s step) {
	switch s.kind {
	case placeOrder:
		i := l.newOrder(l.micros - 3000)
		l.placed[s.number] = i
		l.orders[i].last = l.stamp('c')
		l.sendOrder(i, nil, l.micros, streamed)
		l.history.open(i, &l.orders[i])
		p := l.newPayment(l.micros-1500, i, l.orders[i].total)
		l.orders[i].payment = p
		l.changePayment(p, 'c', func(*payment) {})
	case charge:
		of := l.below(len(l.orders))
		p := l.newPayment(l.micros-2_000_000, of, int64(99+l.below(9_900)))
		l.changePayment(p, 'c', func(p *payment) { p.status, p.captured = "captured", l.micros-1_000_000 })
	case capture:
		l.changePayment(l.orders[l.placed[s.number]].payment, 'u', func(p *payment) { p.status, p.captured = "captured", l.micros-900 })
	case fulfil:
		l.changeOrder(l.placed[s.number], func(o *order) { o.status = "fulfilled" })
	case cancel:
		l.cancel(l.placed[s.number])
	case changeOrder:
		l.changeAnyOrder()
	case dispute:
		l.changePayment(l.below(len(l.payments)), 'u', func(p *payment) { p.status = "disputed" })
	case giveBack:
		l.refund(l.stamp('c'), l.micros, l.micros-500, streamed)
	}
}

func (l *life) changePayment(i int, op byte, change func(p *payment)) {
	p := &l.payments[i]
	change(p)
	p.last = l.stamp(op)
	l.sendPayment(i, l.micros, streamed)
}

func (l *life) changeOrder(i int, change func(o *order)) {
	o := &l.orders[i]
	l.before = o.json(l.before[:0])
	status, total := o.status, o.total
	change(o)
	o.updated = l.micros
	o.last = l.stamp('u')
	l.sendOrder(i, l.before, l.micros, streamed)
	if o.status != status || o.total != total {
		l.history.close(i, o)
		l.history.open(i, o)
	}
}

func (l *life) cancel(i int) {
	o := &l.orders[i]
	l.before = o.json(l.before[:0])
	o.live = false
	o.last = l.stamp('d')
	l.worth[currencyOf[o.country]] += o.total
	l.sendOrder(i, l.before, l.micros, streamed)
	l.history.close(i, o)
	l.changePayment(o.payment, 'u', func(p *payment) { p.status, p.voided = "voided", l.micros-700 })
}

func (l *life) changeAnyOrder() {
	i := l.below(len(l.orders))
	for !l.orders[i].live {
		i = l.below(len(l.orders))
	}
	x := l.unit()
	l.changeOrder(i, func(o *order) {
		switch {
		case x < 0.4:
			o.status = "refunded"
		case x < 0.5:
			o.status = "on_hold"
		case x < 0.8:
			o.total += int64(1 + l.below(500))
		default:
			o.channel = l.pick(channels) // which history does not track
		}
	})
}
