package kafka

import (
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/debezium"
)

// progress finds out up to where the source is known to have been read. An event whose
// sequence is S says that the connector had sent every transaction that committed
// before S. Those stand in other topics: once each of them has been read up to the end
// that it had some time after the event was seen, all of them have been read.
type progress struct {
	settle time.Duration
	newest mark
	// chosen is the mark that is being proved, until it is; asked says that the topics'
	// ends are being asked for.
	chosen *mark
	asked  bool
	ends   ends
	proven mark
}

// mark is what one event says of the source's log.
type mark struct {
	through catalog.LSN // every transaction that committed before it had been sent
	at      int64       // by the source's clock, microseconds since 1970 UTC
	seen    time.Time
}

// ends are offsets by topic and partition.
type ends map[string]map[int32]int64

// note takes in an event. What was read from tables says nothing of the log. A
// heartbeat is a transaction of its own that no table has a part in, so that it also
// says that everything that committed before its own place has been sent.
func (p *progress) note(e *debezium.Event, heartbeat bool, now time.Time) {
	if e.Snapshot != debezium.Streamed || !e.HasSequence {
		return
	}
	through := e.Sequence
	if heartbeat {
		through = max(through, e.LSN)
	}
	if through <= p.newest.through {
		return
	}
	p.newest = mark{through, e.CommitTime, now}
	if p.chosen == nil {
		m := p.newest
		p.chosen = &m
	}
}

// ask reports whether it is time to ask for the topics' ends.
func (p *progress) ask(now time.Time) bool {
	if p.chosen == nil || p.asked || p.ends != nil || now.Sub(p.chosen.seen) < p.settle {
		return false
	}
	p.asked = true
	return true
}

// answer takes the topics' ends in; nil when they could not be had.
func (p *progress) answer(e ends) { p.asked, p.ends = false, e }

// proved notes that everything before the ends has been read.
func (p *progress) proved() {
	p.proven, p.ends, p.chosen = *p.chosen, nil, nil
	if p.newest.through > p.proven.through {
		m := p.newest
		p.chosen = &m
	}
}
