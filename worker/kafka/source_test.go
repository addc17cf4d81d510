package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

func TestSnapshotAndStreamComeInOrderWithTheirOffsets(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.table("empty", true, 0)
	s.write(
		event{table: "orders", op: "r", key: keyOf(1), after: row(1, "a"), lsn: 100, at: 10, snapshot: "first_in_data_collection"},
		event{table: "orders", op: "r", key: keyOf(2), after: row(2, "b"), lsn: 100, at: 10, snapshot: "last_in_data_collection"},
		event{table: "orders", op: "c", key: keyOf(3), after: row(3, "c"), lsn: 210, sequence: 200, tx: 7, at: 20},
		event{table: "orders", op: "u", key: keyOf(1), after: row(1, "a2"), lsn: 220, sequence: 200, tx: 7, at: 20},
		event{table: "orders", op: "d", key: keyOf(2), before: row(2, ""), lsn: 310, sequence: 300, tx: 8, at: 30},
		event{table: "orders", tombstone: true, key: keyOf(2)},
	)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("the changes", r.has("orders", 5))
	orders := r.saved["public.orders"]
	require.Len(t, orders.changes, 5)
	require.Equal(t, []change.Op{change.Read, change.Read, change.Create, change.Update, change.Delete},
		[]change.Op{orders.changes[0].op, orders.changes[1].op, orders.changes[2].op, orders.changes[3].op, orders.changes[4].op})
	require.Equal(t, "1,1,a2,<1>,", orders.changes[3].after)
	require.Equal(t, "2,<0>,<0>,<0>,", orders.changes[4].before, "what a delete says beside the key is made up")
	require.Equal(t, catalog.LSN(300), orders.changes[4].position.Commit)
	require.True(t, orders.whole)
	require.Equal(t, &catalog.SnapshotProgress{Generation: 1, Done: true, Rows: 2, StartedAt: 10}, orders.resume.Snapshot)
	r.until("the tombstone", func() bool { n, _ := orders.resume.Offsets.Next(0); return n == 6 })
	require.NotEmpty(t, orders.resume.Offsets.TopicID)
	r.until("progress", func() bool { return r.through == 300 })
	require.Equal(t, int64(30), r.readAt.UnixMicro())
	empty := r.saved["public.empty"]
	r.until("the empty table is done", func() bool { return empty.resume.Snapshot != nil && empty.resume.Snapshot.Done })
	require.Empty(t, r.faults)
}
