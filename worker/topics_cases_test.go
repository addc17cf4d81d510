package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/kafka"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

// told is an event as a connector writes it, at a place that the test chooses. Places
// are far below those of the source's real log, by which heartbeats prove progress.
type told struct {
	op            string
	before, after map[string]any
	sequence, lsn uint64
	snapshot      string
	noSequence    bool
	oldKey        int // of the second half of a key move
	newKey        int // of the first
}

func row(id int, v any) map[string]any { return map[string]any{"id": id, "v": v} }

// say writes events of a table of (id, v), keyed by id.
func (d *desk) say(table string, events ...told) {
	d.t.Helper()
	schema, name, _ := strings.Cut(table, ".")
	for _, e := range events {
		image := e.after
		if image == nil {
			image = e.before
		}
		source := map[string]any{"lsn": e.lsn, "txId": e.sequence, "ts_us": 1_000_000 * e.lsn, "ts_ms": 1000 * e.lsn, "snapshot": nil, "schema": schema, "table": name}
		pair := []any{nil, strconv.FormatUint(e.lsn, 10)}
		if e.sequence > 0 {
			pair[0] = strconv.FormatUint(e.sequence, 10)
		}
		text, err := json.Marshal(pair)
		require.NoError(d.t, err)
		source["sequence"] = string(text)
		if e.snapshot != "" {
			source["snapshot"] = e.snapshot
		}
		if e.snapshot == "incremental" {
			source["lsn"], source["txId"] = nil, nil
		}
		if e.noSequence {
			delete(source, "sequence")
		}
		value, err := json.Marshal(map[string]any{"before": e.before, "after": e.after, "op": e.op, "source": source})
		require.NoError(d.t, err)
		rec := &kgo.Record{Topic: "shop." + table, Key: fmt.Appendf(nil, `{"id":%v}`, image["id"]), Value: value}
		for header, id := range map[string]int{"__debezium.oldkey": e.oldKey, "__debezium.newkey": e.newKey} {
			if id != 0 {
				rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: header, Value: fmt.Appendf(nil, `{"id":%d}`, id)})
			}
		}
		if d.run != "" {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: "__debezium.context.runId", Value: []byte(d.run)})
		}
		require.NoError(d.t, d.client.ProduceSync(d.t.Context(), rec).FirstErr())
	}
}

// settled waits until every layer has all that was said by now, or its table has stopped.
func (d *desk) settled() {
	d.t.Helper()
	d.beat()
	want := d.end()
	d.beatUntil(func(v *registry.TableView) bool {
		through := v.BronzeThrough
		if t := d.table(v.Name.String()); t.Current {
			through = min(through, v.CurrentThrough)
		}
		if t := d.table(v.Name.String()); t.History {
			through = min(through, v.HistoryThrough)
		}
		return v.State.Stopped() || v.State == catalog.Streaming && through >= want
	})
}

// shows requires what current shows, as "id v" in order.
func (d *desk) shows(table string, want ...string) {
	d.t.Helper()
	_, rows := d.rows(table, catalog.Current)
	got := []string{}
	for _, r := range rows {
		if r["_is_deleted"] != "t" {
			got = append(got, r["id"]+" "+short(r["v"]))
		}
	}
	slices.Sort(got)
	require.Equal(d.t, want, got)
}

// past requires the versions of history, as "id v" in the order in which they began; an
// open one ends in a plus.
func (d *desk) past(table string, want ...string) {
	d.t.Helper()
	_, rows := d.rows(table, catalog.History)
	slices.SortFunc(rows, func(a, b cells) int {
		return strings.Compare(a["id"]+" "+a["valid_from"], b["id"]+" "+b["valid_from"])
	})
	got := []string{}
	for _, r := range rows {
		line := r["id"] + " " + short(r["v"])
		if r["is_current"] == "t" {
			line += " +"
		}
		got = append(got, line)
	}
	require.Equal(d.t, want, got)
}

// offsets requires that bronze has one row of each of these offsets of a table's topic.
func (d *desk) offsets(table string, want ...string) {
	d.t.Helper()
	_, rows := d.rows(table, catalog.Bronze)
	got := []string{}
	for _, r := range rows {
		got = append(got, r["_offset"])
	}
	require.ElementsMatch(d.t, want, got)
	d.requireBronzeSound(table)
}

