package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/bench/program"
	"github.com/lakeweir/lakeweir/bench/topics"
	"github.com/lakeweir/lakeweir/bench/tree"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// place is where the workload's topics and a Postgres are.
type place struct {
	dir    string
	broker string
	dsn    func(database string) string
}

// sourceDatabase has the workload's tables, without a row.
const sourceDatabase = "shop"

// prepare makes the source.
func (p place) prepare(ctx context.Context) error {
	if err := p.exec(ctx, "postgres", "CREATE DATABASE "+sourceDatabase); err != nil {
		return err
	}
	return p.exec(ctx, sourceDatabase, "CREATE SCHEMA shop; SET search_path = shop; "+workload.Setup)
}

func (p place) exec(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, p.dsn(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("prepare database %s: %w", database, err)
	}
	return nil
}

// stand is a lake, with a registry, into which Lakeweir folds the topics.
type stand struct {
	place
	o        options
	dir      string
	database string // the registry's
	registry *registry.Registry
	running  *running
}

// running is the program under way.
type running struct {
	cmd     *exec.Cmd
	began   time.Time
	ended   chan struct{}
	figures tree.Figures // when ended is closed; so is err
	err     error
}

func newStand(ctx context.Context, o options, p place, name string) (*stand, error) {
	s := &stand{place: p, o: o, dir: filepath.Join(p.dir, name), database: "registry_" + name}
	if err := p.exec(ctx, "postgres", "CREATE DATABASE "+s.database); err != nil {
		return nil, err
	}
	config := filepath.Join(s.dir, sourceName)
	if err := os.MkdirAll(config, 0o750); err != nil {
		return nil, err
	}
	for name, text := range s.files() {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	var err error
	s.registry, err = registry.Open(ctx, catalog.Secret(p.dsn(s.database)))
	return s, err
}

const sourceName = "larkspur"

// files are the source's, by name.
func (s *stand) files() map[string]string {
	prefix, schema, _ := strings.Cut(strings.TrimSuffix(topics.Prefix, "."), ".")
	files := map[string]string{"source.yaml": "kind: postgres\ncapture: debezium\nconnection: ${env:BENCH_SOURCE}\ncreate: false\nheartbeat: {interval: 0s}\n" +
		"kafka: {brokers: [" + strconv.Quote(s.broker) + "]}\nconnector: {topic_prefix: " + prefix + ", format: json}\n" +
		"format_version: 3\ndefaults: {owner: bench, freshness_tier: 1min}\n"}
	for _, table := range workload.Tables() {
		text := "table: " + schema + "." + table + "\nprimary_key: [" + workload.Key(table) + "]\nsoft_delete: false\n"
		if table == workload.Orders && s.o.history {
			text += "scd: [1, 2]\ntrack_history_columns: [status, total_minor]\n"
		} else {
			text += "scd: [1]\n"
		}
		files[schema+"."+table+".yaml"] = text
	}
	return files
}

// close ends what still runs.
func (s *stand) close() {
	if s.running != nil {
		_ = s.running.cmd.Process.Kill()
		<-s.running.ended
	}
	s.registry.Close()
}

// start starts the program, and its measurement.
func (s *stand) start(ctx context.Context) error {
	cmd, err := s.command()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	r := &running{cmd: cmd, began: time.Now(), ended: make(chan struct{})} //nolint:forbidigo // what is measured
	if err := cmd.Start(); err != nil {
		return err
	}
	wait := tree.Watch(context.WithoutCancel(ctx), cmd, r.began)
	go func() {
		defer close(r.ended)
		r.figures, r.err = wait()
	}()
	s.running = r
	return nil
}

func (s *stand) command() (*exec.Cmd, error) {
	c := program.Config{
		Dir: filepath.Join(s.dir, sourceName), Source: s.dsn(sourceDatabase), Registry: s.dsn(s.database),
		Catalog: "sqlite://" + s.catalog(), Warehouse: "file://" + filepath.Join(s.dir, "lake"),
		Memory: int64(s.o.memory) << 20, BatchRows: s.o.batchRows(), Profiles: s.o.profile,
	}
	if s.o.profile != "" {
		return program.Command(c)
	}
	cmd := exec.Command(s.o.binary, "run", c.Dir, "--registry", c.Registry, "--catalog", c.Catalog, "--warehouse", c.Warehouse, //nolint:gosec,noctx // the program to measure; it ends by a signal
		"--memory", strconv.Itoa(s.o.memory)+"MiB", "--batch-rows", strconv.Itoa(c.BatchRows))
	cmd.Env = append(os.Environ(), "BENCH_SOURCE="+c.Source)
	return cmd, nil
}

func (s *stand) catalog() string { return filepath.Join(s.dir, "catalog.db") }
func (s *stand) log() string     { return filepath.Join(s.dir, "lakeweir.log") }

// said is the end of the program's log.
func (s *stand) said() string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// stop ends the program as SIGTERM does: it saves and folds what it has read.
func (s *stand) stop() (*running, error) {
	r := s.running
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return r, err
	}
	<-r.ended
	s.running = nil
	if r.err != nil {
		return r, fmt.Errorf("the program ended badly: %w: %s", r.err, s.said())
	}
	return r, nil
}

