// Package program runs what "lakeweir run" runs, inside a benchmark's own process, so
// that it can be profiled there. What is measured is always the real program.
package program

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// variable holds a Config in the environment of the process that is to run it.
const variable = "LAKEWEIR_BENCH_PROGRAM"

// Config says what to run.
type Config struct {
	Dir       string // the source's files
	Source    string // connection string of the source
	Registry  string // of the registry
	Catalog   string
	Warehouse string
	Memory    int64  // bytes; 0: the default
	BatchRows int    // 0: what Memory allows
	Profiles  string // a folder for them
}

// Command is this executable again, to run c. Its main must call Asked first.
func Command(c Config) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self) //nolint:noctx // this very program; it ends by a signal
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return cmd, nil
}

// Asked reports whether this process was started by Command; then it has run what was
// asked, with a goroutine that may write profiles beside it, until SIGTERM came.
func Asked(profile func(ctx context.Context, dir string)) (bool, error) {
	text := os.Getenv(variable)
	if text == "" {
		return false, nil
	}
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return true, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // the process's own context starts here
	defer stop()
	if err := os.MkdirAll(c.Profiles, 0o750); err != nil {
		return true, err
	}
	profiled := make(chan struct{})
	go func() {
		defer close(profiled)
		profile(ctx, c.Profiles)
	}()
	err := run(ctx, c)
	stop()
	<-profiled
	return true, err
}

func run(ctx context.Context, c Config) error {
	files, problems := tableconfig.LoadDir(c.Dir)
	if err := problems.Err(); err != nil {
		return err
	}
	reg, err := registry.Open(ctx, catalog.Secret(c.Registry))
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
	return worker.Run(ctx, worker.Config{
		Source: files.Sources[0], Tables: files.Tables, DSN: catalog.Secret(c.Source),
		Lake: lake.Config{Catalog: c.Catalog, Warehouse: c.Warehouse}, Registry: reg, OwnProcess: true,
		Memory: c.Memory, Limits: pipeline.Limits{BatchRows: c.BatchRows},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}
