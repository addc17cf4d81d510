package lake

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/lakeweir/lakeweir/catalog"
)

// retryPolicy bounds how long a commit is tried.
type retryPolicy struct {
	attempts    int
	first, most time.Duration // the first wait, and the longest; each is twice the one before
}

var defaultRetry = retryPolicy{attempts: 8, first: 50 * time.Millisecond, most: 5 * time.Second}

func (p retryPolicy) wait(ctx context.Context, attempt int) error {
	d := min(p.most, p.first<<min(attempt, 20))
	t := time.NewTimer(d/2 + rand.N(d/2+1)) //nolint:gosec // no secret: spread, so that workers do not come back together
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// land brings an edit to be the head: rows and state in one snapshot (I1).
//
// Whatever the catalog answers to a commit, what counts is what the table then
// shows. If the snapshot is among the head's ancestors, the commit landed and only
// the reply was lost. If the head moved without it, it can land no more, since it
// asserts the head it was staged on; moved then says whether the edit still holds on
// the new head. Else nothing happened, and the same snapshot is tried again: should
// an earlier try still be under way, only one of them can land.
//
// A failure leaves files in place unless it is proved that the commit did not land
// and cannot any more; else they are orphans at worst.
func (l *layer) land(ctx context.Context, e *edit, moved func() error) (*staged, error) {
	s, err := l.stage(e)
	if err != nil {
		l.abandon(e)
		return nil, l.lake.unavailable(err, "the lake's table "+l.name+" cannot be written")
	}
	for attempt := 0; ; attempt++ {
		before := l.tbl.Metadata()
		md, loc, cause := l.lake.cat.CommitTable(ctx, l.ident, s.requirements, s.updates)
		if cause == nil && landed(md, s) {
			l.adopt(md, loc)
			l.rebuild = false
			l.settle(s)
			l.pruneMetadata(before, md)
			return s, nil
		}
		if cause == nil {
			cause = fmt.Errorf("the catalog took the commit of %s and does not show it", l.name)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.lake.logger.DebugContext(ctx, "commit not confirmed", "table", l.name, "attempt", attempt+1, "error", l.lake.redact(cause.Error()))
		if err := l.reload(ctx); err != nil {
			return nil, err
		}
		md = l.tbl.Metadata()
		switch {
		case landed(md, s):
			l.rebuild = false
			l.settle(s)
			return s, nil
		case head(md) != s.parent:
			// If the snapshot is there all the same, it landed and was rolled back, or
			// others have built on it and expired what lies between: they may still read
			// its files.
			known := md.SnapshotByID(s.id) != nil
			if l := lastOf(md); l != nil && l.Snapshot == s.id {
				known = true
			}
			if !known {
				l.remove(s.written)
			}
			if err := moved(); err != nil {
				if !known {
					l.abandon(e)
				}
				return nil, err
			}
			if s, err = l.stage(e); err != nil {
				return nil, l.lake.unavailable(err, "the lake's table "+l.name+" cannot be written")
			}
		case md.LastSequenceNumber() >= s.seq, // another branch took the number
			md.CurrentSchema().ID != s.schema: // or columns were added, which the rows go without
			l.remove(s.written)
			if s, err = l.stage(e); err != nil {
				return nil, l.lake.unavailable(err, "the lake's table "+l.name+" cannot be written")
			}
		case attempt+1 >= l.lake.retry.attempts:
			return nil, l.lake.unavailable(cause, "the lake's table "+l.name+" cannot be committed to")
		}
		if attempt+1 >= 4*l.lake.retry.attempts {
			return nil, catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict, "find out which other program writes to the table, and stop it", "other writers keep committing to %s before Lakeweir can", l.name)
		}
		if err := l.lake.retry.wait(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// reload loads the table, trying again while the catalog does not answer.
func (l *layer) reload(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := l.load(ctx)
		if err == nil || catalog.KindOf(err) != catalog.Unavailable || attempt+1 >= l.lake.retry.attempts {
			return err
		}
		if err := l.lake.retry.wait(ctx, attempt); err != nil {
			return err
		}
	}
}

// abandon removes the files of an edit that is in no snapshot.
func (l *layer) abandon(e *edit) {
	var paths []string
	for _, f := range slices.Concat(e.data, e.deletes) {
		if p := f.FilePath(); !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	l.remove(paths)
}

// landed reports whether the snapshot is the head or among its ancestors.
func landed(md table.Metadata, s *staged) bool {
	for c := md.CurrentSnapshot(); c != nil; {
		if c.SnapshotID == s.id {
			return true
		}
		if c.SnapshotID == s.parent || c.ParentSnapshotID == nil {
			return false
		}
		c = md.SnapshotByID(*c.ParentSnapshotID)
	}
	return false
}

// adopt makes what the catalog answered the table to work on.
func (l *layer) adopt(md table.Metadata, loc string) {
	fs := l.fs // not l.tbl.FS: that would keep every table of the past alive
	l.tbl = table.New(l.ident, md, loc, func(context.Context) (icebergio.IO, error) { return fs, nil }, l.tblCatalog())
}

func (l *layer) tblCatalog() table.CatalogIO { return l.lake.cat }

// settle takes over the manifests of a snapshot that landed, if it is the head.
func (l *layer) settle(s *staged) {
	if head(l.tbl.Metadata()) == s.id {
		l.manifests, l.listed = s.manifests, s.id
		return
	}
	l.forget()
}

// pruneMetadata removes the metadata files that the table no longer names, where
// the catalog leaves that to its clients.
func (l *layer) pruneMetadata(before, after table.Metadata) {
	if l.lake.kind == restCatalog || after.Properties()[table.MetadataDeleteAfterCommitEnabledKey] != "true" {
		return
	}
	kept := map[string]bool{}
	for f := range after.PreviousFiles() {
		kept[f.MetadataFile] = true
	}
	var gone []string
	for f := range before.PreviousFiles() {
		if !kept[f.MetadataFile] {
			gone = append(gone, f.MetadataFile)
		}
	}
	l.remove(gone)
}

// put writes a file whole, or leaves nothing: half a file on a full disk would keep
// it full.
func (l *layer) put(path string, b []byte) error {
	err := l.fs.WriteFile(path, b)
	if err != nil {
		l.remove([]string{path})
	}
	return err
}

// remove deletes files that nothing needs; what cannot be deleted is left to orphan
// cleaning.
func (l *layer) remove(paths []string) {
	for _, p := range paths {
		if err := l.fs.Remove(p); err != nil {
			l.lake.logger.Debug("file left behind", "table", l.name, "path", p, "error", err)
		}
	}
}
