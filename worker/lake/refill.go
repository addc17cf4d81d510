package lake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// filled returns of how many of the table's fills the layer's rows have the values.
func (k *keyed) filled() int {
	if k.rebuild {
		return len(k.fills.list) // what is made of bronze has them
	}
	return k.filledAt(k.tbl.CurrentSnapshot())
}

// filledAt is filled of another snapshot; nil is one without rows.
func (k *keyed) filledAt(s *table.Snapshot) int {
	if s == nil || len(k.fills.list) == 0 {
		return len(k.fills.list)
	}
	md := k.tbl.Metadata()
	if found, _ := nearest(md, s); found != nil {
		return k.fills.through(found.Summary.Properties[propFilled])
	}
	if l := lastOf(md); l != nil {
		return k.fills.through(l.Summary[propFilled])
	}
	return 0
}

// mostRefills bounds how often a fill begins anew because another writer got in between.
const mostRefills = 10

// fillAll runs a layer's rows through rewrite, file by file, until no other writer got in
// between, and notes that it is done. rewrite writes some rows anew, by their numbers.
func (k *keyed) fillAll(ctx context.Context, pending func(rec record) (func(i int) bool, error), fields []int, rewrite func(file *dataFile, rows []wanted) error, done func() error) error {
	k.filling = true
	defer func() { k.filling = false }()
	for attempt := 0; ; attempt++ {
		// It also tells whether the layer is to be made anew.
		if _, err := k.checked(); err != nil || k.filled() == len(k.fills.list) {
			return err
		}
		k.fillsDone = k.filled()
		err := k.fillOnce(ctx, pending, fields, rewrite)
		if err == nil {
			k.fillsDone = len(k.fills.list)
			err = done()
		}
		if !errors.Is(err, pipeline.ErrStale) || attempt >= mostRefills {
			return err
		}
	}
}