// kill ends it with SIGKILL.
func (s *stand) kill() *running {
	r := s.running
	_ = r.cmd.Process.Kill() // it may have ended by itself
	<-r.ended
	s.running = nil
	return r
}

// waitAtMost bounds how long anything is waited for.
const waitAtMost = 30 * time.Minute

// await waits until something is so. It asks every so often, from this process, which
// is not measured.
func (s *stand) await(ctx context.Context, every time.Duration, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitAtMost)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		switch ok, err := so(); {
		case err != nil:
			return err
		case ok:
			return nil
		}
		select {
		case <-tick.C:
		case <-s.running.ended:
			return fmt.Errorf("the program has ended: %w: %s", s.running.err, s.said())
		case <-ctx.Done():
			return fmt.Errorf("the lake does not catch up: %w: %s", ctx.Err(), s.said())
		}
	}
}

// saved waits until bronze has every event, as the lake itself says: what the registry
// was not told before a kill it is never told. What is not folded then is folded when the
// program is stopped.
func (s *stand) saved(ctx context.Context, o *workload.Outcome) error {
	asked := 0
	return s.await(ctx, 100*time.Millisecond, func() (bool, error) {
		if asked++; asked%10 == 0 {
			if err := s.stopped(ctx); err != nil {
				return false, err
			}
		}
		for _, table := range workload.Tables() {
			if _, events, err := s.committed(ctx, table); err != nil || events < o.Total(table) {
				return false, err
			}
		}
		return true, nil
	})
}

// stopped is the error of a table that has stopped.
func (s *stand) stopped(ctx context.Context) error {
	views, err := s.registry.Tables(ctx)
	for i := range views {
		if v := &views[i]; v.State.Stopped() {
			return fmt.Errorf("%s is %s: %+v", v.Name, v.State, v.Fault)
		}
	}
	return err
}

// saves are the commits to bronze that the registry was told of.
type saves struct {
	Batches int64 `json:"batches"`
	Largest int64 `json:"largest_batch"`
}

func (s *stand) saves(ctx context.Context) (map[string]saves, error) {
	conn, err := pgx.Connect(ctx, s.dsn(s.database))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `select t.table_name, count(*), max(creates + updates + deletes + reads)
		from lakeweir.batches b join lakeweir.tables t on t.id = b.table_id where b.bronze is not null group by 1`)
	if err != nil {
		return nil, err
	}
	out := map[string]saves{}
	var name string
	var n saves
	_, err = pgx.ForEachRow(rows, []any{&name, &n.Batches, &n.Largest}, func() error {
		out[name] = n
		return nil
	})
	return out, err
}

// lake is what the program has written.
func (s *stand) lake(ctx context.Context) (verify.Lake, error) {
	l := verify.Lake{Tables: map[string]verify.Table{}, Logs: map[string]string{}}
	var errs []error
	add := func(layer catalog.Layer, table string, take func(metadata string)) {
		metadata, err := s.metadata(ctx, layer, table)
		if err == nil && metadata == "" {
			err = fmt.Errorf("the lake has no %s of %s", layer, table)
		}
		errs = append(errs, err)
		take(metadata)
	}
	for _, table := range workload.Tables() {
		add(catalog.Current, table, func(m string) { l.Tables[table] = verify.Table{Metadata: m, Lacks: []string{"_op", "_tx_id"}} })
		add(catalog.Bronze, table, func(m string) { l.Logs[table] = m })
	}
	if s.o.history {
		add(catalog.History, workload.Orders, func(m string) { l.Tables[verify.Versions] = verify.Table{Metadata: m} })
	}
	return l, errors.Join(errs...)
}
