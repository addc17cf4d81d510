package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// propPromoted marks a snapshot of the same files whose bounds were written anew.
const propPromoted = "lakeweir.bounds-promoted"

// promoteBounds writes the manifests anew that tell the bounds of widened columns by the
// type that those had before: four bytes of an int, now that the column is a long. The
// format allows it, and yet readers fail on it as soon as they filter by the column:
// PyIceberg until apache/iceberg-python#3293 ("unpack requires a buffer of 8 bytes"), and
// iceberg-go 0.7.0 (LiteralFromBytes, which its evaluators panic on).
// TestReadersOfBoundsFromBeforeAWidening tells when it can go.
func (l *layer) promoteBounds(ctx context.Context) error {
	md := l.tbl.Metadata()
	types := widened(md)
	head := md.CurrentSnapshot()
	if len(types) == 0 || head == nil {
		return nil
	}
	found, _ := nearest(md, head)
	if found == nil {
		return nil // nothing of ours is in it
	}
	old, err := l.headManifests()
	if err != nil {
		return err
	}
	stale := false
	for _, m := range old {
		if m.ManifestContent() != iceberg.ManifestContentData || stale {
			continue
		}
		for e, err := range m.Entries(l.fs, true) {
			if err != nil {
				return l.lake.unavailable(err, "the files of "+l.name+" cannot be read")
			}
			stale = stale || anyShort(e.DataFile(), types)
		}
	}
	if !stale {
		return nil
	}
	e := &edit{promote: types, summary: carried(found)}
	e.summary[propPromoted] = "true"
	if was := lastOf(md); was != nil {
		e.newest.Generation, e.newest.Commit = was.Generation, was.Commit
	}
	_, err = l.land(ctx, e, func() error {
		now, _ := nearest(l.tbl.Metadata(), l.tbl.CurrentSnapshot())
		if now == nil {
			return fmt.Errorf("the snapshots of %s have been expired meanwhile", l.name)
		}
		e.summary = carried(now)
		e.summary[propPromoted] = "true"
		return nil
	})
	return err
}

// carried is what a snapshot of ours says of the layer, for another that has the same
// rows.
func carried(s *table.Snapshot) iceberg.Properties {
	out := iceberg.Properties{}
	for k, v := range s.Summary.Properties {
		if strings.HasPrefix(k, "lakeweir.") && k != propRebuilt {
			out[k] = v
		}
	}
	return out
}

// widened returns the types of the fields that were of fewer bytes once.
func widened(md table.Metadata) map[int]iceberg.Type {
	now := fieldTypes(md.CurrentSchema())
	out := map[int]iceberg.Type{}
	for _, s := range md.Schemas() {
		for id, was := range fieldTypes(s) {
			if t, ok := now[id]; ok && (t == iceberg.PrimitiveTypes.Int64 && was == iceberg.PrimitiveTypes.Int32 || t == iceberg.PrimitiveTypes.Float64 && was == iceberg.PrimitiveTypes.Float32) {
				out[id] = t
			}
		}
	}
	return out
}

// fieldTypes returns the primitive types of a schema's fields, those in structs too.
func fieldTypes(s *iceberg.Schema) map[int]iceberg.Type {
	out := map[int]iceberg.Type{}
	var walk func(fields []iceberg.NestedField)
	walk = func(fields []iceberg.NestedField) {
		for _, f := range fields {
			switch t := f.Type.(type) {
			case *iceberg.StructType:
				walk(t.FieldList)
			case *iceberg.ListType:
				walk([]iceberg.NestedField{t.ElementField()})
			case iceberg.PrimitiveType:
				out[f.ID] = t
			}
		}
	}
	walk(s.Fields())
	return out
}

func anyShort(df iceberg.DataFile, types map[int]iceberg.Type) bool {
	lower, upper := df.LowerBoundValues(), df.UpperBoundValues()
	for id := range types {
		if len(lower[id]) == 4 || len(upper[id]) == 4 {
			return true
		}
	}
	return false
}

// promoteData carries the head's data manifests over, with bounds of the types that
// columns have now.
func (s *stager) promoteData(old []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	var out []iceberg.ManifestFile
	for _, m := range old {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		var rows []manifestRow
		changed := false
		for e, err := range m.Entries(s.layer.fs, true) {
			if err != nil {
				return nil, fmt.Errorf("manifest %s: %w", m.FilePath(), err)
			}
			if anyShort(e.DataFile(), s.edit.promote) {
				df, err := s.promoted(e.DataFile())
				if err != nil {
					return nil, err
				}
				snapshot, seq := e.SnapshotID(), e.SequenceNum()
				e = iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &snapshot, &seq, e.FileSequenceNum(), df)
				changed = true
			}
			rows = append(rows, manifestRow{iceberg.EntryStatusEXISTING, e})
		}
		if !changed {
			out = append(out, m)
			continue
		}
		n, err := s.write(iceberg.ManifestContentData, m.PartitionSpecID(), rows)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// promoted is the entry of a data file as it is, but for its bounds.
func (s *stager) promoted(df iceberg.DataFile) (iceberg.DataFile, error) {
	spec := s.md.PartitionSpecByID(int(df.SpecID()))
	if spec == nil {
		return nil, fmt.Errorf("partition spec %d is unknown", df.SpecID())
	}
	b, err := iceberg.NewDataFileBuilder(*spec, df.ContentType(), df.FilePath(), df.FileFormat(), df.Partition(), nil, nil, df.Count(), df.FileSizeBytes())
	if err != nil {
		return nil, err
	}
	lower, upper := df.LowerBoundValues(), df.UpperBoundValues()
	for id, t := range s.edit.promote {
		for _, bounds := range []map[int][]byte{lower, upper} {
			if len(bounds[id]) == 4 {
				bounds[id] = promoteBound(t, bounds[id])
			}
		}
	}
	b.LowerBoundValues(lower).UpperBoundValues(upper)
	keep := func(counts map[int]int64, set func(map[int]int64) *iceberg.DataFileBuilder) {
		if len(counts) > 0 {
			set(counts)
		}
	}
	keep(df.ColumnSizes(), b.ColumnSizes)
	keep(df.ValueCounts(), b.ValueCounts)
	keep(df.NullValueCounts(), b.NullValueCounts)
	keep(df.NaNValueCounts(), b.NaNValueCounts)
	keep(df.DistinctValueCounts(), b.DistinctValueCounts)
	if k := df.KeyMetadata(); k != nil {
		b.KeyMetadata(k)
	}
	if o := df.SplitOffsets(); len(o) > 0 {
		b.SplitOffsets(o)
	}
	if id := df.SortOrderID(); id != nil {
		b.SortOrderID(*id)
	}
	if id := df.FirstRowID(); id != nil {
		b.FirstRowID(*id)
	}
	return b.Build(), nil
}

// promoteBound writes a bound of four bytes, of an int or a float, with eight.
func promoteBound(t iceberg.Type, b []byte) []byte {
	v := binary.LittleEndian.Uint32(b)
	if t == iceberg.PrimitiveTypes.Float64 {
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(math.Float32frombits(v))))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(v))))
}
