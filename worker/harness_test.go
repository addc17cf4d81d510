package worker_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

const tokenKey = "0123456789abcdef0123456789abcdef"

// rig is a source database, a registry and a lake, with or without a worker
// between them.
type rig struct {
	t   testing.TB
	dsn string
	// registryDSN is the registry's; the same when nothing asks for another.
	registryDSN string
	conn        *pgx.Conn
	registry    *registry.Registry
	lakeCfg     lake.Config
	source      *catalog.Source
	tables      []*catalog.Table
	limits      pipeline.Limits
	reader      postgres.Limits
	logger      *slog.Logger // of workers; nil: the test's log

	dir    string // of the table files
	cancel context.CancelFunc
	done   chan error
	child  *exec.Cmd
	env    []string      // of the worker's process, beside this one's
	said   <-chan string // by the child, one line each; closed when it has ended
}

// childEnv makes this test binary a worker: the JSON of a childConfig.
const childEnv = "LAKEWEIR_TEST_WORKER"

// zoneEnv names the zone that a summer's day has for a worker in a process of its
// own; it ends when that is not so.
const zoneEnv = "LAKEWEIR_TEST_ZONE"

type childConfig struct {
	Dir, DSN, Registry, Catalog, Warehouse string
	Trouble                                trouble // see fault_child_test.go
}

func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		if err := runChild(config); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1) //nolint:forbidigo // here the test binary is a worker, and this its main
		}
		return
	}
	m.Run()
}

func runChild(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	if want := os.Getenv(zoneEnv); want != "" {
		if name, _ := time.Date(2026, time.July, 1, 12, 0, 0, 0, time.Local).Zone(); name != want {
			return fmt.Errorf("the worker is in the zone %s, not %s", name, want)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	now, err := c.Trouble.begin(c.Warehouse)
	if err != nil {
		return err
	}
	files, problems := tableconfig.LoadDir(c.Dir)
	if err := problems.Err(); err != nil {
		return err
	}
	reg, err := registry.Open(ctx, catalog.Secret(c.Registry))
	if err != nil {
		return err
	}
	return worker.Run(ctx, worker.Config{
		Source: files.Sources[0], Tables: files.Tables, DSN: catalog.Secret(c.DSN), TokenKey: tokenKey,
		Lake: lake.Config{Catalog: c.Catalog, Warehouse: c.Warehouse, Now: now}, Registry: reg,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Limits: pipeline.Limits{SaveEvery: cmp.Or(c.Trouble.Save, 20*time.Millisecond), ReportEvery: 20 * time.Millisecond},
	})
}

// startProcess starts a worker in a process of its own, to be killed.
func (r *rig) startProcess() { r.startTroubled(trouble{}) }

// startTroubled is startProcess for a worker whose warehouse is in trouble.
func (r *rig) startTroubled(t trouble) {
	r.t.Helper()
	config, err := json.Marshal(childConfig{Dir: r.dir, DSN: r.dsn, Registry: r.registryDSN, Catalog: r.lakeCfg.Catalog, Warehouse: r.lakeCfg.Warehouse, Trouble: t})
	require.NoError(r.t, err)
	self, err := os.Executable()
	require.NoError(r.t, err)
	r.child = exec.Command(self)
	r.child.Env = append(append(os.Environ(), childEnv+"="+string(config)), r.env...)
	r.child.Stderr = r.t.Output()
	out, err := r.child.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, r.child.Start())
	r.said = eachLine(out)
	r.t.Cleanup(r.kill)
}

// eachLine hands over what is written, line by line; what nobody waits for is let go.
func eachLine(r io.Reader) <-chan string {
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		for s := bufio.NewScanner(r); s.Scan(); {
			select {
			case out <- s.Text():
			default:
			}
		}
	}()
	return out
}

// end has the worker's process end as SIGTERM does, or kills it when it does not.
func (r *rig) end() error {
	_ = r.child.Process.Signal(syscall.SIGTERM)
	ended := time.AfterFunc(20*time.Second, func() { _ = r.child.Process.Kill() })
	defer ended.Stop()
	for range r.said {
		continue
	}
	err := r.child.Wait()
	r.child = nil
	return err
}

