package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"
)

// profile writes the heap's profile each time the heap has grown by 8 MiB past all
// before; the last file is of its largest.
func profile(ctx context.Context, dir string) {
	largest := uint64(0)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var m runtime.MemStats
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtime.ReadMemStats(&m)
		if m.HeapAlloc < largest+8<<20 {
			continue
		}
		largest = m.HeapAlloc
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("heap-%04d.pprof", largest>>20)))
		if err != nil {
			return
		}
		_ = pprof.Lookup("heap").WriteTo(f, 0)
		_ = f.Close()
	}
}
