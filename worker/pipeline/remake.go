package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

const remakeBytes = 64 << 20

// Remake makes the rows of the keys in current and history anew from bronze, whatever
// they are; see keeper.putRight. A layer must stand where bronze stands as far as it
// concerns the keys, and nobody else may use the layers meanwhile.
func Remake(ctx context.Context, table *catalog.Table, layers Layers, keys *fold.KeySet) (current, history Commit, err error) {
	k := &keeper{layers: layers, opened: true, remakeBytes: remakeBytes, wrong: keys}
	if err := k.refresh(ctx); err != nil {
		return current, history, err
	}
	var rec BatchRecord
	err = k.putRight(ctx, table, &rec)
	return rec.Current, rec.History, err
}

// noteWrong notes the keys that were read again because the layers show them wrongly.
// The request stays until putRight is through, so that a crash in between loses none.
func (k *keeper) noteWrong(batches []*change.Batch) {
	for _, b := range batches {
		for i := range b.Changes {
			if c := &b.Changes[i]; b.Remake && c.WasRead() {
				if k.wrong == nil {
					k.wrong = fold.NewKeySet()
				}
				k.wrong.Add(c.Key)
			}
		}
	}
}

// putRight derives current and history of the noted keys from bronze, with which the
// layers have come up, and makes them show just that. Rows that were made by changes
// from before bronze's first are kept. It reads the keys of all of bronze, and the rows
// where there are any of these: about as long as a scan of the table's keys, for many
// keys several times. It may be repeated.
func (k *keeper) putRight(ctx context.Context, table *catalog.Table, rec *BatchRecord) error {
	if k.wrong == nil {
		return nil
	}
	if k.layers.Current != nil {
		l := k.currentFold(table)
		c, err := k.remake(ctx, l, k.wrong, *l.at, true)
		if rec.Current = rec.Current.plus(c); err != nil {
			return fmt.Errorf("make keys of current anew: %w", err)
		}
	}
	if k.layers.History != nil {
		l := k.historyFold(table)
		c, err := k.remake(ctx, l, k.wrong, *l.at, true)
		if rec.History = rec.History.plus(c); err != nil {
			return fmt.Errorf("make keys of history anew: %w", err)
		}
	}
	k.wrong = nil
	return nil
}

// remaking is what a remake of some keys works on.
type remaking struct {
	bronze   Bronze
	first    catalog.Position // bronze's first change
	through  catalog.Position
	maxBytes int
	rewrite  bool // also what seems to be right
}

// remake makes the keys of one layer anew, in as many commits as memory asks for; the
// last brings the layer to its new state. When another writer comes in between, all is
// done again.
func (k *keeper) remake(ctx context.Context, l *layerFold, keys *fold.KeySet, to LayerState, rewrite bool) (Commit, error) {
	var total Commit
	for stale := 0; ; stale++ {
		c, err := k.remakeTo(ctx, l, keys, to, rewrite)
		total = total.plus(c)
		switch {
		case !errors.Is(err, ErrStale):
			return total, err
		case stale == maxStale:
			return total, rivalError(stale)
		}
		now, err := l.state(ctx)
		if err != nil {
			return total, err
		}
		if now.Cursor != l.at.Cursor {
			return total, ErrStale // it was rolled back
		}
		*l.at = now
	}
}

// remakeTo is one try of remake, up to the cursor of the state that it brings.
func (k *keeper) remakeTo(ctx context.Context, l *layerFold, keys *fold.KeySet, to LayerState, rewrite bool) (Commit, error) {
	first, err := k.layers.Bronze.First(ctx)
	if err != nil {
		return Commit{}, err
	}
	m := &remaking{bronze: k.layers.Bronze, first: first, through: to.Cursor.Position, maxBytes: k.remakeBytes, rewrite: rewrite}
	var total Commit
	waiting := []*fold.KeySet{keys}
	for len(waiting) > 0 {
		set := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		end := *l.at
		if len(waiting) == 0 {
			end = to
		}
		end.Remade = l.at.Remade + 2 // an odd one means something else, see withMore
		end.Snapshot, end.Offsets = nil, nil
		if err := m.follow(ctx, set); err != nil {
			return total, err
		}
		c, err := l.remake(ctx, set, m, end)
		total = total.plus(c)
		if errors.Is(err, ErrTooMuch) {
			waiting = append(waiting, set.Halves()...)
			continue
		}
		if err != nil {
			return total, err
		}
		*l.at = end
	}
	return total, nil
}

// most is how many bytes the rows of the keys may take.
func (m *remaking) most(keys *fold.KeySet) int {
	if keys.Single() {
		return math.MaxInt
	}
	return m.maxBytes
}

// derive folds bronze anew for the keys. It fails with ErrTooMuch when that takes too
// much memory and the keys can be taken apart.
func (m *remaking) derive(ctx context.Context, keys *fold.KeySet, d *fold.Derivation) error {
	for b, err := range m.bronze.ReadKeys(ctx, keys, catalog.Position{}, m.through, catchUpRows) {
		if err != nil {
			return fmt.Errorf("read bronze: %w", err)
		}
		picked := &change.Batch{Table: b.Table, Rows: change.NewRows(b.Rows.Schema())}
		keys.Pick(picked, b)
		d.Add(picked)
		if d.Size() <= m.most(keys) {
			continue
		}
		if d.Compact(); d.Size() > m.maxBytes {
			return ErrTooMuch
		}
	}
	return nil
}

// follow adds to the keys those that share values with them.
func (m *remaking) follow(ctx context.Context, keys *fold.KeySet) error {
	for grown := !keys.Every(); grown; {
		grown = false
		for b, err := range m.bronze.ReadKeys(ctx, keys, catalog.Position{}, m.through, catchUpRows) {
			if err != nil {
				return fmt.Errorf("read bronze: %w", err)
			}
			grown = keys.Follow(b) || grown
		}
	}
	return nil
}