// newCase is a desk with one table of (id, v) in all layers.
func newCase(t *testing.T, name string) *desk {
	t.Helper()
	d := newDesk(t, map[string]string{"public." + name + ".yaml": "table: public." + name + "\nprimary_key: [id]\nscd: [1, 2]\n"})
	d.exec("CREATE TABLE " + name + " (id int PRIMARY KEY, v text)")
	return d
}

// C36 on topics: the worker dies at each commit in turn, before it lands and after; the
// connector is restarted, and what it had sent last comes again with new offsets.
func TestC36OnTopicsADeathAtEveryCommitEndsTheSame(t *testing.T) {
	t.Parallel()
	for _, lands := range []bool{false, true} {
		for nth := 1; nth <= 6; nth++ {
			t.Run(fmt.Sprintf("commit %d, lands=%v", nth, lands), func(t *testing.T) {
				t.Parallel()
				d := newCase(t, "rp")
				d.run = "01a228d2-5967-7305-804a-000000000001"
				d.say("public.rp", told{op: "r", after: row(7, "a"), lsn: 90, snapshot: "first"}, told{op: "r", after: row(8, "b"), lsn: 90, snapshot: "last"})
				d.start()
				d.settled()
				d.stop()
				deaths := &mortal{nth: nth, lands: lands, died: make(chan struct{})}
				stop := d.startMortal(deaths, kafka.New(kafka.Config{Source: d.source, Describe: d.describe}))
				events := []told{
					{op: "c", after: row(1, "v1"), sequence: 100, lsn: 101},
					{op: "u", after: row(1, "v2"), sequence: 102, lsn: 103},
					{op: "u", after: row(1, "v3"), sequence: 104, lsn: 105},
					{op: "u", after: row(1, "v2"), sequence: 106, lsn: 107},
				}
				d.say("public.rp", events[:2]...)
				select { // let some commits happen before the rest is written
				case <-deaths.died:
				case <-time.After(300 * time.Millisecond):
				}
				d.say("public.rp", events[2:]...)
				d.run = "01a228d2-5967-7305-804a-000000000002" // the connector was restarted
				d.say("public.rp", events[2:]...)
				d.say("public.rp", told{op: "c", after: row(2, "x"), sequence: 108, lsn: 109})
				d.say("public.rp", told{op: "d", before: row(8, nil), sequence: 110, lsn: 111})
				select {
				case <-deaths.died:
				case <-time.After(2 * time.Second): // fewer commits were needed
				}
				stop()
				d.start()
				d.settled()
				d.stop()
				d.shows("public.rp", "1 v2", "2 x", "7 a")
				d.past("public.rp", "1 v1", "1 v2", "1 v3", "1 v2 +", "2 x +", "7 a +", "8 b")
				d.offsets("public.rp", "0", "1", "2", "3", "4", "5", "8", "9")
			})
		}
	}
}

// describe asks the source's database, as a worker does.
func (d *desk) describe(ctx context.Context, tables []*catalog.Table) (kafka.Description, error) {
	of, err := postgres.Describe(ctx, postgres.Config{Source: d.source, DSN: catalog.Secret(d.dsn)}, tables)
	out := kafka.Description{Epoch: of.Epoch, Monetary: of.Monetary, Tables: map[string]kafka.TableDescription{}}
	for name, t := range of.Tables {
		out.Tables[name] = kafka.TableDescription{Schema: t.Schema, Generated: t.Generated, FullIdentity: t.FullIdentity, Err: t.Err}
	}
	return out, err
}

// C56 on topics: whatever becomes of a commit's reply, rows and offsets are there once.
func TestC56OnTopicsACommitWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{replyLost, replyCut, commitRefused} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newCase(t, "cu")
			var faults []fault
			for n := 1; n <= 40; n++ {
				if kind != commitRefused || n%2 == 1 { // or it never comes through
					faults = append(faults, fault{Kind: kind, At: n})
				}
			}
			e, came := d.withREST(faults...)
			reading := d.readAlways(e, "public.cu")
			d.start()
			for _, said := range []told{
				{op: "r", after: row(1, "a"), lsn: 90, snapshot: "last"},
				{op: "c", after: row(2, "b"), sequence: 100, lsn: 101},
				{op: "u", after: row(2, "c"), sequence: 102, lsn: 103},
				{op: "d", before: row(1, nil), sequence: 104, lsn: 105},
			} {
				d.say("public.cu", said)
				d.settled()
			}
			reading()
			require.Greater(t, came(kind), 9, "each layer's creation and commits were hit")
			d.shows("public.cu", "2 c")
			d.past("public.cu", "1 a", "2 b", "2 c +")
			d.offsets("public.cu", "0", "1", "2", "3")
			d.stop()
			d.start() // which reads nothing again
			d.say("public.cu", told{op: "u", after: row(2, "d"), sequence: 106, lsn: 107})
			d.settled()
			d.offsets("public.cu", "0", "1", "2", "3", "4")
			d.stop()
		})
	}
}

