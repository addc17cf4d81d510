package registry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func TestOnlyOneHoldsTheLockOfASource(t *testing.T) {
	t.Parallel()
	r := setup(t)
	first, err := r.LockSource(t.Context(), "shop")
	require.NoError(t, err)
	defer first.Release(t.Context())
	require.NoError(t, r.Heartbeat(t.Context(), registry.Worker{ID: "w", Source: "shop", PID: 4242, StartedAt: time.Now()}))

	other, err := r.LockSource(t.Context(), "crm")
	require.NoError(t, err, "another source has a lock of its own")
	other.Release(t.Context())

	_, err = r.LockSource(t.Context(), "shop")
	require.EqualError(t, err, "another worker, process 4242, runs source shop")
	require.Equal(t, catalog.Conflict, catalog.KindOf(err))
	require.Equal(t, catalog.CodeSourceSlot, catalog.Public(err).Code)
	require.NoError(t, first.Check(t.Context()), "who is refused takes nothing away")

	first.Release(t.Context())
	second, err := r.LockSource(t.Context(), "shop")
	require.NoError(t, err)
	second.Release(t.Context())
}

const endLockHolders = `select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'lakeweir worker of shop' and datname = current_database()`

func TestTheLockOfABrokenConnectionIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	dead, err := r.LockSource(t.Context(), "shop")
	require.NoError(t, err)
	defer dead.Release(t.Context())
	_, err = r.conn.Exec(t.Context(), endLockHolders)
	require.NoError(t, err)

	next, err := r.LockSource(t.Context(), "shop")
	require.NoError(t, err)
	require.EqualError(t, dead.Check(t.Context()), "another worker runs source shop")
	next.Release(t.Context())
	require.NoError(t, dead.Check(t.Context()), "it is taken again when it is free")
	require.NoError(t, dead.Check(t.Context()))
	_, err = r.LockSource(t.Context(), "shop")
	require.Equal(t, catalog.Conflict, catalog.KindOf(err))
}
