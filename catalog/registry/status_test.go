package registry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func TestOnlyAChangeOfStateIsAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	streaming := registry.TableStatus{Table: "public.orders", State: catalog.Streaming, BronzeThrough: 0x16B374D848, CurrentThrough: 7, FreshAt: time.Now().Add(-3 * time.Second)}
	stopped := streaming
	stopped.State = catalog.Quarantined
	stopped.Fault = &catalog.Error{Code: catalog.CodeSchemaChanged, Message: "column to\x00tal is gone\xff", Hint: "re-snapshot the table", At: "0/16B3748"}
	for _, s := range []registry.TableStatus{streaming, streaming, stopped, stopped, streaming} {
		require.NoError(t, b.SetTableStatuses(t.Context(), "shop", []registry.TableStatus{s, {Table: "public.unknown", State: catalog.Streaming}}))
	}
	d, err := b.Table(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	require.Equal(t, []registry.EventKind{registry.ConfigChanged, registry.StateChanged, registry.StateChanged, registry.StateChanged}, kinds(d))
	require.JSONEq(t, `{"from": "streaming", "to": "quarantined", "code": "schema.changed", "message": "0/16B3748: column to\ufffdtal is gone\ufffd", "hint": "re-snapshot the table"}`, string(d.Events[1].Detail))
	v := d.Table
	require.Equal(t, catalog.Streaming, v.State)
	require.Nil(t, v.Fault)
	require.Equal(t, catalog.LSN(0x16B374D848), v.BronzeThrough)
	require.Zero(t, v.HistoryThrough)
	require.WithinDuration(t, streaming.FreshAt, v.FreshAt, time.Millisecond)
	require.NotEmpty(t, v.Samples)
	require.GreaterOrEqual(t, v.Samples[0].Age, 3*time.Second)
}

func TestSinceStaysWhileTheStateStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	set := func(state catalog.State) registry.TableView {
		require.NoError(t, b.SetTableStatuses(t.Context(), "shop", []registry.TableStatus{{Table: "public.orders", State: state}}))
		return b.view(t, "public.orders")
	}
	one, two, three := set(catalog.Streaming), set(catalog.Streaming), set(catalog.Paused)
	require.Equal(t, one.Since, two.Since)
	require.Greater(t, two.HeardAt, one.HeardAt)
	require.Greater(t, three.Since, two.Since)
}

func TestManyWritersOfStatusesAndBatchesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tables := b.tables
	for i := range 30 {
		tables = append(tables, table(fmt.Sprintf("t%d", i)))
	}
	require.NoError(t, b.SyncConfig(t.Context(), []catalog.Source{b.source}, tables))
	g, ctx := errgroup.WithContext(t.Context())
	for w := range 6 {
		g.Go(func() error {
			for round := range 10 {
				var statuses []registry.TableStatus
				var batches []registry.BatchRecord
				for i := range tables {
					name := tables[(i*7*(w+1)+round)%len(tables)].Name.String()
					statuses = append(statuses, registry.TableStatus{Table: name, State: catalog.Streaming, FreshAt: time.Now()})
					batches = append(batches, batch(name, fmt.Sprint(w, round, i), 1))
				}
				if err := b.SetTableStatuses(ctx, "shop", statuses); err != nil {
					return err
				}
				if err := b.RecordBatches(ctx, "shop", batches); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	var changes int64
	f, err := b.Fleet(t.Context())
	require.NoError(t, err)
	for _, v := range f.Tables {
		changes += v.Totals.Changes
	}
	require.EqualValues(t, 6*10*len(tables), changes)
}

func batch(table, id string, creates int) registry.BatchRecord {
	epoch := catalog.Epoch{System: "7312345678901234567", Timeline: 1}
	return registry.BatchRecord{
		Table: table, ID: id, At: time.Now().UTC().Truncate(time.Microsecond), Creates: creates, Bytes: 100,
		From:    catalog.Cursor{Epoch: epoch, Position: catalog.Position{Generation: 1, Commit: 5, Ordinal: 2}},
		To:      catalog.Cursor{Epoch: epoch, Position: catalog.Position{Generation: 1, Commit: 9, Ordinal: 4}},
		Bronze:  registry.Commit{Rows: creates, Total: -1, Files: 1, Bytes: 50, SnapshotID: 8_611_686_018_427_387_904, Took: 12 * time.Millisecond},
		Current: registry.Commit{Rows: creates, Removed: 1, Total: -1, SnapshotID: 2, Took: 3 * time.Millisecond},
	}
}

func TestABatchComesBackAndCountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := batch("public.orders", "a", 10), batch("public.orders", "b", 5)
	one.Updates, one.Deletes, one.Reads, one.Truncates, one.Unfit = 1, 2, 3, 4, 5
	one.Unfits = map[string]int{"born": 5}
	one.Newest = time.Date(2026, 11, 29, 14, 2, 10, 123456000, time.UTC).UnixMicro()
	two.At = one.At.Add(time.Second)
	for range 2 {
		require.NoError(t, b.RecordBatches(t.Context(), "shop", []registry.BatchRecord{one, two, batch("public.unknown", "c", 1)}))
	}
	d, err := b.Table(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]registry.BatchRecord{two, one}, d.Batches, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })))
	totals := d.Table.Totals
	require.EqualValues(t, 25, totals.Changes)
	require.EqualValues(t, 15, totals.BronzeRows)
	require.EqualValues(t, 13, totals.CurrentRows)
	require.Zero(t, totals.HistoryRows)
	require.True(t, totals.LastBatchAt.Equal(two.At))
	require.Equal(t, one.Newest, totals.Newest.UnixMicro())
	var changes int64
	for _, s := range d.Samples {
		changes += s.Changes
		require.Negative(t, s.Age, "no age was reported")
	}
	require.EqualValues(t, 25-one.Reads, changes, "rows that a snapshot read are no changes")
}

