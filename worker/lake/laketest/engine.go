package laketest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	_ "github.com/jackc/pgx/v5/stdlib" // catalogs in Postgres
	_ "modernc.org/sqlite"             // catalogs in a file
)

// ErrNoTable is wrapped by what is done to a table that is not there.
var ErrNoTable = icecat.ErrNoSuchTable

// Engine is another program that knows the lake's catalog. Safe for concurrent use.
type Engine struct {
	cat icecat.Catalog
	db  *sql.DB
}

// SQLite opens the catalog in a file, making it when it is absent. The warehouse is
// where it puts tables that are made through Server; it may be empty. Close it.
func SQLite(path, warehouse string) (*Engine, error) {
	return openEngine("sqlite", "file:"+path+"?_pragma=busy_timeout(15000)&_pragma=journal_mode(WAL)&_txlock=immediate", sqlcat.SQLite, warehouse)
}

// Postgres opens the catalog in a database.
func Postgres(dsn string) (*Engine, error) { return openEngine("pgx", dsn, sqlcat.Postgres, "") }

func openEngine(driver, dsn string, dialect sqlcat.SupportedDialect, warehouse string) (*Engine, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	props := iceberg.Properties{}
	if warehouse != "" {
		props["warehouse"] = warehouse
	}
	c, err := sqlcat.NewCatalog("lakeweir", db, dialect, props)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Engine{c, db}, nil
}

// Close releases the catalog.
func (e *Engine) Close() error { return e.db.Close() }

// Load reads a table.
func (e *Engine) Load(ctx context.Context, ident []string) (*table.Table, error) {
	return e.cat.LoadTable(ctx, ident)
}

// Drop removes a table from the catalog; its files stay.
func (e *Engine) Drop(ctx context.Context, ident []string) error { return e.cat.DropTable(ctx, ident) }

// change commits what f stages, again while others commit first.
func (e *Engine) change(ctx context.Context, ident []string, f func(t *table.Table) (*table.Transaction, error)) error {
	var err error
	for range 20 {
		var t *table.Table
		if t, err = e.cat.LoadTable(ctx, ident); err != nil {
			return err
		}
		var tx *table.Transaction
		if tx, err = f(t); err != nil || tx == nil {
			return err
		}
		if _, err = tx.Commit(ctx); err == nil {
			return nil
		}
	}
	return fmt.Errorf("change %v: %w", ident, err)
}

// SetProperty sets a property of a table.
func (e *Engine) SetProperty(ctx context.Context, ident []string, key, value string) error {
	return e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		tx := t.NewTransaction()
		return tx, tx.SetProperties(iceberg.Properties{key: value})
	})
}

// AddColumn adds an optional column of text.
func (e *Engine) AddColumn(ctx context.Context, ident []string, name string) error {
	return e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		if _, ok := t.Schema().FindFieldByName(name); ok {
			return nil, nil //nolint:nilnil // nothing to do
		}
		tx := t.NewTransaction()
		return tx, tx.UpdateSchema(true, false).AddColumn([]string{name}, iceberg.PrimitiveTypes.String, "", false, nil).Commit()
	})
}

// Append adds a row. Values are int64, string or bool by column; the others are NULL,
// or zero where they may not be.
func (e *Engine) Append(ctx context.Context, ident []string, row map[string]any) error {
	return e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		schema, err := table.SchemaToArrowSchema(t.Schema(), nil, true, false)
		if err != nil {
			return nil, err
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i, f := range schema.Fields() {
			if err := appendValue(b.Field(i), row[f.Name], f.Nullable); err != nil {
				return nil, fmt.Errorf("column %s: %w", f.Name, err)
			}
		}
		rdr, err := array.NewRecordReader(schema, []arrow.RecordBatch{b.NewRecordBatch()})
		if err != nil {
			return nil, err
		}
		tx := t.NewTransaction()
		return tx, tx.Append(ctx, rdr, nil)
	})
}

