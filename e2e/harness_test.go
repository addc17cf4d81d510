package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/torture"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// requireE2E skips a test outside of `make e2e`.
func requireE2E(t *testing.T) {
	t.Helper()
	if os.Getenv("LAKEWEIR_E2E") == "" {
		t.Skip("runs under make e2e only (LAKEWEIR_E2E is not set): it installs Spark and takes minutes")
	}
}

// program builds the program.
func program(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "lakeweir")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/lakeweir").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}

// stand is a source database with the program replicating it into a lake.
type stand struct {
	t        *testing.T
	bin      string
	name     string // of the source
	dsn      string
	conn     *pgx.Conn
	registry *registry.Registry
	records  string // the DSN of the registry; empty: it is in the source's database
	config   string // the folder of the source
	lake     readers.Lake
	flags    []string // that name the lake
	env      []string // what the program needs to reach source and lake
	broken   string   // the table that may have stopped
	running  *running
}

// running is the program under way.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // when ended is closed
}

// newStand replicates into an SQL catalog and a folder.
func newStand(t *testing.T, bin, sourceYAML string, files map[string]string) *stand {
	t.Helper()
	dir := t.TempDir()
	s := &stand{t: t, bin: bin, dsn: localpgtest.Database(t), lake: readers.Lake{File: filepath.Join(dir, "catalog.db"), Name: "lakeweir"}}
	s.flags = []string{"--catalog", "sqlite://" + s.lake.File, "--warehouse", "file://" + filepath.Join(dir, "lake")}
	s.prepare("direct", sourceYAML, files)
	return s
}

// newStandOn replicates into the stack's REST catalog, whose files are on S3.
func newStandOn(t *testing.T, bin string, on *stack.Stack, sourceYAML string, files map[string]string) *stand {
	t.Helper()
	s := standOn(t, bin, on)
	s.prepare("direct", sourceYAML, files)
	return s
}

// newDebeziumStand does so from Kafka, into which a connector writes that the program
// keeps, with the settings that it recommends. Heartbeats come each second.
func newDebeziumStand(t *testing.T, bin string, on *stack.Stack, sourceYAML string, files map[string]string) *stand {
	t.Helper()
	s := standOn(t, bin, on)
	s.prepare("debezium", throughKafka(on)+sourceYAML, files)
	return s
}

// throughKafka are the keys of source.yaml that say where topics and connector are.
func throughKafka(on *stack.Stack) string {
	return "heartbeat: {interval: 1s}\nkafka: {brokers: [" + strconv.Quote(on.Kafka.Address) + "]}\n" +
		"connector: {connect_url: " + strconv.Quote(on.Connect.URL) + "}\n"
}

func standOn(t *testing.T, bin string, on *stack.Stack) *stand {
	t.Helper()
	s := &stand{t: t, bin: bin, dsn: on.Postgres.DSN("postgres"), lake: readers.Lake{REST: on.Catalog.URL, Name: "lake", Properties: on.S3.Properties()}}
	s.flags = []string{"--catalog", on.Catalog.URL, "--warehouse", on.Catalog.Warehouse}
	s.env = on.S3.Env()
	return s
}

// prepare writes the source's files and connects.
func (s *stand) prepare(capture, sourceYAML string, files map[string]string) {
	s.t.Helper()
	if s.name == "" {
		s.name = "shop"
	}
	if s.records == "" {
		s.records = s.dsn
	}
	s.config = filepath.Join(s.t.TempDir(), s.name)
	require.NoError(s.t, os.MkdirAll(s.config, 0o755))
	slot := "e2e_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	files["source.yaml"] = "kind: postgres\ncapture: " + capture + "\nconnection: ${env:E2E_SOURCE}\ntoken_key: ${env:E2E_TOKEN_KEY}\n" +
		"slot: " + slot + "\npublication: " + slot + "\ndefaults: {owner: team-shop, freshness_tier: realtime}\n" + sourceYAML
	for name, content := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.config, name), []byte(content), 0o600))
	}
	s.env = append(s.env, "E2E_SOURCE="+s.dsn, "E2E_TOKEN_KEY="+tokenKey)
	var err error
	s.conn, err = pgx.Connect(s.t.Context(), s.dsn)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = s.conn.Close(context.WithoutCancel(s.t.Context())) })
	s.registry, err = registry.Open(s.t.Context(), catalog.Secret(s.records))
	require.NoError(s.t, err)
	s.t.Cleanup(s.registry.Close)
}

