package lake

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // s3:// warehouses
	_ "github.com/jackc/pgx/v5/stdlib"             // Postgres catalogs
	"golang.org/x/sync/semaphore"
	_ "modernc.org/sqlite" // SQLite catalogs

	"github.com/lakeweir/lakeweir/catalog"
)

// Lake is an open catalog with its warehouse. Safe for concurrent use; the layers
// it opens are each for one goroutine at a time.
type Lake struct {
	cat       icecat.Catalog
	kind      catalogKind
	warehouse string
	props     iceberg.Properties
	close     func() error
	secrets   []string
	logger    *slog.Logger
	now       func() time.Time
	retry     retryPolicy
	images    *imageCache
	work      *semaphore.Weighted // of workBytes: what is being encoded and decoded
	workBytes int64
	imageMost int64        // bytes of rows read for one fold
	findMost  int          // rows found for one TRUNCATE
	indexes   atomic.Int64 // bytes of all key indexes
	creating  sync.Mutex   // held while a table is created
}

// IndexBytes returns about how many bytes the key indexes of all tables take.
func (l *Lake) IndexBytes() int64 { return l.indexes.Load() }

// Open connects to the catalog, creating a SQL catalog's tables and a local
// warehouse's folder when they are absent. It fails with lake.config or
// lake.unavailable. Close it.
func Open(ctx context.Context, cfg Config, logger *slog.Logger) (*Lake, error) {
	cfg = cfg.WithDefaults()
	t, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	l := &Lake{
		kind: t.kind, warehouse: t.warehouse, secrets: cfg.secrets(), logger: logger,
		now:   cfg.Now,
		retry: defaultRetry, images: newImageCache(cfg.CacheBytes),
		work: semaphore.NewWeighted(cfg.WorkBytes), workBytes: cfg.WorkBytes, imageMost: cfg.ImageBytes, findMost: cfg.FindRows,
		close: func() error { return nil },
	}
	makeDurable()
	if path, ok := strings.CutPrefix(t.warehouse, "file://"); ok {
		if path, err = url.PathUnescape(path); err == nil {
			err = os.MkdirAll(path, 0o755) //nolint:gosec // other readers of the lake run as other users
		}
		if err != nil {
			return nil, l.unavailable(err, "the warehouse cannot be created")
		}
	}
	if err := l.connect(ctx, cfg, t); err != nil {
		_ = l.close()
		return nil, l.unavailable(err, "the lake's catalog cannot be opened")
	}
	return l, nil
}

func (l *Lake) connect(ctx context.Context, cfg Config, t target) error {
	props := iceberg.Properties(cfg.Properties)
	l.props = props
	if t.warehouse != "" {
		props["warehouse"] = t.warehouse
	}
	switch t.kind {
	case sqliteCatalog:
		if err := createFile(t.path); err != nil {
			return err
		}
		// WAL lets readers and writers of several processes go on beside each other;
		// FULL makes a commit that was answered survive a power cut.
		q := url.Values{"_pragma": {"busy_timeout(15000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"}}
		return l.connectSQL(ctx, cfg.CatalogName, "sqlite", "file:"+url.PathEscape(t.path)+"?"+q.Encode(), sqlcat.SQLite, props)
	case postgresCatalog:
		return l.connectSQL(ctx, cfg.CatalogName, "pgx", cfg.Catalog, sqlcat.Postgres, props)
	case restCatalog:
		opts := []rest.Option{rest.WithAdditionalProps(props)}
		if t.warehouse != "" {
			opts = append(opts, rest.WithWarehouseLocation(t.warehouse))
		}
		if v := props["token"]; v != "" {
			opts = append(opts, rest.WithOAuthToken(v))
		}
		if v := props["credential"]; v != "" {
			opts = append(opts, rest.WithCredential(v))
		}
		if v := props["scope"]; v != "" {
			opts = append(opts, rest.WithScope(v))
		}
		c, err := rest.NewCatalog(ctx, cfg.CatalogName, cfg.Catalog, opts...)
		if err != nil {
			return err
		}
		l.cat = c
		if closer, ok := icecat.Catalog(c).(io.Closer); ok {
			l.close = closer.Close
		}
	}
	return nil
}

// createFile makes an empty file, which SQLite takes for an empty catalog, where there
// is none. A path that can never be written to is a mistake in the configuration;
// SQLite would only say that it cannot open it. A file that is there is not opened:
// closing it again would give up the locks that SQLite holds on it in this process, and
// another process would take itself for the last user of the catalog and remove its log.
func createFile(path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // other readers of the lake run as other users
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err == nil { //nolint:gosec // as above
			return f.Close()
		}
	}
	if errors.Is(err, fs.ErrExist) {
		info, statErr := os.Stat(path)
		switch {
		case statErr != nil:
			err = statErr
		case info.IsDir():
			err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
		case info.Mode().Perm()&0o222 == 0:
			err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		default:
			return nil
		}
	}
	for _, never := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS} {
		if errors.Is(err, never) {
			return catalog.Errorf(catalog.Invalid, catalog.CodeLakeConfig, "name a file that can be written to, as in sqlite:///path/catalog.db", "the catalog's file cannot be created: %w", err)
		}
	}
	return err
}

func (l *Lake) connectSQL(ctx context.Context, name, driver, dsn string, dialect sqlcat.SupportedDialect, props iceberg.Properties) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		// The driver's text may repeat the DSN.
		return catalog.Errorf(catalog.Invalid, catalog.CodeLakeConfig, "check the catalog's URL", "the catalog's URL is not one that the %s driver reads", driver)
	}
	db.SetMaxOpenConns(4)
	db.SetConnMaxIdleTime(time.Minute)
	l.close = db.Close
	if err := db.PingContext(ctx); err != nil {
		return err
	}
	c, err := sqlcat.NewCatalog(name, db, dialect, props)
	for attempt := 0; err != nil && attempt < 3; attempt++ {
		// Processes that start together create the catalog's tables at once, and
		// IF NOT EXISTS does not keep them apart.
		if werr := l.retry.wait(ctx, attempt); werr != nil {
			return werr
		}
		c, err = sqlcat.NewCatalog(name, db, dialect, props)
	}
	if err != nil {
		return err
	}
	l.cat = newRemembering(c, db, dialect == sqlcat.Postgres, name, props)
	l.close = func() error { return errors.Join(c.Close(), db.Close()) }
	return nil
}

// Close releases the catalog's connections. Layers must not be used any more.
func (l *Lake) Close() error { return l.close() }
