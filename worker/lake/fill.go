package lake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Fill gives the rows of a table the value that they got when a column was added with a
// constant default. Bronze notes it, and every row of current and every open version of
// history is written anew with the value, as many at a time as may be in memory; rows
// that were deleted and versions that ended before stay without it.
//
// The layers are open under the schema that has the column, and hold no change of after
// the fill yet, though they may lag. No cursor moves. What failed half-way goes on when
// Fill is called again, or before the next write to the layer: it is noted in each
// layer's snapshots how many of the fills its rows have. It fails with lake.schema when
// the value is none of the column's type.
func (l *Lake) Fill(ctx context.Context, layers pipeline.Layers, fill pipeline.Fill) error {
	b, ok := layers.Bronze.(*bronze)
	if !ok {
		return fmt.Errorf("fill column %q: %T is no layer of this lake", fill.Column, layers.Bronze)
	}
	if err := b.noteFill(ctx, fill); err != nil {
		return err
	}
	if c, ok := layers.Current.(*current); ok && c != nil {
		if err := c.fill(ctx); err != nil {
			return err
		}
	}
	if h, ok := layers.History.(*history); ok && h != nil {
		return h.fill(ctx)
	}
	return nil
}

// Fill is the lake's.
func (s sourceLake) Fill(ctx context.Context, layers pipeline.Layers, fill pipeline.Fill) error {
	return s.lake.Fill(ctx, layers, fill)
}

var (
	_ pipeline.Shower[fold.CurrentRow] = (*current)(nil)
	_ pipeline.Shower[fold.Version]    = (*history)(nil)
)

// noteFill puts a fill into bronze's property, once.
func (b *bronze) noteFill(ctx context.Context, fill pipeline.Fill) error {
	col := b.schema.Index(fill.Column)
	refused := func(hint, format string, args ...any) error {
		return catalog.Errorf(catalog.Conflict, catalog.CodeLakeSchema, hint, "column %q of %s cannot be filled: %s", fill.Column, b.name, fmt.Sprintf(format, args...))
	}
	switch {
	case col < 0:
		return refused("evolve the table and open it again first", "the table has no such column")
	case b.schema.IsKey(col):
		return refused("have the table read anew", "it is part of the key")
	}
	if _, _, err := typemap.Decode(b.schema.Columns[col].Type, []byte(fill.Value), nil); err != nil {
		return refused("have the table's rows read again", "its default is no value of type %s", b.schema.Columns[col].Type)
	}
	var cause error
	for attempt := 0; ; attempt++ {
		doc := fillDoc{
			Field: structFields(b.tbl.Schema(), colAfter)[fill.Column], Value: fill.Value, Float: b.schema.Columns[col].Type.Kind == catalog.Float32,
			Generation: fill.At.Generation, Commit: fill.At.Commit, Ordinal: fill.At.Ordinal, Time: fill.CommitTime,
		}
		md := b.tbl.Metadata()
		docs, err := readFillDocs(md.Properties())
		if err != nil {
			return fmt.Errorf("fills of %s: %w", b.name, err)
		}
		if i := slices.IndexFunc(docs, func(d fillDoc) bool { return d.Field == doc.Field }); i >= 0 {
			if doc.Float = docs[i].Float; docs[i] != doc {
				return refused("have the table's rows read again", "it was filled at %s already", docs[i].at())
			}
			return b.loadFills()
		}
		if attempt >= b.lake.retry.attempts {
			return b.lake.unavailable(cause, "the lake's table "+b.name+" cannot be committed to")
		}
		text, err := json.Marshal(append(docs, doc))
		if err != nil {
			return fmt.Errorf("fills of %s: %w", b.name, err)
		}
		reqs := []table.Requirement{table.AssertTableUUID(md.TableUUID()), table.AssertCurrentSchemaID(md.CurrentSchema().ID)}
		next, loc, err := b.lake.cat.CommitTable(ctx, b.ident, reqs, []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{propFills: string(text)})})
		if err == nil {
			b.adopt(next, loc)
			b.pruneMetadata(md, next)
			continue
		}
		if cause = err; ctx.Err() != nil {
			return ctx.Err()
		}
		if err := b.lake.retry.wait(ctx, attempt); err != nil {
			return err
		}
		if err := b.reload(ctx); err != nil {
			return err
		}
	}
}

func (l *layer) loadFills() error {
	if l.kind != catalog.Bronze || l.fills == nil {
		return nil
	}
	return l.fills.load(l.schema, l.tbl.Schema(), l.tbl.Properties())
}
