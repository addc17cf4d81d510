package lake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/keyindex"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// history is the SCD2 layer: one row per version of a key. Its index holds the open
// versions.
type history struct{ keyed }

var _ pipeline.History = (*history)(nil)

// Find returns the open versions of the touched keys and every version of the keys
// of whole, with images. Closed versions are found by reading the keys of every file
// that may have them.
func (h *history) Find(ctx context.Context, touched fold.Touched, whole [][]byte) ([]fold.VersionFound, error) {
	lg, err := h.index(ctx)
	if err != nil {
		return nil, err
	}
	h.found = nil
	var out []fold.VersionFound
	budget := h.imageBudget(touched)
	if touched.All && len(touched.Keys) > 0 && lg.index.Len() > h.lake.findMost {
		return nil, pipeline.ErrTooMuch
	}
	if touched.All || len(whole) > 0 {
		if touched.All && len(touched.Keys) == 0 {
			return h.some(ctx, lg, budget)
		}
		out, err = h.scan(ctx, lg, touched.All, fold.NewKeySet(whole...), budget, math.MaxInt)
	}
	if err != nil || touched.All {
		return out, limitError(err)
	}
	byFile := map[int32][]wanted{}
	for _, key := range touched.Keys {
		e, ok := lg.index.Find(key)
		if !ok {
			continue
		}
		if _, have := h.found[e.Place]; have {
			continue // among those of whole
		}
		h.place(e.Place, key)
		out = append(out, fold.VersionFound{Key: key, Place: e.Place})
		byFile[e.Place.File] = append(byFile[e.Place.File], wanted{e.Place.Row, len(out) - 1})
	}
	rows := change.NewRows(h.schema)
	for number, want := range byFile {
		if f := h.lake.images.get(h.layer, number); f != nil {
			for _, w := range want {
				out[w.at].Row = cloneVersion(rows, f.versions[w.row])
			}
			continue
		}
		if err := h.readImages(ctx, lg.files[number], rows, want, budget, out); errors.Is(err, pipeline.ErrTooMuch) {
			return nil, err
		} else if err != nil {
			return nil, h.lake.unavailable(err, "the rows of "+h.name+" cannot be read")
		}
	}
	return out, nil
}

// cloneVersion copies a version out of the cache: fold fills unavailable cells of
// what it is given.
func cloneVersion(rows *change.Rows, v fold.Version) fold.Version {
	v.Image = change.Ref{Rows: rows, Row: rows.CopyRow(v.Image.Rows, v.Image.Row)}
	return v
}

func (h *history) readImages(ctx context.Context, file *dataFile, rows *change.Rows, want []wanted, budget *imageBudget, out []fold.VersionFound) error {
	if file == nil {
		return fmt.Errorf("the key index of %s names a file that it does not have", h.name)
	}
	fields, o := h.sourceFields(), h.columns()
	return h.readPlaces(ctx, file, append(o.fields(), fields...), want, budget, func(rec record, want []wanted, sel []int) error {
		return h.each(rows, rec, fields, o, sel, func(k int, v fold.Version) { out[want[k].at].Row = v })
	})
}

func (h *history) columns() own {
	return h.own(colValidFrom, colValidTo, colIsCurrent, colLSN, colHistoryOp, colGeneration, colCommitLSN, colOrdinal, colSourceTS, colUnavailable)
}

// each reads rows of a record; f gets them in the order of sel.
func (h *history) each(rows *change.Rows, rec record, fields []int, o own, sel []int, f func(k int, v fold.Version)) error {
	first, err := h.fillImages(rows, rec, fields, rec.columns[o.ids[colUnavailable]], sel)
	if err != nil {
		return err
	}
	stamp, err := o.stamps(rec, colSourceTS)
	if err != nil {
		return err
	}
	from, err := o.ints(rec, colValidFrom, typeInstant)
	if err != nil {
		return err
	}
	to, err := o.ints(rec, colValidTo, typeInstant)
	if err != nil {
		return err
	}
	op, ok := rec.columns[o.ids[colHistoryOp]].(*array.String)
	if !ok {
		return fmt.Errorf("column %s is not text", colHistoryOp)
	}
	for k, i := range sel {
		v := fold.Version{Image: change.Ref{Rows: rows, Row: first + k}, Stamp: stamp(i), From: from(i), To: to(i)}
		if s := op.Value(i); len(s) == 1 {
			v.Op = change.Op(s[0])
		}
		f(k, v)
	}
	return nil
}

