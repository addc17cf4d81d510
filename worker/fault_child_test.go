package worker_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

// trouble is what a worker's process meets in its warehouse, and the clock it has.
type trouble struct {
	Files []fileFault
	Clock time.Duration // ahead of the real one; behind when negative
	Save  time.Duration // between two saves of a table; 0 is 20 ms
	Says  bool          // prints a line for each snapshot it stages and each fault that comes
}

// fileFault comes at the At-th write (or read) of a file, and goes on for For of them.
type fileFault struct {
	Kind    string
	At, For int
}

// The kinds of trouble with files.
const (
	warehouseDown   = "warehouse down"
	readsFail       = "warehouse down for reading"
	diskFull        = "disk full"
	notSynced       = "fsync failed"
	slowDisk        = "disk slow"
	killedBefore    = "SIGKILL before a write"
	killedWithin    = "SIGKILL in the middle of a write"
	killedAfter     = "SIGKILL after a write"
	slowDiskDelay   = 30 * time.Millisecond
	prefixStaged    = "staged "
	prefixFault     = "fault "
	unreachableLake = "http://127.0.0.1:1"
)

// begin sets the trouble up in this process and returns its clock.
func (t trouble) begin(warehouse string) (now func() time.Time, err error) {
	if t.Clock != 0 {
		now = func() time.Time { return time.Now().Add(t.Clock) }
	}
	if !t.Says {
		return now, nil
	}
	// A lake makes the file system its own when it is first opened, also in vain.
	if l, err := lake.Open(context.Background(), lake.Config{Catalog: unreachableLake}, nil); err == nil {
		_ = l.Close()
	}
	var mu sync.Mutex
	_, err = laketest.Watch(strings.TrimPrefix(warehouse, "file://"), func(op laketest.Op) laketest.Fate {
		mu.Lock()
		defer mu.Unlock()
		if op.Write && strings.Contains(op.Path, "/metadata/snap-") {
			fmt.Println(prefixStaged + op.Path) //nolint:forbidigo // here the test binary is a worker that is watched
		}
		for _, f := range t.Files {
			if op.Write == (f.Kind != readsFail) && op.N >= f.At && op.N < f.At+max(f.For, 1) {
				if op.N == f.At {
					fmt.Println(prefixFault + f.Kind) //nolint:forbidigo // likewise
				}
				return f.fate(op)
			}
		}
		return laketest.Fate{}
	})
	return now, err
}

func (f fileFault) fate(op laketest.Op) laketest.Fate {
	die := func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	switch f.Kind {
	case warehouseDown, readsFail:
		return laketest.Fate{Err: fmt.Errorf("%s: %w", op.Path, syscall.EIO)}
	case diskFull:
		return laketest.Fate{Full: true}
	case notSynced:
		return laketest.Fate{Unsynced: true}
	case slowDisk:
		return laketest.Fate{Delay: slowDiskDelay}
	case killedBefore:
		return laketest.Fate{Before: die}
	case killedWithin:
		return laketest.Fate{Half: die}
	case killedAfter:
		return laketest.Fate{After: die}
	}
	return laketest.Fate{}
}
