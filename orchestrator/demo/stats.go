package demo

import (
	"maps"
	"sync"
)

// Counts are row changes of one table, by what they were at the source. An update
// that changes nothing is one.
type Counts struct {
	Inserted, Updated, Deleted int64
}

// Stats is what a workload has committed.
type Stats struct {
	Tables       map[string]Counts
	Transactions int64 // committed
	RolledBack   int64 // transactions whose changes were all undone
}

// Changes is the number of row changes in all tables.
func (s Stats) Changes() int64 {
	var n int64
	for _, c := range s.Tables {
		n += c.Inserted + c.Updated + c.Deleted
	}
	return n
}

// tally gathers Stats from several connections.
type tally struct {
	mu    sync.Mutex
	stats Stats
}

func newTally() *tally { return &tally{stats: Stats{Tables: map[string]Counts{}}} }

func (t *tally) committed(done []outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Transactions++
	for _, o := range done {
		c := t.stats.Tables[o.table]
		switch o.op {
		case insert:
			c.Inserted += o.rows
		case update:
			c.Updated += o.rows
		case remove:
			c.Deleted += o.rows
		case control:
			continue
		}
		t.stats.Tables[o.table] = c
	}
}

func (t *tally) rolledBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.RolledBack++
}

func (t *tally) snapshot() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Tables = maps.Clone(s.Tables)
	return s
}
