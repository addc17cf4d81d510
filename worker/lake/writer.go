package lake

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// rowSource is rows that a layer is about to write.
type rowSource interface {
	len() int
	size() int // about how many bytes they take in memory
	// appendColumn adds the rows from lo up to hi to the builder of the named
	// top-level column, or reports that it has no such column.
	appendColumn(name string, b array.Builder, lo, hi int) bool
	// repeats reports whether the values of a leaf column, given by its path from
	// the top, are few enough for a dictionary.
	repeats(path []string) bool
	// longest returns the length of the longest value of a leaf column, by its path;
	// 0 where values have one length.
	longest(path []string) int
	// rowSize returns about how many bytes one row takes in memory.
	rowSize(i int) int
	// large returns the value of a row in a column of text or bytes, by its path, when
	// it is change.Large, else nil.
	large(path []string, i int) []byte
	// leaveLarge has appendColumn add NULL in place of what large returns.
	leaveLarge(leave bool)
}

const (
	fileBytes   = 256 << 20 // of a file's rows in memory; about a quarter of it on disk
	recordBytes = 8 << 20
	recordRows  = 8192
	// Rows are read back by place, a row group at a time.
	rowGroupRows  = 32768
	rowGroupBytes = 32 << 20
	// A row that is larger than this is a row group of its own, written column by
	// column, so that no more of it is in memory at a time than must be.
	aloneBytes = 4 << 20
	// boundedBytes is how long the values of a column may be for it to have bounds:
	// Parquet's writer copies each that is lowest or highest.
	boundedBytes = 64 << 10
)

// filePrefix begins the name of every data file that Lakeweir wrote: its rows are
// in the order in which the layer wrote them.
const filePrefix = "lw-"

// createdBy has the form that other readers parse; they trust a file's statistics by
// it.
const createdBy = "lakeweir version 1 (build arrow-go)"

// written is what a commit's files amount to.
type written struct {
	files []iceberg.DataFile
	rows  []int // of each file
	bytes int64
}

func (w *written) paths() []string {
	out := make([]string, len(w.files))
	for i, f := range w.files {
		out[i] = f.FilePath()
	}
	return out
}

// writeRows writes rows into data files, usually one. On an error nothing is left.
func (l *layer) writeRows(ctx context.Context, src rowSource, partition map[int]any) (w written, err error) {
	n := src.len()
	if n == 0 {
		return w, nil
	}
	defer func() {
		if err != nil {
			l.remove(w.paths())
			w = written{}
			err = l.lake.unavailable(err, "the lake's table "+l.name+" cannot be written")
		}
	}()
	plan := planRecords(src)
	release, err := l.lake.borrow(ctx, plan.memory)
	if err != nil {
		return w, err
	}
	defer release()
	props := l.writerProperties(src, plan.perGroup)
	for lo := 0; lo < len(plan.records); {
		if err := ctx.Err(); err != nil {
			return w, err
		}
		hi, size := lo, 0
		for hi < len(plan.records) && (hi == lo || size+plan.records[hi].size <= fileBytes) {
			size += plan.records[hi].size
			hi++
		}
		df, err := l.writeFile(src, props, plan.records[lo:hi], partition)
		if err != nil {
			return w, err
		}
		w.files, w.rows, w.bytes = append(w.files, df), append(w.rows, plan.records[hi-1].hi-plan.records[lo].lo), w.bytes+df.FileSizeBytes()
		lo = hi
	}
	return w, nil
}

