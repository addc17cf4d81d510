package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// childEnv makes this program a worker that writes profiles of its heap: the JSON of
// a childConfig.
const childEnv = "LAKEWEIR_BENCH_WORKER"

type childConfig struct {
	Dir, DSN, Catalog, Warehouse, Profiles string
}

func runChild(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // the process's own context starts here
	defer stop()
	runtime.MemProfileRate = 64 << 10
	files, problems := tableconfig.LoadDir(c.Dir)
	if err := problems.Err(); err != nil {
		return err
	}
	reg, err := registry.Open(ctx, catalog.Secret(c.DSN))
	if err != nil {
		return err
	}
	defer reg.Close()
	var tables []catalog.Table
	for _, t := range files.Tables {
		tables = append(tables, *t)
	}
	if err := reg.SyncConfig(ctx, []catalog.Source{*files.Sources[0]}, tables); err != nil {
		return err
	}
	go profile(ctx, c.Profiles)
	return worker.Run(ctx, worker.Config{
		Source: files.Sources[0], Tables: files.Tables, DSN: catalog.Secret(c.DSN),
		Lake: lake.Config{Catalog: c.Catalog, Warehouse: c.Warehouse}, Registry: reg, OwnProcess: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// profile writes the heap's profile each time the heap has grown by 8 MiB past all
// before; the last file is of its largest.
func profile(ctx context.Context, dir string) {
	_ = os.MkdirAll(dir, 0o750)
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
