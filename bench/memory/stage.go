package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/bench/program"
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
)

// stage is where a scenario plays: a server, a registry, a lake, a worker.
type stage struct {
	o        options
	dir      string
	dsn      string
	server   *localpg.Server
	conn     *pgx.Conn
	registry *registry.Registry
	worker   *exec.Cmd
	ended    chan error
	log      *os.File
	steps    []usage
	others   []usage
}

const waitAtMost = 15 * time.Minute

func newStage(ctx context.Context, o options, s scenario) (_ *stage, err error) {
	b := &stage{o: o}
	defer func() {
		if err != nil {
			b.close(ctx)
		}
	}()
	if b.dir, err = os.MkdirTemp("", "lakeweir-memory-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // the server may run as another user
		return nil, err
	}
	b.server, err = localpg.Start(ctx, localpg.Config{Dir: filepath.Join(b.dir, "postgres"), Settings: map[string]string{"max_wal_size": "4GB"}})
	if err != nil {
		return nil, err
	}
	b.dsn = b.server.DSN("postgres")
	if b.conn, err = pgx.Connect(ctx, b.dsn); err != nil {
		return nil, err
	}
	if b.registry, err = registry.Open(ctx, catalog.Secret(b.dsn)); err != nil {
		return nil, err
	}
	config := filepath.Join(b.dir, "config", "shop")
	if err := os.MkdirAll(config, 0o750); err != nil {
		return nil, err
	}
	source := "kind: postgres\ncapture: direct\nconnection: ${env:BENCH_DSN}\nformat_version: " + strconv.Itoa(o.format) +
		"\ndefaults: {owner: bench, freshness_tier: realtime}\n"
	if err := os.WriteFile(filepath.Join(config, "source.yaml"), []byte(source), 0o600); err != nil {
		return nil, err
	}
	for _, table := range s.tables {
		yaml := "table: public." + table + "\nprimary_key: [id]\nscd: [1, 2]\napply_truncates: true\n"
		if err := os.WriteFile(filepath.Join(config, "public."+table+".yaml"), []byte(yaml), 0o600); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *stage) close(ctx context.Context) {
	if b.worker != nil {
		_ = b.worker.Process.Kill()
		<-b.ended //nolint:errcheck // it was killed
	}
	if b.registry != nil {
		b.registry.Close()
	}
	if b.conn != nil {
		_ = b.conn.Close(ctx)
	}
	if b.server != nil {
		_ = b.server.Stop(ctx)
	}
	if b.log != nil {
		_ = b.log.Close()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *stage) env() []string {
	return append(os.Environ(), "BENCH_DSN="+b.dsn, "LAKEWEIR_REGISTRY="+b.dsn, "LAKEWEIR_CONFIG="+filepath.Join(b.dir, "config"),
		"LAKEWEIR_CATALOG=sqlite://"+filepath.Join(b.dir, "catalog.db"), "LAKEWEIR_WAREHOUSE=file://"+filepath.Join(b.dir, "lake"))
}

// start starts the worker.
func (b *stage) start(ctx context.Context) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), b.o.binary, "run", filepath.Join(b.dir, "config", "shop")) //nolint:gosec // the program to measure, as whoever measures says
	cmd.Env = b.env()
	if b.o.profile != "" {
		var err error
		cmd, err = program.Command(program.Config{
			Dir: filepath.Join(b.dir, "config", "shop"), Source: b.dsn, Registry: b.dsn, Profiles: b.o.profile,
			Catalog: "sqlite://" + filepath.Join(b.dir, "catalog.db"), Warehouse: "file://" + filepath.Join(b.dir, "lake"),
		})
		if err != nil {
			return err
		}
	}
	var err error
	if b.log, err = os.Create(filepath.Join(b.dir, "worker.log")); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = b.log, b.log
	if b.o.verbose {
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.worker, b.ended = cmd, make(chan error, 1)
	go func() { b.ended <- cmd.Wait() }()
	return nil
}

// stop ends the worker as SIGTERM does.
func (b *stage) stop() error {
	if err := b.worker.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-b.ended
	b.worker = nil
	if err != nil {
		return fmt.Errorf("the worker ended badly: %w: %s", err, b.said())
	}
	return nil
}

