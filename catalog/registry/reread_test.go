package registry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func TestARequestToReadAgainIsKeptUntilItIsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	first := registry.Reread{Table: "public.orders", Reason: registry.RereadRepair, Form: registry.RereadPlain, Keys: `[["1"],["2"]]`, Count: 2}
	second := registry.Reread{Table: "public.payments", Reason: registry.RereadUnavailable, Form: registry.RereadMasked, Keys: `[["tok_x"]]`, Count: 1}
	var err error
	first.ID, err = b.RequestReread(ctx, "shop", first)
	require.NoError(t, err)
	second.ID, err = b.RequestReread(ctx, "shop", second)
	require.NoError(t, err)
	_, err = b.RequestReread(ctx, "shop", registry.Reread{Table: "public.nobody", Form: registry.RereadPlain})
	require.Equal(t, catalog.CodeNoTable, catalog.Public(err).Code)

	pending, err := b.PendingRereads(ctx, "shop", 10)
	require.NoError(t, err)
	require.Equal(t, []registry.Reread{first, second}, pending)
	third := first
	third.ID, err = b.RequestReread(ctx, "shop", third)
	require.NoError(t, err)
	pending, err = b.PendingRereads(ctx, "shop", 1)
	require.NoError(t, err)
	require.Equal(t, []registry.Reread{first, second}, pending, "one table's requests keep no other's from being seen")
	pending, err = b.PendingRereads(ctx, "other", 10)
	require.NoError(t, err)
	require.Empty(t, pending)

	for range 2 { // a second time changes nothing
		require.NoError(t, b.FinishRereads(ctx, []int64{first.ID}))
	}
	left, err := b.CountRereads(ctx, []int64{first.ID, second.ID})
	require.NoError(t, err)
	require.Equal(t, 1, left)
	var keys string
	require.NoError(t, b.conn.QueryRow(ctx, "select keys from lakeweir.rereads where id = $1", first.ID).Scan(&keys))
	require.Empty(t, keys, "the keys of what is done are forgotten")
}

func TestAWorkerIsSeenByItsHeartbeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, ever, err := b.WorkerSeen(t.Context(), "shop")
	require.NoError(t, err)
	require.False(t, ever)
	require.NoError(t, b.Heartbeat(t.Context(), registry.Worker{ID: "w", Source: "shop", StartedAt: time.Now()}))
	ago, ever, err := b.WorkerSeen(t.Context(), "shop")
	require.NoError(t, err)
	require.True(t, ever)
	require.Less(t, ago, time.Minute)
}
