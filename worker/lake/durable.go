package lake

import (
	"context"
	"errors"
	"net/url"
	"sync"

	icebergio "github.com/apache/iceberg-go/io"
)

// durableFS is the local file system with files that are on the disk once they are
// closed. A source forgets what bronze holds, so what bronze holds must survive a
// power cut: the catalog must never name a file that is only in the page cache.
type durableFS struct{ icebergio.LocalFS }

func (d durableFS) Create(name string) (icebergio.FileWriter, error) {
	f, err := d.LocalFS.Create(name)
	if err != nil {
		return nil, err
	}
	return durableFile{f}, nil
}

func (d durableFS) WriteFile(name string, content []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

type durableFile struct{ icebergio.FileWriter }

func (f durableFile) Close() error {
	var err error
	if s, ok := f.FileWriter.(interface{ Sync() error }); ok {
		err = s.Sync()
	}
	return errors.Join(err, f.FileWriter.Close())
}

// makeDurable has Iceberg write file:// through durableFS. Its registry of file
// systems is one for the process, and catalogs write their metadata through it.
var makeDurable = sync.OnceFunc(func() {
	icebergio.Unregister("file")
	icebergio.Register("file", func(context.Context, *url.URL, map[string]string) (icebergio.IO, error) { return durableFS{}, nil })
})