// C57 on topics: another program appends to bronze and to current between our commits, and
// no row and no offset of ours is lost.
func TestC57OnTopicsTwoWritersKeepEachOthersRows(t *testing.T) {
	t.Parallel()
	d := newCase(t, "cw")
	d.say("public.cw", told{op: "r", after: row(1, "a"), lsn: 90, snapshot: "last"})
	d.start()
	d.settled()
	e, err := laketest.SQLite(strings.TrimPrefix(d.lakeCfg.Catalog, "sqlite://"), "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	ident := func(layer catalog.Layer) []string {
		return d.source.LakeName(catalog.ParseTableName("public.cw"), layer)
	}
	want := []string{"0"}
	for i := range 10 {
		for layer, theirs := range map[catalog.Layer]map[string]any{
			catalog.Bronze:  {"id": int64(1000 + i), "op": "x"},
			catalog.Current: {"id": int64(1000 + i), "v": "marker", "_is_deleted": false},
		} {
			require.NoError(t, e.Append(t.Context(), ident(layer), theirs))
		}
		if i == 5 {
			require.NoError(t, e.SetProperty(t.Context(), ident(catalog.Bronze), "comment", "markers"))
		}
		d.say("public.cw", told{op: "u", after: row(1, fmt.Sprintf("a%d", i)), sequence: uint64(100 + 2*i), lsn: uint64(101 + 2*i)})
		want = append(want, strconv.Itoa(i+1))
		d.settled()
	}
	d.stop()
	d.start() // finds its offsets behind what is not ours
	d.say("public.cw", told{op: "u", after: row(1, "last"), sequence: 200, lsn: 201})
	want = append(want, "11")
	d.settled()
	require.Nil(t, d.state("public.cw").Fault)
	d.stop()
	_, bronze := d.rows("public.cw", catalog.Bronze)
	var ours []string
	theirs := 0
	for _, r := range bronze {
		if r["op"] == "x" {
			theirs++
		} else {
			ours = append(ours, r["_offset"])
		}
	}
	require.ElementsMatch(t, want, ours)
	require.Equal(t, 10, theirs)
	_, current := d.rows("public.cw", catalog.Current)
	require.Len(t, current, 11)
	_, err = e.Chain(t.Context(), ident(catalog.Bronze))
	require.NoError(t, err)
}

// C59 on topics: others rewrite all files and expire every snapshot of ours, and the tag
// that keeps one. The worker goes on at the offset at which it stopped.
func TestC59OnTopicsTheOffsetOutlivesEverySnapshotOfOurs(t *testing.T) {
	t.Parallel()
	for _, untag := range []bool{false, true} {
		t.Run(fmt.Sprintf("tag dropped=%v", untag), func(t *testing.T) {
			t.Parallel()
			d := newCase(t, "es")
			d.say("public.es", told{op: "r", after: row(1, "a"), lsn: 90, snapshot: "last"}, told{op: "c", after: row(2, "b"), sequence: 100, lsn: 101})
			d.start()
			d.settled()
			d.stop()
			e, err := laketest.SQLite(strings.TrimPrefix(d.lakeCfg.Catalog, "sqlite://"), "")
			require.NoError(t, err)
			t.Cleanup(func() { _ = e.Close() })
			for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
				ident := d.source.LakeName(catalog.ParseTableName("public.es"), layer)
				require.NoError(t, e.Compact(t.Context(), ident))
				require.NoError(t, e.Expire(t.Context(), ident, untag))
				require.NoError(t, e.RemoveOrphans(t.Context(), ident, time.Hour))
			}
			d.say("public.es", told{op: "u", after: row(2, "c"), sequence: 102, lsn: 103})
			d.start()
			d.settled()
			require.Nil(t, d.state("public.es").Fault)
			d.stop()
			d.shows("public.es", "1 a", "2 c")
			d.past("public.es", "1 a +", "2 b", "2 c +")
			d.offsets("public.es", "0", "1", "2")
		})
	}
}

