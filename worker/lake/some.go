package lake

import (
	"context"
	"errors"
	"slices"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// some returns open versions with images: as many as may be in memory at once, and
// pipeline.ErrMore when there are more.
func (h *history) some(ctx context.Context, lg *ledger, budget *imageBudget) ([]fold.VersionFound, error) {
	budget.strict = false // roomFor sees to it
	var out []fold.VersionFound
	rows := change.NewRows(h.schema)
	keys, fields, o, isCurrent := h.keyReader(), h.sourceFields(), h.columns(), h.own(colIsCurrent)
	for _, file := range lg.inOrder() {
		room := h.roomFor(file, h.lake.findMost-len(out), budget.left)
		if room <= 0 && len(out) > 0 {
			return out, pipeline.ErrMore
		}
		room = max(room, 1)
		var want []wanted
		err := h.eachLiveOf(ctx, file, append(isCurrent.fields(), keys.fields...), func(_ *dataFile, rec record, sel []int) error {
			open, err := isCurrent.ints(rec, colIsCurrent, typeBool)
			if err != nil {
				return err
			}
			return keys.each(rec, sel, func(i int, key []byte) error {
				switch {
				case open(i) == 0:
					return nil
				case len(want) >= room:
					return errEnough
				}
				p, k := change.Place{File: file.number, Row: rec.first + int64(i)}, slices.Clone(key)
				h.place(p, k)
				want = append(want, wanted{p.Row, len(out)})
				out = append(out, fold.VersionFound{Key: k, Place: p})
				return nil
			})
		})
		full := errors.Is(err, errEnough)
		if err != nil && !full {
			return nil, err
		}
		if len(want) == 0 {
			continue
		}
		err = h.readPlaces(ctx, file, append(o.fields(), fields...), want, budget, func(rec record, want []wanted, sel []int) error {
			return h.each(rows, rec, fields, o, sel, func(k int, v fold.Version) { out[want[k].at].Row = v })
		})
		switch {
		case err != nil:
			return nil, h.lake.unavailable(err, "the rows of "+h.name+" cannot be read")
		case full:
			return out, pipeline.ErrMore
		}
	}
	return out, nil
}

// limitError returns pipeline.ErrTooMuch or ErrMore alone where an error is one.
func limitError(err error) error {
	for _, is := range []error{pipeline.ErrMore, pipeline.ErrTooMuch} {
		if errors.Is(err, is) {
			return is
		}
	}
	return err
}

// roomFor is how many rows of a file there is room for, by its average row. A file
// that cannot be read says so when it is.
func (l *layer) roomFor(file *dataFile, rows int, left int64) int {
	p, err := openParquet(l.fs, file.path)
	if err != nil {
		return rows
	}
	defer p.Close()
	size := int64(0)
	for g := range p.groups() {
		size += p.groupSize(g)
	}
	return int(min(int64(rows), left/max(1, size/max(1, file.rows))))
}
