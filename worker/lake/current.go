package lake

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/keyindex"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// current is the SCD1 layer: one row per key.
type current struct{ keyed }

var _ pipeline.Current = (*current)(nil)

// Find returns the layer's rows of the touched keys. Without an image, a row's stamp
// has its position alone.
func (c *current) Find(ctx context.Context, touched fold.Touched) ([]fold.CurrentFound, error) {
	lg, err := c.index(ctx)
	if err != nil {
		return nil, err
	}
	c.found = nil
	if touched.All {
		if len(touched.Keys) > 0 && lg.index.Len() > c.lake.findMost {
			return nil, pipeline.ErrTooMuch
		}
		return c.findAll(ctx, lg, touched.ImageAll, len(touched.Keys) == 0)
	}
	budget := c.imageBudget(touched)
	var out []fold.CurrentFound
	byFile := map[int32][]wanted{}
	for _, key := range touched.Keys { // the row that the index names comes last, and is the one that a fold keeps
		for _, p := range lg.doubles[string(key)] {
			c.place(p, key)
			out = append(out, fold.CurrentFound{Key: key, Place: p})
			byFile[p.File] = append(byFile[p.File], wanted{p.Row, len(out) - 1})
		}
	}
	for i, key := range touched.Keys {
		e, ok := lg.index.Find(key)
		if !ok {
			continue
		}
		c.place(e.Place, key)
		out = append(out, fold.CurrentFound{Key: key, Place: e.Place, Row: fold.CurrentRow{
			Stamp: fold.Stamp{Position: e.Position}, Deleted: e.Deleted, FromSnapshot: e.FromSnapshot,
		}})
		if touched.Image[i] || lg.doubles[string(key)] != nil { // it is written again when the others go
			byFile[e.Place.File] = append(byFile[e.Place.File], wanted{e.Place.Row, len(out) - 1})
		}
	}
	rows := change.NewRows(c.schema)
	for number, want := range byFile {
		if f := c.lake.images.get(c.layer, number); f != nil {
			for _, w := range want {
				out[w.at].Row = f.current[w.row]
			}
			continue
		}
		if err := c.readImages(ctx, lg.files[number], rows, want, budget, out); errors.Is(err, pipeline.ErrTooMuch) {
			return nil, err
		} else if err != nil {
			return nil, c.lake.unavailable(err, "the rows of "+c.name+" cannot be read")
		}
	}
	return out, nil
}

func (c *current) readImages(ctx context.Context, file *dataFile, rows *change.Rows, want []wanted, budget *imageBudget, out []fold.CurrentFound) error {
	if file == nil {
		return fmt.Errorf("the key index of %s names a file that it does not have", c.name)
	}
	fields, o := c.sourceFields(), c.columns()
	return c.readPlaces(ctx, file, append(o.fields(), fields...), want, budget, func(rec record, want []wanted, sel []int) error {
		return c.each(rows, rec, fields, o, sel, func(k int, row fold.CurrentRow) { out[want[k].at].Row = row })
	})
}

func (c *current) columns() own {
	return c.own(colLSN, colUpdatedAt, colIsDeleted, colFromSnapshot, colGeneration, colCommitLSN, colOrdinal, colUnavailable)
}

// each reads rows of a record; f gets them in the order of sel.
func (c *current) each(rows *change.Rows, rec record, fields []int, o own, sel []int, f func(k int, row fold.CurrentRow)) error {
	first, err := c.fillImages(rows, rec, fields, rec.columns[o.ids[colUnavailable]], sel)
	if err != nil {
		return err
	}
	describe, err := c.rowReader(rec, o)
	if err != nil {
		return err
	}
	for k, i := range sel {
		row := describe(i)
		row.Image = change.Ref{Rows: rows, Row: first + k}
		f(k, row)
	}
	return nil
}

// rowReader returns what reads a record's rows, save their images.
func (c *current) rowReader(rec record, o own) (func(i int) fold.CurrentRow, error) {
	stamp, err := o.stamps(rec, colUpdatedAt)
	if err != nil {
		return nil, err
	}
	deleted, err := o.ints(rec, colIsDeleted, typeBool)
	if err != nil {
		return nil, err
	}
	snapshot, err := o.ints(rec, colFromSnapshot, typeBool)
	if err != nil {
		return nil, err
	}
	return func(i int) fold.CurrentRow {
		return fold.CurrentRow{Stamp: stamp(i), Deleted: deleted(i) != 0, FromSnapshot: snapshot(i) != 0}
	}, nil
}