// said is the end of the worker's log.
func (b *stage) said() string {
	said, err := os.ReadFile(filepath.Join(b.dir, "worker.log"))
	if err != nil {
		return err.Error()
	}
	return string(said[max(0, len(said)-4000):])
}

// exec runs a statement at the source.
func (b *stage) exec(ctx context.Context, sql string) error {
	if _, err := b.conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql[:min(len(sql), 80)], err)
	}
	return nil
}

// step measures the worker while the source does something and until every layer has
// it.
func (b *stage) step(ctx context.Context, name string, do func() error) error {
	pid := b.worker.Process.Pid
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200); err != nil {
		return fmt.Errorf("reset the peak: %w", err)
	}
	cpu, began := cpuOf(pid), time.Now() //nolint:forbidigo // it measures
	err := do()
	if err == nil {
		err = b.landed(ctx)
	}
	peak, peakErr := peakOf(pid)
	u := usage{Name: name, PeakMiB: peak, CPUSeconds: cpuOf(pid) - cpu, WallSeconds: time.Since(began).Seconds()}
	b.steps = append(b.steps, u)
	fmt.Fprintf(os.Stdout, "%-44s %6.0f MiB %7.1f CPU s %7.1f s\n", name, u.PeakMiB, u.CPUSeconds, u.WallSeconds)
	return errors.Join(err, peakErr)
}

// landed waits until every layer has what has been committed by now.
func (b *stage) landed(ctx context.Context) error {
	var end string
	if err := b.conn.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&end); err != nil {
		return err
	}
	want, err := catalog.ParseLSN(end)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitAtMost)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		views, err := b.registry.Tables(ctx)
		if err != nil {
			return err
		}
		done := len(views) > 0
		for _, v := range views {
			if v.State.Stopped() {
				return fmt.Errorf("%s is %s: %+v", v.Name, v.State, v.Fault)
			}
			read := v.State == catalog.Streaming || v.State == catalog.Lagging
			done = done && read && min(v.BronzeThrough, v.CurrentThrough, v.HistoryThrough) >= want
		}
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-b.ended:
			b.ended <- err
			return fmt.Errorf("the worker ended: %w: %s", err, b.said())
		case <-ctx.Done():
			return fmt.Errorf("the lake does not catch up: %w: %s", ctx.Err(), b.said())
		}
	}
}

// reads proves the lake right with the programs that read it, and measures those.
func (b *stage) reads(ctx context.Context, s scenario) error {
	if _, err := b.read(ctx, "reconcile", "reconcile", "-o", "json"); err != nil {
		return err
	}
	for _, q := range s.scans {
		var out countingHash
		if err := b.readTo(ctx, &out, "scan "+q.name, append([]string{"scan", q.table, "--limit", "0", "-o", "csv"}, q.args...)...); err != nil {
			return err
		}
		if err := q.check(&out); err != nil {
			return fmt.Errorf("scan %s: %w", q.name, err)
		}
	}
	return nil
}

func (b *stage) read(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := b.readTo(ctx, &out, name, args...)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out.String()[max(0, out.Len()-2000):])
	}
	return out.Bytes(), err
}

func (b *stage) readTo(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, b.o.binary, args...) //nolint:gosec // the program to measure, as whoever measures says
	cmd.Env = b.env()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	began := time.Now() //nolint:forbidigo // it measures
	err := cmd.Run()
	u := usage{Name: name, WallSeconds: time.Since(began).Seconds()}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.PeakMiB = float64(ru.Maxrss) / 1024
		u.CPUSeconds = time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
	}
	b.others = append(b.others, u)
	fmt.Fprintf(os.Stdout, "  %-42s %6.0f MiB %7.1f CPU s %7.1f s\n", name, u.PeakMiB, u.CPUSeconds, u.WallSeconds)
	if err != nil {
		return fmt.Errorf("lakeweir %s: %w: %s", strings.Join(args, " "), err, stderr.String()[max(0, stderr.Len()-2000):])
	}
	return nil
}

// peakOf is the most memory that a process had resident since it was reset, in MiB.
func peakOf(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("the process does not say how much memory it takes")
}

// cpuOf is the CPU time of a process so far, in seconds.
func cpuOf(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (user + system) / 100 // USER_HZ, which is 100 on every Linux
}
