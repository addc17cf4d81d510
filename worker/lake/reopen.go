package lake

import (
	"context"
	"reflect"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Reopen is OpenTable for a table whose layers are open under an older schema: what those
// know of files and keys is taken over where it still holds, so that an evolution does
// not cost reading all keys again. They must not be used any more, unless it fails.
func (l *Lake) Reopen(ctx context.Context, source *catalog.Source, t *catalog.Table, schema *catalog.Schema, open pipeline.Layers) (pipeline.Layers, error) {
	out, err := l.OpenTable(ctx, source, t, schema)
	if err != nil {
		return out, err
	}
	old, now := layersOf(open), layersOf(out)
	for kind, o := range old {
		if n := now[kind]; n != nil {
			n.takeOver(o)
		}
		o.forget()
	}
	return out, nil
}

// Reopen is the lake's, for this source.
func (s sourceLake) Reopen(ctx context.Context, t *catalog.Table, schema *catalog.Schema, open pipeline.Layers) (pipeline.Layers, error) {
	return s.lake.Reopen(ctx, s.source, t, schema, open)
}

func layersOf(ls pipeline.Layers) map[catalog.Layer]*layer {
	out := map[catalog.Layer]*layer{}
	if b, ok := ls.Bronze.(*bronze); ok && b != nil {
		out[catalog.Bronze] = b.layer
	}
	if c, ok := ls.Current.(*current); ok && c != nil {
		out[catalog.Current] = c.layer
	}
	if h, ok := ls.History.(*history); ok && h != nil {
		out[catalog.History] = h.layer
	}
	return out
}

// takeOver makes what another layer of the same table knows of its files the layer's
// own, if the head still has them.
func (l *layer) takeOver(o *layer) {
	l.numbers = o.numbers
	if o.ledger == nil || o.rebuild || o.tbl == nil || l.tbl.Metadata().TableUUID() != o.tbl.Metadata().TableUUID() {
		return
	}
	if head(l.tbl.Metadata()) != head(o.tbl.Metadata()) {
		return
	}
	l.ledger = o.ledger
	if sameKeys(l.schema, o.schema) {
		l.weigh(o.weighed)
		return
	}
	l.ledger.index, l.ledger.doubles, l.ledger.closed = nil, nil, nil
}

// sameKeys reports whether keys are encoded alike under both schemas.
func sameKeys(a, b *catalog.Schema) bool {
	if len(a.Key) != len(b.Key) {
		return false
	}
	for n := range a.Key {
		x, y := a.Columns[a.Key[n]], b.Columns[b.Key[n]]
		if !x.Type.Equal(y.Type) || !reflect.DeepEqual(x.Source, y.Source) {
			return false
		}
	}
	return true
}