func (h *history) index(ctx context.Context) (*ledger, error) {
	o := h.own(colIsCurrent)
	return h.indexed(ctx, o.fields(), func(index keyindex.Index, keys keyReader, file *dataFile, rec record, sel []int) error {
		open, err := o.ints(rec, colIsCurrent, typeBool)
		if err != nil {
			return err
		}
		return keys.each(rec, sel, func(i int, key []byte) error {
			if open(i) != 0 {
				index.Put(key, keyindex.Entry{Place: change.Place{File: file.number, Row: rec.first + int64(i)}})
			}
			return nil
		})
	})
}

// Write applies the result and the state in one commit.
func (h *history) Write(ctx context.Context, result fold.HistoryResult, to pipeline.LayerState) (pipeline.Commit, error) {
	if err := h.unfilled(ctx); err != nil {
		return pipeline.Commit{}, err
	}
	if len(result.Remove) > 0 || len(result.Write) > 0 {
		if _, err := h.index(ctx); err != nil {
			return pipeline.Commit{}, err
		}
	}
	result.Write = trimmed(h.fills, result.Write, h.fills.trimHistory)
	closedStay := !slices.ContainsFunc(result.Remove, func(p change.Place) bool { return h.found[p] == nil })
	src := &historyRows{images: images{schema: h.schema, refs: make([]change.Ref, len(result.Write))}, rows: result.Write}
	var newest catalog.Position
	for i := range result.Write {
		src.refs[i] = result.Write[i].Image
		if p := result.Write[i].Stamp.Position; p.Compare(newest) > 0 {
			newest = p
		}
	}
	return h.write(ctx, src, result.Remove, newest, to, func(lg *ledger, files []*dataFile, counts []int) error {
		at := 0
		var key []byte
		for n, f := range files {
			rows := result.Write[at : at+counts[n]]
			at += counts[n]
			for i := range rows {
				if rows[i].To != fold.Open {
					continue
				}
				var err error
				if key, err = rows[i].Image.Rows.AppendKey(key[:0], rows[i].Image.Row); err != nil {
					return err
				}
				lg.index.Put(key, keyindex.Entry{Place: change.Place{File: f.number, Row: int64(i)}, Position: rows[i].Stamp.Position})
			}
			h.keep(f, rows, src.size()*counts[n]/max(1, len(result.Write)))
		}
		return h.noteClosed(lg, result.Write, closedStay)
	})
}

// keep puts a file's rows into the cache.
func (h *history) keep(f *dataFile, rows []fold.Version, size int) {
	if !h.lake.images.fits(int64(size + 96*len(rows))) {
		return
	}
	kept := &cachedFile{key: cacheKey{h.layer, f.number}, rows: change.NewRows(h.schema), versions: make([]fold.Version, len(rows))}
	for i, v := range rows {
		if v.To == fold.Open { // closed ones are seldom asked for, and never by place
			v.Image = copyImage(kept.rows, v.Image)
		} else {
			v.Image = change.Ref{}
		}
		kept.versions[i] = v
	}
	kept.size = int64(kept.rows.Size() + 96*len(rows))
	h.lake.images.put(kept)
}

// historyRows are rows of history as columns.
type historyRows struct {
	images
	rows []fold.Version
}

func (r *historyRows) len() int { return len(r.rows) }

func (r *historyRows) appendColumn(name string, b array.Builder, lo, hi int) bool {
	rows, n := r.rows[lo:hi], hi-lo
	switch name {
	case colValidFrom:
		appendInts[*array.TimestampBuilder](b, n, func(i int) arrow.Timestamp { return arrow.Timestamp(rows[i].From) })
	case colValidTo:
		appendInts[*array.TimestampBuilder](b, n, func(i int) arrow.Timestamp { return arrow.Timestamp(rows[i].To) })
	case colIsCurrent:
		appendBools(b, n, func(i int) bool { return rows[i].To == fold.Open })
	case colHistoryOp:
		appendOps(b, n, func(i int) change.Op { return rows[i].Op })
	default:
		return appendStamp(name, b, n, func(i int) *fold.Stamp { return &rows[i].Stamp }) || r.images.appendColumn(name, b, lo, hi)
	}
	return true
}

func (r *historyRows) repeats(path []string) bool {
	return path[0] == colHistoryOp || r.images.repeats(path)
}

var opTexts = func() (t [256][]byte) {
	for i := range t {
		t[i] = []byte{byte(i)}
	}
	return t
}()

func appendOps(b array.Builder, n int, get func(i int) change.Op) {
	sb := builder[*array.StringBuilder](b)
	for i := range n {
		sb.BinaryBuilder.Append(opTexts[get(i)])
	}
}
