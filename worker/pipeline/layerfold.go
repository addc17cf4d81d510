package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// layerFold is how one layer is folded into; current and history differ in what they
// look up and how they fold it.
type layerFold struct {
	at    *LayerState
	state func(context.Context) (LayerState, error)
	// fold folds changes that follow the layer's cursor.
	fold   func(ctx context.Context, batches []*change.Batch, to LayerState) (Commit, error)
	before func(context.Context) (catalog.Position, error)
	// redo folds a transaction's changes to the touched keys from what the layer held
	// before it.
	redo func(ctx context.Context, touched fold.Touched, batches []*change.Batch, to LayerState) (Commit, error)
	// remake writes what was derived of the keys; see keeper.remake.
	remake func(ctx context.Context, keys *fold.KeySet, m *remaking, to LayerState) (Commit, error)
}

func (k *keeper) currentFold(table *catalog.Table) *layerFold {
	layer := k.layers.Current
	l := &layerFold{at: &k.current, state: layer.State, before: layer.Before}
	write := func(ctx context.Context, r fold.CurrentResult, to LayerState) (Commit, error) {
		if err := k.requestCurrent(ctx, table, r); err != nil {
			return Commit{}, err
		}
		return layer.Write(ctx, r, to)
	}
	l.fold = func(ctx context.Context, batches []*change.Batch, to LayerState) (Commit, error) {
		touched := fold.TouchedCurrent(table, batches)
		touched.Large = k.myTurn
		found, err := layer.Find(ctx, touched)
		if errors.Is(err, ErrMore) {
			return l.withMore(func(to LayerState) (Commit, error) {
				return write(ctx, fold.Current(table, l.at.Cursor.Position, batches, found), to)
			})
		}
		if err != nil {
			return Commit{}, err
		}
		return write(ctx, fold.Current(table, l.at.Cursor.Position, batches, found), to)
	}
	l.redo = func(ctx context.Context, touched fold.Touched, batches []*change.Batch, to LayerState) (Commit, error) {
		before, err := layer.FindBefore(ctx, touched)
		if err != nil {
			return Commit{}, err
		}
		return write(ctx, fold.RedoCurrent(table, before, batches), to)
	}
	l.remake = func(ctx context.Context, keys *fold.KeySet, m *remaking, to LayerState) (Commit, error) {
		found, err := layer.FindKeys(ctx, keys, m.most(keys))
		if err != nil {
			return Commit{}, err
		}
		// Where bronze has been cut, history tells what was there before its first change.
		only := *table
		var versions []fold.VersionFound
		if only.History = k.layers.History != nil && !m.first.IsZero(); only.History {
			if versions, err = k.layers.History.FindKeys(ctx, keys, m.most(keys)); err != nil {
				return Commit{}, err
			}
		}
		d := fold.NewDerivation(&only)
		d.KeepOlder(m.first, found, versions)
		if err := m.derive(ctx, keys, d); err != nil {
			return Commit{}, err
		}
		return write(ctx, fold.RemakeCurrent(keys, d, found, m.rewrite), to)
	}
	return l
}