func appendValue(b array.Builder, v any, nullable bool) error {
	switch b := b.(type) {
	case *array.Int64Builder:
		if n, ok := v.(int64); ok || !nullable {
			b.Append(n)
			return nil
		}
	case *array.Int32Builder:
		if n, ok := v.(int64); ok || !nullable {
			b.Append(int32(n))
			return nil
		}
	case *array.TimestampBuilder:
		if n, ok := v.(int64); ok || !nullable {
			b.Append(arrow.Timestamp(n))
			return nil
		}
	case *array.StringBuilder:
		if s, ok := v.(string); ok || !nullable {
			b.Append(s)
			return nil
		}
	case *array.BooleanBuilder:
		if t, ok := v.(bool); ok || !nullable {
			b.Append(t)
			return nil
		}
	}
	if v != nil || !nullable {
		return fmt.Errorf("%T does not take %T", b, v)
	}
	b.AppendNull()
	return nil
}

// Compact rewrites all data files of a table into new ones, without what is deleted,
// as Spark's rewrite_data_files does.
func (e *Engine) Compact(ctx context.Context, ident []string) error {
	return e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		tasks, err := t.Scan().PlanFiles(ctx)
		if err != nil || len(tasks) == 0 {
			return nil, err
		}
		groups := map[string]*table.CompactionTaskGroup{}
		for _, task := range tasks {
			k := fmt.Sprint(task.File.Partition())
			if groups[k] == nil {
				groups[k] = &table.CompactionTaskGroup{PartitionKey: k}
			}
			groups[k].Tasks = append(groups[k].Tasks, task)
			groups[k].TotalSizeBytes += task.File.FileSizeBytes()
		}
		var list []table.CompactionTaskGroup
		for _, g := range groups {
			list = append(list, *g)
		}
		tx := t.NewTransaction()
		_, err = tx.RewriteDataFiles(ctx, list, table.RewriteDataFilesOptions{})
		return tx, err
	})
}

// RewriteManifests makes a snapshot with the same files.
func (e *Engine) RewriteManifests(ctx context.Context, ident []string) error {
	return e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		tx := t.NewTransaction()
		_, err := tx.RewriteManifests(ctx)
		return tx, err
	})
}

// RollBack sets main back by up to n snapshots and returns where it was and is; the
// same when there was none to go back to.
func (e *Engine) RollBack(ctx context.Context, ident []string, n int) (from, to int64, err error) {
	err = e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		s := t.CurrentSnapshot()
		if s == nil {
			return nil, nil //nolint:nilnil // nothing to do
		}
		from, to = s.SnapshotID, s.SnapshotID
		for range n {
			if s.ParentSnapshotID == nil {
				break
			}
			parent := t.SnapshotByID(*s.ParentSnapshotID)
			if parent == nil {
				break
			}
			s = parent
		}
		if to = s.SnapshotID; to == from {
			return nil, nil //nolint:nilnil // nothing to do
		}
		tx := t.NewTransaction()
		return tx, tx.RollbackToSnapshot(to)
	})
	return from, to, err
}

// Rows returns how many rows a snapshot says it holds; 0 when it is gone or does not say.
func Rows(t *table.Table, snapshot int64) int64 {
	s := t.SnapshotByID(snapshot)
	if s == nil || s.Summary == nil {
		return 0
	}
	n, _ := strconv.ParseInt(s.Summary.Properties["total-records"], 10, 64)
	return n
}

// SetMain sets main to a snapshot that the table still has.
func (e *Engine) SetMain(ctx context.Context, ident []string, snapshot int64) error {
	_, _, err := e.cat.CommitTable(ctx, ident, nil, []table.Update{table.NewSetSnapshotRefUpdate(table.MainBranch, snapshot, table.BranchRef, 0, 0, 0)})
	return err
}

