package lake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Fill gives the rows of a table the value that they got when a column was added with a
// constant default. Bronze notes it, and every row of current and every open version of
// history is written anew with the value, as many at a time as may be in memory; rows
// that were deleted and versions that ended before stay without it.
//
// The layers are open under the schema that has the column, and hold no change of after
// the fill yet, though they may lag. No cursor moves. What failed half-way goes on when
// Fill is called again, or before the next write to the layer: it is noted in each
// layer's snapshots how many of the fills its rows have. It fails with lake.schema when
// the value is none of the column's type.
func (l *Lake) Fill(ctx context.Context, layers pipeline.Layers, fill pipeline.Fill) error {
	b, ok := layers.Bronze.(*bronze)
	if !ok {
		return fmt.Errorf("fill column %q: %T is no layer of this lake", fill.Column, layers.Bronze)
	}
	if err := b.noteFill(ctx, fill); err != nil {
		return err
	}
	if c, ok := layers.Current.(*current); ok && c != nil {
		if err := c.fill(ctx); err != nil {
			return err
		}
	}
	if h, ok := layers.History.(*history); ok && h != nil {
		return h.fill(ctx)
	}
	return nil
}

// Fill is the lake's.
func (s sourceLake) Fill(ctx context.Context, layers pipeline.Layers, fill pipeline.Fill) error {
	return s.lake.Fill(ctx, layers, fill)
}

var (
	_ pipeline.Shower[fold.CurrentRow] = (*current)(nil)
	_ pipeline.Shower[fold.Version]    = (*history)(nil)
)

// noteFill puts a fill into bronze's property, once.
func (b *bronze) noteFill(ctx context.Context, fill pipeline.Fill) error {
	col := b.schema.Index(fill.Column)
	refused := func(hint, format string, args ...any) error {
		return catalog.Errorf(catalog.Conflict, catalog.CodeLakeSchema, hint, "column %q of %s cannot be filled: %s", fill.Column, b.name, fmt.Sprintf(format, args...))
	}
	switch {
	case col < 0:
		return refused("evolve the table and open it again first", "the table has no such column")
	case b.schema.IsKey(col):
		return refused("have the table read anew", "it is part of the key")
	}
	if _, _, err := typemap.Decode(b.schema.Columns[col].Type, []byte(fill.Value), nil); err != nil {
		return refused("have the table's rows read again", "its default is no value of type %s", b.schema.Columns[col].Type)
	}
	var cause error
	for attempt := 0; ; attempt++ {
		doc := fillDoc{
			Field: structFields(b.tbl.Schema(), colAfter)[fill.Column], Value: fill.Value, Float: b.schema.Columns[col].Type.Kind == catalog.Float32,
			Generation: fill.At.Generation, Commit: fill.At.Commit, Ordinal: fill.At.Ordinal, Time: fill.CommitTime,
		}
		md := b.tbl.Metadata()
		docs, err := readFillDocs(md.Properties())
		if err != nil {
			return fmt.Errorf("fills of %s: %w", b.name, err)
		}
		if i := slices.IndexFunc(docs, func(d fillDoc) bool { return d.Field == doc.Field }); i >= 0 {
			if doc.Float = docs[i].Float; docs[i] != doc {
				return refused("have the table's rows read again", "it was filled at %s already", docs[i].at())
			}
			return b.loadFills()
		}
		if attempt >= b.lake.retry.attempts {
			return b.lake.unavailable(cause, "the lake's table "+b.name+" cannot be committed to")
		}
		text, err := json.Marshal(append(docs, doc))
		if err != nil {
			return fmt.Errorf("fills of %s: %w", b.name, err)
		}
		reqs := []table.Requirement{table.AssertTableUUID(md.TableUUID()), table.AssertCurrentSchemaID(md.CurrentSchema().ID)}
		next, loc, err := b.lake.cat.CommitTable(ctx, b.ident, reqs, []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{propFills: string(text)})})
		if err == nil {
			b.adopt(next, loc)
			b.pruneMetadata(md, next)
			continue
		}
		if cause = err; ctx.Err() != nil {
			return ctx.Err()
		}
		if err := b.lake.retry.wait(ctx, attempt); err != nil {
			return err
		}
		if err := b.reload(ctx); err != nil {
			return err
		}
	}
}

func (l *layer) loadFills() error {
	if l.kind != catalog.Bronze || l.fills == nil {
		return nil
	}
	return l.fills.load(l.schema, l.tbl.Schema(), l.tbl.Properties())
}

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
	if k.filled() == len(k.fills.list) {
		return nil
	}
	k.filling, k.fillsDone = true, k.filled()
	defer func() { k.filling = false }()
	for attempt := 0; ; attempt++ {
		err := k.fillOnce(ctx, pending, fields, rewrite)
		if err == nil {
			k.fillsDone = len(k.fills.list)
			err = done()
		}
		if !errors.Is(err, pipeline.ErrStale) || attempt >= mostRefills {
			return err
		}
		k.fillsDone = k.filled()
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
	if c.filled() == len(c.fills.list) {
		return nil
	}
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
	if h.filled() == len(h.fills.list) {
		return nil
	}
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
