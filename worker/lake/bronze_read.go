package lake

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// Read yields the changes after one position up to and including another, in order.
// Files that lie outside are not opened. Files are read one by one, in the order in
// which they were appended; only those whose positions overlap, since changes came
// late or another writer has rewritten them, are read side by side.
func (b *bronze) Read(ctx context.Context, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	return b.read(ctx, maxRows, func(r *eventReader) { r.after, r.through = after, through })
}

// ReadKeys is Read of the changes that concern the keys. In each file the keys are
// looked at first, and the rest only where there are any.
func (b *bronze) ReadKeys(ctx context.Context, keys *fold.KeySet, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error] {
	return b.read(ctx, maxRows, func(r *eventReader) { r.after, r.through, r.keys = after, through, newEventKeys(r, keys) })
}

// ReadLate yields the late changes that were admitted after a number, in order.
func (b *bronze) ReadLate(ctx context.Context, after int64, maxRows int) iter.Seq2[*change.Batch, error] {
	return b.read(ctx, maxRows, func(r *eventReader) {
		r.through, r.late = catalog.Position{Generation: math.MaxUint32}, &after
	})
}

func (b *bronze) read(ctx context.Context, maxRows int, ask func(r *eventReader)) iter.Seq2[*change.Batch, error] {
	return func(yield func(*change.Batch, error) bool) {
		lg, err := b.ready(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		r := &eventReader{layer: b.layer, max: max(1, maxRows), yield: yield}
		if st, err := b.checked(); err == nil {
			r.epoch = st.Cursor.Epoch
		}
		ask(r)
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
	keys           *eventKeys // nil: every key
	late           *int64     // only changes with a higher number; nil: all
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
	r.own = r.layer.own(colOp, colBefore, colAfter, colOtherKey, colLSN, colTxID, colCommitLSN, colOrdinal, colGeneration, colSourceTS, colUnavailable, colUnfit, colBeforeComplete, colLate)
	for _, group := range r.plan(lg) {
		var err error
		if len(group) == 1 && isOurs(group[0].file) {
			err = r.stream(ctx, group[0].file)
		} else {
			err = r.merge(ctx, group)
		}
		if err != nil {
			return err
		}
	}
	return r.flush()
}

// isOurs reports whether Lakeweir wrote a file: then its changes are in order.
func isOurs(f *dataFile) bool { return strings.HasPrefix(path.Base(f.path), filePrefix) }

// mayHold reports whether a file may have changes that are asked for.
func (r *eventReader) mayHold(f *dataFile) bool {
	if r.late != nil {
		hi, ok := readInt(f.upper[r.layer.field(colLate)])
		return ok && hi > *r.late || !ok && !isOurs(f)
	}
	return r.keys == nil || r.keys.mayHold(f)
}

// plan returns the files to read, in order, those that overlap together.
func (r *eventReader) plan(lg *ledger) [][]span {
	gen, commit := r.layer.field(colGeneration), r.layer.field(colCommitLSN)
	var spans []span
	for _, f := range lg.inOrder() {
		// A file without positions is another writer's: it has no change of ours.
		if nulls, known := f.nulls[commit]; known && nulls == f.rows || !r.mayHold(f) {
			continue
		}
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
		return [][]span{spans}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.lo.Compare(b.lo) })
	var out [][]span
	var end catalog.Position
	for _, s := range spans {
		// A transaction may be split over files that follow each other: they touch in
		// its commit, and do not overlap.
		touches := s.lo.Generation == end.Generation && s.lo.Commit == end.Commit
		late := r.anyLate([]span{s})
		if len(out) == 0 || s.lo.Compare(end) > 0 || touches && !late && !r.anyLate(out[len(out)-1]) && s.file.seq > lastSpan(out).file.seq {
			out = append(out, []span{s})
		} else {
			out[len(out)-1] = append(out[len(out)-1], s)
		}
		if s.hi.Compare(end) > 0 {
			end = s.hi
		}
	}
	return out
}

// anyLate reports whether one of the files has changes that came late.
func (r *eventReader) anyLate(group []span) bool {
	id := r.layer.field(colLate)
	return slices.ContainsFunc(group, func(s span) bool { return s.file.upper[id] != nil })
}

func lastSpan(groups [][]span) span {
	g := groups[len(groups)-1]
	return g[len(g)-1]
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
	if r.keys != nil {
		return r.eachOfKeys(ctx, file, f)
	}
	var wanted []int
	return r.layer.eachLiveOf(ctx, file, r.own.fields(), func(_ *dataFile, rec record, sel []int) error {
		d, err := r.decoder(rec)
		if err != nil {
			return err
		}
		wanted = wanted[:0]
		for _, i := range sel {
			if r.wants(d.position(i), d.late(i)) {
				wanted = append(wanted, i)
			}
		}
		return f(d, wanted)
	})
}

func (r *eventReader) wants(p catalog.Position, late int64) bool {
	return p.Compare(r.after) > 0 && p.Compare(r.through) <= 0 && (r.late == nil || late > *r.late)
}
