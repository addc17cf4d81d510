package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// layer is what bronze, current and history share: the table as it was last loaded
// or committed, and what is known of its files.
type layer struct {
	lake   *Lake
	kind   catalog.Layer
	source *catalog.Table
	schema *catalog.Schema
	ident  table.Identifier
	name   string // for messages
	topic  string // that the table is read from; empty when it is from none

	tbl   *table.Table
	fs    icebergio.WriteFileIO
	arrow *arrow.Schema // of tbl's current schema, with field ids
	// former are the schema's columns by names that they had before and none has now.
	former map[string]int
	fills  *fills // the table's; nil where no row is read

	// manifests are those of the head listed, when known.
	manifests []iceberg.ManifestFile
	listed    int64
	// ledger belongs to the head, or is nil.
	ledger *ledger
	// numbers is how many file numbers were given out; none is used twice, so a
	// place from before another writer's commit never means another row.
	numbers int32
	// rebuild says that nothing proves how far the head has come: the next commit
	// replaces what the layer holds.
	rebuild bool
	weighed int64 // bytes of the key index, as last noted
}

// head returns the id of the snapshot that main points at, or 0.
func head(md table.Metadata) int64 {
	if s := md.CurrentSnapshot(); s != nil {
		return s.SnapshotID
	}
	return 0
}

// load reads the table from the catalog.
func (l *layer) load(ctx context.Context) error {
	t, err := l.lake.cat.LoadTable(ctx, l.ident)
	if err != nil {
		if errors.Is(err, icecat.ErrNoSuchTable) {
			return catalog.Errorf(catalog.NotFound, catalog.CodeLakeNoTable, "start the table again to have it created and read anew", "the lake has no table %s any more", l.name)
		}
		return l.lake.unavailable(err, "the lake's table "+l.name+" cannot be read")
	}
	return l.use(ctx, t)
}

// use makes t what the layer works on; what belonged to another head is forgotten.
func (l *layer) use(ctx context.Context, t *table.Table) error {
	if l.tbl != nil && l.tbl.MetadataLocation() == t.MetadataLocation() {
		return nil
	}
	if l.tbl != nil && l.tbl.Metadata().TableUUID() != t.Metadata().TableUUID() {
		return catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict, "start the table again", "the lake's table %s was replaced by another of the same name", l.name)
	}
	if l.fs == nil || l.lake.kind == restCatalog { // whose credentials may expire
		fs, err := t.FS(ctx)
		if err != nil {
			return l.lake.unavailable(err, "the warehouse of "+l.name+" cannot be opened")
		}
		w, ok := fs.(icebergio.WriteFileIO)
		if !ok {
			return catalog.Errorf(catalog.Invalid, catalog.CodeLakeConfig, "use a file:// or s3:// warehouse", "the warehouse of %s cannot be written to", l.name)
		}
		l.fs = w
	}
	if l.tbl == nil || l.tbl.Schema().ID != t.Schema().ID {
		if err := l.fits(t); err != nil {
			return err
		}
		s, err := table.SchemaToArrowSchema(t.Schema(), nil, true, false)
		if err != nil {
			return fmt.Errorf("arrow schema of %s: %w", l.name, err)
		}
		l.arrow = s
		if l.schema != nil {
			l.former = readLineage(t.Properties()).formerNames(l.schema)
		}
	}
	if l.tbl != nil && head(l.tbl.Metadata()) != head(t.Metadata()) {
		l.forget()
		l.rebuild = false
	}
	l.tbl = t
	return l.loadFills()
}

// takes fails with lake.schema when rows of a schema are not of the layer's columns.
func (l *layer) takes(s *catalog.Schema) error {
	same := s == l.schema || l.schema.SameShape(s) && slices.EqualFunc(l.schema.Columns, s.Columns, func(a, b catalog.Column) bool { return slices.Equal(a.Was, b.Was) })
	if same {
		return nil
	}
	return catalog.Errorf(catalog.Conflict, catalog.CodeLakeSchema, "open the table again with its new columns", "the changes of %s have other columns than the lake's table %s", l.source.ID(), l.name)
}

// forget drops what is known of the files.
func (l *layer) forget() {
	l.ledger, l.manifests, l.listed = nil, nil, 0
	l.lake.images.drop(l)
	l.weigh(0)
}

// weigh notes how many bytes the layer's key index takes.
func (l *layer) weigh(index int64) {
	l.lake.indexes.Add(index - l.weighed)
	l.weighed = index
}

// State reads the layer's state from the catalog. Bronze that was set back fails
// with gap, since the source may have forgotten what it held, and bronze whose
// cursor nothing proves with lake.cursor_lost. A layer that is made of bronze goes on
// from where it was set back to; when nothing proves how far it has come its state
// is zero, and the next commit replaces what it holds.
func (l *layer) State(ctx context.Context) (pipeline.LayerState, error) {
	if err := l.load(ctx); err != nil {
		return pipeline.LayerState{}, err
	}
	return l.checked()
}

// headManifests returns the manifests of the head, reading its list once.
func (l *layer) headManifests() ([]iceberg.ManifestFile, error) {
	s := l.tbl.CurrentSnapshot()
	if s == nil {
		return nil, nil
	}
	if l.listed == s.SnapshotID {
		return l.manifests, nil
	}
	m, err := s.Manifests(l.fs)
	if err != nil {
		return nil, l.lake.unavailable(err, "the files of "+l.name+" cannot be listed")
	}
	l.manifests, l.listed = m, s.SnapshotID
	return m, nil
}

// field returns the id of a top-level column.
func (l *layer) field(name string) int {
	f, ok := topField(l.tbl.Schema(), name)
	if !ok {
		return 0
	}
	return f.ID
}

// topField finds a top-level column; a name with dots is one name here.
func topField(s *iceberg.Schema, name string) (iceberg.NestedField, bool) {
	for _, f := range s.Fields() {
		if f.Name == name {
			return f, true
		}
	}
	return iceberg.NestedField{}, false
}

func dotted(ident []string) string { return strings.Join(ident, ".") }
