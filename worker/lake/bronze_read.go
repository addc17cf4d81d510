package lake

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Read yields the changes after one position up to and including another, in order.
// Files that lie outside are not opened. Files are read one by one, in the order in
// which they were appended; only where another writer has rewritten them, so that
// their positions overlap or are out of order, are they read together and sorted.
func (b *bronze) Read(ctx context.Context, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	return func(yield func(*change.Batch, error) bool) {
		lg, err := b.ready(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		r := &eventReader{layer: b.layer, after: after, through: through, max: max(1, maxRows), yield: yield}
		if st, err := b.checked(); err == nil {
			r.epoch = st.Cursor.Epoch
		}
		if err := r.run(ctx, lg); err != nil && !errors.Is(err, errEnough) {
			yield(nil, b.lake.unavailable(err, "the changes in "+b.name+" cannot be read"))
		}
	}
}

// errEnough ends a read early: the caller wants no more.
var errEnough = errors.New("enough")

type eventReader struct {
	layer          *layer
	after, through catalog.Position
	max            int
	yield          func(*change.Batch, error) bool
	epoch          catalog.Epoch

	own   own
	batch *change.Batch
}

// span is a file with the positions that its changes lie between, generation and
// commit only.
type span struct {
	file   *dataFile
	lo, hi catalog.Position
	known  bool
}

func (r *eventReader) run(ctx context.Context, lg *ledger) error {
	r.own = r.layer.own(colOp, colBefore, colAfter, colOtherKey, colLSN, colTxID, colCommitLSN, colOrdinal, colGeneration, colSourceTS, colUnavailable, colUnfit, colBeforeComplete)
	for _, group := range r.plan(lg) {
		var err error
		if len(group) == 1 && strings.HasPrefix(path.Base(group[0].path), filePrefix) {
			err = r.stream(ctx, group[0])
		} else {
			err = r.sorted(ctx, group)
		}
		if err != nil {
			return err
		}
	}
	return r.flush()
}

// plan returns the files to read, in order, those that overlap together.
func (r *eventReader) plan(lg *ledger) [][]*dataFile {
	gen, commit := r.layer.field(colGeneration), r.layer.field(colCommitLSN)
	var spans []span
	for _, f := range lg.inOrder() {
		s := span{file: f}
		loGen, ok1 := readInt(f.lower[gen])
		hiGen, ok2 := readInt(f.upper[gen])
		lo, ok3 := readInt(f.lower[commit])
		hi, ok4 := readInt(f.upper[commit])
		if s.known = ok1 && ok2 && ok3 && ok4; s.known {
			// Over several generations the commit's bounds say nothing about either.
			if loGen != hiGen {
				lo, hi = 0, -1 // -1 is the greatest LSN
			}
			s.lo, s.hi = stampPosition(loGen, lo, 0), stampPosition(hiGen, hi, 0)
			s.hi.Ordinal = ^uint64(0)
			if s.hi.Compare(r.after) <= 0 || s.lo.Compare(r.through) > 0 {
				continue
			}
		}
		spans = append(spans, s)
	}
	if slices.ContainsFunc(spans, func(s span) bool { return !s.known }) {
		all := make([]*dataFile, len(spans))
		for i, s := range spans {
			all[i] = s.file
		}
		return [][]*dataFile{all}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.lo.Compare(b.lo) })
	var out [][]*dataFile
	var end catalog.Position
	for _, s := range spans {
		// A transaction may be split over files that follow each other: they touch in
		// its commit, and do not overlap.
		touches := s.lo.Generation == end.Generation && s.lo.Commit == end.Commit
		if len(out) == 0 || s.lo.Compare(end) > 0 || touches && s.file.seq > out[len(out)-1][len(out[len(out)-1])-1].seq {
			out = append(out, []*dataFile{s.file})
		} else {
			out[len(out)-1] = append(out[len(out)-1], s.file)
		}
		if s.hi.Compare(end) > 0 {
			end = s.hi
		}
	}
	return out
}

// readInt reads an int or long bound.
func readInt(b []byte) (int64, bool) {
	switch len(b) {
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
	return 0, false
}

// stream yields the changes of a file that is in order.
func (r *eventReader) stream(ctx context.Context, file *dataFile) error {
	var last catalog.Position
	return r.each(ctx, file, func(d *decoder, sel []int) error {
		for len(sel) > 0 {
			room, err := r.room(d.position(sel[0]))
			if err != nil {
				return err
			}
			n := min(room, len(sel))
			at := len(r.batch.Changes)
			if err := d.append(r.batch, sel[:n]); err != nil {
				return err
			}
			for _, c := range r.batch.Changes[at:] {
				if c.Position.Compare(last) < 0 {
					return fmt.Errorf("%s is out of order at %s", file.path, c.Position)
				}
				last = c.Position
			}
			sel = sel[n:]
		}
		return nil
	})
}

// sorted yields the changes of files that overlap.
func (r *eventReader) sorted(ctx context.Context, files []*dataFile) error {
	all := r.empty()
	for _, f := range files {
		if err := r.each(ctx, f, func(d *decoder, sel []int) error { return d.append(all, sel) }); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all.Changes, func(a, b change.Change) int { return a.Position.Compare(b.Position) })
	for _, c := range all.Changes {
		if _, err := r.room(c.Position); err != nil {
			return err
		}
		for _, row := range []*int{&c.Before, &c.After, &c.Other} {
			if *row >= 0 {
				*row = r.batch.Rows.CopyRow(all.Rows, *row)
			}
		}
		r.batch.Changes = append(r.batch.Changes, c)
	}
	return nil
}

func (r *eventReader) empty() *change.Batch {
	return &change.Batch{Table: r.layer.source, Rows: change.NewRows(r.layer.schema), Epoch: r.epoch}
}

// room makes room for a change at the position and says for how many: a full batch
// is handed over, but never between the halves of a key move. It waits for the next
// change, since only that tells whether the transaction went on.
func (r *eventReader) room(next catalog.Position) (int, error) {
	if r.batch == nil {
		r.batch = r.empty()
	}
	n := len(r.batch.Changes)
	switch {
	case n < r.max:
		return r.max - n, nil
	case r.batch.Changes[n-1].MovedAway():
		return 1, nil
	}
	p := r.batch.Changes[n-1].Position
	r.batch.Whole = p.Generation != next.Generation || p.Commit != next.Commit
	if err := r.flush(); err != nil {
		return 0, err
	}
	r.batch = r.empty()
	return r.max, nil
}

func (r *eventReader) flush() error {
	if r.batch == nil || len(r.batch.Changes) == 0 {
		return nil
	}
	b := r.batch
	r.batch = nil
	if !r.yield(b, nil) {
		return errEnough
	}
	return nil
}

// each calls f with the indexes of the wanted changes of each record of a file.
func (r *eventReader) each(ctx context.Context, file *dataFile, f func(d *decoder, sel []int) error) error {
	var wanted []int
	return r.layer.eachLiveOf(ctx, file, r.own.fields(), func(_ *dataFile, rec record, sel []int) error {
		d, err := r.decoder(rec)
		if err != nil {
			return err
		}
		wanted = wanted[:0]
		for _, i := range sel {
			if p := d.position(i); p.Compare(r.after) > 0 && p.Compare(r.through) <= 0 {
				wanted = append(wanted, i)
			}
		}
		return f(d, wanted)
	})
}
