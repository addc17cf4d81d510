package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func TestWhoHasARecordPassedByIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	skip := registry.Skip{Table: "public.orders", Partition: 3, Offset: 4711, Reason: "broken by hand", By: "ann"}
	require.NoError(t, b.AddSkip(ctx, "shop", skip))
	again := skip
	again.By = "bob"
	require.NoError(t, b.AddSkip(ctx, "shop", again), "a second time changes nothing")
	err := b.AddSkip(ctx, "shop", registry.Skip{Table: "public.nobody", Reason: "x", By: "ann"})
	require.Equal(t, catalog.CodeNoTable, catalog.Public(err).Code)

	kept, err := b.Skips(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.False(t, kept[0].At.IsZero())
	skip.At = kept[0].At
	require.Equal(t, skip, kept[0])
	kept, err = b.Skips(ctx, "other")
	require.NoError(t, err)
	require.Empty(t, kept)

	table, err := b.Table(ctx, "shop", "public.orders")
	require.NoError(t, err)
	asked := 0
	for _, e := range table.Events {
		if e.Kind == registry.SkipAsked {
			asked++
			require.JSONEq(t, `{"partition":3,"offset":4711,"reason":"broken by hand","by":"ann"}`, string(e.Detail))
		}
	}
	require.Equal(t, 1, asked)
}
