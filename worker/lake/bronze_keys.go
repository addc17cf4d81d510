package lake

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// eventKeys chooses changes by their keys.
type eventKeys struct {
	set    *fold.KeySet
	filter keyFilter
	schema *catalog.Schema // of the key columns alone
	own    own
	fields [2][]int // of the key columns in pk and in _other_pk
}

func newEventKeys(r *eventReader, set *fold.KeySet) *eventKeys {
	k := &eventKeys{set: set, filter: newKeyFilter(r.layer.schema, set), schema: r.layer.keyReader().schema}
	k.own = r.layer.own(colOp, colKey, colOtherKey, colCommitLSN, colOrdinal, colGeneration)
	for n, name := range []string{colKey, colOtherKey} {
		f, _ := topField(r.layer.tbl.Schema(), name)
		st, _ := f.Type.(*iceberg.StructType)
		for _, c := range k.schema.Columns {
			id := 0
			for _, inner := range st.FieldList {
				if inner.Name == c.Name {
					id = inner.ID
				}
			}
			k.fields[n] = append(k.fields[n], id)
		}
	}
	return k
}

// mayHold reports whether a file may have changes that concern the keys. One without a
// key is a truncate, which concerns all.
func (k *eventKeys) mayHold(f *dataFile) bool {
	nulls, known := f.nulls[k.fields[0][0]]
	return !known || nulls > 0 || k.filter.mayHold(f, k.fields[0]) || k.filter.mayHold(f, k.fields[1]) && k.moves(f)
}

// moves reports whether a file may have key moves.
func (k *eventKeys) moves(f *dataFile) bool { return f.upper[k.fields[1][0]] != nil || !isOurs(f) }

// eachOfKeys is each where keys are asked for: first the keys alone, then the rows of
// those that are wanted.
func (r *eventReader) eachOfKeys(ctx context.Context, file *dataFile, f func(d *decoder, sel []int) error) error {
	k := r.keys
	var want []wanted
	err := r.layer.eachLiveOf(ctx, file, k.own.fields(), func(_ *dataFile, rec record, sel []int) error {
		op, ok := rec.columns[k.own.ids[colOp]].(*array.String)
		if !ok {
			return fmt.Errorf("column %s is not text", colOp)
		}
		gen, err1 := k.own.ints(rec, colGeneration, typeInt)
		commit, err2 := k.own.ints(rec, colCommitLSN, typeLong)
		ordinal, err3 := k.own.ints(rec, colOrdinal, typeLong)
		if err := cmp.Or(err1, err2, err3); err != nil {
			return err
		}
		within := make([]int, 0, len(sel))
		for _, i := range sel {
			if r.wants(stampPosition(gen(i), commit(i), ordinal(i)), 0) {
				within = append(within, i)
			}
		}
		keys := change.NewRows(k.schema)
		own, err := r.structOf(rec, colKey, k.schema).rows(keys, within, change.Absent)
		if err != nil {
			return err
		}
		other, err := r.structOf(rec, colOtherKey, k.schema).rows(keys, within, change.Absent)
		if err != nil {
			return err
		}
		var c change.Change
		var key, otherKey []byte
		for n, i := range within {
			c.Op, c.Key, c.OtherKey = 0, nil, nil
			if s := op.Value(i); len(s) == 1 {
				c.Op = change.Op(s[0])
			}
			if c.Op != change.Truncate {
				if own[n] >= 0 {
					if key, err = keys.AppendKey(key[:0], own[n]); err != nil {
						return err
					}
					c.Key = key
				}
				if other[n] >= 0 {
					if otherKey, err = keys.AppendKey(otherKey[:0], other[n]); err != nil {
						return err
					}
					c.OtherKey = otherKey
				}
			}
			if k.set.Concerns(&c) {
				want = append(want, wanted{row: rec.first + int64(i)})
			}
		}
		return nil
	})
	if err != nil || len(want) == 0 {
		return err
	}
	return r.layer.readPlaces(ctx, file, r.own.fields(), want, nil, func(rec record, _ []wanted, sel []int) error {
		d, err := r.decoder(rec)
		if err != nil {
			return err
		}
		return f(d, sel)
	})
}

