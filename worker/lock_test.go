package worker_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker"
)

func (r *rig) config() worker.Config {
	return worker.Config{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey,
		Lake: r.lakeCfg, Registry: r.registry, Logger: testLogger(r.t), Limits: r.limits,
	}
}

func (r *rig) slotReader() (pid int) {
	r.t.Helper()
	require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "SELECT coalesce(active_pid, 0) FROM pg_replication_slots WHERE slot_name = $1", r.source.Slot).Scan(&pid))
	return pid
}

func TestASecondWorkerOfASourceIsRefusedAndDisturbsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.account.yaml": accountFile})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	r.start()
	r.landed()
	reader := r.slotReader()
	require.NotZero(t, reader)

	err := worker.Run(t.Context(), r.config())
	require.EqualError(t, err, "another worker, process "+strconv.Itoa(os.Getpid())+", runs source shop")
	require.Equal(t, catalog.CodeSourceSlot, catalog.Public(err).Code)
	require.Equal(t, catalog.Conflict, catalog.KindOf(err))

	require.Equal(t, reader, r.slotReader(), "the first reads on in the same session")
	r.exec("INSERT INTO account VALUES (1, 'a')")
	r.landed()
	r.requireCurrentEqualsSource("account")
}

func TestAKilledWorkerIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.account.yaml": accountFile})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	r.startProcess()
	r.landed()
	r.kill()
	began := time.Now()
	lock, err := r.registry.LockSource(t.Context(), r.source.Name)
	require.NoError(t, err)
	require.Less(t, time.Since(began), 3*time.Second)
	t.Logf("the lock of a killed worker was free after %s", time.Since(began))
	lock.Release(t.Context())
	r.exec("INSERT INTO account VALUES (1, 'a')")
	r.start()
	r.landed()
	r.requireCurrentEqualsSource("account")
}

// Interrupted at whatever moment of its start, a worker ends without an error, and
// stops no table.
func TestAWorkerInterruptedWhileItStartsEndsQuietly(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.account.yaml": accountFile})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	for after := time.Duration(0); after < 400*time.Millisecond; after = after*3/2 + 2*time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		timer := time.AfterFunc(after, cancel)
		if after == 0 {
			cancel()
		}
		require.NoError(t, worker.Run(ctx, r.config()), "interrupted after %s", after)
		timer.Stop()
		cancel()
		require.False(t, r.state("public.account").State.Stopped(), "interrupted after %s", after)
	}
	r.start()
	r.landed() // also while the table is empty
	r.exec("INSERT INTO account VALUES (1, 'a')")
	r.landed()
	r.requireCurrentEqualsSource("account")
	r.stop()
	r.start()
	r.landed() // and when no change comes after a restart
}
