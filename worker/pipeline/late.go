package pipeline

import (
	"context"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// unsaved leaves out what bronze already has, which comes again after a commit whose
// outcome was unknown, and sets apart what is late.
func (k *keeper) unsaved(batches []*change.Batch) (inOrder, late []*change.Batch) {
	high := k.bronze.Cursor.Position
	for _, b := range batches {
		cut := *b // a save that fails is tried again with all of it
		b = &cut
		var behind []change.Change
		b.Changes, behind = apart(b.Changes, k.bronze.Cursor.Position, &high)
		if len(behind) > 0 {
			late = append(late, &change.Batch{Table: b.Table, Rows: b.Rows, Changes: behind, Epoch: b.Epoch})
		}
		stale := b.Snapshot == nil || k.bronze.Snapshot != nil && progressOf(b.Snapshot) == progressOf(k.bronze.Snapshot)
		if len(b.Changes) > 0 || !stale {
			inOrder = append(inOrder, b)
		}
	}
	return inOrder, late
}

// apart sorts changes into those that follow in order and those that are late. What
// is at or below the cursor and not marked as late is neither: it was sent again.
// high is the highest position so far.
func apart(changes []change.Change, cursor catalog.Position, high *catalog.Position) (inOrder, late []change.Change) {
	i := 0
	for i < len(changes) && !changes[i].Late && changes[i].Position.Compare(cursor) <= 0 {
		i++
	}
	changes = changes[i:]
	if !slices.ContainsFunc(changes, func(c change.Change) bool { return c.Late }) {
		if n := len(changes); n > 0 {
			*high = changes[n-1].Position
		}
		return changes, nil
	}
	for i := range changes {
		c := changes[i]
		switch {
		case c.Position.Compare(*high) > 0:
			*high, c.Late = c.Position, false
			inOrder = append(inOrder, c)
		case c.Late:
			late = append(late, c)
		}
	}
	return inOrder, late
}

// admitted returns the late changes that bronze has not got yet and does not get with
// those in order, each once. The others were sent again.
func (k *keeper) admitted(ctx context.Context, inOrder, late []*change.Batch) ([]*change.Batch, error) {
	if len(late) == 0 {
		return nil, nil
	}
	var positions []catalog.Position
	for _, b := range late {
		for i := range b.Changes {
			positions = append(positions, b.Changes[i].Position)
		}
	}
	held, err := k.layers.Bronze.Holds(ctx, positions)
	if err != nil {
		return nil, err
	}
	var out []*change.Batch
	seen := map[catalog.Position]bool{}
	for _, b := range inOrder {
		for i := range b.Changes {
			seen[b.Changes[i].Position] = true
		}
	}
	n := 0
	for _, b := range late {
		kept := b.Changes[:0]
		for i := range b.Changes {
			if p := b.Changes[i].Position; !held[n] && !seen[p] {
				seen[p] = true
				kept = append(kept, b.Changes[i])
			}
			n++
		}
		if b.Changes = kept; len(kept) > 0 {
			out = append(out, b)
		}
	}
	return out, nil
}

// lateKeys returns the keys that late changes concern: every key when one of them is
// a truncate.
func lateKeys(keys *fold.KeySet, batches ...*change.Batch) *fold.KeySet {
	for _, b := range batches {
		for i := range b.Changes {
			c := &b.Changes[i]
			if c.Op == change.Truncate {
				return fold.AllKeys()
			}
			keys.Add(c.Key, c.OtherKey)
		}
	}
	return keys
}

// takeLate makes the keys anew that late changes concern, and moves the layer's number
// of them with the last.
func (k *keeper) takeLate(ctx context.Context, l *layerFold, f *folding) (Commit, error) {
	keys := fold.NewKeySet()
	if l.at.Late == f.before.Late && len(f.late) > 0 {
		keys = lateKeys(keys, f.late...)
	} else {
		for b, err := range k.layers.Bronze.ReadLate(ctx, l.at.Late, catchUpRows) {
			if err != nil {
				return Commit{}, err
			}
			if keys = lateKeys(keys, b); keys.Every() {
				break
			}
		}
	}
	to := *l.at
	to.Late, to.CommitTime = k.bronze.Late, max(to.CommitTime, k.bronze.CommitTime)
	return k.remake(ctx, l, keys, to, false)
}
