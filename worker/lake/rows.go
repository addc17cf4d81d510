package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/columnar"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// sourceFields returns the field ids of the source's columns, in its order.
func (l *layer) sourceFields() []int {
	ids := make([]int, len(l.schema.Columns))
	for i, c := range l.schema.Columns {
		ids[i] = l.field(c.Name)
	}
	return ids
}

// own reads Lakeweir's own columns of records.
type own struct {
	layer *layer
	ids   map[string]int
}

func (l *layer) own(names ...string) own {
	o := own{l, map[string]int{}}
	for _, n := range names {
		o.ids[n] = l.field(n)
	}
	return o
}

func (o own) fields() []int {
	out := make([]int, 0, len(o.ids))
	for _, id := range o.ids {
		out = append(out, id)
	}
	return out
}

// ints returns a reader of a column of whole numbers, flags or instants; NULL and a
// column that the file lacks read as 0.
func (o own) ints(rec record, name string, t catalog.Type) (func(i int) int64, error) {
	arr := rec.columns[o.ids[name]]
	if arr == nil {
		return func(int) int64 { return 0 }, nil
	}
	get, err := columnar.FixedReader(arr, t)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", name, err)
	}
	return func(i int) int64 {
		if arr.IsNull(i) {
			return 0
		}
		return get(i)
	}, nil
}

// fillImages adds one row per index of sel to rows, with the source's columns as the
// record has them. Cells named in _unavailable_columns are marked so.
func (l *layer) fillImages(rows *change.Rows, rec record, fields []int, unavailable arrow.Array, sel []int) (first int, err error) {
	first = rows.AddMany(len(sel))
	for col, id := range fields {
		arr := rec.columns[id]
		if arr == nil {
			for k := range sel {
				rows.SetMark(first+k, col, change.Null)
			}
			continue
		}
		if err := columnar.Fill(rows, first, col, arr, sel); err != nil {
			return first, err
		}
	}
	if unavailable == nil || unavailable.NullN() == unavailable.Len() {
		return first, nil
	}
	named := l.namesIn(rec.fields, fields)
	var names []string
	for k, i := range sel {
		names = appendNames(names[:0], unavailable, i)
		for _, n := range names {
			if col, ok := named(n); ok {
				rows.SetMark(first+k, col, change.Unavailable)
			}
		}
	}
	return first, nil
}

// namesIn returns what finds a column of the schema by the name that it had when a file
// was written, which is what the file itself calls it. Other writers call it otherwise:
// their names are those of today or former ones. ids are the schema's columns' in file.
func (l *layer) namesIn(file []arrow.Field, ids []int) func(name string) (int, bool) {
	var then map[string]int // seldom asked for
	return func(name string) (int, bool) {
		if then == nil {
			columns := make(map[int]int, len(ids))
			for col, id := range ids {
				columns[id] = col
			}
			then = make(map[string]int, len(file))
			for _, f := range file {
				if col, ok := columns[fieldID(f)]; ok {
					then[f.Name] = col
				}
			}
		}
		if col, ok := then[name]; ok {
			return col, true
		}
		if col := l.schema.Index(name); col >= 0 {
			return col, true
		}
		col, ok := l.former[name]
		return col, ok
	}
}

// wanted is a row to be read by its place, and where the answer goes.
type wanted struct {
	row int64
	at  int
}

// imageBudget bounds the rows that are read for one fold.
type imageBudget struct {
	left   int64
	strict bool // more fails with pipeline.ErrTooMuch
}

func (b *imageBudget) take(size int64) error {
	if b == nil {
		return nil // bounded by its caller
	}
	b.left -= size
	if b.strict && b.left < 0 {
		return pipeline.ErrTooMuch
	}
	return nil
}

// imageBudget is that of a fold.
func (l *layer) imageBudget(touched fold.Touched) *imageBudget {
	return &imageBudget{left: l.lake.imageMost, strict: !touched.Large}
}

// readPlaces reads rows of one file, as far as the budget goes. It calls f with each record that holds some of
// them and the indexes of those in it; want[k] goes with sel[k]. Only the row groups
// that hold wanted rows are read.
func (l *layer) readPlaces(ctx context.Context, file *dataFile, fields []int, want []wanted, budget *imageBudget, f func(rec record, want []wanted, sel []int) error) error {
	slices.SortFunc(want, func(a, b wanted) int { return int(min(1, max(-1, a.row-b.row))) })
	p, err := openParquet(l.fs, file.path)
	if err != nil {
		return err
	}
	return errors.Join(l.readWanted(ctx, p, fields, want, budget, f), p.Close())
}