// kill ends the worker's process as kill -9 does.
func (r *rig) kill() {
	if r.child == nil {
		return
	}
	_ = r.child.Process.Kill()
	for range r.said {
		continue
	}
	_ = r.child.Wait()
	r.child = nil
}

// newRig makes a fresh database and reads the table files of a source called
// shop; sourceYAML is added to its source.yaml.
func newRig(t testing.TB, sourceYAML string, files map[string]string) *rig {
	t.Helper()
	return newRigOn(t, localpgtest.Database(t), sourceYAML, files)
}

// newRigOn is newRig on a database that is there.
func newRigOn(t testing.TB, dsn, sourceYAML string, files map[string]string) *rig {
	t.Helper()
	return newRigApart(t, dsn, dsn, sourceYAML, files)
}

// newRigApart is newRigOn with the registry in a database of its own.
func newRigApart(t testing.TB, dsn, registryDSN, sourceYAML string, files map[string]string) *rig {
	t.Helper()
	r := &rig{t: t, dsn: dsn, registryDSN: registryDSN, limits: pipeline.Limits{SaveEvery: 20 * time.Millisecond, ReportEvery: 20 * time.Millisecond}}
	dir := filepath.Join(t.TempDir(), "shop")
	r.dir = dir
	require.NoError(t, os.MkdirAll(dir, 0o755))
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	slot := "case_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	write("source.yaml", "kind: postgres\ncapture: direct\nconnection: ${env:LAKEWEIR_UNUSED}\ntoken_key: ${env:LAKEWEIR_UNUSED}\n"+
		"slot: "+slot+"\npublication: "+slot+"\ndefaults: {owner: team-shop, freshness_tier: realtime}\n"+sourceYAML)
	for name, content := range files {
		write(name, content)
	}
	config, problems := tableconfig.LoadDir(dir)
	require.NoError(t, problems.Err())
	require.Len(t, config.Sources, 1)
	r.source, r.tables = config.Sources[0], config.Tables
	r.source.Heartbeat.Interval = 200 * time.Millisecond

	var err error
	r.conn, err = pgx.Connect(t.Context(), r.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.conn.Close(context.WithoutCancel(t.Context())) })
	r.registry, err = registry.Open(t.Context(), catalog.Secret(r.registryDSN))
	require.NoError(t, err)
	t.Cleanup(r.registry.Close)
	r.sync()
	r.lakeCfg.Warehouse, r.lakeCfg.Catalog = r.freshLake()
	t.Cleanup(func() {
		if r.cancel != nil {
			r.cancel()
			<-r.done
		}
	})
	return r
}

// sync makes the registry know the source and its tables.
func (r *rig) sync() {
	r.t.Helper()
	values := []catalog.Table{}
	for _, table := range r.tables {
		values = append(values, *table)
	}
	require.NoError(r.t, r.registry.SyncConfig(r.t.Context(), []catalog.Source{*r.source}, values))
}

// memoryDir is a folder in memory where there is one: a lake waits for the disk at
// every file, and a busy disk makes the tests of a worker wait for nothing else.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lakeweir-lake-") //nolint:usetesting // not on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// freshLake is an empty lake.
func (r *rig) freshLake() (warehouse, catalog string) {
	wh := memoryDir(r.t)
	return "file://" + filepath.Join(wh, "lake"), "sqlite://" + filepath.Join(wh, "catalog.db")
}

// start starts a worker.
func (r *rig) start() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	r.cancel, r.done = cancel, make(chan error, 1)
	done := r.done
	cfg := worker.Config{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey,
		Lake: r.lakeCfg, Registry: r.registry, Logger: cmp.Or(r.logger, testLogger(r.t)), Limits: r.limits, Reader: r.reader,
	}
	go func() {
		defer close(done)
		done <- worker.Run(ctx, cfg)
	}()
}

// stop stops the worker as SIGTERM does.
func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	require.NoError(r.t, <-r.done)
	r.cancel, r.done = nil, nil
}

// exec runs statements, each a transaction of its own.
func (r *rig) exec(sql string) {
	r.t.Helper()
	_, err := r.conn.Exec(r.t.Context(), sql)
	require.NoError(r.t, err, sql)
}