func (k *keyed) fillOnce(ctx context.Context, pending func(rec record) (func(i int) bool, error), fields []int, rewrite func(file *dataFile, rows []wanted) error) error {
	lg, err := k.ready(ctx)
	if err != nil {
		return err
	}
	for _, file := range lg.inOrder() {
		var rows []wanted
		err := k.eachLiveOf(ctx, file, fields, func(_ *dataFile, rec record, sel []int) error {
			is, err := pending(rec)
			if err != nil {
				return err
			}
			for _, i := range sel {
				if is(i) {
					rows = append(rows, wanted{row: rec.first + int64(i)})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		room := max(1, k.roomFor(file, k.lake.findMost, k.lake.imageMost))
		for some := range slices.Chunk(rows, room) {
			for i := range some {
				some[i].at = i
			}
			if err := rewrite(file, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// lacking returns what tells whether a row has no value yet of a fill that the layer does
// not have.
func (k *keyed) lacking(o own) (fields []int, of func(rec record) (func(i int) bool, error)) {
	type column struct {
		id int
		at catalog.Position
	}
	var columns []column
	for _, f := range k.fills.list[k.filled():] {
		if f.column >= 0 {
			id := k.field(k.schema.Columns[f.column].Name)
			columns, fields = append(columns, column{id, f.at}), append(fields, id)
		}
	}
	return append(fields, o.fields()...), func(rec record) (func(i int) bool, error) {
		stamp, err := o.stamps(rec, colSourceTS)
		if err != nil {
			return nil, err
		}
		return func(i int) bool {
			at := stamp(i).Position
			return slices.ContainsFunc(columns, func(c column) bool {
				arr := rec.columns[c.id]
				return at.Compare(c.at) < 0 && (arr == nil || arr.IsNull(i))
			})
		}, nil
	}
}

// fill gives the rows that are there the values of fills that they have not got.
func (c *current) fill(ctx context.Context) error {
	o := c.own(colIsDeleted, colLSN, colGeneration, colCommitLSN, colOrdinal, colSourceTS)
	fields, lacking := c.lacking(o)
	return c.fillAll(ctx, func(rec record) (func(i int) bool, error) {
		deleted, err := o.ints(rec, colIsDeleted, typeBool)
		if err != nil {
			return nil, err
		}
		lacks, err := lacking(rec)
		return func(i int) bool { return deleted(i) == 0 && lacks(i) }, err
	}, fields, func(file *dataFile, rows []wanted) error {
		found := make([]fold.CurrentFound, len(rows))
		images := change.NewRows(c.schema)
		places := placesOf(file, rows)
		if err := c.readImages(ctx, file, images, rows, nil, found); err != nil {
			return c.lake.unavailable(err, "the rows of "+c.name+" cannot be read")
		}
		r := fold.CurrentResult{Remove: places}
		for i := range found {
			if err := c.refill(images, found[i].Row.Image.Row, found[i].Row.Stamp.Position, places[i]); err != nil {
				return err
			}
			r.Write = append(r.Write, found[i].Row)
		}
		return c.writeFilled(ctx, r)
	}, func() error { return c.writeFilled(ctx, fold.CurrentResult{}) })
}

// unfilled gives rows the values that they still lack, as after a rollback, and fails
// with pipeline.ErrStale when there were any: what was found is to be found again.
func (c *current) unfilled(ctx context.Context) error {
	if c.filling || c.filled() == len(c.fills.list) {
		return nil
	}
	return cmp.Or(c.fill(ctx), pipeline.ErrStale)
}

// Shown implements pipeline.Shower.
func (c *current) Shown(row fold.CurrentRow) fold.CurrentRow {
	return c.fills.trimCurrent(row, new(*change.Rows))
}

func (c *current) writeFilled(ctx context.Context, r fold.CurrentResult) error {
	state, err := c.checked()
	if err == nil {
		_, err = c.Write(ctx, r, state)
	}
	return err
}

// fill gives the open versions the values of fills that they have not got.
func (h *history) fill(ctx context.Context) error {
	o := h.own(colIsCurrent, colLSN, colGeneration, colCommitLSN, colOrdinal, colSourceTS)
	fields, lacking := h.lacking(o)
	return h.fillAll(ctx, func(rec record) (func(i int) bool, error) {
		isOpen, err := o.ints(rec, colIsCurrent, typeBool)
		if err != nil {
			return nil, err
		}
		lacks, err := lacking(rec)
		return func(i int) bool { return isOpen(i) != 0 && lacks(i) }, err
	}, fields, func(file *dataFile, rows []wanted) error {
		found := make([]fold.VersionFound, len(rows))
		images := change.NewRows(h.schema)
		places := placesOf(file, rows)
		if err := h.readImages(ctx, file, images, rows, nil, found); err != nil {
			return h.lake.unavailable(err, "the rows of "+h.name+" cannot be read")
		}
		r := fold.HistoryResult{Remove: places}
		for i := range found {
			if err := h.refill(images, found[i].Row.Image.Row, found[i].Row.Stamp.Position, places[i]); err != nil {
				return err
			}
			r.Write = append(r.Write, found[i].Row)
		}
		return h.writeFilled(ctx, r)
	}, func() error { return h.writeFilled(ctx, fold.HistoryResult{}) })
}

// unfilled is as current's.
func (h *history) unfilled(ctx context.Context) error {
	if h.filling || h.filled() == len(h.fills.list) {
		return nil
	}
	return cmp.Or(h.fill(ctx), pipeline.ErrStale)
}

// Shown implements pipeline.Shower.
func (h *history) Shown(version fold.Version) fold.Version {
	return h.fills.trimHistory(version, new(*change.Rows))
}

func (h *history) writeFilled(ctx context.Context, r fold.HistoryResult) error {
	state, err := h.checked()
	if err == nil {
		_, err = h.Write(ctx, r, state)
	}
	return err
}

func placesOf(file *dataFile, rows []wanted) []change.Place {
	out := make([]change.Place, len(rows))
	for i, w := range rows {
		out[i] = change.Place{File: file.number, Row: w.row}
	}
	return out
}

// refill puts the values into a row that was read, and remembers its key.
func (k *keyed) refill(rows *change.Rows, row int, at catalog.Position, place change.Place) error {
	k.fills.apply(k.fillsDone, rows, row, at)
	key, err := rows.AppendKey(nil, row)
	if err != nil {
		return fmt.Errorf("key of a row of %s: %w", k.name, err)
	}
	k.place(place, key)
	return nil
}