// Holds reports, for each position, whether a change stands there. Files whose
// positions lie elsewhere are not opened.
func (b *bronze) Holds(ctx context.Context, positions []catalog.Position) ([]bool, error) {
	held := make([]bool, len(positions))
	if len(positions) == 0 {
		return held, nil
	}
	lg, err := b.ready(ctx)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(positions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return positions[i].Compare(positions[j]) })
	find := func(p catalog.Position) (int, bool) {
		return slices.BinarySearchFunc(order, p, func(i int, p catalog.Position) int { return positions[i].Compare(p) })
	}
	r := &eventReader{layer: b.layer, through: catalog.Position{Generation: math.MaxUint32}}
	for _, group := range r.plan(lg) {
		for _, s := range group {
			if i, _ := find(s.lo); s.known && (i == len(order) || positions[order[i]].Compare(s.hi) > 0) {
				continue
			}
			err := b.eachPosition(ctx, s.file, func(p catalog.Position) {
				for i, ok := find(p); ok && i < len(order) && positions[order[i]] == p; i++ {
					held[order[i]] = true
				}
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return held, nil
}

func (b *bronze) eachPosition(ctx context.Context, file *dataFile, f func(p catalog.Position)) error {
	o := b.own(colGeneration, colCommitLSN, colOrdinal)
	return b.eachLiveOf(ctx, file, o.fields(), func(_ *dataFile, rec record, sel []int) error {
		gen, err1 := o.ints(rec, colGeneration, typeInt)
		commit, err2 := o.ints(rec, colCommitLSN, typeLong)
		ordinal, err3 := o.ints(rec, colOrdinal, typeLong)
		if err := cmp.Or(err1, err2, err3); err != nil {
			return err
		}
		for _, i := range sel {
			f(stampPosition(gen(i), commit(i), ordinal(i)))
		}
		return nil
	})
}

// appended returns how many changes were ever appended, if that is known.
func (b *bronze) appended() (int64, bool) {
	s := b.tbl.CurrentSnapshot()
	for s != nil && (s.Summary == nil || s.Summary.Properties[propCursor] == "") {
		if s.ParentSnapshotID == nil {
			return 0, false
		}
		s = b.tbl.Metadata().SnapshotByID(*s.ParentSnapshotID)
	}
	if s == nil {
		return 0, b.tbl.CurrentSnapshot() == nil
	}
	n, err := strconv.ParseInt(s.Summary.Properties[propEvents], 10, 64)
	return n, err == nil
}

// First returns the position of the first change that did not come late, or zero when
// bronze holds every change that was ever appended.
func (b *bronze) First(ctx context.Context) (catalog.Position, error) {
	var first catalog.Position
	head := b.tbl.CurrentSnapshot()
	if head == nil {
		return first, nil
	}
	if events, ok := b.appended(); ok && head.Summary != nil && liveRows(head.Summary.Properties) == events {
		return first, nil
	}
	lg, err := b.ready(ctx)
	if err != nil {
		return first, err
	}
	late := b.field(colLate)
	r := &eventReader{layer: b.layer, through: catalog.Position{Generation: math.MaxUint32}}
	for _, group := range r.plan(lg) {
		for _, s := range group {
			if s.file.upper[late] != nil || !first.IsZero() && s.known && s.lo.Compare(first) > 0 {
				continue
			}
			err := b.eachPosition(ctx, s.file, func(p catalog.Position) {
				if first.IsZero() || p.Compare(first) < 0 {
					first = p
				}
			})
			if err != nil {
				return first, err
			}
		}
	}
	if first.IsZero() { // all of it is gone
		st, err := b.checked()
		first = st.Cursor.Position
		first.Ordinal++
		return first, err
	}
	return first, nil
}
