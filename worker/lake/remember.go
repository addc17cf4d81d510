package lake

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// remembering is an Iceberg SQL catalog that commits on top of the metadata that it
// knows already. The library's own reads and parses the metadata file before every
// commit, and with hundreds of snapshots in it that is most of what a small commit
// costs. What it does to the database is the same: the table's row changes from the
// location that the commit was computed on to the new one, or not at all.
//
// Whatever is out of the ordinary is left to the library's. Safe for concurrent use.
type remembering struct {
	icecat.Catalog
	db     *sql.DB
	update string // the statement, in the database's dialect
	name   string // of the catalog
	props  iceberg.Properties

	mu    sync.Mutex
	known map[string]*table.Table
	fs    map[string]icebergio.WriteFileIO // by scheme and host
}

const casUpdate = `UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?
WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?`

func newRemembering(c icecat.Catalog, db *sql.DB, postgres bool, name string, props iceberg.Properties) *remembering {
	r := &remembering{Catalog: c, db: db, update: casUpdate, name: name, props: props, known: map[string]*table.Table{}, fs: map[string]icebergio.WriteFileIO{}}
	if postgres {
		for n := 1; strings.Contains(r.update, "?"); n++ {
			r.update = strings.Replace(r.update, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	return r
}

func key(ident table.Identifier) string { return strings.Join(ident, "\x1f") }

func (r *remembering) remember(ident table.Identifier, t *table.Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t == nil {
		delete(r.known, key(ident))
		return
	}
	r.known[key(ident)] = t
}

func (r *remembering) LoadTable(ctx context.Context, ident table.Identifier) (*table.Table, error) {
	t, err := r.Catalog.LoadTable(ctx, ident)
	if err == nil {
		r.remember(ident, t)
	}
	return t, err
}

func (r *remembering) CommitTable(ctx context.Context, ident table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	r.mu.Lock()
	base := r.known[key(ident)]
	r.mu.Unlock()
	next, ok := r.plan(ident, base, reqs, updates)
	var err error
	if ok {
		err = r.land(ctx, ident, base, next)
	} else {
		next.md, next.location, err = r.Catalog.CommitTable(ctx, ident, reqs, updates)
	}
	if err != nil {
		r.remember(ident, nil)
		return nil, "", err
	}
	r.remember(ident, table.New(ident, next.md, next.location, icebergio.LoadFSFunc(r.props, next.location), r))
	return next.md, next.location, nil
}

type planned struct {
	md       table.Metadata
	location string
}

// plan computes what a commit makes of the table as it is known; false when that is
// not known, may be out of date or is not for this catalog to do.
func (r *remembering) plan(ident table.Identifier, base *table.Table, reqs []table.Requirement, updates []table.Update) (planned, bool) {
	if base == nil || slices.ContainsFunc(ident, func(p string) bool { return p == "" || strings.HasPrefix(p, "__iceberg_namespace") }) ||
		slices.ContainsFunc(ident[:len(ident)-1], func(p string) bool { return strings.Contains(p, ".") }) {
		return planned{}, false
	}
	number, _, ok := strings.Cut(path.Base(base.MetadataLocation()), "-")
	version, err := strconv.Atoi(number)
	if !ok || err != nil {
		return planned{}, false
	}
	for _, req := range reqs {
		if req.Validate(base.Metadata()) != nil {
			return planned{}, false
		}
	}
	md, err := table.UpdateTableMetadata(base.Metadata(), updates, base.MetadataLocation())
	if err != nil || md.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault) != table.MetadataCompressionCodecNone {
		return planned{}, false
	}
	provider, err := table.LoadLocationProvider(md.Location(), md.Properties())
	if err != nil {
		return planned{}, false
	}
	location, err := provider.NewTableMetadataFileLocation(version + 1)
	return planned{md, location}, err == nil
}

func (r *remembering) land(ctx context.Context, ident table.Identifier, base *table.Table, next planned) error {
	fs, err := r.files(ctx, next.location)
	if err != nil {
		return err
	}
	b, err := json.Marshal(next.md)
	if err != nil {
		return fmt.Errorf("table metadata: %w", err)
	}
	if err := fs.WriteFile(next.location, b); err != nil {
		_ = fs.Remove(next.location) // half a file on a full disk would keep it full
		return fmt.Errorf("table metadata: %w", err)
	}
	res, err := r.db.ExecContext(ctx, r.update, next.location, base.MetadataLocation(), r.name,
		strings.Join(ident[:len(ident)-1], "."), ident[len(ident)-1], base.MetadataLocation())
	if err != nil {
		return fmt.Errorf("update the catalog: %w", err) // it may have landed: the file stays
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		if err == nil {
			_ = fs.Remove(next.location)
		}
		return fmt.Errorf("%w: the table's metadata is not %s any more", table.ErrCommitFailed, base.MetadataLocation())
	}
	return nil
}

// files returns the file system of a location, opening each once.
func (r *remembering) files(ctx context.Context, location string) (icebergio.WriteFileIO, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("location %s: %w", location, err)
	}
	at := u.Scheme + "://" + u.Host
	r.mu.Lock()
	defer r.mu.Unlock()
	if fs := r.fs[at]; fs != nil {
		return fs, nil
	}
	fs, err := icebergio.LoadFS(ctx, r.props, location)
	if err != nil {
		return nil, err
	}
	w, ok := fs.(icebergio.WriteFileIO)
	if !ok {
		return nil, fmt.Errorf("%s cannot be written to", at)
	}
	r.fs[at] = w
	return w, nil
}
