package pipeline

import (
	"context"
	"errors"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// foldBounded folds changes that follow the layer's cursor: at once, or in parts where
// the rows that they touch are too many to be in memory at once. Each part has its own
// cursor. A part that cannot be made smaller waits for its turn, which lasts until it
// is written. whole says that the changes end where a transaction ends.
func (k *keeper) foldBounded(ctx context.Context, l *layerFold, batches []*change.Batch, whole bool, to LayerState) (Commit, error) {
	var total Commit
	for {
		to.Remade = l.at.Remade + l.at.Remade&1 // see withMore
		c, err := l.fold(ctx, batches, to)
		total = total.plus(c)
		switch {
		case err == nil:
			*l.at = to
			return total, nil
		case errors.Is(err, ErrTooMuch):
			c, err := k.foldParts(ctx, l, batches, whole, to)
			return total.plus(c), err
		case !errors.Is(err, ErrMore):
			return total, err
		case c.Removed == 0:
			return total, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "please report it", "a TRUNCATE that is made in parts does not get on")
		}
	}
}

func (k *keeper) foldParts(ctx context.Context, l *layerFold, batches []*change.Batch, whole bool, to LayerState) (Commit, error) {
	first, rest, ok := halves(batches)
	if !ok {
		if k.myTurn {
			return Commit{}, ErrTooMuch
		}
		done, err := k.takeTurn(ctx)
		if err != nil {
			return Commit{}, err
		}
		defer done()
		own := make([]*change.Batch, len(batches)) // so that what is filled into them goes
		for i, b := range batches {
			own[i] = copied(b, b.Changes)
		}
		return k.foldBounded(ctx, l, own, whole, to)
	}
	mid := after(*l.at, first)
	mid.Snapshot, mid.Offsets, mid.Cursor.Epoch = nil, nil, to.Cursor.Epoch
	step := k.foldBounded
	if !disjoint(first, rest) {
		step = k.write // the second may go on with what the first began
	}
	total, err := step(ctx, l, first, !inOne(first, rest), mid)
	if err != nil {
		return total, err
	}
	c, err := step(ctx, l, rest, whole, to)
	return total.plus(c), err
}

// inOne reports whether changes go on with the transaction in which others end.
func inOne(first, rest []*change.Batch) bool {
	var end *change.Change
	for _, b := range first {
		if n := len(b.Changes); n > 0 {
			end = &b.Changes[n-1]
		}
	}
	for _, b := range rest {
		if len(b.Changes) > 0 {
			return end != nil && fold.SameTransaction(end.Position, b.Changes[0].Position)
		}
	}
	return false
}

// takeTurn waits until no other table folds what is large.
func (k *keeper) takeTurn(ctx context.Context) (done func(), err error) {
	if k.turn != nil {
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.myTurn = true
	return func() {
		k.myTurn = false
		if k.turn != nil {
			<-k.turn
		}
	}, nil
}

// withMore writes what a fold makes of some of the rows that a TRUNCATE concerns, while
// the layer's cursor stays. Remade is odd until the next fold, so that what the layer
// holds now is never taken for what it held before the TRUNCATE.
func (l *layerFold) withMore(write func(to LayerState) (Commit, error)) (Commit, error) {
	to := *l.at
	to.Remade |= 1
	c, err := write(to)
	if err == nil {
		*l.at = to
		err = ErrMore
	}
	return c, err
}
