package localpgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	var dsns []string
	for range 2 {
		dsn := localpgtest.Database(t)
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), "create table only_here (a int)")
		require.NoError(t, err)
		dsns = append(dsns, dsn)
	}
	require.NotEqual(t, dsns[0], dsns[1])
}

func TestADatabaseWithASlotIsDropped(t *testing.T) {
	t.Parallel()
	var dsn string
	t.Run("make a slot", func(t *testing.T) {
		dsn = localpgtest.Database(t)
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), "select pg_create_logical_replication_slot('left_behind', 'pgoutput')")
		require.NoError(t, err)
	})
	_, err := pgx.Connect(t.Context(), dsn)
	require.ErrorContains(t, err, "does not exist")
}

func TestTestsOfOneBinaryShareAServer(t *testing.T) {
	t.Parallel()
	first := localpgtest.Server(t)
	require.Same(t, first, localpgtest.Server(t))
	require.NotSame(t, first, localpgtest.Server(t, map[string]string{"work_mem": "1MB"}))
}
