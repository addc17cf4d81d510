package lake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// ForSource returns the lake as one source's pipeline sees it: with the source's
// namespaces and format version.
func (l *Lake) ForSource(source *catalog.Source) pipeline.Lake { return sourceLake{l, source} }

var (
	_ pipeline.Lake    = sourceLake{}
	_ pipeline.Evolver = sourceLake{}
)

type sourceLake struct {
	lake   *Lake
	source *catalog.Source
}

func (s sourceLake) Open(ctx context.Context, t *catalog.Table, schema *catalog.Schema) (pipeline.Layers, error) {
	return s.lake.OpenTable(ctx, s.source, t, schema)
}

// BronzeState reads what bronze says of a table without needing its schema.
func (s sourceLake) BronzeState(ctx context.Context, t *catalog.Table) (pipeline.LayerState, error) {
	ident := s.source.LakeName(t.Name, catalog.Bronze)
	name := dotted(ident)
	tbl, err := s.lake.cat.LoadTable(ctx, ident)
	if errors.Is(err, icecat.ErrNoSuchTable) || errors.Is(err, icecat.ErrNoSuchNamespace) {
		return pipeline.LayerState{}, nil
	}
	if err != nil {
		return pipeline.LayerState{}, s.lake.unavailable(err, "the lake's table "+name+" cannot be opened")
	}
	if err := checkOurs(tbl, t, catalog.Bronze, name); err != nil {
		return pipeline.LayerState{}, err
	}
	l := &layer{lake: s.lake, kind: catalog.Bronze, source: t, ident: ident, name: name}
	if err := l.use(ctx, tbl); err != nil {
		return pipeline.LayerState{}, err
	}
	return l.checked()
}

// OpenTable creates the lake tables of t that are absent and loads those that are
// there. The schema is the table's, after masking. It fails with
// lake.foreign_table when a table of the name exists that Lakeweir did not make for
// t, and with lake.schema when one has other columns.
func (l *Lake) OpenTable(ctx context.Context, source *catalog.Source, t *catalog.Table, schema *catalog.Schema) (pipeline.Layers, error) {
	var out pipeline.Layers
	// Bronze comes first: it tells the others what rows were filled with.
	fills := &fills{}
	b, err := l.openLayer(ctx, source, t, schema, catalog.Bronze, fills)
	if err != nil {
		return out, err
	}
	out.Bronze = &bronze{b}
	if !t.HasKey() {
		return out, nil
	}
	if t.Current {
		c, err := l.openLayer(ctx, source, t, schema, catalog.Current, fills)
		if err != nil {
			return out, err
		}
		out.Current = &current{keyed{layer: c}}
	}
	if t.History {
		h, err := l.openLayer(ctx, source, t, schema, catalog.History, fills)
		if err != nil {
			return out, err
		}
		out.History = &history{keyed{layer: h}}
	}
	return out, nil
}

func (l *Lake) openLayer(ctx context.Context, source *catalog.Source, t *catalog.Table, schema *catalog.Schema, kind catalog.Layer, fills *fills) (*layer, error) {
	ident := source.LakeName(t.Name, kind)
	if err := CheckName(ident); err != nil {
		return nil, err
	}
	ly := &layer{lake: l, kind: kind, source: t, schema: schema, ident: ident, name: dotted(ident), fills: fills}
	if source.Connector != nil {
		ly.topic = source.Connector.Topic(t.Name)
	}
	want := layout(kind, schema, ly.topic != "")
	tbl, err := l.cat.LoadTable(ctx, ident)
	if errors.Is(err, icecat.ErrNoSuchTable) || errors.Is(err, icecat.ErrNoSuchNamespace) {
		tbl, err = l.create(ctx, source, t, kind, ident, want, lineageOf(schema))
	}
	if err != nil {
		return nil, l.unavailable(err, "the lake's table "+ly.name+" cannot be opened")
	}
	if err := checkOurs(tbl, t, kind, ly.name); err != nil {
		return nil, err
	}
	return ly, ly.use(ctx, tbl)
}

// fits reports whether the layer's schema is that of a table: whether each column is
// there, and is the one that the schema means.
func (l *layer) fits(t *table.Table) error {
	if l.schema == nil {
		return nil // of who asks for no row
	}
	diff := differences(layout(l.kind, l.schema, l.topic != "").Fields(), t.Schema().Fields(), "")
	diff = append(diff, readLineage(t.Properties()).contradicts(l.schema)...)
	if len(diff) == 0 {
		return nil
	}
	return catalog.Errorf(catalog.Conflict, catalog.CodeLakeSchema,
		"decide how the lake's table is to follow the source, or drop it to have it read again",
		"the lake's table %s has other columns than %s: %s", l.name, l.source.ID(), strings.Join(diff, "; "))
}

