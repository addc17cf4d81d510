package lake

import (
	"context"
	"math"
	"slices"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// keyScan finds rows by their keys in files.
type keyScan struct {
	keyed *keyed
	// flag is a column that says of a row what wanted is to be told beside its key; ""
	// when nothing is.
	flag   string
	filter keyFilter
	wanted func(key []byte, flag bool) bool
	// take notes a wanted row and returns where its image goes; the key belongs to it.
	take func(file *dataFile, row int64, key []byte, flag bool) int
	// images reads the rows of one file that were taken; nil when they are not wanted.
	images func(file *dataFile, want []wanted) error
}

// file looks at those rows of one file that are chosen.
func (s *keyScan) file(ctx context.Context, file *dataFile, chosen func(row int64) bool) error {
	k, keys := s.keyed, s.keyed.keyReader()
	if !s.filter.mayHold(file, keys.fields) {
		return nil
	}
	var o own
	fields := keys.fields
	if s.flag != "" {
		o = k.own(s.flag)
		fields = append(o.fields(), keys.fields...)
	}
	// First the keys alone: most files have none of them.
	var want []wanted
	err := k.eachRecord(ctx, file.path, fields, func(rec record) error {
		flag := func(int) int64 { return 0 }
		if s.flag != "" {
			var err error
			if flag, err = o.ints(rec, s.flag, typeBool); err != nil {
				return err
			}
		}
		var sel []int
		for i := range rec.rows {
			if chosen(rec.first + int64(i)) {
				sel = append(sel, i)
			}
		}
		if len(sel) == 0 {
			return nil
		}
		return keys.each(rec, sel, func(i int, key []byte) error {
			if set := flag(i) != 0; s.wanted(key, set) {
				row := rec.first + int64(i)
				want = append(want, wanted{row, s.take(file, row, slices.Clone(key), set)})
			}
			return nil
		})
	})
	if err == nil && len(want) > 0 && s.images != nil {
		err = s.images(file, want)
	}
	if err != nil {
		return k.lake.unavailable(err, "the rows of "+k.name+" cannot be read")
	}
	return nil
}

// live is file over the rows that are there.
func (s *keyScan) live(ctx context.Context, file *dataFile) error {
	if file.deleted != nil && file.deleted.Cardinality() == file.rows {
		return nil
	}
	return s.file(ctx, file, func(row int64) bool { return !file.isDeleted(row) })
}

// FindKeys returns every version of the keys.
func (h *history) FindKeys(ctx context.Context, keys *fold.KeySet, maxBytes int) ([]fold.VersionFound, error) {
	lg, err := h.index(ctx)
	if err != nil {
		return nil, err
	}
	h.found = nil
	return h.scan(ctx, lg, false, keys, nil, maxBytes)
}

// scan reads the layer for every open version, when all is set, and every version of
// the keys.
func (h *history) scan(ctx context.Context, lg *ledger, all bool, whole *fold.KeySet, budget *imageBudget, maxBytes int) ([]fold.VersionFound, error) {
	var out []fold.VersionFound
	rows := change.NewRows(h.schema)
	fields, o := h.sourceFields(), h.columns()
	s := keyScan{
		keyed: &h.keyed, flag: colIsCurrent,
		wanted: func(key []byte, open bool) bool { return all && open || whole.Has(key) },
		take: func(file *dataFile, row int64, key []byte, open bool) int {
			p := change.Place{File: file.number, Row: row}
			if open {
				h.place(p, key)
			}
			out = append(out, fold.VersionFound{Key: key, Place: p})
			return len(out) - 1
		},
		images: func(file *dataFile, want []wanted) error {
			return h.readPlaces(ctx, file, append(o.fields(), fields...), want, budget, func(rec record, want []wanted, sel []int) error {
				return h.each(rows, rec, fields, o, sel, func(k int, v fold.Version) { out[want[k].at].Row = v })
			})
		},
	}
	if !all {
		s.filter = newKeyFilter(h.schema, whole)
	}
	for _, file := range lg.inOrder() {
		if err := s.live(ctx, file); err != nil {
			return nil, err
		}
		if rows.Size()+200*len(out) > maxBytes {
			return nil, pipeline.ErrTooMuch
		}
	}
	return out, nil
}

// FindKeys returns the rows of the keys, with images.
func (c *current) FindKeys(ctx context.Context, keys *fold.KeySet, maxBytes int) ([]fold.CurrentFound, error) {
	if listed, ok := keys.Listed(); ok {
		t := fold.Touched{Keys: listed, Image: slices.Repeat([]bool{true}, len(listed)), Large: maxBytes == math.MaxInt}
		return c.Find(ctx, t)
	}
	lg, err := c.index(ctx)
	if err != nil {
		return nil, err
	}
	c.found = nil
	var out []fold.CurrentFound
	rows := change.NewRows(c.schema)
	fields, o := c.sourceFields(), c.columns()
	s := keyScan{
		keyed:  &c.keyed,
		wanted: func(key []byte, _ bool) bool { return keys.Has(key) },
		take: func(file *dataFile, row int64, key []byte, _ bool) int {
			p := change.Place{File: file.number, Row: row}
			c.place(p, key)
			out = append(out, fold.CurrentFound{Key: key, Place: p})
			return len(out) - 1
		},
		images: func(file *dataFile, want []wanted) error {
			return c.readPlaces(ctx, file, append(o.fields(), fields...), want, nil, func(rec record, want []wanted, sel []int) error {
				return c.each(rows, rec, fields, o, sel, func(k int, row fold.CurrentRow) { out[want[k].at].Row = row })
			})
		},
	}
	for _, file := range lg.inOrder() {
		if err := s.live(ctx, file); err != nil {
			return nil, err
		}
		if rows.Size()+200*len(out) > maxBytes {
			return nil, pipeline.ErrTooMuch
		}
	}
	return out, nil
}