// findAll returns every live row; with some, as many as may be in memory at once, and
// pipeline.ErrMore when there are more.
func (c *current) findAll(ctx context.Context, lg *ledger, images, some bool) ([]fold.CurrentFound, error) {
	var out []fold.CurrentFound
	keys, o := c.keyReader(), c.columns()
	fields := keys.fields
	if images {
		fields = c.sourceFields()
	}
	rows := change.NewRows(c.schema)
	err := c.eachLive(ctx, lg, append(o.fields(), fields...), func(file *dataFile, rec record, sel []int) error {
		at := len(out)
		if at >= c.lake.findMost || int64(rows.Size()) >= c.lake.imageMost {
			if some {
				return pipeline.ErrMore
			}
			if at < c.lake.findMost {
				return pipeline.ErrTooMuch
			}
		}
		var picked []int
		err := keys.each(rec, sel, func(i int, key []byte) error {
			e, _ := lg.index.Find(key)
			if some && e.Deleted {
				return nil // a Truncate leaves it as it is, and must come to an end
			}
			picked = append(picked, i)
			p := change.Place{File: file.number, Row: rec.first + int64(i)}
			k := append([]byte(nil), key...)
			c.place(p, k)
			out = append(out, fold.CurrentFound{Key: k, Place: p, Row: fold.CurrentRow{Stamp: fold.Stamp{Position: e.Position}, Deleted: e.Deleted, FromSnapshot: e.FromSnapshot}})
			return nil
		})
		if err != nil || !images || len(picked) == 0 {
			return err
		}
		return c.each(rows, rec, fields, o, picked, func(k int, row fold.CurrentRow) { out[at+k].Row = row })
	})
	return out, limitError(err)
}

func (c *current) index(ctx context.Context) (*ledger, error) {
	o := c.own(colIsDeleted, colFromSnapshot, colGeneration, colCommitLSN, colOrdinal)
	var doubles map[string][]change.Place
	lg, err := c.indexed(ctx, o.fields(), func(index keyindex.Index, keys keyReader, file *dataFile, rec record, sel []int) error {
		describe, err := c.rowReader(rec, o)
		if err != nil {
			return err
		}
		return keys.each(rec, sel, func(i int, key []byte) error {
			row := describe(i)
			was, doubled := index.Put(key, keyindex.Entry{
				Place: change.Place{File: file.number, Row: rec.first + int64(i)}, Position: row.Stamp.Position,
				Deleted: row.Deleted, FromSnapshot: row.FromSnapshot,
			})
			if doubled {
				if doubles == nil {
					doubles = map[string][]change.Place{}
				}
				doubles[string(key)] = append(doubles[string(key)], was)
			}
			return nil
		})
	})
	if doubles != nil {
		c.lake.logger.WarnContext(ctx, "another writer has put rows into the table whose keys it has already", "table", c.name, "keys", len(doubles))
		lg.doubles = doubles
	}
	return lg, err
}

// Write applies the result and the state in one commit.
func (c *current) Write(ctx context.Context, result fold.CurrentResult, to pipeline.LayerState) (pipeline.Commit, error) {
	if err := c.unfilled(ctx); err != nil {
		return pipeline.Commit{}, err
	}
	if len(result.Remove) > 0 || len(result.Write) > 0 {
		if _, err := c.index(ctx); err != nil {
			return pipeline.Commit{}, err
		}
	}
	result.Write = trimmed(c.fills, result.Write, c.fills.trimCurrent)
	src := &currentRows{images: images{schema: c.schema, refs: make([]change.Ref, len(result.Write))}, rows: result.Write}
	var newest catalog.Position
	for i := range result.Write {
		src.refs[i] = result.Write[i].Image
		if p := result.Write[i].Stamp.Position; p.Compare(newest) > 0 {
			newest = p
		}
	}
	return c.write(ctx, src, result.Remove, newest, to, func(lg *ledger, files []*dataFile, counts []int) error {
		at := 0
		var key []byte
		for n, f := range files {
			rows := result.Write[at : at+counts[n]]
			at += counts[n]
			for i := range rows {
				var err error
				if key, err = rows[i].Image.Rows.AppendKey(key[:0], rows[i].Image.Row); err != nil {
					return err
				}
				lg.index.Put(key, keyindex.Entry{
					Place: change.Place{File: f.number, Row: int64(i)}, Position: rows[i].Stamp.Position,
					Deleted: rows[i].Deleted, FromSnapshot: rows[i].FromSnapshot,
				})
			}
			c.keep(f, rows, src.size()*counts[n]/max(1, len(result.Write)))
		}
		return nil
	})
}

// keep puts a file's rows into the cache.
func (c *current) keep(f *dataFile, rows []fold.CurrentRow, size int) {
	total := int64(size + 96*len(rows))
	if !c.lake.images.fits(total) {
		return
	}
	kept := &cachedFile{key: cacheKey{c.layer, f.number}, rows: change.NewRows(c.schema), current: make([]fold.CurrentRow, len(rows))}
	for i, r := range rows {
		r.Image = copyImage(kept.rows, r.Image)
		kept.current[i] = r
	}
	kept.size = int64(kept.rows.Size() + 96*len(rows))
	c.lake.images.put(kept)
}

// currentRows are rows of current as columns.
type currentRows struct {
	images
	rows []fold.CurrentRow
}

func (r *currentRows) len() int { return len(r.rows) }

func (r *currentRows) appendColumn(name string, b array.Builder, lo, hi int) bool {
	rows, n := r.rows[lo:hi], hi-lo
	switch name {
	case colUpdatedAt:
		appendInts[*array.TimestampBuilder](b, n, func(i int) arrow.Timestamp { return arrow.Timestamp(rows[i].Stamp.CommitTime) })
	case colIsDeleted:
		appendBools(b, n, func(i int) bool { return rows[i].Deleted })
	case colFromSnapshot:
		appendBools(b, n, func(i int) bool { return rows[i].FromSnapshot })
	default:
		return appendStamp(name, b, n, func(i int) *fold.Stamp { return &rows[i].Stamp }) || r.images.appendColumn(name, b, lo, hi)
	}
	return true
}
