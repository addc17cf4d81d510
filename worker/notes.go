package worker

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// tableNotes keeps in the registry what must outlive a worker about a table.
type tableNotes struct {
	registry *registry.Registry
	source   string
}

// ReadGap implements postgres.TableNotes.
func (n tableNotes) ReadGap(ctx context.Context, table string) (*catalog.Error, uint32, error) {
	f, generation, err := n.registry.ReadGap(ctx, n.source, table)
	if f == nil || err != nil {
		return nil, 0, err
	}
	return &catalog.Error{Kind: catalog.Conflict, Code: f.Code, Message: f.Message, Hint: f.Hint}, generation, nil
}

// NoteGap implements postgres.TableNotes.
func (n tableNotes) NoteGap(ctx context.Context, table string, generation uint32, gap *catalog.Error) error {
	return n.registry.NoteGap(ctx, n.source, table, generation, registry.Fault{Code: gap.Code, Message: gap.Message, Hint: gap.Hint})
}

// ForgetGap implements postgres.TableNotes.
func (n tableNotes) ForgetGap(ctx context.Context, table string) error {
	return n.registry.ForgetGap(ctx, n.source, table)
}

// ReadRelations implements postgres.TableNotes.
func (n tableNotes) ReadRelations(ctx context.Context, table string) ([]catalog.Relation, error) {
	return n.registry.ReadRelations(ctx, n.source, table)
}

// WriteRelations implements postgres.TableNotes.
func (n tableNotes) WriteRelations(ctx context.Context, table string, relations []catalog.Relation) error {
	return n.registry.WriteRelations(ctx, n.source, table, relations)
}
