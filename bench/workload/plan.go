package workload

import (
	"cmp"
	"math"
	"slices"
)

// The kinds of transactions, in the order in which those of one moment come.
const (
	placeOrder  = iota // order c, payment c
	charge             // payment c, captured at once
	capture            // payment u
	fulfil             // order u
	cancel             // order d, payment u
	changeOrder        // order u, of any age
	dispute            // payment u, of any age
	giveBack           // refund c
)

// step is a transaction, or one of several in a transaction.
type step struct {
	at     float64 // from 0, the begin of the stream, to 1, about its end
	number int     // within its kind; of a new order's steps, the order's
	kind   int
}

// sizes are how many events there are of each kind.
type sizes struct {
	orders, placed, orderUpdates, cancelled int // orders: of the initial read
	payments, paid, paymentUpdates          int
	refunds, refunded                       int
	lateOrders, latePayments                int // updates of rows of any age
	customers                               int
}

func sizesAt(scale float64) sizes {
	at := func(n int) int { return int(math.Round(float64(n) * scale)) }
	s := sizes{
		orders: at(41_745), placed: at(140_453), orderUpdates: at(135_333), cancelled: at(4_837),
		payments: at(477_022), paid: at(1_543_217), paymentUpdates: at(140_170),
		refunds: at(11_460), refunded: at(52_320), customers: max(1, at(60_000)),
	}
	// An order is fulfilled once, a payment captured once; at small scales, where there
	// are too few for that, more of the updates are late ones.
	kept := s.placed - s.cancelled
	s.lateOrders = max(s.orderUpdates/10, s.orderUpdates-kept)
	s.latePayments = max(s.paymentUpdates/20, s.paymentUpdates-s.cancelled-kept)
	return s
}

// plan says what happens when. Exactly as many of the new orders are cancelled,
// fulfilled and their payments captured as s says.
func plan(r *random, s sizes) []step {
	steps := make([]step, 0, s.placed+s.paid+s.orderUpdates+s.paymentUpdates+s.refunded)
	delay := func() float64 {
		if r.unit() < 0.8 {
			return r.exponential() * 0.002
		}
		return r.exponential() * 0.03
	}
	shuffled := make([]int, s.placed)
	for i := range shuffled {
		shuffled[i] = i
	}
	for i := len(shuffled) - 1; i > 0; i-- {
		j := r.below(i + 1)
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	placed := make([]float64, s.placed)
	for i := range placed {
		placed[i] = (float64(i) + 0.9*r.unit()) / float64(s.placed)
		steps = append(steps, step{placed[i], i, placeOrder})
	}
	const after = 1e-9 // something must come after what it needs
	fulfilled, captured := s.orderUpdates-s.lateOrders, s.paymentUpdates-s.cancelled-s.latePayments
	for k, i := range shuffled {
		if k < s.cancelled {
			steps = append(steps, step{placed[i] + after + r.exponential()*0.001, i, cancel})
			continue
		}
		at := placed[i] + after
		if k-s.cancelled < captured {
			at += delay()
			steps = append(steps, step{at, i, capture})
		}
		if k-s.cancelled < fulfilled {
			steps = append(steps, step{at + after + delay(), i, fulfil})
		}
	}
	charges := s.paid - s.placed
	for i := range charges {
		steps = append(steps, step{(float64(i) + r.unit()) / float64(charges), i, charge})
	}
	for i := range s.lateOrders {
		steps = append(steps, step{r.unit(), i, changeOrder})
	}
	for i := range s.latePayments {
		steps = append(steps, step{r.unit(), i, dispute})
	}
	for i := range s.refunded {
		steps = append(steps, step{r.unit(), i, giveBack})
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
	})
	return steps
}
