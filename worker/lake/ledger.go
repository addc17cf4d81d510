package lake

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/keyindex"
)

// ledger is what is known of a layer's live files at its head.
type ledger struct {
	files  map[int32]*dataFile
	byPath map[string]*dataFile
	// deletes holds the live entries of each delete manifest, so that one can be
	// rewritten without reading it.
	deletes map[string][]deleteEntry
	// index says where live rows lie; nil until it was filled. Bronze has none.
	index keyindex.Index
	// doubles are the places of rows whose key another row has too, which the index
	// names: another writer put them there. By key; nil for almost every table.
	doubles map[string][]change.Place
	// closed is when versions ended; nil until somebody asked. Of history alone.
	closed *closedTimes
}

// dataFile is a live data file.
type dataFile struct {
	number int32
	path   string
	size   int64
	rows   int64
	spec   int32
	part   map[int]any
	seq    int64
	// deleted are the rows that delete files take away; nil when there are none.
	deleted *dv.RoaringPositionBitmap
	// vector reports that a deletion vector says so: at most one is live a file.
	vector bool
	// lower, upper and nulls are of bronze's columns, or of a layer's key columns.
	lower map[int][]byte
	upper map[int][]byte
	nulls map[int]int64
}

func (f *dataFile) isDeleted(row int64) bool {
	return f.deleted != nil && f.deleted.Contains(uint64(row))
}

// deleteEntry is a live entry of a delete manifest.
type deleteEntry struct {
	file     iceberg.DataFile
	target   string // the data file of a deletion vector
	snapshot int64
	seq      int64
	fileSeq  int64
}

func newLedger() *ledger {
	return &ledger{files: map[int32]*dataFile{}, byPath: map[string]*dataFile{}, deletes: map[string][]deleteEntry{}}
}

// ready returns the ledger of the head, reading it from the manifests when it is
// not known.
func (l *layer) ready(ctx context.Context) (*ledger, error) {
	if l.ledger != nil {
		return l.ledger, nil
	}
	if l.rebuild {
		l.ledger = newLedger() // what the head holds counts no more
		return l.ledger, nil
	}
	manifests, err := l.headManifests()
	if err != nil {
		return nil, err
	}
	lg, err := l.readLedger(ctx, manifests)
	if err != nil {
		return nil, l.lake.unavailable(err, "the files of "+l.name+" cannot be read")
	}
	l.ledger = lg
	return lg, nil
}

func (l *layer) readLedger(ctx context.Context, manifests []iceberg.ManifestFile) (*ledger, error) {
	lg := newLedger()
	for _, m := range manifests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m.ManifestContent() == iceberg.ManifestContentData {
			for e, err := range m.Entries(l.fs, true) {
				if err != nil {
					return nil, fmt.Errorf("manifest %s: %w", m.FilePath(), err)
				}
				l.register(lg, e.DataFile(), e.SequenceNum())
			}
		}
	}
	var vectors, positions []iceberg.DataFile
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentDeletes {
			continue
		}
		var entries []deleteEntry
		for e, err := range m.Entries(l.fs, true) {
			if err != nil {
				return nil, fmt.Errorf("manifest %s: %w", m.FilePath(), err)
			}
			df := e.DataFile()
			d := deleteEntry{file: df, snapshot: e.SnapshotID(), seq: e.SequenceNum(), fileSeq: e.SequenceNum()}
			if s := e.FileSequenceNum(); s != nil {
				d.fileSeq = *s
			}
			switch {
			case table.IsDeletionVector(df):
				if ref := df.ReferencedDataFile(); ref != nil {
					d.target = *ref
				}
				vectors = append(vectors, df)
			case df.ContentType() == iceberg.EntryContentPosDeletes:
				positions = append(positions, df)
			default:
				return nil, catalog.Errorf(catalog.Conflict, catalog.CodeLakeForeign,
					"rewrite the table's data files with the engine that deleted from it, and let it not use equality deletes",
					"another writer left equality deletes in %s, which Lakeweir does not read", l.name)
			}
			entries = append(entries, d)
		}
		lg.deletes[m.FilePath()] = entries
	}
	if err := l.readVectors(lg, vectors); err != nil {
		return nil, err
	}
	return lg, l.readPositions(ctx, lg, positions)
}

// register adds a data file to a ledger under a new number.
func (l *layer) register(lg *ledger, df iceberg.DataFile, seq int64) *dataFile {
	f := &dataFile{
		number: l.numbers, path: df.FilePath(), size: df.FileSizeBytes(), rows: df.Count(),
		spec: df.SpecID(), part: df.Partition(), seq: seq,
	}
	if l.kind == catalog.Bronze {
		f.lower, f.upper, f.nulls = df.LowerBoundValues(), df.UpperBoundValues(), df.NullValueCounts()
	} else {
		lower, upper := df.LowerBoundValues(), df.UpperBoundValues()
		f.lower, f.upper = map[int][]byte{}, map[int][]byte{}
		for _, i := range l.schema.Key {
			id := l.field(l.schema.Columns[i].Name)
			f.lower[id], f.upper[id] = bytes.Clone(lower[id]), bytes.Clone(upper[id])
		}
	}
	l.numbers++
	lg.files[f.number], lg.byPath[f.path] = f, f
	return f
}

func (l *layer) readVectors(lg *ledger, vectors []iceberg.DataFile) error {
	byPath := map[string][]iceberg.DataFile{}
	for _, v := range vectors {
		byPath[v.FilePath()] = append(byPath[v.FilePath()], v)
	}
	for path, vs := range byPath {
		bitmaps, err := dv.ReadDVs(l.fs, vs)
		if err != nil {
			return fmt.Errorf("deletion vectors in %s: %w", path, err)
		}
		for i, b := range bitmaps {
			ref := vs[i].ReferencedDataFile()
			if ref == nil {
				continue
			}
			if f := lg.byPath[*ref]; f != nil {
				f.vector = true
				f.deleted = union(f.deleted, b)
			}
		}
	}
	return nil
}

func union(a, b *dv.RoaringPositionBitmap) *dv.RoaringPositionBitmap {
	out := dv.NewRoaringPositionBitmap()
	if a != nil {
		out.Or(a)
	}
	if b != nil {
		out.Or(b)
	}
	return out
}