func TestALayersRowsAreWhatItsNewestCommitSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	older, newer, unknown := batch("public.orders", "a", 10), batch("public.orders", "b", 10), batch("public.orders", "c", 10)
	older.Current.Total, newer.Current.Total = 500, 0 // emptied
	newer.At, unknown.At = older.At.Add(time.Second), older.At.Add(2*time.Second)
	require.NoError(t, b.RecordBatches(t.Context(), "shop", []registry.BatchRecord{newer, older}))
	require.Zero(t, b.view(t, "public.orders").Totals.CurrentRows)
	require.EqualValues(t, 20, b.view(t, "public.orders").Totals.BronzeRows)
	require.NoError(t, b.RecordBatches(t.Context(), "shop", []registry.BatchRecord{unknown}))
	require.EqualValues(t, 9, b.view(t, "public.orders").Totals.CurrentRows)
}

func TestASlotsNoteNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	requireCode(t, b.WriteSlotFlush(t.Context(), "shop", 5), catalog.CodeNoSource)
	none, err := b.ReadSlot(t.Context(), "shop")
	require.NoError(t, err)
	require.Nil(t, none)

	want := registry.Slot{Source: "shop", Name: "lakeweir_shop", Epoch: catalog.Epoch{System: "18446744073709551615", Timeline: 3}, ConsistentLSN: 0xFFFFFFFF00000001, FlushedLSN: 0xFFFFFFFF00000001}
	require.NoError(t, b.WriteSlot(t.Context(), want))
	require.NoError(t, b.WriteSlotFlush(t.Context(), "shop", 0xFFFFFFFF00000009))
	require.NoError(t, b.WriteSlotFlush(t.Context(), "shop", 4))
	got, err := b.ReadSlot(t.Context(), "shop")
	require.NoError(t, err)
	want.FlushedLSN, want.CreatedAt = 0xFFFFFFFF00000009, got.CreatedAt
	require.Equal(t, want, *got)

	want.Name, want.ConsistentLSN, want.FlushedLSN = "other", 1, 1 // a new slot starts over
	require.NoError(t, b.WriteSlot(t.Context(), want))
	got, err = b.ReadSlot(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, catalog.LSN(1), got.FlushedLSN)
	requireCode(t, b.WriteSlot(t.Context(), registry.Slot{Source: "nobody", Epoch: want.Epoch}), catalog.CodeNoSource)
}

func TestSourcesShowLogSlotAndNewestWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.Sources(t.Context())
	require.NoError(t, err)
	require.Len(t, before, 1)
	require.Nil(t, before[0].Log)
	require.Nil(t, before[0].Worker)

	status := registry.SourceStatus{End: 100, Confirmed: 40, Retained: 60, SlotState: "reserved", Active: true}
	require.NoError(t, b.SetSourceStatus(t.Context(), "shop", status, 50))
	started := time.Now().UTC().Truncate(time.Microsecond)
	for _, id := range []string{"w1", "w2"} {
		require.NoError(t, b.Heartbeat(t.Context(), registry.Worker{ID: id, Source: "shop", PID: 42, Version: "v1", StartedAt: started}))
	}
	after, err := b.Sources(t.Context())
	require.NoError(t, err)
	require.Equal(t, status, after[0].Log.SourceStatus)
	require.Equal(t, catalog.LSN(50), after[0].Log.Flushed)
	require.Equal(t, "w2", after[0].Worker.ID)
	require.True(t, after[0].Worker.StartedAt.Equal(started))
	require.EqualValues(t, 10<<30, after[0].WALBudget)
}

func TestVerifiedThroughIsTheNewestComparisonWithoutDifference(t *testing.T) {
	t.Parallel()
	b := setup(t)
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for i, differing := range []int64{0, 0, 3} {
		c := registry.Reconciliation{
			ID: fmt.Sprint("r", i), Source: "shop", Table: "public.orders", At: noon.Add(time.Duration(i) * time.Hour), Cursor: "0/9",
			SourceRows: 10, LakeRows: 10 - differing, Differing: differing, Report: []byte(`{"keys": 1}`), Took: time.Second,
		}
		for range 2 {
			require.NoError(t, b.RecordReconciliation(t.Context(), c))
		}
	}
	d, err := b.Table(t.Context(), "shop", "public.orders")
	require.NoError(t, err)
	require.True(t, d.Table.VerifiedThrough.Equal(noon.Add(time.Hour)))
	require.EqualValues(t, 3, d.Table.Verified.Differing)
	require.Equal(t, []registry.EventKind{registry.ConfigChanged, registry.Reconciled, registry.Reconciled, registry.Reconciled}, kinds(d))
}

func TestTheFleetShowsATableNobodyReportedAsPending(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, err := b.Fleet(t.Context())
	require.NoError(t, err)
	require.Len(t, f.Tables, 2)
	require.Equal(t, catalog.Pending, f.Tables[0].State)
	require.True(t, f.Tables[0].HeardAt.IsZero())
	require.Equal(t, "shop/public.orders", f.Tables[0].ID())
	_, err = b.Table(t.Context(), "shop", "public.nothing")
	requireCode(t, err, catalog.CodeNoTable)
}