// Expire forgets every snapshot that no branch and no tag names, and deletes the
// files that were only theirs. With untag the tags go first.
func (e *Engine) Expire(ctx context.Context, ident []string, untag bool) error {
	if untag {
		t, err := e.cat.LoadTable(ctx, ident)
		if err != nil {
			return err
		}
		var drop []table.Update
		for name, ref := range t.Metadata().Refs() {
			if ref.SnapshotRefType == table.TagRef {
				drop = append(drop, table.NewRemoveSnapshotRefUpdate(name))
			}
		}
		if len(drop) > 0 {
			if _, _, err := e.cat.CommitTable(ctx, ident, []table.Requirement{table.AssertTableUUID(t.Metadata().TableUUID())}, drop); err != nil {
				return err
			}
		}
	}
	return e.change(ctx, ident, func(t *table.Table) (*table.Transaction, error) {
		if len(t.Metadata().Snapshots()) < 2 {
			return nil, nil //nolint:nilnil // nothing to do
		}
		tx := t.NewTransaction()
		return tx, tx.ExpireSnapshots(table.WithRetainLast(1), table.WithOlderThan(0))
	})
}

// RemoveOrphans deletes files under the table that no snapshot names and that are
// older than an age.
func (e *Engine) RemoveOrphans(ctx context.Context, ident []string, age time.Duration) error {
	t, err := e.cat.LoadTable(ctx, ident)
	if err != nil {
		return err
	}
	_, err = t.DeleteOrphanFiles(ctx, table.WithFilesOlderThan(age))
	return err
}

// Chain returns the ids of main's snapshots from the head back to the first, and an
// error where a parent is missing.
func (e *Engine) Chain(ctx context.Context, ident []string) ([]int64, error) {
	t, err := e.cat.LoadTable(ctx, ident)
	if err != nil {
		return nil, err
	}
	var out []int64
	for s := t.CurrentSnapshot(); s != nil; {
		out = append(out, s.SnapshotID)
		if s.ParentSnapshotID == nil {
			return out, nil
		}
		parent := t.SnapshotByID(*s.ParentSnapshotID)
		if parent == nil || slices.Contains(out, parent.SnapshotID) {
			return out, fmt.Errorf("the parent %d of snapshot %d is missing", *s.ParentSnapshotID, s.SnapshotID)
		}
		s = parent
	}
	return out, nil
}

// Count reads a table whole and returns how many rows it has; it fails when a file of
// it is missing.
func (e *Engine) Count(ctx context.Context, ident []string) (int64, error) {
	t, err := e.cat.LoadTable(ctx, ident)
	if err != nil {
		return 0, err
	}
	rows, err := t.Scan().ToArrowTable(ctx)
	if err != nil {
		return 0, err
	}
	defer rows.Release()
	return rows.NumRows(), nil
}

// Describe prints the snapshots that a table has, oldest first, for a test that failed.
func (e *Engine) Describe(ctx context.Context, ident []string) string {
	t, err := e.cat.LoadTable(ctx, ident)
	if err != nil {
		return fmt.Sprintf("%v: %v\n", ident, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, main at %d\n", strings.Join(ident, "."), t.CurrentSnapshot().SnapshotID)
	snapshots := slices.Clone(t.Metadata().Snapshots())
	slices.SortFunc(snapshots, func(a, b table.Snapshot) int { return int(a.SequenceNumber - b.SequenceNumber) })
	for _, s := range snapshots {
		parent := int64(0)
		if s.ParentSnapshotID != nil {
			parent = *s.ParentSnapshotID
		}
		fmt.Fprintf(&b, "  %d: %d on %d", s.SequenceNumber, s.SnapshotID, parent)
		if s.Summary != nil {
			p := s.Summary.Properties
			fmt.Fprintf(&b, " %s, cursor %q, files +%s -%s =%s, rows =%s, deleted =%s", s.Summary.Operation, p["lakeweir.cursor"],
				p["added-data-files"], p["deleted-data-files"], p["total-data-files"], p["total-records"], p["total-position-deletes"])
		}
		b.WriteString("\n")
	}
	return b.String()
}
