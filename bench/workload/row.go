package workload

import (
	"strconv"
	"time"
)

// The tables.
const (
	Orders   = "orders"
	Payments = "payments"
	Refunds  = "refunds"
)

// Tables are the tables in the order in which they are first read.
func Tables() []string { return []string{Orders, Payments, Refunds} }

// Key is the table's key column.
func Key(table string) string {
	return map[string]string{Orders: "order_id", Payments: "payment_id", Refunds: "refund_id"}[table]
}

// Setup is SQL that makes the tables at a source.
const Setup = `CREATE TABLE orders (order_id text PRIMARY KEY, customer_id text NOT NULL, channel text NOT NULL, country text NOT NULL,
  status text NOT NULL, currency text NOT NULL, total_minor bigint NOT NULL, item_count int NOT NULL, placed_at timestamptz NOT NULL, updated_at timestamptz NOT NULL);
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE TABLE payments (payment_id text PRIMARY KEY, order_id text NOT NULL, status text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
  provider text NOT NULL, method text NOT NULL, authorised_at timestamptz NOT NULL, captured_at timestamptz, voided_at timestamptz);
CREATE TABLE refunds (refund_id text PRIMARY KEY, order_id text NOT NULL, payment_id text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
  reason text NOT NULL, refunded_at timestamptz NOT NULL);`

var (
	countries  = []string{"GB", "GB", "GB", "DE", "FR", "IE", "NL", "US", "ES", "SE"}
	currencyOf = map[string]string{"GB": "GBP", "DE": "EUR", "FR": "EUR", "IE": "EUR", "NL": "EUR", "US": "USD", "ES": "EUR", "SE": "SEK"}
	channels   = []string{"web", "web", "web", "app", "app", "store", "phone", "marketplace"}
	providers  = []string{"adyen", "stripe", "worldpay", "paypal"}
	methods    = []string{"card", "card", "card", "wallet", "bank_transfer", "invoice"}
	reasons    = []string{"damaged", "late", "changed_mind", "wrong_item", "Größe passt nicht", `duplicate "charge"`}
)

// stamp is where the last event of a row stands.
type stamp struct {
	lsn, tx, millis int64
	op              byte
}

type order struct {
	number           int64
	customer         int64
	country, channel string
	status           string
	live             bool
	items            int64
	total            int64
	placed, updated  int64 // microseconds since 1970, as all times
	payment          int   // its first
	last             stamp
}

type payment struct {
	number                       int64
	order                        int
	status                       string
	amount                       int64
	currency, provider, method   string
	authorised, captured, voided int64 // 0: never
	last                         stamp
}

type refund struct {
	number         int64
	order, payment int
	amount         int64
	currency       string
	reason         string
	at             int64
	last           stamp
}

func (o *order) key(b []byte) []byte {
	return digits(append(append(b, 'O'), o.country...), o.number, 8)
}
func (p *payment) key(b []byte) []byte { return digits(append(b, 'P'), p.number, 10) }
func (r *refund) key(b []byte) []byte  { return digits(append(b, 'R'), r.number, 8) }

// text appends a field with a string that needs no escapes.
func text(b []byte, name, value string) []byte {
	b = append(append(b, '"'), name...)
	b = append(append(b, `":"`...), value...)
	return append(b, `",`...)
}

func number(b []byte, name string, value int64) []byte {
	b = append(append(b, '"'), name...)
	b = strconv.AppendInt(append(b, `":`...), value, 10)
	return append(b, ',')
}

// moment appends a field with a time, or null for 0.
func moment(b []byte, name string, micros int64) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	if micros == 0 {
		return append(b, "null,"...)
	}
	b = append(b, '"')
	b = time.UnixMicro(micros).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	return append(b, `",`...)
}

// closed ends an object whose last field has a comma behind it.
func closed(b []byte) []byte {
	b[len(b)-1] = '}'
	return b
}

func (o *order) json(b []byte) []byte {
	b = append(o.key(append(b, `{"order_id":"`...)), `","customer_id":"C`...)
	b = append(digits(b, o.customer, 7), `",`...)
	b = text(b, "channel", o.channel)
	b = text(b, "country", o.country)
	b = text(b, "status", o.status)
	b = text(b, "currency", currencyOf[o.country])
	b = number(b, "total_minor", o.total)
	b = number(b, "item_count", o.items)
	b = moment(b, "placed_at", o.placed)
	return closed(moment(b, "updated_at", o.updated))
}

func (p *payment) json(b []byte, orders []order) []byte {
	b = append(p.key(append(b, `{"payment_id":"`...)), `","order_id":"`...)
	b = append(orders[p.order].key(b), `",`...)
	b = text(b, "status", p.status)
	b = number(b, "amount_minor", p.amount)
	b = text(b, "currency", p.currency)
	b = text(b, "provider", p.provider)
	b = text(b, "method", p.method)
	b = moment(b, "authorised_at", p.authorised)
	b = moment(b, "captured_at", p.captured)
	return closed(moment(b, "voided_at", p.voided))
}

func (r *refund) json(b []byte, orders []order, payments []payment) []byte {
	b = append(r.key(append(b, `{"refund_id":"`...)), `","order_id":"`...)
	b = append(orders[r.order].key(b), `","payment_id":"`...)
	b = append(payments[r.payment].key(b), `",`...)
	b = number(b, "amount_minor", r.amount)
	b = text(b, "currency", r.currency)
	b = append(b, `"reason":"`...)
	for i := range len(r.reason) {
		if r.reason[i] == '"' {
			b = append(b, '\\')
		}
		b = append(b, r.reason[i])
	}
	b = append(b, `",`...)
	return closed(moment(b, "refunded_at", r.at))
}

// digits appends a number with at least so many digits.
func digits(b []byte, n int64, width int) []byte {
	var text [20]byte
	i := len(text)
	for n > 0 || width > 0 {
		i--
		text[i] = byte('0' + n%10)
		n /= 10
		width--
	}
	return append(b, text[i:]...)
}
