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
}

const (
	fileBytes   = 512 << 20 // of a file's rows in memory; about a quarter of it on disk
	recordBytes = 32 << 20
	recordRows  = 8192
	// Rows are read back by place, a row group at a time.
	rowGroupRows = 32768
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
	each := max(1, src.size()/n)
	perFile, perRecord := max(1, fileBytes/each), min(recordRows, max(1, recordBytes/each))
	props := l.writerProperties(src)
	for lo := 0; lo < n; lo += perFile {
		if err := ctx.Err(); err != nil {
			return w, err
		}
		hi := min(n, lo+perFile)
		df, err := l.writeFile(src, props, lo, hi, perRecord, partition)
		if err != nil {
			return w, err
		}
		w.files, w.rows, w.bytes = append(w.files, df), append(w.rows, hi-lo), w.bytes+df.FileSizeBytes()
	}
	return w, nil
}

func (l *layer) writeFile(src rowSource, props *parquet.WriterProperties, lo, hi, perRecord int, partition map[int]any) (iceberg.DataFile, error) {
	var buf bytes.Buffer
	pw, err := pqarrow.NewFileWriter(l.arrow, &buf, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, l.arrow)
	defer b.Release()
	for at := lo; at < hi; at += perRecord {
		end := min(hi, at+perRecord)
		for i, f := range l.arrow.Fields() {
			if !src.appendColumn(f.Name, b.Field(i), at, end) {
				b.Field(i).AppendNulls(end - at) // a column that the lake has and the source not
			}
		}
		rec := b.NewRecordBatch()
		err := pw.WriteBuffered(rec)
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
func (l *layer) writerProperties(src rowSource) *parquet.WriterProperties {
	opts := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1),
		parquet.WithDictionaryDefault(false), parquet.WithStats(true), parquet.WithMaxStatsSize(1024),
		parquet.WithDataPageSize(1 << 20), parquet.WithMaxRowGroupLength(rowGroupRows), parquet.WithBatchSize(recordRows),
		parquet.WithStoreDecimalAsInteger(true), parquet.WithCreatedBy(createdBy),
	}
	chosen := encodings{}
	for _, f := range l.arrow.Fields() {
		chosen.choose(src, f.Type, []string{f.Name})
	}
	for path, how := range chosen {
		switch how {
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
		if src.repeats(path) {
			how = dictionary
		}
	}
	key := strings.Join(path, ".")
	if _, taken := e[key]; taken {
		how = plain
	}
	e[key] = how
}
