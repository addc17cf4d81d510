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
	dsn      string
	conn     *pgx.Conn
	registry *registry.Registry
	config   string // the folder of the source
	lake     readers.Lake
	folder   string // the warehouse
	running  *exec.Cmd
}

func newStand(t *testing.T, bin, sourceYAML string, files map[string]string) *stand {
	t.Helper()
	dir := t.TempDir()
	s := &stand{
		t: t, bin: bin, dsn: localpgtest.Database(t), config: filepath.Join(dir, "shop"),
		lake: readers.Lake{File: filepath.Join(dir, "catalog.db"), Name: "lakeweir"}, folder: filepath.Join(dir, "lake"),
	}
	require.NoError(t, os.MkdirAll(s.config, 0o755))
	slot := "e2e_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	files["source.yaml"] = "kind: postgres\ncapture: direct\nconnection: ${env:E2E_SOURCE}\ntoken_key: ${env:E2E_TOKEN_KEY}\n" +
		"slot: " + slot + "\npublication: " + slot + "\ndefaults: {owner: team-shop, freshness_tier: realtime}\n" + sourceYAML
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(s.config, name), []byte(content), 0o600))
	}
	var err error
	s.conn, err = pgx.Connect(t.Context(), s.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.conn.Close(context.WithoutCancel(t.Context())) })
	s.registry, err = registry.Open(t.Context(), catalog.Secret(s.dsn))
	require.NoError(t, err)
	t.Cleanup(s.registry.Close)
	return s
}

// start starts `lakeweir run`; its log goes to the test's.
func (s *stand) start() {
	s.t.Helper()
	s.running = exec.Command(s.bin, "run", s.config, "--registry", s.dsn, "--catalog", "sqlite://"+s.lake.File, "--warehouse", "file://"+s.folder)
	s.running.Env = append(os.Environ(), "E2E_SOURCE="+s.dsn, "E2E_TOKEN_KEY=0123456789abcdef0123456789abcdef")
	s.running.Stderr = s.t.Output()
	require.NoError(s.t, s.running.Start())
	s.t.Cleanup(func() {
		if s.running != nil {
			_ = s.running.Process.Kill()
			_ = s.running.Wait()
		}
	})
}

// stop interrupts it, which must end it well.
func (s *stand) stop() {
	s.t.Helper()
	require.NoError(s.t, s.running.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, s.running.Wait())
	s.running = nil
}

func (s *stand) exec(sql string) {
	s.t.Helper()
	_, err := s.conn.PgConn().Exec(s.t.Context(), sql).ReadAll()
	require.NoError(s.t, err)
}

// landed waits until every layer of every table has what is committed by now.
func (s *stand) landed(tables int) {
	s.t.Helper()
	var end string
	require.NoError(s.t, s.conn.QueryRow(s.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&end))
	want, err := catalog.ParseLSN(end)
	require.NoError(s.t, err)
	behind := func(v registry.TableView) bool {
		require.False(s.t, v.State.Stopped(), "%s: %+v", v.Name, v.Fault)
		read := v.State == catalog.Streaming || v.State == catalog.Lagging
		return !read || min(v.BronzeThrough, v.CurrentThrough, v.HistoryThrough) < want
	}
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		views, err := s.registry.Tables(s.t.Context())
		require.NoError(s.t, err)
		if len(views) == tables && !slices.ContainsFunc(views, behind) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(s.t, "the lake does not catch up", "%+v", views)
		}
	}
}

// serverOf asks what a server can make.
func serverOf(t *testing.T) torture.Server {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), localpgtest.Database(t))
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