const tokenKey = "0123456789abcdef0123456789abcdef"

// command is the program with what it needs to find source, registry and lake.
func (s *stand) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.bin, slices.Concat(args, []string{"--registry", s.records}, s.flags)...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stderr = s.t.Output()
	return cmd
}

// says runs a command of the program that asks the registry alone, and returns what it
// prints.
func (s *stand) says(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.bin, append(args, "--registry", s.records)...)
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	return string(out)
}

// start starts `lakeweir run`; its log goes to the test's.
func (s *stand) start() {
	s.t.Helper()
	r := &running{cmd: s.command("run", s.config), ended: make(chan struct{})}
	require.NoError(s.t, r.cmd.Start())
	go func() {
		defer close(r.ended)
		r.err = r.cmd.Wait()
	}()
	s.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
	})
	s.running = r
}

// endedByEnvironment is the program's exit status when something that it needs does
// not answer.
const endedByEnvironment = 3

// goOn starts the program again when it has ended because something did not answer, as
// a service manager would: on a busy machine that happens. Another end fails the test.
func (s *stand) goOn() {
	s.t.Helper()
	if s.running == nil {
		return
	}
	select {
	case <-s.running.ended:
		require.Equal(s.t, endedByEnvironment, s.running.cmd.ProcessState.ExitCode(), "the program has ended: %v", s.running.err)
		s.t.Log("the program has ended since something did not answer, and is started again")
		s.start()
	default:
	}
}

// kill ends it with SIGKILL.
func (s *stand) kill() {
	s.t.Helper()
	_ = s.running.cmd.Process.Kill() // it may have ended by itself
	<-s.running.ended
	s.running = nil
}

// reconciled requires that the program finds source and lake equal, and the layers
// right.
func (s *stand) reconciled() {
	s.t.Helper()
	out, err := s.command("reconcile", "--config", s.config).Output()
	require.NoError(s.t, err, "%s", out)
	s.t.Logf("reconcile:\n%s", out)
}

// stop interrupts it, which must end it well.
func (s *stand) stop() {
	s.t.Helper()
	require.NoError(s.t, s.running.cmd.Process.Signal(syscall.SIGTERM))
	<-s.running.ended
	require.NoError(s.t, s.running.err)
	s.running = nil
}

func (s *stand) exec(sql string) {
	s.t.Helper()
	_, err := s.conn.PgConn().Exec(s.t.Context(), sql).ReadAll()
	require.NoError(s.t, err)
}

// now is the end of the source's log.
func (s *stand) now() catalog.LSN {
	s.t.Helper()
	var end string
	require.NoError(s.t, s.conn.QueryRow(s.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&end))
	lsn, err := catalog.ParseLSN(end)
	require.NoError(s.t, err)
	return lsn
}

// landed waits until every layer of every table, but the broken one, has what is
// committed by now.
func (s *stand) landed(tables int) {
	s.t.Helper()
	want := s.now()
	behind := func(v registry.TableView) bool {
		if v.Name.Name == s.broken {
			return false
		}
		read := v.State == catalog.Streaming || v.State == catalog.Lagging
		return !read || v.BronzeThrough < want || v.Config.Current && v.CurrentThrough < want || v.Config.History && v.HistoryThrough < want
	}
	s.await("the lake does not catch up", func(views []registry.TableView) bool {
		return len(views) == tables && !slices.ContainsFunc(views, behind)
	})
}

// await waits until the tables are as done says. A table that stops fails the test,
// unless it is the broken one.
func (s *stand) await(failure string, done func([]registry.TableView) bool) {
	s.t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		views, err := s.registry.Tables(s.t.Context())
		unanswered := catalog.KindOf(err) == catalog.Unavailable // on a busy machine that happens
		require.True(s.t, err == nil || unanswered, "%v", err)
		for _, v := range views {
			require.False(s.t, v.State.Stopped() && v.Name.Name != s.broken, "%s: %+v", v.Name, v.Fault)
		}
		if !unanswered && done(views) {
			return
		}
		s.goOn()
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(s.t, failure, "%+v", views)
		}
	}
}

// serverOf asks what a server can make.
func serverOf(t *testing.T, dsn string) torture.Server {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var number string
	require.NoError(t, conn.QueryRow(t.Context(), "show server_version_num").Scan(&number))
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), "select name::text from pg_available_extensions")
	require.NoError(t, err)
	extensions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return torture.Server{Major: n / 10000, Extensions: extensions}
}