func (k *keeper) historyFold(table *catalog.Table) *layerFold {
	layer := k.layers.History
	l := &layerFold{at: &k.history, state: layer.State, before: layer.Before}
	write := func(ctx context.Context, r fold.HistoryResult, to LayerState) (Commit, error) {
		if err := k.requestHistory(ctx, table, r); err != nil {
			return Commit{}, err
		}
		return layer.Write(ctx, r, to)
	}
	// returning looks up when keys that come back with an earlier time ended.
	returning := func(ctx context.Context, batches []*change.Batch, found []fold.VersionFound) ([]fold.VersionFound, error) {
		keys, since := fold.Returning(l.at.CommitTime, batches, found)
		if len(keys) == 0 {
			return found, nil
		}
		closed, err := layer.FindClosed(ctx, keys, since)
		return append(found, closed...), err
	}
	l.fold = func(ctx context.Context, batches []*change.Batch, to LayerState) (Commit, error) {
		touched := fold.TouchedHistory(batches)
		touched.Large = k.myTurn
		found, err := layer.Find(ctx, touched, nil)
		if errors.Is(err, ErrMore) {
			return l.withMore(func(to LayerState) (Commit, error) {
				return write(ctx, fold.History(table, l.at.Cursor.Position, batches, found), to)
			})
		}
		if err != nil {
			return Commit{}, err
		}
		if whole := fold.WholeHistory(batches, found); len(whole) > 0 {
			if found, err = layer.Find(ctx, touched, whole); err != nil {
				return Commit{}, err
			}
		}
		if found, err = returning(ctx, batches, found); err != nil {
			return Commit{}, err
		}
		return write(ctx, fold.History(table, l.at.Cursor.Position, batches, found), to)
	}
	l.redo = func(ctx context.Context, touched fold.Touched, batches []*change.Batch, to LayerState) (Commit, error) {
		before, err := layer.FindBefore(ctx, touched)
		if err != nil {
			return Commit{}, err
		}
		if before.Found, err = returning(ctx, batches, before.Found); err != nil {
			return Commit{}, err
		}
		return write(ctx, fold.RedoHistory(table, before, batches), to)
	}
	l.remake = func(ctx context.Context, keys *fold.KeySet, m *remaking, to LayerState) (Commit, error) {
		found, err := layer.FindKeys(ctx, keys, m.most(keys))
		if err != nil {
			return Commit{}, err
		}
		only := *table
		only.Current = false
		d := fold.NewDerivation(&only)
		d.KeepOlder(m.first, nil, found)
		if err := m.derive(ctx, keys, d); err != nil {
			return Commit{}, err
		}
		return write(ctx, fold.RemakeHistory(keys, d, found, m.rewrite), to)
	}
	return l
}

// redo folds the rest of a transaction of which the layer holds a part. Keys that the
// part did not touch are folded as always; if it touched any of the rest's keys, all
// of the transaction's changes to those are folded again.
func (k *keeper) redo(ctx context.Context, l *layerFold, rest []*change.Batch, to LayerState) (Commit, error) {
	touched := fold.TouchedHistory(rest)
	keys := fold.NewKeySet(touched.Keys...)
	if touched.All {
		keys = fold.AllKeys()
	}
	begin, err := l.before(ctx)
	if err != nil && !errors.Is(err, ErrNoBefore) {
		return Commit{}, err
	}
	lost := err != nil
	if lost {
		begin = fold.Begun(l.at.Cursor.Position)
	}
	earlier, err := k.earlier(ctx, l, keys, begin, rest[0])
	if err != nil {
		return Commit{}, err
	}
	// Usually only the transaction itself is folded again. When it goes on after it was
	// said to be over, as late changes may, it shares its commit with others.
	lost = lost || slices.ContainsFunc(earlier.Changes, func(c change.Change) bool { return !fold.Resumes(l.at.Cursor.Position, &c) })
	var c Commit
	switch {
	case len(earlier.Changes) == 0:
		return k.foldBounded(ctx, l, rest, false, to)
	case lost:
		return k.remakeTo(ctx, l, lateKeys(keys, earlier), to, false)
	default:
		batches := append([]*change.Batch{earlier}, rest...)
		c, err = l.redo(ctx, redoTouched(keys, batches), batches, to)
	}
	if err == nil {
		*l.at = to
	}
	return c, err
}

// redoTouched says what to look up: every row of the keys, with images.
func redoTouched(keys *fold.KeySet, batches []*change.Batch) fold.Touched {
	t := fold.Touched{}
	listed, ok := keys.Listed()
	if !ok {
		t = fold.TouchedHistory(batches)
		t.All, t.ImageAll = true, true
		return t
	}
	t.Keys, t.Image = listed, make([]bool, len(listed))
	for i := range t.Image {
		t.Image[i] = true
	}
	return t
}

// earlier reads what the layer took in after a position, as far as it concerns the
// keys; it adds the keys that share their values.
func (k *keeper) earlier(ctx context.Context, l *layerFold, keys *fold.KeySet, after catalog.Position, like *change.Batch) (*change.Batch, error) {
	at := l.at.Cursor.Position
	for {
		out := &change.Batch{Table: like.Table, Rows: change.NewRows(like.Rows.Schema()), Epoch: like.Epoch}
		grown := false
		for b, err := range k.layers.Bronze.ReadKeys(ctx, keys, after, at, catchUpRows) {
			if err != nil {
				return nil, fmt.Errorf("read bronze: %w", err)
			}
			if grown = keys.Follow(b) || grown; !grown {
				keys.Pick(out, b)
			}
		}
		if !grown {
			return out, nil
		}
	}
}
