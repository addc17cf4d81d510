package lake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// removal is the rows that a commit takes away, and the files that say so.
type removal struct {
	files      []iceberg.DataFile
	superseded map[string]bool
	// merged are the rows that are deleted of each touched file afterwards.
	merged map[*dataFile]*dv.RoaringPositionBitmap
	bytes  int64
}

func (r *removal) paths() []string {
	var out []string
	for _, f := range r.files {
		if !slices.Contains(out, f.FilePath()) {
			out = append(out, f.FilePath())
		}
	}
	return out
}

// errNotLive is wrapped by an attempt to remove a row that is not there.
var errNotLive = errors.New("the row to remove is not live")

// writeRemovals writes the delete files for rows at places: one deletion vector per
// data file in format v3, which takes in what an earlier one deleted, or one file of
// positions in v2. A place that the ledger does not know was found before another
// writer's commit: pipeline.ErrStale.
func (l *layer) writeRemovals(ctx context.Context, lg *ledger, places []change.Place) (removal, error) {
	r := removal{superseded: map[string]bool{}, merged: map[*dataFile]*dv.RoaringPositionBitmap{}}
	if len(places) == 0 {
		return r, nil
	}
	places = slices.Clone(places)
	slices.SortFunc(places, func(a, b change.Place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row)) })
	byFile := map[*dataFile][]int64{}
	var files []*dataFile
	for i, p := range places {
		f := lg.files[p.File]
		if f == nil {
			return r, pipeline.ErrStale
		}
		// Each row exactly once: a row that is gone already means that the fold and
		// the table disagree on what there is, and a second vector beside a live one
		// would make the table unreadable.
		if p.Row < 0 || p.Row >= f.rows || f.isDeleted(p.Row) || i > 0 && places[i-1] == p {
			return r, fmt.Errorf("remove row %d of %s: %w", p.Row, f.path, errNotLive)
		}
		if byFile[f] == nil {
			files = append(files, f)
			r.merged[f] = union(f.deleted, nil)
		}
		byFile[f] = append(byFile[f], p.Row)
		r.merged[f].Set(uint64(p.Row))
	}
	var err error
	if l.tbl.Metadata().Version() >= 3 {
		err = l.writeVectors(ctx, &r, files)
	} else {
		err = l.writePositions(&r, files, byFile)
	}
	if err != nil {
		return r, l.lake.unavailable(err, "the lake's table "+l.name+" cannot be written")
	}
	return r, nil
}

func (l *layer) writeVectors(ctx context.Context, r *removal, files []*dataFile) error {
	w := dv.NewDVWriter(l.fs, func(id int32) *iceberg.PartitionSpec { return l.tbl.Metadata().PartitionSpecByID(int(id)) })
	for _, f := range files {
		w.Load(f.path, r.merged[f], f.spec, f.part)
		if f.vector {
			r.superseded[f.path] = true
		}
	}
	provider, err := l.tbl.LocationProvider()
	if err != nil {
		return err
	}
	r.files, err = w.Flush(ctx, provider.NewDataLocation(filePrefix+uuid.NewString()+"-deletes.puffin"))
	if err != nil {
		return err
	}
	for _, f := range r.files {
		r.bytes += fileShare(f)
	}
	return nil
}

// writePositions writes one file with the positions of every touched data file, for
// each partition spec and partition that they are of.
func (l *layer) writePositions(r *removal, files []*dataFile, rows map[*dataFile][]int64) error {
	groups := map[string][]*dataFile{}
	var order []string
	for _, f := range files {
		k := fmt.Sprint(f.spec, f.part)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], f)
	}
	for _, k := range order {
		df, err := l.writePositionFile(groups[k], rows)
		if err != nil {
			return err
		}
		r.files = append(r.files, df)
		r.bytes += df.FileSizeBytes()
	}
	return nil
}

func (l *layer) writePositionFile(files []*dataFile, rows map[*dataFile][]int64) (iceberg.DataFile, error) {
	schema, err := table.SchemaToArrowSchema(iceberg.PositionalDeleteSchema, nil, true, false)
	if err != nil {
		return nil, err
	}
	// The format wants them in order of path, then position.
	slices.SortFunc(files, func(a, b *dataFile) int { return cmp.Compare(a.path, b.path) })
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	paths, positions := builder[*array.StringBuilder](b.Field(0)), builder[*array.Int64Builder](b.Field(1))
	for _, f := range files {
		for _, row := range rows[f] {
			paths.Append(f.path)
			positions.Append(row)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1),
		parquet.WithDictionaryDefault(false), parquet.WithDictionaryFor("file_path", true),
		parquet.WithEncodingFor("pos", parquet.Encodings.DeltaBinaryPacked), parquet.WithCreatedBy(createdBy))
	pw, err := pqarrow.NewFileWriter(schema, &buf, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(pw.WriteBuffered(rec), pw.Close()); err != nil {
		return nil, err
	}
	provider, err := l.tbl.LocationProvider()
	if err != nil {
		return nil, err
	}
	path := provider.NewDataLocation(filePrefix + uuid.NewString() + "-deletes.parquet")
	if err := l.put(path, buf.Bytes()); err != nil {
		return nil, err
	}
	spec := l.tbl.Metadata().PartitionSpecByID(int(files[0].spec))
	if spec == nil {
		return nil, fmt.Errorf("partition spec %d is unknown", files[0].spec)
	}
	n := rec.NumRows()
	db, err := iceberg.NewDataFileBuilder(*spec, iceberg.EntryContentPosDeletes, path, iceberg.ParquetFile, files[0].part, nil, nil, n, int64(buf.Len()))
	if err != nil {
		return nil, err
	}
	pathID, posID := iceberg.PositionalDeleteSchema.Field(0).ID, iceberg.PositionalDeleteSchema.Field(1).ID
	db.ValueCounts(map[int]int64{pathID: n, posID: n}).NullValueCounts(map[int]int64{pathID: 0, posID: 0})
	// Whole paths, so that readers find the data files that the positions are of.
	db.LowerBoundValues(map[int][]byte{pathID: []byte(files[0].path)})
	db.UpperBoundValues(map[int][]byte{pathID: []byte(files[len(files)-1].path)})
	return db.Build(), nil
}

// apply makes a ledger what it is once a removal has landed.
func (r *removal) apply(l *layer, lg *ledger, s *staged) {
	vector := l.tbl.Metadata().Version() >= 3
	for f, rows := range r.merged {
		f.deleted, f.vector = rows, vector
	}
	live := map[string]bool{}
	for _, m := range s.manifests {
		live[m.FilePath()] = true
	}
	for path := range lg.deletes {
		if !live[path] {
			delete(lg.deletes, path)
		}
	}
	maps.Copy(lg.deletes, s.deletes)
}
