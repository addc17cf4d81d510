package worker_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

const sgFile = "table: public.sg\nprimary_key: [id]\nscd: [1, 2]\nfreshness_tier: realtime\n"

// c39 is the table of case C39 with a row landed and the worker stopped.
func c39(t *testing.T, dsn string) *rig {
	t.Helper()
	r := newRigOn(t, dsn, "", map[string]string{"public.sg.yaml": sgFile, "public.other.yaml": strings.ReplaceAll(sgFile, "sg", "other")})
	r.exec("CREATE TABLE sg (id int PRIMARY KEY, v text); CREATE TABLE other (id int PRIMARY KEY, v text)")
	r.exec("INSERT INTO sg VALUES (1, 'before')")
	r.start()
	r.landed()
	return r
}

// gaps waits until every table has a gap and returns what is said of sg.
func (r *rig) gaps() *registry.Fault {
	r.t.Helper()
	r.wait(func(v *registry.TableView) bool { return v.State == catalog.Gap })
	return r.state("public.sg").Fault
}

func (r *rig) slotCount() (n int) {
	r.t.Helper()
	require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "SELECT count(*)::int FROM pg_replication_slots WHERE slot_name = $1", r.source.Slot).Scan(&n))
	return n
}

// untouched checks that the lake shows what it showed, and calls none of it complete.
func (r *rig) untouched() {
	r.t.Helper()
	_, rows := r.rows("public.sg", catalog.Current)
	require.Len(r.t, rows, 1)
	require.Equal(r.t, "before", rows[0]["v"])
	v := r.state("public.sg")
	require.Equal(r.t, catalog.Gap, v.State)
	require.Less(r.t, v.CurrentThrough, r.endOfLog(), "what is in the gap is not called complete")
}

func (r *rig) endOfLog() catalog.LSN {
	r.t.Helper()
	var end string
	require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&end))
	at, err := catalog.ParseLSN(end)
	require.NoError(r.t, err)
	return at
}

const inTheGap = "INSERT INTO sg VALUES (2, 'in the gap'); DELETE FROM sg WHERE id = 1"

func TestC39SlotDroppedWhileTheWorkerWasAway(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.Database(t))
	r.stop()
	require.Eventually(t, func() bool { return r.slotReader() == 0 }, 20*time.Second, 10*time.Millisecond)
	r.exec("SELECT pg_drop_replication_slot('" + r.source.Slot + "')")
	r.exec(inTheGap)
	r.start()
	f := r.gaps()
	r.exec("INSERT INTO sg VALUES (3, 'after')")
	require.Equal(t, catalog.CodeGap, f.Code)
	require.Equal(t, "shop/public.sg: changes are missing: slot "+r.source.Slot+" is missing at the source", f.Message)
	require.Contains(t, f.Hint, "drop them there")
	require.Zero(t, r.slotCount(), "it is not made again")
	r.untouched()

	// What the hint says heals it.
	r.stop()
	r.lakeCfg.Warehouse, r.lakeCfg.Catalog = r.freshLake()
	r.start()
	r.wait(func(v *registry.TableView) bool { return v.State == catalog.Streaming })
	r.landed()
	require.Equal(t, 1, r.slotCount())
	r.requireCurrentEqualsSource("sg")
}

func TestC39SlotLostWhileTheWorkerWasAway(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_slot_wal_keep_size": "48MB", "min_wal_size": "32MB", "max_wal_size": "32MB"})))
	r.stop()
	r.exec(inTheGap)
	r.loseSlot()
	r.start()
	f := r.gaps()
	require.Contains(t, f.Message, "changes are missing: slot "+r.source.Slot+" is lost (")
	require.Equal(t, "lost", r.log().SlotState)
	r.untouched()
}

func TestC39SlotLostUnderTheWorker(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_slot_wal_keep_size": "49MB", "min_wal_size": "32MB", "max_wal_size": "32MB"})))
	// A stopped table holds the slot, whatever the worker reads.
	r.exec("ALTER TABLE other ADD COLUMN w text; INSERT INTO other VALUES (1, 'x')")
	r.wait(func(v *registry.TableView) bool { return v.Name.Name != "other" || v.State == catalog.Quarantined })
	require.Eventually(t, func() bool { return r.log().HeldBy == "stopped table public.other" }, 20*time.Second, 50*time.Millisecond)
	r.loseSlot()
	f := r.gaps()
	require.Contains(t, f.Message, "changes are missing: slot "+r.source.Slot+" is lost (")
	require.Empty(t, r.done, "the worker goes on")
}

// loseSlot writes log until the server takes the slot's away. The server ends the
// walsender that holds it.
func (r *rig) loseSlot() {
	r.t.Helper()
	r.exec("CREATE TABLE noise (x text)")
	require.Eventually(r.t, func() bool {
		r.exec("INSERT INTO noise SELECT repeat(md5(g::text), 30) FROM generate_series(1, 20000) g")
		r.exec("SELECT pg_switch_wal()")
		r.exec("CHECKPOINT")
		var status string
		require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1", r.source.Slot).Scan(&status))
		return status == "lost"
	}, time.Minute, time.Millisecond)
}

