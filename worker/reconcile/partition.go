package reconcile

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// partition deals the keys of a table out to parts that can be folded one after
// the other, so that the memory of each is bounded. Keys that a row has moved
// between stay together, since a moved row takes values along.
type partition struct {
	parts int
	group map[uint64]uint64 // of the keys that took part in moves: a step towards the group's name
	d     digester
}

func newPartition(parts int, forms []typemap.KeyForm) *partition {
	return &partition{parts: parts, group: map[uint64]uint64{}, d: digester{forms: forms}}
}

// of returns the part of a key.
func (p *partition) of(key digest) int { return int(p.root(key.lo) % uint64(p.parts)) }

func (p *partition) root(key uint64) uint64 {
	for {
		next, ok := p.group[key]
		if !ok || next == key {
			return key
		}
		if after, ok := p.group[next]; ok { // shortens the way for the next one
			p.group[key] = after
		}
		key = next
	}
}

// learn notes the moves of a batch.
func (p *partition) learn(b *change.Batch) {
	key := b.Rows.Schema().Key
	for i := range b.Changes {
		c := &b.Changes[i]
		if !c.MovedIn() || c.Other < 0 {
			continue
		}
		from, to := p.root(p.d.key(b.Rows, c.Other, key).lo), p.root(p.d.key(b.Rows, keyRow(b.Rows, c), key).lo)
		if from != to {
			p.group[from] = to
		}
	}
}

// take returns the batch with the changes of one part alone; a TRUNCATE is of
// every part.
func (p *partition) take(b *change.Batch, part int) *change.Batch {
	if p.parts == 1 {
		return b
	}
	out := *b
	out.Changes = nil
	key := b.Rows.Schema().Key
	for i := range b.Changes {
		c := &b.Changes[i]
		if c.Op == change.Truncate || p.of(p.d.key(b.Rows, keyRow(b.Rows, c), key)) == part {
			out.Changes = append(out.Changes, *c)
		}
	}
	return &out
}

// keyRow returns the image that carries the change's key: an after image may lack
// a large key that did not change.
func keyRow(rows *change.Rows, c *change.Change) int {
	if c.After < 0 {
		return c.Before
	}
	if c.Before < 0 || hasKey(rows, c.After, rows.Schema()) {
		return c.After
	}
	return c.Before
}

func hasKey(rows *change.Rows, row int, schema *catalog.Schema) bool {
	for _, col := range schema.Key {
		if !rows.HasValue(row, col) {
			return false
		}
	}
	return true
}
