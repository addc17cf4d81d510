package connect

import "time"

// backoff decides when a thing that fails is tried again: at once, then after first,
// then after twice as long each time, at most longest; and at once again when it has
// been well for settled.
type backoff struct {
	first, longest, settled time.Duration

	wait time.Duration
	next time.Time // zero: at once
	well time.Time // since when; zero: it is not
}

// due reports whether it may be tried now.
func (b *backoff) due(now time.Time) bool { return !now.Before(b.next) }

// tried notes that it was tried now.
func (b *backoff) tried(now time.Time) {
	b.wait = min(max(2*b.wait, b.first), b.longest)
	b.next, b.well = now.Add(b.wait), time.Time{}
}

// isWell notes that nothing is wrong now.
func (b *backoff) isWell(now time.Time) {
	if b.well.IsZero() {
		b.well = now
	}
	if now.Sub(b.well) >= b.settled {
		b.wait, b.next = 0, time.Time{}
	}
}
