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

func TestAChangeAtAPositionIsPassedByAndLookedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	skips := []registry.Skip{
		{Table: "public.orders", Partition: 0, Offset: 0, Reason: "a record", By: "ann"},
		{Table: "public.orders", Position: place(0x10).Position, Reason: "a change", By: "ann"},
		{Table: "public.orders", Position: place(0x20).Position, Reason: "another", By: "bob"},
	}
	for _, s := range skips {
		require.NoError(t, b.AddSkip(ctx, "shop", s))
		s.By = "somebody else"
		require.NoError(t, b.AddSkip(ctx, "shop", s), "a second time changes nothing")
	}
	why := registry.Fault{Code: catalog.CodeDecode, Message: "the value of column amount cannot be read"}
	for range 2 { // a restart passes it by again
		require.NoError(t, b.PassedBy(ctx, "shop", skips[1], why))
	}
	kept, err := b.Skips(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, kept, len(skips))
	require.False(t, kept[1].PassedAt.IsZero())
	for i, s := range skips {
		require.Equal(t, i == 1, !kept[i].PassedAt.IsZero(), "the others were not met yet")
		s.At, s.PassedAt = kept[i].At, kept[i].PassedAt
		if i == 1 {
			s.Code, s.Message = why.Code, why.Message
		}
		require.Equal(t, s, kept[i])
	}
	d, err := b.Table(ctx, "shop", "public.orders")
	require.NoError(t, err)
	require.Equal(t, registry.RecordSkipped, d.Events[0].Kind)
	require.JSONEq(t, `{"position":"g1 0/10 #2","reason":"a change","by":"ann","code":"change.undecodable"}`, string(d.Events[0].Detail))
}
