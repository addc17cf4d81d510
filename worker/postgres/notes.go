package postgres

import (
	"context"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// TableNotes keeps what must outlive the worker about a table at its source.
type TableNotes interface {
	// ReadGap returns the noted gap of a table and the generation that it is of; nil
	// when there is none.
	ReadGap(ctx context.Context, table string) (*catalog.Error, uint32, error)
	// NoteGap is durable when it returns nil.
	NoteGap(ctx context.Context, table string, generation uint32, gap *catalog.Error) error
	ForgetGap(ctx context.Context, table string) error
	// ReadRelations returns what WriteRelations wrote last; nil when it never did.
	ReadRelations(ctx context.Context, table string) ([]catalog.Relation, error)
	// WriteRelations is durable when it returns nil.
	WriteRelations(ctx context.Context, table string, relations []catalog.Relation) error
}

// recallGaps stops the tables whose gap was noted by an earlier run: what proved it
// may be overwritten by now. A table that the lake has nothing of has none.
func (b *beginning) recallGaps(ctx context.Context) error {
	if b.cfg.TableNotes == nil {
		return nil
	}
	for _, r := range b.resumes {
		name := r.Table.Name.String()
		gap, generation, err := b.cfg.TableNotes.ReadGap(ctx, name)
		switch {
		case err != nil:
			return fmt.Errorf("read the noted gap of %s: %w", r.Table.ID(), err)
		case gap == nil:
		case !wasRead(r):
			if err := b.cfg.TableNotes.ForgetGap(ctx, name); err != nil {
				return fmt.Errorf("forget the gap of %s: %w", r.Table.ID(), err)
			}
		case max(r.Cursor.Position.Generation, 1) <= generation:
			gap.At = r.Table.ID()
			b.fail(r.Table, catalog.Gap, gap)
		}
	}
	return nil
}

// noteGap notes a gap that the log or the catalog will not prove again.
func (s *Source) noteGap(ctx context.Context, table string, generation uint32, gap *catalog.Error) error {
	if s.cfg.TableNotes == nil {
		return nil
	}
	if err := s.cfg.TableNotes.NoteGap(ctx, table, max(generation, 1), gap); err != nil {
		return fmt.Errorf("note the gap of table %s: %w", table, err)
	}
	return nil
}

// gone is a gap of a resumed table that is noted before anything else goes on.
func (b *beginning) gone(ctx context.Context, r pipeline.Resume, gap *catalog.Error) error {
	b.fail(r.Table, catalog.Gap, gap)
	return b.noteGap(ctx, r.Table.Name.String(), r.Cursor.Position.Generation, gap)
}