// CheckName reports whether the lake can have a table of that name: Iceberg's
// catalogs refuse slashes, control characters and the names . and .. in any part.
func CheckName(ident []string) error {
	for _, part := range ident {
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool { return r == '/' || unicode.IsControl(r) }) {
			return catalog.Errorf(catalog.Invalid, catalog.CodeLakeConfig, "rename it at the source, or leave it out", "the lake cannot have a table named %q", dotted(ident))
		}
	}
	return nil
}

func checkOurs(tbl *table.Table, t *catalog.Table, kind catalog.Layer, name string) error {
	p := tbl.Properties()
	const hint = "rename or drop that table, or give the source other namespaces"
	switch {
	case p[propTable] == "":
		return catalog.Errorf(catalog.Conflict, catalog.CodeLakeForeign, hint, "the lake has a table %s that Lakeweir did not make", name)
	case p[propTable] != t.ID() || p[propLayer] != string(kind):
		return catalog.Errorf(catalog.Conflict, catalog.CodeLakeForeign, hint, "the lake's table %s is the %s layer of %s, not the %s layer of %s", name, p[propLayer], p[propTable], kind, t.ID())
	}
	return nil
}

func (l *Lake) create(ctx context.Context, source *catalog.Source, t *catalog.Table, kind catalog.Layer, ident []string, schema *iceberg.Schema, columns *lineage) (*table.Table, error) {
	for n := 1; n < len(ident); n++ {
		err := l.cat.CreateNamespace(ctx, ident[:n], nil)
		if err == nil || errors.Is(err, icecat.ErrNamespaceAlreadyExists) {
			continue
		}
		// Two tables may create it at once; who comes second may get any error.
		if ok, cerr := l.cat.CheckNamespaceExists(ctx, ident[:n]); cerr != nil || !ok {
			return nil, fmt.Errorf("create namespace %s: %w", dotted(ident[:n]), err)
		}
	}
	version := source.FormatVersion
	if version == 0 {
		version = 3
	}
	props := iceberg.Properties{
		table.PropertyFormatVersion:               strconv.Itoa(version),
		table.ParquetCompressionKey:               "zstd",
		table.ParquetCompressionLevelKey:          "1",
		table.MetadataDeleteAfterCommitEnabledKey: "true",
		table.MetadataPreviousVersionsMaxKey:      "20",
		"write.delete.mode":                       table.WriteModeMergeOnRead,
		"write.update.mode":                       table.WriteModeMergeOnRead,
		"write.merge.mode":                        table.WriteModeMergeOnRead,
		propTable:                                 t.ID(),
		propLayer:                                 string(kind),
	}
	record, err := columns.properties()
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", dotted(ident), err)
	}
	maps.Copy(props, record)
	opts := []icecat.CreateTableOpt{icecat.WithProperties(props)}
	if strings.Contains(l.warehouse, "://") {
		opts = append(opts, icecat.WithLocation(l.location(ident)))
	}
	if kind == catalog.Bronze {
		f, _ := topField(schema, colIngestedAt)
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{f.ID}, FieldID: 1000, Name: colIngestedAt + "_day", Transform: iceberg.DayTransform{}})
		opts = append(opts, icecat.WithPartitionSpec(&spec))
	}
	return l.createOnce(ctx, ident, schema, opts)
}

// createOnce creates a table, or loads the one that another made meanwhile. SQL
// catalogs create in a serializable transaction, which fails when others create at
// the same time: a process does it one by one, and tries again.
func (l *Lake) createOnce(ctx context.Context, ident []string, schema *iceberg.Schema, opts []icecat.CreateTableOpt) (*table.Table, error) {
	l.creating.Lock()
	defer l.creating.Unlock()
	for attempt := 0; ; attempt++ {
		tbl, err := l.cat.CreateTable(ctx, ident, schema, opts...)
		if err == nil {
			return tbl, nil
		}
		if found, lerr := l.cat.LoadTable(ctx, ident); lerr == nil {
			return found, nil // made by another, or by us and only the reply was lost
		}
		if ctx.Err() != nil || attempt+1 >= l.retry.attempts {
			return nil, err
		}
		if err := l.retry.wait(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// location is where a new table's files go. Names keep to letters, digits, _ and -,
// since readers disagree on how the others are escaped; a changed name gets a hash,
// so that two never share a folder.
func (l *Lake) location(ident []string) string {
	parts := []string{l.warehouse}
	for _, part := range ident {
		parts = append(parts, safeName(part))
	}
	return strings.Join(parts, "/")
}

func safeName(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if safe == name {
		return safe
	}
	sum := sha256.Sum256([]byte(name))
	return safe + "-" + hex.EncodeToString(sum[:4])
}
