package stack_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
)

// Every service comes back after SIGKILL at the same address, with what it was told
// before.
func TestServicesComeBackWithTheirDataAfterSIGKILL(t *testing.T) {
	s := stacktest.Start(t, stack.Config{Debezium: true, Lake: true, Postgres: true})
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Kafka.Address), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("kept"))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: "kept", Value: []byte("before")}).FirstErr())
	dsn := s.Postgres.DSN("postgres")
	execute(t, dsn, "create table kept (v text); checkpoint")

	require.NoError(t, s.Postgres.Kill())
	require.NoError(t, s.StartPostgres(t.Context()))
	require.Equal(t, dsn, s.Postgres.DSN("postgres"))
	execute(t, dsn, "select v from kept")
	for _, p := range []*stack.Process{s.Kafka.Process, s.Connect.Process, s.S3.Process, s.Catalog.Process} {
		before := p.PID()
		require.NoError(t, p.Restart(t.Context()))
		require.NotEqual(t, before, p.PID())
	}
	fetches := client.PollFetches(t.Context())
	require.NoError(t, fetches.Err())
	require.Equal(t, "before", string(fetches.Records()[0].Value))
}

func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.PgConn().Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err)
}

// childVariable makes the test binary the owner of a stack, which is then killed.
const childVariable = "LAKEWEIR_STACK_CHILD"

func TestNoServiceOutlivesItsOwner(t *testing.T) {
	if dir := os.Getenv(childVariable); dir != "" {
		s, err := stack.Start(t.Context(), stack.Config{Dir: dir, Lake: true})
		require.NoError(t, err)
		pids := fmt.Sprintf("%d %d", s.S3.PID(), s.Catalog.PID())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "pids.new"), []byte(pids), 0o600))
		require.NoError(t, os.Rename(filepath.Join(dir, "pids.new"), filepath.Join(dir, "pids")))
		select {}
	}
	stacktest.Require(t)
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	var pids []string
	eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "pids"))
		pids = strings.Fields(string(text))
		return err == nil
	})
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, word := range pids {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		eventually(t, func() bool { return syscall.Kill(pid, 0) != nil })
	}
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.Fail(t, "it does not come about")
		}
	}
}