func (l *layer) readWanted(ctx context.Context, p *parquetFile, fields []int, want []wanted, budget *imageBudget, f func(record, []wanted, []int) error) error {
	first := int64(0)
	for g, n := range p.groups() {
		if len(want) == 0 {
			return nil
		}
		if want[0].row >= first+n {
			first += n
			continue
		}
		in := 0
		for in < len(want) && want[in].row < first+n {
			in++
		}
		size := p.groupSize(g)
		if err := budget.take(size / n * int64(in)); err != nil {
			return err
		}
		release, err := l.lake.borrow(ctx, readingSize(size))
		if err != nil {
			return err
		}
		err = p.read(ctx, g, first, fields, func(rec record) error {
			end := 0
			for end < len(want) && want[end].row < rec.first+int64(rec.rows) {
				end++
			}
			if end == 0 {
				return nil
			}
			sel := make([]int, end)
			for k := range sel {
				sel[k] = int(want[k].row - rec.first)
			}
			part := want[:end]
			want = want[end:]
			return f(rec, part, sel)
		})
		release()
		if err != nil {
			return err
		}
		first += n
	}
	if len(want) > 0 {
		return fmt.Errorf("the file has no row %d", want[0].row)
	}
	return nil
}

// eachLive reads the given columns of every live row of a layer, file by file in the
// order in which they were written; sel are the live rows of the record.
func (l *layer) eachLive(ctx context.Context, lg *ledger, fields []int, f func(file *dataFile, rec record, sel []int) error) error {
	for _, file := range lg.inOrder() {
		if err := l.eachLiveOf(ctx, file, fields, f); err != nil {
			return err
		}
	}
	return nil
}

// readAhead is how many files are read at once where their order does not matter:
// against a store far away, most of the time is waiting.
const readAhead = 8

// eachLiveTogether is eachLive without an order of files; f is called by one
// goroutine at a time.
func (l *layer) eachLiveTogether(ctx context.Context, lg *ledger, fields []int, f func(file *dataFile, rec record, sel []int) error) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAhead)
	for _, file := range lg.files {
		g.Go(func() error {
			return l.eachLiveOf(ctx, file, fields, func(file *dataFile, rec record, sel []int) error {
				mu.Lock()
				defer mu.Unlock()
				return f(file, rec, sel)
			})
		})
	}
	return g.Wait()
}

func (l *layer) eachLiveOf(ctx context.Context, file *dataFile, fields []int, f func(file *dataFile, rec record, sel []int) error) error {
	if file.deleted != nil && file.deleted.Cardinality() == file.rows {
		return nil
	}
	var sel []int
	err := l.eachRecord(ctx, file.path, fields, func(rec record) error {
		sel = sel[:0]
		for i := range rec.rows {
			if !file.isDeleted(rec.first + int64(i)) {
				sel = append(sel, i)
			}
		}
		if len(sel) == 0 {
			return nil
		}
		return f(file, rec, sel)
	})
	if err != nil {
		return l.lake.unavailable(err, "the rows of "+l.name+" cannot be read")
	}
	return nil
}

func (lg *ledger) inOrder() []*dataFile {
	out := make([]*dataFile, 0, len(lg.files))
	for _, f := range lg.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *dataFile) int {
		if a.seq != b.seq {
			return int(min(1, max(-1, a.seq-b.seq)))
		}
		return int(a.number - b.number)
	})
	return out
}

// keyReader encodes the keys of records.
type keyReader struct {
	schema *catalog.Schema
	fields []int
}

// keyReader returns a reader of this layer's keys: a schema of the key columns alone
// spares adding cells for the others.
func (l *layer) keyReader() keyReader {
	s := &catalog.Schema{Version: l.schema.Version}
	k := keyReader{schema: s}
	for n, i := range l.schema.Key {
		s.Columns = append(s.Columns, l.schema.Columns[i])
		s.Key = append(s.Key, n)
		k.fields = append(k.fields, l.field(l.schema.Columns[i].Name))
	}
	return k
}

// each calls f with the key of each row of sel; the key is only valid during the
// call.
func (k keyReader) each(rec record, sel []int, f func(i int, key []byte) error) error {
	rows := change.NewRows(k.schema)
	rows.AddMany(len(sel))
	for col, id := range k.fields {
		if rec.columns[id] == nil {
			return fmt.Errorf("the file lacks the key column %q", k.schema.Columns[col].Name)
		}
		if err := columnar.Fill(rows, 0, col, rec.columns[id], sel); err != nil {
			return err
		}
	}
	var key []byte
	for n, i := range sel {
		var err error
		if key, err = rows.AppendKey(key[:0], n); err != nil {
			return err
		}
		if err := f(i, key); err != nil {
			return err
		}
	}
	return nil
}

func stampPosition(generation, commit, ordinal int64) catalog.Position {
	return catalog.Position{Generation: uint32(generation), Commit: catalog.LSN(commit), Ordinal: uint64(ordinal)}
}

// stamps reads what both layers keep of the change that made a row.
func (o own) stamps(rec record, at string) (func(i int) fold.Stamp, error) {
	lsn, err1 := o.ints(rec, colLSN, typeLong)
	gen, err2 := o.ints(rec, colGeneration, typeInt)
	commit, err3 := o.ints(rec, colCommitLSN, typeLong)
	ord, err4 := o.ints(rec, colOrdinal, typeLong)
	ts, err5 := o.ints(rec, at, typeInstant)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	return func(i int) fold.Stamp {
		return fold.Stamp{Position: stampPosition(gen(i), commit(i), ord(i)), LSN: catalog.LSN(lsn(i)), CommitTime: ts(i)}
	}, nil
}
