package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// folding is what a save has just brought into bronze, and where bronze stood before.
type folding struct {
	table   *catalog.Table
	before  LayerState
	batches []*change.Batch // in order
	late    []*change.Batch
}

// foldInto brings both layers up to bronze: from the batches in memory when the
// layer stood where they begin, else from bronze itself.
func (k *keeper) foldInto(ctx context.Context, f *folding, rec *BatchRecord) error {
	var err error
	if k.layers.Current != nil {
		if rec.Current, err = k.advance(ctx, k.currentFold(f.table), f); err != nil {
			return fmt.Errorf("fold into current: %w", err)
		}
	}
	if k.layers.History != nil {
		if rec.History, err = k.advance(ctx, k.historyFold(f.table), f); err != nil {
			return fmt.Errorf("fold into history: %w", err)
		}
	}
	return nil
}

// advance brings one layer from its state up to bronze.
func (k *keeper) advance(ctx context.Context, l *layerFold, f *folding) (Commit, error) {
	var total Commit
	stale := 0
	for l.at.Cursor != k.bronze.Cursor || l.at.Late < k.bronze.Late {
		c, err := k.advanceOnce(ctx, l, f)
		total = total.plus(c)
		switch {
		case err == nil:
			stale = 0
		case errors.Is(err, ErrStale) && stale < maxStale:
			// Another writer committed. It may also have rolled the layer back: what
			// the layer itself says counts.
			stale++
			if *l.at, err = l.state(ctx); err != nil {
				return total, err
			}
		case errors.Is(err, ErrStale):
			return total, rivalError(stale)
		default:
			return total, err
		}
	}
	return total, nil
}

func rivalError(stale int) error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict,
		"find out what else writes to the table; Lakeweir must be the only one to change its rows",
		"another writer committed to the layer %d times in a row", stale+1)
}

func (k *keeper) advanceOnce(ctx context.Context, l *layerFold, f *folding) (Commit, error) {
	if l.at.Cursor == k.bronze.Cursor {
		return k.takeLate(ctx, l, f)
	}
	if l.at.Cursor == f.before.Cursor && len(f.batches) > 0 {
		return k.write(ctx, l, f.batches, k.whole, LayerState{Cursor: k.bronze.Cursor, CommitTime: k.bronze.CommitTime})
	}
	if behind(k.bronze, *l.at) {
		return Commit{}, setBack(k.bronze, "a layer made of it holds every change up to", *l.at)
	}
	var total Commit
	for b, err := range k.layers.Bronze.Read(ctx, l.at.Cursor.Position, k.bronze.Cursor.Position, catchUpRows) {
		if err != nil {
			return total, fmt.Errorf("read bronze: %w", err)
		}
		batches := []*change.Batch{b}
		to := after(*l.at, batches)
		to.Cursor.Epoch = k.bronze.Cursor.Epoch
		c, err := k.write(ctx, l, batches, b.Whole || to.Cursor == k.bronze.Cursor && k.whole, to)
		total = total.plus(c)
		if err != nil {
			return total, err
		}
		if l.at.Cursor != k.bronze.Cursor && k.yields != nil && k.yields() {
			return total, errYields
		}
	}
	if l.at.Cursor != k.bronze.Cursor {
		if l.at.Cursor.Position != k.bronze.Cursor.Position {
			return total, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "",
				"bronze says it holds changes up to %s, but has none after %s", k.bronze.Cursor.Position, l.at.Cursor.Position)
		}
		l.at.Cursor = k.bronze.Cursor // a new epoch, the same place
	}
	return total, nil
}

// write folds batches into the layer: usually in one commit. A part of a transaction
// that goes on has a commit of its own, so that what the layer held before the
// transaction can be looked up when the rest comes; and so has the rest.
func (k *keeper) write(ctx context.Context, l *layerFold, batches []*change.Batch, whole bool, to LayerState) (Commit, error) {
	var total Commit
	steps := parts(l.at.Cursor.Position, batches, whole)
	for i, s := range steps {
		end := to
		if i < len(steps)-1 {
			end = after(*l.at, s.batches)
		}
		end.Late, end.Remade, end.Snapshot, end.Offsets = l.at.Late, l.at.Remade, nil, nil
		var c Commit
		var err error
		if s.resumed {
			c, err = k.redo(ctx, l, s.batches, end)
		} else {
			c, err = k.foldBounded(ctx, l, s.batches, whole || i < len(steps)-1, end)
		}
		total = total.plus(c)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// part is changes that are folded in one commit.
type part struct {
	batches []*change.Batch
	resumed bool // they belong to a transaction of which the layer holds a part
}

// parts cuts batches: what goes on with the transaction at the cursor, what is whole,
// and the beginning of a transaction that has not ended.
func parts(cursor catalog.Position, batches []*change.Batch, whole bool) []part {
	n := 0
	for _, b := range batches {
		n += len(b.Changes)
	}
	at := func(i int) *change.Change {
		for _, b := range batches {
			if i < len(b.Changes) {
				return &b.Changes[i]
			}
			i -= len(b.Changes)
		}
		return nil
	}
	resumed := 0
	for resumed < n && fold.Resumes(cursor, at(resumed)) {
		resumed++
	}
	open := n
	if n > 0 && !whole && !at(n-1).WasRead() {
		for open > resumed && fold.SameTransaction(at(open-1).Position, at(n-1).Position) {
			open--
		}
	}
	var out []part
	add := func(lo, hi int, resumed bool) {
		if lo < hi || hi == n && len(out) == 0 {
			out = append(out, part{between(batches, lo, hi), resumed})
		}
	}
	add(0, resumed, resumed > 0)
	add(resumed, open, false)
	add(open, n, false)
	return out
}

// between returns the changes from one to before another, counted over all batches.
func between(batches []*change.Batch, lo, hi int) []*change.Batch {
	var out []*change.Batch
	for _, b := range batches {
		n := len(b.Changes)
		if from, to := max(0, lo), min(n, hi); from < to || n == 0 && lo <= 0 && hi >= 0 {
			cut := *b
			cut.Changes = b.Changes[from:to:to]
			out = append(out, &cut)
		}
		lo, hi = lo-n, hi-n
	}
	return out
}
