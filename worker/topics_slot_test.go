package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// TestTheConnectorsSlotIsWatched: what it retains, how near its budget that is, and by
// whom it is held. Nothing is folded later for it, since that would free nothing.
func TestTheConnectorsSlotIsWatched(t *testing.T) {
	t.Parallel()
	d := newDeskOn(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_wal_size": "518MB"})), map[string]string{
		"public.orders.yaml": "table: public.orders\nprimary_key: [id]\nscd: [1]\n",
	})
	d.source.WALBudget = 24 * megabyte
	d.sync()
	d.exec("CREATE TABLE orders (id int PRIMARY KEY)")
	d.exec("SELECT pg_create_logical_replication_slot('" + d.source.Slot + "', 'pgoutput')")
	d.tell("INSERT INTO orders VALUES (1)", "public.orders", `{"id":1}`, `{"before":null,"after":{"id":1},"op":"r"}`, "last")
	d.tell("INSERT INTO orders VALUES (2)", "public.orders", `{"id":2}`, `{"before":null,"after":{"id":2},"op":"c"}`, "")
	d.start()
	through := func(want catalog.LSN) func(*registry.TableView) bool {
		return func(v *registry.TableView) bool { return v.State == catalog.Streaming && v.CurrentThrough >= want }
	}
	d.beatUntil(through(d.end()))
	require.Eventually(t, func() bool { return d.log().Stage == catalog.WithinBudget }, 30*time.Second, 50*time.Millisecond)
	log := d.log()
	require.Equal(t, "reserved", log.SlotState)
	require.False(t, log.Active, "no connector reads it")
	require.NotZero(t, log.End)
	require.NotZero(t, log.Confirmed)
	require.Empty(t, log.HeldBy)

	noise(t, d.conn)
	noise(t, d.conn)
	require.Eventually(t, func() bool { return d.log().Stage == catalog.OverBudget }, 30*time.Second, 50*time.Millisecond)
	log = d.log()
	require.Greater(t, log.Retained, d.source.WALBudget)
	require.Equal(t, "connector lakeweir-shop, which is not reading it", log.HeldBy)
	d.tell("INSERT INTO orders VALUES (3)", "public.orders", `{"id":3}`, `{"before":null,"after":{"id":3},"op":"c"}`, "")
	d.beatUntil(through(d.end()))
	_, current := d.rows("public.orders", catalog.Current)
	require.Len(t, current, 3, "folding goes on")
	require.Contains(t, d.stages(), "over")

	require.Eventually(t, func() bool { // as a connector that goes on moves it
		d.exec("CHECKPOINT")
		d.exec("SELECT pg_replication_slot_advance('" + d.source.Slot + "', pg_current_wal_lsn())")
		return d.log().Stage == catalog.WithinBudget
	}, 30*time.Second, 100*time.Millisecond)
	require.Equal(t, "ok", d.stages()[0])
	d.exec("SELECT pg_drop_replication_slot('" + d.source.Slot + "')")
	require.Eventually(t, func() bool { return d.log().SlotState == "missing" }, 30*time.Second, 50*time.Millisecond)
	d.stop()
}