// landed waits until every layer of every table has everything that has been
// committed by now, or the table has stopped.
func (r *rig) landed() {
	r.t.Helper()
	var end string
	require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&end))
	want, err := catalog.ParseLSN(end)
	require.NoError(r.t, err)
	r.wait(func(v *registry.TableView) bool {
		through := v.BronzeThrough
		if t := r.table(v.Name.String()); t.Current {
			through = min(through, v.CurrentThrough)
		}
		if t := r.table(v.Name.String()); t.History {
			through = min(through, v.HistoryThrough)
		}
		read := v.State == catalog.Streaming || v.State == catalog.Lagging
		return v.State.Stopped() || read && through >= want
	})
}

// wait waits until every table satisfies ok.
func (r *rig) wait(ok func(*registry.TableView) bool) {
	r.t.Helper()
	deadline := time.After(2 * time.Minute) // a busy machine
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		views, err := r.registry.Tables(r.t.Context())
		if catalog.KindOf(err) != catalog.Unavailable { // a busy machine
			require.NoError(r.t, err)
		}
		if err == nil && !slices.ContainsFunc(views, func(v registry.TableView) bool { return !ok(&v) }) {
			return
		}
		select {
		case <-tick.C:
		case err := <-r.done:
			require.Fail(r.t, "the worker ended", "%v", err)
		case <-deadline:
			for _, v := range views {
				if !ok(&v) {
					r.t.Logf("%s: %s %+v, bronze %s, current %s, history %s, snapshot %+v", v.Name, v.State, v.Fault, v.BronzeThrough, v.CurrentThrough, v.HistoryThrough, v.Snapshot)
				}
			}
			require.Fail(r.t, "the lake does not catch up")
		}
	}
}

// poll asks the source until the answer is true.
func (r *rig) poll(what, sql string, args ...any) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var yes bool
		require.NoError(r.t, r.conn.QueryRow(r.t.Context(), sql, args...).Scan(&yes))
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(r.t, "waited in vain until "+what)
		}
	}
}

func (r *rig) table(name string) *catalog.Table {
	i := slices.IndexFunc(r.tables, func(t *catalog.Table) bool { return t.Name.String() == name })
	require.GreaterOrEqual(r.t, i, 0, "no table %s", name)
	return r.tables[i]
}

// cells is a row by column name, as Postgres prints it; NULL is missing.
type cells map[string]string

// rows reads a layer of a table through a scan of its own.
func (r *rig) rows(table string, layer catalog.Layer) (columns []string, out []cells) {
	r.t.Helper()
	return r.rowsOf(catalog.ParseTableName(table), layer)
}

func (r *rig) rowsOf(table catalog.TableName, layer catalog.Layer) (columns []string, out []cells) {
	r.t.Helper()
	l, err := lake.Open(r.t.Context(), r.lakeCfg, testLogger(r.t))
	require.NoError(r.t, err)
	defer l.Close()
	v, err := l.View(r.t.Context(), r.source.LakeName(table, layer), 0)
	require.NoError(r.t, err)
	schema, rows, err := v.Scan(r.t.Context(), lake.ScanOptions{})
	require.NoError(r.t, err)
	for _, c := range schema.Columns {
		columns = append(columns, c.Name)
	}
	for part, err := range rows {
		require.NoError(r.t, err)
		for row := range part.Len() {
			line := cells{}
			for col, c := range schema.Columns {
				if part.HasValue(row, col) {
					line[c.Name] = text(part, row, col, c.Type)
				}
			}
			out = append(out, line)
		}
	}
	return columns, out
}

func text(rows *change.Rows, row, col int, t catalog.Type) string {
	if t.Fixed() {
		return string(typemap.AppendText(nil, t, rows.Fixed(row, col), nil))
	}
	return string(typemap.AppendText(nil, t, 0, rows.Bytes(row, col)))
}

// state returns what the registry says of a table.
func (r *rig) state(table string) registry.TableView {
	r.t.Helper()
	views, err := r.registry.Tables(r.t.Context())
	require.NoError(r.t, err)
	i := slices.IndexFunc(views, func(v registry.TableView) bool { return v.Name.String() == table })
	require.GreaterOrEqual(r.t, i, 0)
	return views[i]
}

// short prints a long run of one letter as x*9000.
func short(s string) string {
	if len(s) > 40 && strings.Count(s, s[:1]) == len(s) {
		return fmt.Sprintf("%s*%d", s[:1], len(s))
	}
	return s
}
