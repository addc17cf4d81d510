package lake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	icecat "github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/io/gocloud/blobfs"

	"github.com/lakeweir/lakeweir/catalog"
)

// besides is the folder of the warehouse for what is no table. Its underscore hides it
// from engines that look for files of no table, to remove them.
const besides = "_lakeweir"

// Files are small files of ours beside the tables of the warehouse, below one folder.
// Names are relative to it, of letters, digits, _, - and /. Safe for concurrent use.
type Files struct {
	lake   *Lake
	folder string // a URI
	ident  []string

	mu     sync.Mutex
	fs     icebergio.IO
	loaded time.Time
	synced map[string]bool // local folders whose own entry is on the disk
}

// reload is how long the credentials are used that a REST catalog gave with a table.
const reload = 5 * time.Minute

// ParkFolder returns where what is parked for a table goes: a URI that stays good for
// OpenFiles, also when the configuration comes to name another warehouse. It fails with
// lake.config when the warehouse is known to the REST catalog alone and the table has
// no bronze yet that would tell.
func (l *Lake) ParkFolder(ctx context.Context, source *catalog.Source, table catalog.TableName) (string, error) {
	base := l.warehouse
	if !strings.Contains(base, "://") {
		tbl, err := l.cat.LoadTable(ctx, source.LakeName(table, catalog.Bronze))
		switch {
		case errors.Is(err, icecat.ErrNoSuchTable), errors.Is(err, icecat.ErrNoSuchNamespace):
			return "", configError("the catalog alone knows where its warehouse is, and has no table yet beside which changes could be parked",
				"set the warehouse to its s3://bucket/prefix")
		case err != nil:
			return "", l.unavailable(err, "the place of the lake's tables cannot be read")
		}
		base = tbl.Location()
		base = base[:max(strings.LastIndexByte(base, '/'), strings.Index(base, "://")+len("://"))]
	}
	return strings.Join([]string{strings.TrimRight(base, "/"), besides, "parked", safeName(source.Name), safeName(table.String())}, "/"), nil
}

// OpenFiles opens the files below a folder that ParkFolder returned for the table.
func (l *Lake) OpenFiles(ctx context.Context, source *catalog.Source, table catalog.TableName, folder string) (*Files, error) {
	f := &Files{lake: l, folder: strings.TrimRight(folder, "/"), ident: source.LakeName(table, catalog.Bronze), synced: map[string]bool{}}
	_, err := f.in(ctx)
	return f, err
}

// load opens the file system of the folder. A REST catalog may tell with a table how its
// files are reached, with credentials that expire.
func (f *Files) load(ctx context.Context) (icebergio.IO, error) {
	if f.lake.kind == restCatalog {
		tbl, err := f.lake.cat.LoadTable(ctx, f.ident)
		if err == nil && place(tbl.Location()) == place(f.folder) {
			ofTable, err := tbl.FS(ctx)
			if err != nil {
				return nil, f.lake.unavailable(err, "the warehouse cannot be opened")
			}
			return ofTable, nil
		}
		if err != nil && !errors.Is(err, icecat.ErrNoSuchTable) && !errors.Is(err, icecat.ErrNoSuchNamespace) {
			return nil, f.lake.unavailable(err, "the warehouse cannot be opened")
		}
	}
	plain, err := icebergio.LoadFS(ctx, f.lake.props, f.folder)
	if err != nil {
		return nil, f.lake.unavailable(err, "the warehouse cannot be opened")
	}
	return plain, nil
}

// place is the bucket of a URI with its scheme; all local files have one.
func place(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// in returns the file system with the context of one call.
func (f *Files) in(ctx context.Context) (icebergio.IO, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.lake.now(); f.fs == nil || f.lake.kind == restCatalog && now.Sub(f.loaded) > reload {
		fresh, err := f.load(ctx)
		if err != nil {
			return nil, err
		}
		f.fs, f.loaded = fresh, now
	}
	if b, ok := f.fs.(*blobfs.FileIO); ok {
		scheme, rest, _ := strings.Cut(f.folder, "://")
		bucket, _, _ := strings.Cut(rest, "/")
		return blobfs.New(ctx, b.Bucket, blobfs.DefaultObjectLocationExtractor(bucket, scheme)), nil
	}
	return f.fs, ctx.Err()
}

// uri checks a name and returns where its file is.
func (f *Files) uri(name string) (string, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || safeName(part) != part {
			return "", fmt.Errorf("%q names no file in the warehouse", name)
		}
	}
	return f.folder + "/" + name, nil
}

