package registry_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func stopped(table string) registry.Quarantine {
	return registry.Quarantine{
		Table: table, At: place(0x10), Key: "sealed:abc", KeyID: "00ff", Folder: "s3://lake/_lakeweir/parked/shop/orders",
		Cause: registry.Cause{
			Fault:    registry.Fault{Code: catalog.CodeDecode, Message: "a value cannot be read", Hint: "look"},
			Evidence: registry.Evidence{Columns: []string{"amount"}, Places: []string{place(0x10).String()}},
		},
	}
}

func parkedRun(seq uint64) registry.ParkedRun {
	return registry.ParkedRun{
		Seq: seq, File: fmt.Sprintf("1-00ff/%010d-x", seq), Digest: []byte{byte(seq), 0, 1}, Events: int(seq), Bytes: 100,
		From: place(0x10 * seq), To: place(0x10 * (seq + 1)),
	}
}

func TestAQuarantineIsKeptAsItBegan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	change, err := b.RecordSchemaChange(ctx, "shop", renamed(place(0x10)))
	require.NoError(t, err)
	want := stopped("public.orders")
	want.Change = change.ID
	got, err := b.BeginQuarantine(ctx, "shop", want)
	require.NoError(t, err)
	want.Source, want.State = "shop", registry.Parking
	require.Empty(t, cmp.Diff(&want, got, cmpopts.IgnoreFields(registry.Quarantine{}, "ID", "Since")))
	require.NotContains(t, fmt.Sprintf("%v %+v", got, got), "abc", "a key does not show")

	another := stopped("public.orders")
	another.Key, another.KeyID, another.Folder, another.Fault.Code = "sealed:def", "11ee", "elsewhere", catalog.CodeTruncate
	again, err := b.BeginQuarantine(ctx, "shop", another)
	require.NoError(t, err)
	require.Equal(t, got, again, "a table is in one quarantine at a time")
	var ids [6]int64
	g := new(errgroup.Group)
	for i := range ids {
		g.Go(func() error {
			q, err := b.BeginQuarantine(ctx, "shop", stopped("public.payments"))
			if err == nil {
				ids[i] = q.ID
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}

	open, err := b.OpenQuarantines(ctx, "")
	require.NoError(t, err)
	require.Len(t, open, 2)
	open, err = b.OpenQuarantines(ctx, "other")
	require.NoError(t, err)
	require.Empty(t, open)
	_, err = b.BeginQuarantine(ctx, "shop", stopped("public.nobody"))
	require.Equal(t, catalog.CodeNoTable, catalog.Public(err).Code)
	_, err = b.Quarantine(ctx, 4711)
	require.Equal(t, catalog.CodeNoQuarantine, catalog.Public(err).Code)
}

func TestARunCountsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	q, err := b.BeginQuarantine(ctx, "shop", stopped("public.orders"))
	require.NoError(t, err)
	require.True(t, q.Parked.Through.IsZero())
	conflict := func(err error) {
		t.Helper()
		require.Equal(t, catalog.CodeQuarantineState, catalog.Public(err).Code)
	}
	conflict(b.NoteParked(ctx, q.ID, parkedRun(2)))
	conflict(b.NoteParked(ctx, q.ID, registry.ParkedRun{}))
	for seq := range uint64(3) {
		require.NoError(t, b.NoteParked(ctx, q.ID, parkedRun(seq+1)))
	}
	again := parkedRun(2)
	again.File, again.Digest, again.Bytes = "1-00ff/0000000002-y", nil, 7
	require.NoError(t, b.NoteParked(ctx, q.ID, again), "the answer to the first note was lost")
	again.To = place(0x999)
	conflict(b.NoteParked(ctx, q.ID, again))
	conflict(b.NoteParked(ctx, q.ID, parkedRun(5)))

	runs, err := b.ParkedRuns(ctx, q.ID, 0, 10)
	require.NoError(t, err)
	require.Equal(t, []registry.ParkedRun{parkedRun(1), parkedRun(2), parkedRun(3)}, runs)
	runs, err = b.ParkedRuns(ctx, q.ID, 1, 1)
	require.NoError(t, err)
	require.Equal(t, []registry.ParkedRun{parkedRun(2)}, runs)
	q, err = b.Quarantine(ctx, q.ID)
	require.NoError(t, err)
	require.Equal(t, registry.Parked{Runs: 3, Events: 6, Bytes: 300, Through: place(0x40)}, q.Parked)
	require.Equal(t, catalog.CodeNoQuarantine, catalog.Public(b.NoteParked(ctx, 4711, parkedRun(1))).Code)
}

// TestOfTwoThatParkOneCounts has two workers, of which each takes itself for the only
// one, park the same table: a number is one's alone, and what is noted is without holes.
func TestOfTwoThatParkOneCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	q, err := b.BeginQuarantine(ctx, "shop", stopped("public.orders"))
	require.NoError(t, err)
	var won [2]int
	g := new(errgroup.Group)
	for worker := range won {
		g.Go(func() error {
			for seq := uint64(1); seq <= 20; seq++ {
				run := parkedRun(seq)
				run.Events = worker // the two have cut differently
				if b.NoteParked(ctx, q.ID, run) == nil {
					won[worker]++
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, 20, won[0]+won[1])
	runs, err := b.ParkedRuns(ctx, q.ID, 0, 100)
	require.NoError(t, err)
	require.Len(t, runs, 20)
}

func TestAQuarantineEndsWhenEverythingWasHandedBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	q, err := b.BeginQuarantine(ctx, "shop", stopped("public.orders"))
	require.NoError(t, err)
	look := func() *registry.Quarantine {
		t.Helper()
		got, err := b.Quarantine(ctx, q.ID)
		require.NoError(t, err)
		return got
	}
	conflict := func(err error) {
		t.Helper()
		require.Equal(t, catalog.CodeQuarantineState, catalog.Public(err).Code)
		require.Equal(t, catalog.Conflict, catalog.Public(err).Kind)
	}
	require.NoError(t, b.NoteParked(ctx, q.ID, parkedRun(1)))
	require.NoError(t, b.NoteParked(ctx, q.ID, parkedRun(2)))
	conflict(b.EndQuarantine(ctx, q.ID))
	conflict(b.NoteReplayed(ctx, q.ID, 1))

	require.NoError(t, b.AskRelease(ctx, q.ID, "ann", "mended"))
	require.Equal(t, "ann", look().Asked.By)
	require.NoError(t, b.StartReplay(ctx, q.ID))
	require.NoError(t, b.NoteReplayed(ctx, q.ID, 1))
	require.Equal(t, registry.Replaying, look().State)

	cause := registry.Cause{Fault: registry.Fault{Code: catalog.CodeKeyNull, Message: "NULL in the key"}}
	require.NoError(t, b.StopReplay(ctx, q.ID, cause))
	got := look()
	require.Equal(t, registry.Parking, got.State)
	require.Equal(t, cause, got.Cause)
	require.Nil(t, got.Asked, "whoever asked is answered")
	require.Zero(t, got.Replayed)

	require.NoError(t, b.StartReplay(ctx, q.ID))
	require.NoError(t, b.NoteReplayed(ctx, q.ID, 1))
	require.NoError(t, b.StartReplay(ctx, q.ID), "by the next worker: from the first run on")
	require.Zero(t, look().Replayed)
	require.Equal(t, 3, look().Replays)
	require.NoError(t, b.NoteReplayed(ctx, q.ID, 2))
	require.NoError(t, b.NoteReplayed(ctx, q.ID, 1))
	require.EqualValues(t, 2, look().Replayed)
	require.NoError(t, b.NoteParked(ctx, q.ID, parkedRun(3)), "what came meanwhile")
	conflict(b.EndQuarantine(ctx, q.ID)) // I9: run 3 would be lost with the key
	conflict(b.NoteReplayed(ctx, q.ID, 4))
	require.NotEmpty(t, look().Key)
	require.NoError(t, b.NoteReplayed(ctx, q.ID, 3))

	for range 2 { // a second time changes nothing
		require.NoError(t, b.EndQuarantine(ctx, q.ID))
	}
	got = look()
	require.Equal(t, registry.Released, got.State)
	require.Empty(t, got.Key, "the key is destroyed")
	require.Equal(t, "00ff", got.KeyID)
	require.False(t, got.ReleasedAt.IsZero())
	require.EqualValues(t, 3, got.Parked.Runs, "what it was stays known")
	runs, err := b.ParkedRuns(ctx, q.ID, 0, 10)
	require.NoError(t, err)
	require.Empty(t, runs)
	for _, late := range []error{
		b.NoteParked(ctx, q.ID, parkedRun(4)), b.StartReplay(ctx, q.ID), b.StopReplay(ctx, q.ID, cause),
		b.AskRelease(ctx, q.ID, "bob", ""), b.AbandonQuarantine(ctx, q.ID, "bob", ""),
	} {
		conflict(late)
	}

	unswept, err := b.UnsweptQuarantines(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, unswept, 1)
	require.NoError(t, b.MarkSwept(ctx, q.ID))
	unswept, err = b.UnsweptQuarantines(ctx, "shop")
	require.NoError(t, err)
	require.Empty(t, unswept)

	next, err := b.BeginQuarantine(ctx, "shop", stopped("public.orders"))
	require.NoError(t, err)
	require.NotEqual(t, q.ID, next.ID, "and the table may be stopped again")
	history, err := b.Quarantines(ctx, "shop", "public.orders")
	require.NoError(t, err)
	require.Len(t, history, 2)
	require.Equal(t, next.ID, history[0].ID)

	require.NoError(t, b.NoteParked(ctx, next.ID, parkedRun(1)))
	require.NoError(t, b.AbandonQuarantine(ctx, next.ID, "ann", "read anew"))
	require.NoError(t, b.AbandonQuarantine(ctx, next.ID, "ann", "read anew"))
	conflict(b.EndQuarantine(ctx, next.ID))
	abandoned, err := b.Quarantine(ctx, next.ID)
	require.NoError(t, err)
	require.True(t, abandoned.Abandoned)
	require.Empty(t, abandoned.Key)

	d, err := b.Table(ctx, "shop", "public.orders")
	require.NoError(t, err)
	var told []string
	for i := range d.Events {
		if e := d.Events[len(d.Events)-1-i]; e.Kind == registry.QuarantineChanged {
			var detail struct{ From, To string }
			require.NoError(t, json.Unmarshal(e.Detail, &detail))
			require.NotContains(t, string(e.Detail), "abc")
			told = append(told, detail.From+"→"+detail.To)
		}
	}
	require.Equal(t, []string{
		"→parking", "parking→parking", "parking→replaying", "replaying→parking", "parking→replaying", "replaying→released", "→parking", "parking→released",
	}, told)
}

func TestATableWithoutRunsGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q, err := b.BeginQuarantine(t.Context(), "shop", stopped("public.orders"))
	require.NoError(t, err)
	require.NoError(t, b.EndQuarantine(t.Context(), q.ID))
}
