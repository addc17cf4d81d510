package laketest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
)

// Op is a write or a read of a file of the warehouse.
type Op struct {
	Path  string
	Write bool
	N     int // of the writes, or of the reads, from 1
}

// Fate is what becomes of an Op.
type Fate struct {
	// Before is called first, Half once half of a file is written, After once all is.
	Before, Half, After func()
	Delay               time.Duration
	// Err fails the operation with nothing done; Full writes half of the file and
	// then there is no space left; Unsynced writes all, and fails to get it to disk.
	Err            error
	Full, Unsynced bool
}

// watched are the folders whose files are in trouble. iceberg-go's registry of file
// systems is one for the process, so this is too.
var watched = struct {
	sync.Mutex
	once    sync.Once
	folders map[string]*folder
}{folders: map[string]*folder{}}

type folder struct {
	mu            sync.Mutex
	writes, reads int
	decide        func(Op) Fate
}

// Watch has decide say what becomes of every write and read below a folder, until
// stop is called. It holds for lakes that are opened afterwards. Call it once a lake
// was opened in this process, so that what the lake makes of the file system is kept.
func Watch(dir string, decide func(Op) Fate) (stop func(), err error) {
	watched.once.Do(func() {
		var inner icebergio.IO
		if inner, err = icebergio.LoadFS(context.Background(), nil, "file:///"); err != nil {
			return
		}
		w, ok := inner.(icebergio.WriteFileIO)
		if !ok {
			err = fmt.Errorf("%T cannot be written to", inner)
			return
		}
		icebergio.Unregister("file")
		icebergio.Register("file", func(context.Context, *url.URL, map[string]string) (icebergio.IO, error) {
			return troubledFS{inner: w}, nil
		})
	})
	watched.Lock()
	defer watched.Unlock()
	watched.folders[dir] = &folder{decide: decide}
	return func() {
		watched.Lock()
		defer watched.Unlock()
		delete(watched.folders, dir)
	}, err
}

func fateOf(name string, write bool) Fate {
	path := strings.TrimPrefix(name, "file://")
	watched.Lock()
	var at *folder
	for dir, f := range watched.folders {
		if strings.HasPrefix(path, dir+"/") {
			at = f
		}
	}
	watched.Unlock()
	if at == nil {
		return Fate{}
	}
	at.mu.Lock()
	op := Op{Path: path, Write: write}
	if write {
		at.writes++
		op.N = at.writes
	} else {
		at.reads++
		op.N = at.reads
	}
	f := at.decide(op)
	at.mu.Unlock()
	call(f.Before)
	if f.Delay > 0 {
		time.Sleep(f.Delay) //nolint:forbidigo // a slow disk
	}
	return f
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// troubledFS is a file system with trouble; what is not of it is that of plain files.
type troubledFS struct {
	icebergio.LocalFS
	inner icebergio.WriteFileIO
}

func (t troubledFS) Open(name string) (icebergio.File, error) {
	if f := fateOf(name, false); f.Err != nil {
		return nil, f.Err
	}
	return t.inner.Open(name)
}

func (t troubledFS) Create(name string) (icebergio.FileWriter, error) {
	fate := fateOf(name, true)
	if fate.Err != nil {
		return nil, fate.Err
	}
	w, err := t.inner.Create(name)
	if err != nil {
		return nil, err
	}
	return &troubledFile{FileWriter: w, fate: fate}, nil
}

func (t troubledFS) WriteFile(name string, content []byte) error {
	w, err := t.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return errors.Join(err, w.Close())
}

type troubledFile struct {
	icebergio.FileWriter
	fate Fate
	half bool
}

func (f *troubledFile) Write(p []byte) (int, error) {
	if f.half || !f.fate.Full && f.fate.Half == nil {
		return f.FileWriter.Write(p)
	}
	f.half = true
	n, err := f.FileWriter.Write(p[:len(p)/2])
	if err != nil {
		return n, err
	}
	call(f.fate.Half)
	if f.fate.Full {
		return n, syscall.ENOSPC
	}
	m, err := f.FileWriter.Write(p[n:])
	return n + m, err
}

func (f *troubledFile) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return int64(n), err
}

func (f *troubledFile) Close() error {
	err := f.FileWriter.Close()
	call(f.fate.After)
	if f.fate.Unsynced {
		return errors.Join(err, syscall.EIO)
	}
	return err
}
