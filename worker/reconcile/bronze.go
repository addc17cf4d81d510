package reconcile

import (
	"context"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// readRows is about how many changes of bronze are in memory at once.
const readRows = 20_000

// keyDigest returns the digest of a row's key columns, as texts.
func (d *digester) key(rows *change.Rows, row int, key []int) digest {
	d.buf = d.buf[:0]
	d.keyColumns(rows, row, key)
	return d.sum()
}

// keyColumns appends the columns of a key as their texts.
func (d *digester) keyColumns(rows *change.Rows, row int, key []int) {
	for i, col := range key {
		if !rows.HasValue(row, col) {
			d.cell(nil)
			continue
		}
		d.text = appendCell(d.text[:0], rows, row, col)
		d.keyCell(i, d.text)
	}
}

// column appends a cell as its text.
func (d *digester) column(rows *change.Rows, row, col int) {
	if !rows.HasValue(row, col) {
		d.cell(nil)
		return
	}
	d.text = appendCell(d.text[:0], rows, row, col)
	d.cell(d.text)
}

// overtaken is which keys have been changed by transactions that a moment does not
// see.
type overtaken struct {
	keys map[digest]struct{}
	// all is set by a TRUNCATE: then nothing can be compared at this moment.
	all bool
	// from is the position before the first such change; later moments need not
	// look before it, since what they do not see this one does not see either.
	from catalog.Position
}

func (o *overtaken) has(key digest) bool {
	_, ok := o.keys[key]
	return o.all || ok
}

// findOvertaken reads bronze after a position up to and including another.
func findOvertaken(ctx context.Context, bronze pipeline.Bronze, m moment, after, through catalog.Position, forms []typemap.KeyForm) (*overtaken, error) {
	if _, err := bronze.State(ctx); err != nil { // it reads the table as it is now
		return nil, err
	}
	o := &overtaken{keys: map[digest]struct{}{}, from: through}
	first := true
	last := after
	d := digester{forms: forms}
	for b, err := range bronze.Read(ctx, after, through, readRows) {
		if err != nil {
			return nil, err
		}
		key := b.Rows.Schema().Key
		for i := range b.Changes {
			c := &b.Changes[i]
			if m.seesChange(c) {
				last = c.Position
				continue
			}
			if first {
				first, o.from = false, last
			}
			if c.Op == change.Truncate {
				o.all = true
				continue
			}
			for _, row := range [3]int{c.Before, c.After, c.Other} {
				if row >= 0 {
					o.keys[d.key(b.Rows, row, key)] = struct{}{}
				}
			}
		}
	}
	return o, nil
}

// seesChange reports whether the moment shows what the change did. What was read
// is seen when it was read before: it shows no more than the log did then.
func (m *moment) seesChange(c *change.Change) bool {
	if c.WasRead() {
		return c.Position.Commit < m.lsn
	}
	return m.sees.Sees(c.TxID)
}

// checkPositions checks that no two events of bronze stand at one position and
// that none stands past the cursor.
func checkPositions(ctx context.Context, view View, cursor catalog.Position) (int64, violations, error) {
	var hashes []uint64
	var wrong violations
	each := func(f func(p catalog.Position, hash uint64)) error {
		var d digester
		for rows, err := range view.Rows(ctx, []string{ownGeneration, ownCommitLSN, ownOrdinal}) {
			if err != nil {
				return err
			}
			for row := range rows.Len() {
				p := catalog.Position{Generation: uint32(rows.Fixed(row, 0)), Commit: catalog.LSN(rows.Fixed(row, 1)), Ordinal: uint64(rows.Fixed(row, 2))}
				d.buf = d.buf[:0]
				d.number(uint64(p.Generation))
				d.number(uint64(p.Commit))
				d.number(p.Ordinal)
				f(p, d.sum().lo)
			}
		}
		return nil
	}
	err := each(func(p catalog.Position, hash uint64) {
		hashes = append(hashes, hash)
		if p.Compare(cursor) > 0 {
			wrong.add(digest{}, "bronze: an event stands at %s, past the cursor at %s", p, cursor)
		}
	})
	if err != nil {
		return 0, wrong, err
	}
	events := int64(len(hashes))
	slices.Sort(hashes)
	doubted := map[uint64]map[catalog.Position]int{}
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] {
			doubted[hashes[i]] = map[catalog.Position]int{}
		}
	}
	if len(doubted) == 0 {
		return events, wrong, nil
	}
	err = each(func(p catalog.Position, hash uint64) {
		if seen := doubted[hash]; seen != nil {
			if seen[p]++; seen[p] > 1 {
				wrong.add(digest{}, "bronze: an event stands twice at %s", p)
			}
		}
	})
	return events, wrong, err
}

// keyless adds up bronze's events of a table without a key as one moment sees
// them: how many rows there are, and a sum of their digests in which the order of
// equal rows does not matter.
type keyless struct {
	rows int64
	sum  digest
	// blind says that a delete or update did not carry the row it was about, so
	// that only rows can be counted.
	blind bool
	d     digester
}

func (k *keyless) add(d digest, times int64) {
	k.rows += times
	k.sum.hi += uint64(times) * d.hi
	k.sum.lo += uint64(times) * d.lo
}

func (k *keyless) addBatch(m *moment, b *change.Batch) {
	for i := range b.Changes {
		c := &b.Changes[i]
		if !m.seesChange(c) {
			continue
		}
		switch c.Op {
		case change.Truncate:
			k.rows, k.sum = 0, digest{}
		case change.Create, change.Read:
			k.add(k.image(b.Rows, c.After, -1), 1)
		case change.Delete, change.Update:
			if c.Before < 0 {
				k.blind = true
			} else {
				k.add(k.image(b.Rows, c.Before, -1), -1)
			}
			if c.Op == change.Update {
				k.add(k.image(b.Rows, c.After, c.Before), 1)
			} else if c.Before < 0 {
				k.rows--
			}
		}
	}
}

// image returns the digest of a row; a value that was not sent is that of before.
func (k *keyless) image(rows *change.Rows, row, before int) digest {
	k.d.buf = k.d.buf[:0]
	for col, c := range rows.Schema().Columns {
		if c.Dropped {
			continue // the source's rows have it no more
		}
		from := row
		switch rows.Mark(row, col) {
		case change.Unavailable:
			if before < 0 {
				k.blind = true
				break
			}
			from = before
		case change.Absent:
			k.blind = true
		case change.Null, change.Present, change.Filled, change.Unfit:
		}
		k.d.column(rows, from, col)
	}
	return k.d.sum()
}