// Put writes a file whole. On a local disk it is there once Put returns nil, with the
// folders that it is in; a bucket has all of an object or none. When Put fails, nothing,
// part or all of it may be there.
func (f *Files) Put(ctx context.Context, name string, content []byte) error {
	at, err := f.uri(name)
	if err != nil {
		return err
	}
	files, err := f.in(ctx)
	if err != nil {
		return err
	}
	w, ok := files.(icebergio.WriteFileIO)
	if !ok {
		return configError("the warehouse cannot be written to", "use a file:// or s3:// warehouse")
	}
	if err := w.WriteFile(at, content); err != nil {
		return f.unavailable(ctx, err, at, "written")
	}
	if local, ok := localPath(at); ok {
		if err := f.syncFolders(local); err != nil {
			return f.unavailable(ctx, err, at, "written")
		}
	}
	return nil
}

// Get reads a file of at most so many bytes. The error for one that is not there wraps
// fs.ErrNotExist.
func (f *Files) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	at, err := f.uri(name)
	if err != nil {
		return nil, err
	}
	files, err := f.in(ctx)
	if err != nil {
		return nil, err
	}
	r, err := files.Open(at)
	if err != nil {
		return nil, f.unavailable(ctx, err, at, "read")
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, f.unavailable(ctx, err, at, "read")
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", at, info.Size(), most)
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, f.unavailable(ctx, err, at, "read")
	}
	return content, nil
}

// List returns the names of the files below a folder, in order; none when there is no
// such folder.
func (f *Files) List(ctx context.Context, folder string) ([]string, error) {
	at, err := f.uri(folder)
	if err != nil {
		return nil, err
	}
	files, err := f.in(ctx)
	if err != nil {
		return nil, err
	}
	walker, ok := files.(icebergio.ListableIO)
	if !ok {
		return nil, configError("the warehouse's files cannot be listed", "use a file:// or s3:// warehouse")
	}
	root := at
	if local, ok := localPath(at); ok {
		root = local // paths are given back without a scheme
	}
	var names []string
	err = walker.WalkDir(root, func(found string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path.Join(folder, strings.TrimPrefix(strings.TrimPrefix(found, at), root)))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f.unavailable(ctx, err, at, "listed")
	}
	slices.Sort(names)
	return names, nil
}

// Delete removes files and the folders that this leaves empty. What is not there is no
// error; of several that cannot be removed, all others are.
func (f *Files) Delete(ctx context.Context, names ...string) error {
	files, err := f.in(ctx)
	if err != nil {
		return err
	}
	var failed []error
	uris := make([]string, 0, len(names))
	folders := map[string]bool{}
	for _, name := range names {
		at, err := f.uri(name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		uris = append(uris, at)
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			folders[folder] = true
		}
	}
	if bulk, ok := files.(icebergio.BulkRemovableIO); ok {
		_, err := bulk.DeleteFiles(ctx, uris)
		failed = append(failed, f.unavailable(ctx, err, f.folder, "removed"))
	} else {
		for _, at := range uris {
			if err := files.Remove(at); !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, f.unavailable(ctx, err, at, "removed"))
			}
		}
	}
	for folder := range folders {
		if local, ok := localPath(f.folder + "/" + folder); ok {
			if os.Remove(local) == nil { // it fails while something is in it
				f.mu.Lock()
				delete(f.synced, local)
				f.mu.Unlock()
			}
		}
	}
	return errors.Join(failed...)
}

func (f *Files) unavailable(ctx context.Context, err error, at, done string) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return f.lake.unavailable(err, "the warehouse's file "+at+" cannot be "+done)
}

// syncFolders brings a local file's entry to the disk, with those of the folders that
// may have been made for it.
func (f *Files) syncFolders(file string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	warehouse, _, _ := strings.Cut(f.folder, "/"+besides+"/")
	top, _ := localPath(warehouse)
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		if err := syncFolder(folder); err != nil {
			return err
		}
		if f.synced[folder] || folder == top || folder == path.Dir(folder) {
			return nil
		}
		f.synced[folder] = true
	}
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// localPath is the path of a file:// URI.
func localPath(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, "file://")
	if !ok {
		return "", false
	}
	p, err := url.PathUnescape(rest)
	return p, err == nil
}
