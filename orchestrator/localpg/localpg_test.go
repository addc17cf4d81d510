package localpg_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
)

func TestASecondStartGoesOnWithTheSameData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, localpg.Config{Dir: dir})
	execute(t, s, "create table kept as select 1 as a")
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "stopping twice")

	again := start(t, localpg.Config{Dir: dir})
	require.Equal(t, "1", query(t, again, "select count(*)::text from kept"))
	require.Equal(t, "logical", query(t, again, "show wal_level"))
}

func TestAKilledServerRecovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, localpg.Config{Dir: dir})
	execute(t, s, "create table kept as select 1 as a")
	require.NoError(t, s.Kill())
	require.FileExists(t, filepath.Join(dir, "data", "postmaster.pid"))

	again := start(t, localpg.Config{Dir: dir})
	require.Equal(t, "1", query(t, again, "select count(*)::text from kept"))
}

func TestAStaleProcessIDThatIsInUseDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, localpg.Config{Dir: dir})
	other := start(t, localpg.Config{Dir: t.TempDir()})
	require.NoError(t, s.Kill())
	pidFile := filepath.Join(dir, "data", "postmaster.pid")
	taken, err := os.ReadFile(filepath.Join(other.Dir(), "data", "postmaster.pid"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(pidFile, taken, 0o600))

	again := start(t, localpg.Config{Dir: dir})
	require.Equal(t, "1", query(t, again, "select '1'"))
}

// TestTheServerDiesWithItsParent starts a server in another process, kills that
// process and starts the same folder, which waits for the orphan to be gone.
func TestTheServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	parent := exec.CommandContext(t.Context(), exe, "-test.run=^TestHelperRunsAServerUntilKilled$")
	parent.Env = append(os.Environ(), helperDir+"="+dir)
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	dsn := ""
	for lines := bufio.NewScanner(out); dsn == "" && lines.Scan(); {
		dsn, _ = strings.CutPrefix(lines.Text(), "dsn ")
	}
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // killed
	require.NotEmpty(t, dsn, "the helper did not start a server")

	again := start(t, localpg.Config{Dir: dir})
	require.Equal(t, "1", query(t, again, "select count(*)::text from kept"))
	_, err = pgx.Connect(t.Context(), dsn)
	require.Error(t, err, "the first server still answers")
}

const helperDir = "LAKEWEIR_TEST_SERVER_DIR"

func TestHelperRunsAServerUntilKilled(t *testing.T) {
	dir := os.Getenv(helperDir)
	if dir == "" {
		t.Skip("only the process of TestTheServerDiesWithItsParent runs this")
	}
	s, err := localpg.Start(t.Context(), localpg.Config{Dir: dir})
	require.NoError(t, err)
	execute(t, s, "create table kept as select 1 as a")
	_, _ = fmt.Fprintf(os.Stdout, "dsn %s\n", s.DSN("postgres"))
	<-s.Ended()
}

func TestAFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, localpg.Config{Dir: dir})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := localpg.Start(ctx, localpg.Config{Dir: dir})
	require.Equal(t, catalog.Conflict, catalog.KindOf(err))
	require.ErrorContains(t, err, "another process runs the private Postgres in "+dir)
}

func TestAnUnusableStartSaysWhy(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	cases := []struct {
		name string
		cfg  localpg.Config
		kind catalog.Kind
		want string
	}{
		{"no folder", localpg.Config{}, catalog.Invalid, "no folder for a private Postgres is given"},
		{"a folder without binaries", localpg.Config{Dir: t.TempDir(), Binaries: t.TempDir()}, catalog.Invalid, "cannot be used: look for initdb"},
		{"a taken port", localpg.Config{Dir: t.TempDir(), Port: port}, catalog.Unavailable, "its port is taken: port " + strconv.Itoa(port)},
		{"a bad setting", localpg.Config{Dir: t.TempDir(), Settings: map[string]string{"no_such_setting": "1"}}, catalog.Unavailable, `unrecognized configuration parameter "no_such_setting"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := localpg.Start(t.Context(), c.cfg)
			require.ErrorContains(t, err, c.want)
			e, ok := errors.AsType[*catalog.Error](err)
			require.True(t, ok)
			require.Equal(t, c.kind, e.Kind)
			require.NotEmpty(t, e.Hint)
		})
	}
}

func TestDataOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, localpg.Config{Dir: dir})
	bin := query(t, s, "select setting from pg_config where name = 'BINDIR'")
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600))
	_, err := localpg.Start(t.Context(), localpg.Config{Dir: dir, Binaries: bin})
	require.ErrorContains(t, err, "the existing data was made by version 9")
}

func TestTheFolderIsRemovedWhenAsked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	s := start(t, localpg.Config{Dir: dir, RemoveDir: true})
	require.NoError(t, s.Stop(t.Context()))
	require.NoDirExists(t, dir)
}

// start starts a server that is stopped when the test ends. The folder is
// t.TempDir's, which as root no other user can enter: the harder case.
func start(t *testing.T, cfg localpg.Config) *localpg.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.Settings = map[string]string{"fsync": "off"}
	s, err := localpg.Start(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func execute(t *testing.T, s *localpg.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func query(t *testing.T, s *localpg.Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var out string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&out))
	return out
}