func TestC39SlotDroppedUnderTheWorker(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.Database(t))
	require.Eventually(t, func() bool { // its walsender ends, and is quick to come back
		r.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND slot_name = '" + r.source.Slot + "'")
		_, err := r.conn.Exec(t.Context(), "SELECT pg_drop_replication_slot($1)", r.source.Slot)
		return err == nil
	}, 20*time.Second, time.Millisecond)
	r.exec(inTheGap)
	f := r.gaps()
	require.Contains(t, f.Message, "slot "+r.source.Slot+" is missing at the source")
	require.Zero(t, r.slotCount(), "it is not made again")
	require.Eventually(t, func() bool { return r.log().SlotState == "missing" }, 20*time.Second, 50*time.Millisecond)
	require.Empty(t, r.done, "the worker goes on: it is not started again and again")
	r.untouched()
}

// The position that proves that a slot was moved is overwritten when another table's
// changes are confirmed: the gap has to outlive that.
func TestC39AGapIsStillKnownWhenOtherTablesHaveGoneOn(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.Database(t))
	r.stop()
	r.exec(inTheGap)
	require.Eventually(t, func() bool { return r.slotReader() == 0 }, 20*time.Second, 10*time.Millisecond)
	r.exec("SELECT pg_replication_slot_advance('" + r.source.Slot + "', pg_current_wal_lsn())")
	r.start()
	f := r.gaps()
	require.Contains(t, f.Message, "slot "+r.source.Slot+" was moved to ")
	r.stop()

	// A table that is new has no gap and moves the slot.
	r.exec("CREATE TABLE fresh (id int PRIMARY KEY, v text)")
	fresh := *r.tables[0]
	fresh.Name.Name = "fresh"
	r.tables = append(r.tables, &fresh)
	r.sync()
	r.start()
	r.exec("INSERT INTO fresh VALUES (1, 'x')")
	r.wait(func(v *registry.TableView) bool { return v.Name.Name != "fresh" || v.State == catalog.Streaming })
	moved := r.confirmed()
	require.Eventually(t, func() bool { return r.confirmed() > moved }, 20*time.Second, 20*time.Millisecond)
	r.stop()
	r.start()
	r.wait(func(v *registry.TableView) bool { return v.Name.Name == "fresh" || v.State == catalog.Gap })
	require.Equal(t, f.Message, r.state("public.sg").Fault.Message)
	r.untouched()
}

func TestEachStartOfATableIsAnEvent(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.Database(t))
	r.stop()
	r.start()
	r.landed()
	r.stop()
	d, err := r.registry.Table(t.Context(), "shop", "public.sg")
	require.NoError(t, err)
	var cursors []string
	for _, e := range d.Events {
		if e.Kind == registry.Started {
			var detail struct{ Worker, Cursor string }
			require.NoError(t, json.Unmarshal(e.Detail, &detail))
			require.NotEmpty(t, detail.Worker)
			cursors = append(cursors, detail.Cursor)
		}
	}
	require.Len(t, cursors, 2)
	require.NotEqual(t, cursors[0], cursors[1], "the second goes on where the first was")
}

// log is what the registry knows of the source's log.
func (r *rig) log() registry.SourceLog {
	r.t.Helper()
	fleet, err := r.registry.Fleet(r.t.Context())
	require.NoError(r.t, err)
	require.Len(r.t, fleet.Sources, 1)
	if fleet.Sources[0].Log == nil {
		return registry.SourceLog{}
	}
	return *fleet.Sources[0].Log
}

// confirmed is how far the slot may forget, by the server's word.
func (r *rig) confirmed() catalog.LSN {
	r.t.Helper()
	var at string
	require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "SELECT coalesce(confirmed_flush_lsn::text, '0/0') FROM pg_replication_slots WHERE slot_name = $1", r.source.Slot).Scan(&at))
	lsn, err := catalog.ParseLSN(at)
	require.NoError(r.t, err)
	return lsn
}

func TestATableMadeAnewWhileNoWorkerRanIsAGap(t *testing.T) {
	t.Parallel()
	r := c39(t, localpgtest.Database(t))
	r.stop()
	r.exec("DROP TABLE sg; CREATE TABLE sg (id int PRIMARY KEY, v text)")
	r.exec("INSERT INTO sg VALUES (2, 'of another table')")
	r.start()
	r.wait(func(v *registry.TableView) bool { return v.Name.Name == "other" || v.State == catalog.Gap })
	require.Contains(t, r.state("public.sg").Fault.Message, "dropped and made again")
	r.exec("INSERT INTO other VALUES (7, 'goes on')")
	r.wait(func(v *registry.TableView) bool { return v.Name.Name == "sg" || v.CurrentThrough >= r.endOfLog()-1<<20 })
}
