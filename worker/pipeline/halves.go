package pipeline

import (
	"slices"

	"github.com/lakeweir/lakeweir/worker/change"
)

// halves cuts batches into two of about as many changes, in order, never between the
// halves of a key move; a Truncate comes to stand alone. It returns false when they
// cannot be cut.
func halves(batches []*change.Batch) (first, rest []*change.Batch, ok bool) {
	n := 0
	for _, b := range batches {
		n += len(b.Changes)
	}
	at := n / 2
	if t := firstTruncate(batches); t > 0 {
		at = t
	} else if t == 0 {
		at = 1
	}
	seen := 0
	for i, b := range batches {
		if seen+len(b.Changes) <= at && i < len(batches)-1 {
			seen += len(b.Changes)
			continue
		}
		cut := min(at-seen, len(b.Changes))
		for cut > 0 && cut < len(b.Changes) && b.Changes[cut-1].MovedAway() {
			cut++
		}
		if seen+cut >= n { // nothing would be left for the second
			cut = at - seen
			for cut > 0 && b.Changes[cut-1].MovedAway() {
				cut--
			}
		}
		if seen+cut == 0 {
			return nil, nil, false
		}
		first = append(first, batches[:i]...)
		if cut > 0 {
			first = append(first, copied(b, b.Changes[:cut]))
		}
		if cut < len(b.Changes) {
			rest = append(rest, copied(b, b.Changes[cut:]))
		}
		rest = append(rest, batches[i+1:]...)
		return first, rest, true
	}
	return nil, nil, false
}

// copied is a batch of some of the changes, with rows of its own: what a fold fills into
// them goes with it.
func copied(b *change.Batch, changes []change.Change) *change.Batch {
	out := *b
	out.Rows, out.Changes, out.Whole = change.NewRows(b.Rows.Schema()), slices.Clone(changes), false
	for i := range out.Changes {
		c := &out.Changes[i]
		for _, row := range []*int{&c.Before, &c.After, &c.Other} {
			if *row >= 0 {
				*row = out.Rows.CopyRow(b.Rows, *row)
			}
		}
	}
	return &out
}

// firstTruncate is the place of the first Truncate among all changes, or -1 when
// there is none or nothing else.
func firstTruncate(batches []*change.Batch) int {
	at, n := -1, 0
	for _, b := range batches {
		for i := range b.Changes {
			if at < 0 && b.Changes[i].Op == change.Truncate {
				at = n
			}
			n++
		}
	}
	if n < 2 {
		return -1
	}
	return at
}

// disjoint reports whether changes that follow others are of other keys.
func disjoint(first, rest []*change.Batch) bool {
	keys := map[string]bool{}
	for _, b := range first {
		for i := range b.Changes {
			c := &b.Changes[i]
			if c.Op == change.Truncate {
				return false
			}
			keys[string(c.Key)], keys[string(c.OtherKey)] = true, true
		}
	}
	delete(keys, "")
	for _, b := range rest {
		for i := range b.Changes {
			c := &b.Changes[i]
			if c.Op == change.Truncate || keys[string(c.Key)] || keys[string(c.OtherKey)] {
				return false
			}
		}
	}
	return true
}
