package reconcile

import "github.com/lakeweir/lakeweir/catalog"

// MaxKeys bounds how many keys of a table that differ, or that violations are of, are
// remembered; all are counted.
const MaxKeys = 10_000

// comparison compares two sets of rows: give it all of the lake's, then all of the
// source's, then finish. The rows have the same columns; those of keys that are to
// be left out are not given.
type comparison struct {
	digester digester
	columns  []catalog.Column
	key      []int
	ledger   *ledger
	source   side
	lake     side
	suspects map[digest]Kind
	counts   map[Kind]int64
}

type side struct {
	rows   int64
	totals []columnTotal
}

// Kind is in what way a key differs.
type Kind string

// The kinds.
const (
	Missing   Kind = "missing"   // the lake does not have the key
	Extra     Kind = "extra"     // the source does not have the key
	Changed   Kind = "changed"   // both have it, with different values
	Duplicate Kind = "duplicate" // the lake has it more than once
	Ambiguous Kind = "ambiguous" // the source has it more than once: it is no key
	Rows      Kind = "rows"      // a table without a key: the rows are not the same
	Violation Kind = "violation" // the lake's layers do not fit each other, though current may equal the source
)

func newComparison(columns []catalog.Column, key []int) *comparison {
	c := &comparison{columns: columns, key: key, ledger: newLedger(), suspects: map[digest]Kind{}, counts: map[Kind]int64{}}
	for _, s := range []*side{&c.source, &c.lake} {
		for _, col := range columns {
			s.totals = append(s.totals, newColumnTotal(col.Type))
		}
	}
	return c
}

func (s *side) add(row rowText) {
	s.rows++
	for i, text := range row {
		s.totals[i].add(text)
	}
}

// addLake adds a row with the digest of its key.
func (c *comparison) addLake(key digest, row rowText) {
	c.lake.add(row)
	if !c.ledger.put(key, c.digester.of(row, nil)) {
		c.suspect(key, Duplicate)
	}
}

// addSource adds a row with the digest of its key.
func (c *comparison) addSource(key digest, row rowText) {
	c.source.add(row)
	switch c.ledger.meet(key, c.digester.of(row, nil)) {
	case metEqual:
	case metChanged:
		c.suspect(key, Changed)
	case metUnknown:
		c.suspect(key, Missing)
	case metTwice:
		c.suspect(key, Ambiguous)
	}
}

// finish counts what the source never showed. Call it once.
func (c *comparison) finish() {
	c.ledger.unmet(func(key digest) { c.suspect(key, Extra) })
}

func (c *comparison) suspect(key digest, k Kind) {
	c.counts[k]++
	if _, known := c.suspects[key]; !known && len(c.suspects) < MaxKeys {
		c.suspects[key] = k
	}
}

// differing returns how many rows differ, of any kind.
func (c *comparison) differing() int64 {
	var n int64
	for _, count := range c.counts {
		n += count
	}
	return n
}