func (l *layer) writeFile(src rowSource, props *parquet.WriterProperties, records []recordPlan, partition map[int]any) (iceberg.DataFile, error) {
	var buf bytes.Buffer
	pw, err := pqarrow.NewFileWriter(l.arrow, &buf, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, l.arrow)
	defer b.Release()
	fresh := true // a row group begins
	for _, r := range records {
		src.leaveLarge(r.alone)
		if r.alone && r.lo > records[0].lo { // the first one's turn has just come
			tidy(int64(r.size))
		}
		for i, f := range l.arrow.Fields() {
			if !src.appendColumn(f.Name, b.Field(i), r.lo, r.hi) {
				b.Field(i).AppendNulls(r.hi - r.lo) // a column that the lake has and the source not
			}
		}
		rec := b.NewRecordBatch()
		switch {
		case r.alone:
			rec = withLarge(rec, src, r.lo)
			err = pw.Write(rec)
			fresh = false
		case r.opens && !fresh:
			if err = pw.NewBufferedRowGroupChecked(); err == nil {
				err = pw.WriteBuffered(rec)
			}
		default:
			err = pw.WriteBuffered(rec)
			fresh = false
		}
		rec.Release()
		if err != nil {
			return nil, fmt.Errorf("parquet: %w", err)
		}
	}
	if err := pw.Close(); err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	md, err := pw.FileMetadata()
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	provider, err := l.tbl.LocationProvider()
	if err != nil {
		return nil, fmt.Errorf("locations of %s: %w", l.name, err)
	}
	path := provider.NewDataLocation(filePrefix + uuid.NewString() + ".parquet")
	if err := l.put(path, buf.Bytes()); err != nil {
		return nil, err
	}
	return l.describe(path, int64(buf.Len()), md, partition)
}

// day is the partition of rows that were written at a time.
func (l *layer) day(at time.Time) map[int]any {
	spec := l.tbl.Spec()
	out := map[int]any{}
	for _, f := range spec.Fields() {
		out[f.FieldID] = iceberg.Date(at.UTC().Unix() / (24 * 60 * 60))
	}
	return out
}

// writerProperties chooses how columns are encoded: integers as differences, texts
// by dictionary only where they repeat, all compressed by zstd at its fastest.
func (l *layer) writerProperties(src rowSource, perGroup int) *parquet.WriterProperties {
	opts := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1),
		parquet.WithDictionaryDefault(false), parquet.WithStats(true), parquet.WithMaxStatsSize(1024),
		parquet.WithDataPageSize(1 << 20), parquet.WithMaxRowGroupLength(int64(perGroup)), parquet.WithBatchSize(recordRows),
		parquet.WithStoreDecimalAsInteger(true), parquet.WithCreatedBy(createdBy),
	}
	chosen := encodings{}
	for _, f := range l.arrow.Fields() {
		chosen.choose(src, f.Type, []string{f.Name})
	}
	for path, how := range chosen {
		switch how {
		case long:
			opts = append(opts, parquet.WithStatsFor(path, false))
		case differences64:
			opts = append(opts, parquet.WithEncodingFor(path, parquet.Encodings.DeltaBinaryPacked))
		case dictionary:
			opts = append(opts, parquet.WithDictionaryFor(path, true))
		case plain:
		}
	}
	return parquet.NewWriterProperties(opts...)
}

type encoding int

const (
	plain encoding = iota
	differences64
	dictionary
	long // plain, without bounds
)

// encodings are by dotted path, since Parquet's writer knows columns by it. Names
// with dots can make two columns of one path: both stay plain then.
type encodings map[string]encoding

func (e encodings) choose(src rowSource, t arrow.DataType, path []string) {
	how := plain
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			e.choose(src, f.Type, append(slices.Clip(path), f.Name))
		}
		return
	case *arrow.ListType:
		e.choose(src, t.Elem(), append(slices.Clip(path), "list", "element"))
		return
	case *arrow.Int32Type, *arrow.Int64Type, *arrow.Date32Type, *arrow.Time64Type, *arrow.TimestampType:
		how = differences64
	case *arrow.Decimal128Type:
		if t.Precision <= 18 {
			how = differences64
		}
	case *arrow.StringType:
		switch {
		case src.longest(path) > boundedBytes:
			how = long
		case src.repeats(path):
			how = dictionary
		}
	case *arrow.BinaryType:
		if src.longest(path) > boundedBytes {
			how = long
		}
	}
	key := strings.Join(path, ".")
	if was, taken := e[key]; taken && was != long && how != long {
		how = plain
	} else if taken {
		how = long
	}
	e[key] = how
}
