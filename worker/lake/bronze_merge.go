package lake

import (
	"context"
	"iter"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// fileReader reads the wanted changes of one file, in order, a record at a time.
type fileReader struct {
	span
	next  func() (*change.Batch, error, bool)
	stop  func()
	batch *change.Batch
	at    int
}

// merge yields the changes of files that overlap. A file is opened when its turn
// comes, so that no more of them are in memory at once than lie over one place.
func (r *eventReader) merge(ctx context.Context, group []span) error {
	waiting := group
	var open []*fileReader
	defer func() {
		for _, f := range open {
			f.stop()
		}
	}()
	for len(open) > 0 || len(waiting) > 0 {
		least := first(open)
		if len(waiting) > 0 && (least < 0 || !waiting[0].known || waiting[0].lo.Compare(open[least].position()) <= 0) {
			f := r.open(ctx, waiting[0])
			waiting = waiting[1:]
			open = append(open, f)
			if err := advance(&open, len(open)-1); err != nil {
				return err
			}
			continue
		}
		f := open[least]
		c := f.batch.Changes[f.at]
		if _, err := r.room(c.Position); err != nil {
			return err
		}
		for _, row := range []*int{&c.Before, &c.After, &c.Other} {
			if *row >= 0 {
				*row = r.batch.Rows.CopyRow(f.batch.Rows, *row)
			}
		}
		r.batch.Changes = append(r.batch.Changes, c)
		f.at++
		if f.at == len(f.batch.Changes) {
			if err := advance(&open, least); err != nil {
				return err
			}
		}
	}
	return nil
}

// first returns which reader is at the lowest position, or -1.
func first(open []*fileReader) int {
	least := -1
	for i, f := range open {
		if least < 0 || f.position().Compare(open[least].position()) < 0 {
			least = i
		}
	}
	return least
}

func (f *fileReader) position() catalog.Position { return f.batch.Changes[f.at].Position }

// advance brings a reader to its next changes, or takes it away when there are none.
func advance(open *[]*fileReader, i int) error {
	f := (*open)[i]
	b, err, ok := f.next()
	if err == nil && ok {
		f.batch, f.at = b, 0
		return nil
	}
	f.stop()
	*open = slices.Delete(*open, i, i+1)
	return err
}

func (r *eventReader) open(ctx context.Context, s span) *fileReader {
	f := &fileReader{span: s}
	f.next, f.stop = iter.Pull2(func(yield func(*change.Batch, error) bool) {
		var whole *change.Batch // of a file whose changes are in no order
		if !isOurs(s.file) {
			whole = r.empty()
		}
		err := r.each(ctx, s.file, func(d *decoder, sel []int) error {
			if len(sel) == 0 {
				return nil
			}
			if whole != nil {
				return d.append(whole, sel)
			}
			b := r.empty()
			if err := d.append(b, sel); err != nil {
				return err
			}
			if !yield(b, nil) {
				return errEnough
			}
			return nil
		})
		switch {
		case err != nil:
			yield(nil, err)
		case whole != nil && len(whole.Changes) > 0:
			slices.SortStableFunc(whole.Changes, func(a, b change.Change) int { return a.Position.Compare(b.Position) })
			yield(whole, nil)
		}
	})
	return f
}