// placeholder is what Debezium sends for a large value that did not change.
const placeholder = "__debezium_unavailable_value"

// A key move carries a large value that is not sent again to the new key, in current and
// in history, whether both halves come with what they follow or after a restart.
func TestAKeyMoveOnTopicsCarriesUnchangedLargeValues(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			t.Parallel()
			d := newCase(t, "mv")
			large := strings.Repeat("x", 9000)
			d.say("public.mv", told{op: "r", after: row(1, large), lsn: 90, snapshot: "last"})
			if restart {
				d.start()
				d.settled()
				d.stop()
			}
			d.say("public.mv", told{op: "d", before: row(1, ""), sequence: 100, lsn: 101, newKey: 2})
			d.produce("public.mv", `{"id":1}`, "")
			d.say("public.mv", told{op: "c", after: row(2, placeholder), sequence: 100, lsn: 101, oldKey: 1})
			d.start()
			d.settled()
			d.shows("public.mv", "2 x*9000")
			d.past("public.mv", "1 x*9000", "2 x*9000 +")
			// On to a third key, and a real value.
			d.say("public.mv", told{op: "d", before: row(2, ""), sequence: 102, lsn: 103, newKey: 3})
			d.produce("public.mv", `{"id":2}`, "")
			d.say("public.mv", told{op: "c", after: row(3, placeholder), sequence: 102, lsn: 103, oldKey: 2})
			d.say("public.mv", told{op: "u", after: row(3, placeholder), sequence: 104, lsn: 105}, told{op: "u", after: row(3, "short"), sequence: 106, lsn: 107})
			d.settled()
			d.stop()
			d.shows("public.mv", "3 short")
			d.past("public.mv", "1 x*9000", "2 x*9000", "3 x*9000", "3 short +")
		})
	}
}

// Incremental reads: one at an old place undoes nothing, one behind what it saw repairs,
// and a transaction that was under way while the row was read wins over it, though its own
// place in the log is lower.
func TestIncrementalReadsOnTopicsCountWhereTheyWereRead(t *testing.T) {
	t.Parallel()
	d := newCase(t, "ir")
	d.say("public.ir", told{op: "r", after: row(1, "a"), lsn: 90, snapshot: "last"}, told{op: "c", after: row(2, "b"), sequence: 100, lsn: 101},
		told{op: "u", after: row(1, "newer"), sequence: 300, lsn: 301}, told{op: "d", before: row(2, nil), sequence: 302, lsn: 303})
	d.start()
	d.settled()
	d.say("public.ir", told{op: "r", after: row(1, "old"), sequence: 200, lsn: 200, snapshot: "incremental"}, // read before both changes
		told{op: "r", after: row(2, "old"), sequence: 200, lsn: 200, snapshot: "incremental"})
	d.settled()
	d.shows("public.ir", "1 newer")

	d.say("public.ir", told{op: "r", after: row(1, "read"), sequence: 400, lsn: 400, snapshot: "incremental"},
		told{op: "r", after: row(3, "found"), sequence: 400, lsn: 400, snapshot: "incremental"},
		told{op: "u", after: row(1, "under way"), sequence: 400, lsn: 350}, // began before the reading, committed after it
		told{op: "d", before: row(3, nil), sequence: 402, lsn: 351})
	d.settled()
	d.shows("public.ir", "1 under way")
	d.say("public.ir", told{op: "r", after: row(3, "again"), sequence: 500, lsn: 500, snapshot: "incremental"})
	d.settled()
	d.shows("public.ir", "1 under way", "3 again")
	require.Nil(t, d.state("public.ir").Fault)

	// One that does not say where it was read could be anything: the table stops before it.
	d.say("public.ir", told{op: "r", after: row(1, "whenever"), snapshot: "incremental", noSequence: true}, told{op: "u", after: row(1, "later"), sequence: 600, lsn: 601})
	d.beatUntil(func(v *registry.TableView) bool { return v.State == catalog.Quarantined })
	fault := d.state("public.ir").Fault
	require.Equal(t, catalog.CodeDecode, fault.Code)
	require.Contains(t, fault.Message, "it was read at no known place of the log")
	d.stop()
	d.shows("public.ir", "1 under way", "3 again")
}
