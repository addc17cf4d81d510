package reconcile

// ledger maps the digest of each key to the digest of its row, in 32 bytes and a
// little room: the whole memory that a comparison needs.
type ledger struct {
	slots []ledgerSlot
	n     int
}

// ledgerSlot is free when its key is zero, which no digest is. The lowest bit of the row's digest is
// given up for whether the other side has shown the key.
type ledgerSlot struct {
	key digest
	row digest
}

const seenBit = 1

func newLedger() *ledger { return &ledger{slots: make([]ledgerSlot, 1024)} }

// find returns the slot of the key, or the free one where it belongs.
func (l *ledger) find(key digest) *ledgerSlot {
	mask := uint64(len(l.slots) - 1)
	for i := key.lo & mask; ; i = (i + 1) & mask {
		if s := &l.slots[i]; s.key == key || s.key == (digest{}) {
			return s
		}
	}
}

// put adds a key with its row; false when the key is there already.
func (l *ledger) put(key, row digest) bool {
	if 4*(l.n+1) > 3*len(l.slots) {
		l.grow()
	}
	s := l.find(key)
	if s.key == key {
		return false
	}
	row.lo &^= seenBit
	s.key, s.row = key, row
	l.n++
	return true
}

func (l *ledger) grow() {
	old := l.slots
	l.slots = make([]ledgerSlot, 2*len(old))
	for _, s := range old {
		if s.key != (digest{}) {
			*l.find(s.key) = s
		}
	}
}

// meeting is what happens when the other side shows a key.
type meeting int

const (
	metEqual meeting = iota
	metChanged
	metUnknown // the ledger does not have the key
	metTwice   // the other side has shown it before
)

// meet compares a row of the other side and notes that its key was shown.
func (l *ledger) meet(key, row digest) meeting {
	s := l.find(key)
	if s.key != key {
		return metUnknown
	}
	if s.row.lo&seenBit != 0 {
		return metTwice
	}
	s.row.lo |= seenBit
	row.lo |= seenBit
	if s.row != row {
		return metChanged
	}
	return metEqual
}

// unmet calls f with each key that the other side has not shown.
func (l *ledger) unmet(f func(key digest)) {
	for i := range l.slots {
		if s := &l.slots[i]; s.key != (digest{}) && s.row.lo&seenBit == 0 {
			f(s.key)
		}
	}
}

// met reports whether the other side has shown the key, which the ledger has.
func (l *ledger) met(key digest) bool { return l.find(key).row.lo&seenBit != 0 }
