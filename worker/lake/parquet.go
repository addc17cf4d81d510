package lake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
)

// parquetFile reads columns of one data file by their field ids.
type parquetFile struct {
	in     icebergio.File
	reader *file.Reader
	arrow  *pqarrow.FileReader
}

func openParquet(fs icebergio.IO, path string) (*parquetFile, error) {
	in, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := file.NewParquetReader(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("parquet file %s: %w", path, err), in.Close())
	}
	ar, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: recordRows}, memory.DefaultAllocator)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("parquet file %s: %w", path, err), r.Close())
	}
	return &parquetFile{in: in, reader: r, arrow: ar}, nil
}

func (p *parquetFile) Close() error { return p.reader.Close() }

// groups returns how many rows each row group has.
func (p *parquetFile) groups() []int64 {
	md := p.reader.MetaData()
	out := make([]int64, md.NumRowGroups())
	for i := range out {
		out[i] = md.RowGroup(i).NumRows()
	}
	return out
}

// groupSize is how many bytes the rows of a group take when they are not compressed.
func (p *parquetFile) groupSize(group int) int64 {
	return p.reader.MetaData().RowGroup(group).TotalByteSize()
}

// readingSize is about how many bytes it takes to read a row group: small ones are
// not counted, since a page is read at a time.
func readingSize(group int64) int {
	if group < aloneBytes {
		return 0
	}
	return int(2 * group)
}

// record is some rows of a file: the asked columns by field id. Columns that the
// file lacks are nil.
type record struct {
	first   int64 // the number of the first row in the file
	rows    int
	columns map[int]arrow.Array
	fields  []arrow.Field // of the columns, under the names that they have in the file
}

// read calls f with the rows of one row group in order. The arrays are only valid
// during the call.
func (p *parquetFile) read(ctx context.Context, group int, first int64, fields []int, f func(record) error) error {
	root := p.reader.MetaData().Schema.Root()
	wanted := map[int]bool{}
	for _, id := range fields {
		wanted[id] = true
	}
	var leaves []int
	leaf := 0
	for i := range root.NumFields() {
		node := root.Field(i)
		n := leavesOf(node)
		if wanted[int(node.FieldID())] {
			for j := range n {
				leaves = append(leaves, leaf+j)
			}
		}
		leaf += n
	}
	if len(leaves) == 0 { // the file is older than all of these columns
		n := p.groups()[group]
		return f(record{first: first, rows: int(n), columns: map[int]arrow.Array{}})
	}
	rr, err := p.arrow.GetRecordReader(ctx, leaves, []int{group})
	if err != nil {
		return err
	}
	defer rr.Release()
	for rr.Next() {
		batch := rr.RecordBatch()
		rec := record{first: first, rows: int(batch.NumRows()), columns: make(map[int]arrow.Array, batch.NumCols()), fields: batch.Schema().Fields()}
		for i, af := range batch.Schema().Fields() {
			rec.columns[fieldID(af)] = batch.Column(i)
		}
		if err := f(rec); err != nil {
			return err
		}
		first += batch.NumRows()
	}
	if err := rr.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// readAll is read over every row group.
func (p *parquetFile) readAll(ctx context.Context, fields []int, f func(record) error) error {
	first := int64(0)
	for g, n := range p.groups() {
		if err := p.read(ctx, g, first, fields, f); err != nil {
			return err
		}
		first += n
	}
	return nil
}

func leavesOf(n schema.Node) int {
	g, ok := n.(*schema.GroupNode)
	if !ok {
		return 1
	}
	sum := 0
	for i := range g.NumFields() {
		sum += leavesOf(g.Field(i))
	}
	return sum
}

func fieldID(f arrow.Field) int {
	if v, ok := f.Metadata.GetValue("PARQUET:field_id"); ok {
		if id, err := strconv.Atoi(v); err == nil {
			return id
		}
	}
	return -1
}

// readPositions takes what position delete files say into a ledger.
func (l *layer) readPositions(ctx context.Context, lg *ledger, files []iceberg.DataFile) error {
	pathID, posID := iceberg.PositionalDeleteSchema.Field(0).ID, iceberg.PositionalDeleteSchema.Field(1).ID
	for _, df := range files {
		err := l.eachRecord(ctx, df.FilePath(), []int{pathID, posID}, func(rec record) error {
			paths, ok1 := rec.columns[pathID].(*array.String)
			rows, ok2 := rec.columns[posID].(*array.Int64)
			if !ok1 || !ok2 {
				return fmt.Errorf("position deletes %s have no file_path and pos", df.FilePath())
			}
			for i := range rec.rows {
				f := lg.byPath[paths.Value(i)]
				if f == nil {
					continue
				}
				if f.deleted == nil {
					f.deleted = union(nil, nil)
				}
				f.deleted.Set(uint64(rows.Value(i)))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachRecord reads columns of a whole file.
func (l *layer) eachRecord(ctx context.Context, path string, fields []int, f func(record) error) error {
	p, err := openParquet(l.fs, path)
	if err != nil {
		return err
	}
	return errors.Join(p.readAll(ctx, fields, f), p.Close())
}

// appendNames adds the texts of a list cell to dst; nil when it is NULL.
func appendNames(dst []string, a arrow.Array, row int) []string {
	list, ok := a.(array.ListLike)
	if !ok || a.IsNull(row) {
		return dst
	}
	values := list.ListValues()
	start, end := list.ValueOffsets(row)
	for i := start; i < end; i++ {
		switch v := values.(type) {
		case *array.String:
			dst = append(dst, v.Value(int(i)))
		case *array.LargeString:
			dst = append(dst, v.Value(int(i)))
		}
	}
	return dst
}
