package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// pacer holds several connections to a common rate of row changes. Who has a turn
// does its transaction and pays for its rows afterwards, so the next turn comes
// when the debt is worked off.
type pacer struct {
	mu      sync.Mutex
	balance float64
	filled  chan struct{} // closed when the balance grows
}

func newPacer() *pacer { return &pacer{filled: make(chan struct{})} }

// turn waits until there is no debt, or ctx ends.
func (p *pacer) turn(ctx context.Context) error {
	for ctx.Err() == nil {
		p.mu.Lock()
		ready, filled := p.balance > 0, p.filled
		p.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-filled:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (p *pacer) pay(rows int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balance -= float64(rows)
}

func (p *pacer) fill(rows, limit float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balance = min(p.balance+rows, limit)
	close(p.filled)
	p.filled = make(chan struct{})
}

const (
	burstEvery  = 20 * time.Second // on average
	burstLength = 2 * time.Second
	burstFactor = 3
)

// run fills the balance at the rate until ctx ends. A few times a minute the rate
// is tripled for two seconds.
func (p *pacer) run(ctx context.Context, rate float64, rng *rand.Rand) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	next := func() time.Duration { return time.Duration((0.5 + rng.Float64()) * float64(burstEvery)) }
	var last, burst time.Time
	for {
		select {
		case now := <-tick.C:
			if last.IsZero() {
				last, burst = now, now.Add(next())
			}
			rows := rate * now.Sub(last).Seconds()
			if now.After(burst) {
				rows *= burstFactor
			}
			if now.After(burst.Add(burstLength)) {
				burst = now.Add(next())
			}
			last = now
			// A machine that was held up for longer does not make up for all of it.
			p.fill(rows, max(rate/2, 1))
		case <-ctx.Done():
			return
		}
	}
}
