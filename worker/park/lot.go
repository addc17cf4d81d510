package park

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Run is a stretch of a table's changes, as they came. Data is the source's own.
type Run struct {
	Seq      uint64 // from 1, without holes
	Data     []byte
	Events   int
	From, To catalog.Place // where reading stood before and after it
}

// Noted is what is known of a run that counts.
type Noted struct {
	Seq      uint64
	File     string // its name in the Store
	Digest   []byte // SHA-256 of the file
	Events   int
	Bytes    int64 // of the file
	From, To catalog.Place
}

// Store keeps files. Names are relative, of letters, digits, - and /. Safe for
// concurrent use.
type Store interface {
	// Put writes a file that is not there, whole. It is durable when it returns nil; when
	// it fails, nothing, part or all of it may be there.
	Put(ctx context.Context, name string, content []byte) error
	// Get reads a file of at most so many bytes. The error for one that is not there
	// wraps fs.ErrNotExist.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// List returns the names of the files below a folder, in any order; none when there
	// is no such folder.
	List(ctx context.Context, folder string) ([]string, error)
	// Delete removes files and the folders that this leaves empty. What is not there
	// is no error.
	Delete(ctx context.Context, names ...string) error
}

// Index says which files of one quarantine count. Safe for concurrent use.
type Index interface {
	// Note makes a file count; it is durable when it returns nil. Noting the same stretch
	// of changes again, in whatever file, changes nothing. It fails when the run is not
	// the next one.
	Note(ctx context.Context, run Noted) error
	// Runs returns the runs after one, in order, at most so many.
	Runs(ctx context.Context, after uint64, most int) ([]Noted, error)
}

// Lot keeps the runs of one quarantine. It is for one goroutine at a time.
type Lot struct {
	scope  Scope
	key    *Key
	store  Store
	index  Index
	folder string // in the store
}

// New returns the lot of a quarantine; the files of another key are in another folder.
func New(scope Scope, key *Key, store Store, index Index) *Lot {
	return &Lot{scope: scope, key: key, store: store, index: index, folder: Folder(scope.Quarantine, key.ID())}
}

// Folder is where a quarantine's files are in its Store.
func Folder(quarantine int64, keyID string) string {
	return strconv.FormatInt(quarantine, 10) + "-" + keyID
}

// Park seals a run, stores it and notes it, in this order: when it returns nil the
// source may forget what is in it, and when it fails the same run may be given again. A file
// that was stored and not noted does not count; Sweep removes it.
func (l *Lot) Park(ctx context.Context, run Run) error {
	file, err := seal(l.key, l.scope, run.Seq, run.Data)
	if err != nil {
		return err
	}
	// Each attempt has a file of its own, so that none, however late it comes from a worker
	// that was thought dead, changes what is noted.
	name := path.Join(l.folder, fmt.Sprintf("%010d-%s", run.Seq, attempt()))
	if err := l.store.Put(ctx, name, file); err != nil {
		return err
	}
	digest := sha256.Sum256(file)
	return l.index.Note(ctx, Noted{ // I9: from here on it is parked
		Seq: run.Seq, File: name, Digest: digest[:], Events: run.Events, Bytes: int64(len(file)), From: run.From, To: run.To,
	})
}

// pageRuns is how many runs are looked up at once.
const pageRuns = 256

// Runs yields the runs after one up to and including another, in order. It ends at the
// first that cannot be had, with an error: park.missing when it is not noted or its file
// is gone, park.damaged, park.key or park.version when it does not open, or what the
// Store says when it cannot tell.
func (l *Lot) Runs(ctx context.Context, after, through uint64) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for after < through {
			page, err := l.index.Runs(ctx, after, pageRuns)
			if err == nil && len(page) == 0 {
				err = l.missing(after+1, "is not noted")
			}
			if err != nil {
				yield(Run{}, err)
				return
			}
			for _, n := range page {
				if n.Seq > through {
					return
				}
				run, err := l.read(ctx, after+1, n)
				if !yield(run, err) || err != nil {
					return
				}
				after = n.Seq
			}
		}
	}
}

func (l *Lot) read(ctx context.Context, seq uint64, n Noted) (Run, error) {
	if n.Seq != seq {
		return Run{}, l.missing(seq, "is not noted, and run "+strconv.FormatUint(n.Seq, 10)+" is")
	}
	file, err := l.store.Get(ctx, n.File, maxSealed)
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, l.missing(seq, "has lost its file "+n.File)
	}
	if err != nil {
		return Run{}, err
	}
	data, err := open(l.key, l.scope, n.Seq, file)
	if err != nil {
		return Run{}, err
	}
	if digest := sha256.Sum256(file); !bytes.Equal(digest[:], n.Digest) {
		return Run{}, catalog.Errorf(catalog.Invalid, catalog.CodeParkDamaged,
			"restore the file as it was; when it cannot be, abandon the quarantine and read the table anew",
			"%s: the file %s of run %d is not the one that was noted", l.scope, n.File, n.Seq)
	}
	return Run{Seq: n.Seq, Data: data, Events: n.Events, From: n.From, To: n.To}, nil
}

func (l *Lot) missing(seq uint64, what string) error {
	return catalog.Errorf(catalog.Invalid, catalog.CodeParkMissing,
		"restore the warehouse and the registry as they were; when that cannot be, abandon the quarantine and read the table anew",
		"%s: run %d %s", l.scope, seq, what)
}

// Sweep removes the files that were stored and never noted, of the runs up to one: their
// numbers are taken, so that nobody can note them any more.
func (l *Lot) Sweep(ctx context.Context, through uint64) error {
	names, err := l.store.List(ctx, l.folder)
	if err != nil || len(names) == 0 {
		return err
	}
	noted := map[string]bool{}
	for after := uint64(0); after < through; {
		page, err := l.index.Runs(ctx, after, pageRuns)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return l.missing(after+1, "is not noted") // do not take it for swept
		}
		for _, n := range page {
			noted[n.File], after = true, n.Seq
		}
	}
	var stray []string
	for _, name := range names {
		seq, _, _ := strings.Cut(path.Base(name), "-")
		if n, err := strconv.ParseUint(seq, 10, 64); err == nil && n <= through && !noted[name] {
			stray = append(stray, name)
		}
	}
	return l.store.Delete(ctx, stray...)
}

// Clear removes every file of a quarantine that has ended. Its key is destroyed before,
// so that what cannot be removed now is not readable, and may be removed later.
func Clear(ctx context.Context, store Store, quarantine int64, keyID string) error {
	names, err := store.List(ctx, Folder(quarantine, keyID))
	if err != nil {
		return err
	}
	return store.Delete(ctx, names...)
}

func attempt() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
