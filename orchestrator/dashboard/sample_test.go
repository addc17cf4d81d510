package dashboard_test

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

var now = time.Date(2026, 11, 29, 14, 2, 13, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// sampleTable is a table whose age went up and down around its present one.
func sampleTable(source, name string, tier catalog.Tier, state catalog.State, age time.Duration, perSecond int64) registry.TableView {
	v := registry.TableView{
		Source: source, Name: catalog.TableName{Schema: "public", Name: name}, State: state, Since: ago(3 * time.Hour),
		Config: registry.TableConfig{
			PrimaryKey: []string{"id"}, Current: true, History: true, Owner: "team-" + source, Tier: tier, PII: map[string]catalog.Protection{"email": catalog.Tokenize},
			BronzeTable: "bronze." + name + "_cdc", CurrentTable: "silver." + name, HistoryTable: "silver." + name + "_history",
		},
		SchemaVersion: len(name) % 5, ConfigVersion: 1, InFiles: true, File: "tableconfigs/" + source + "/public." + name + ".yaml",
		BronzeThrough: 0x16B374D848, CurrentThrough: 0x16B374D848, HistoryThrough: 0x16B374D848, HeardAt: ago(time.Second),
		Totals: registry.Totals{Changes: 2_546_557, BronzeRows: 2_546_557, CurrentRows: 177_361, HistoryRows: 312_901, LastBatchAt: ago(4 * time.Second), Newest: ago(age)},
	}
	if age >= 0 {
		v.FreshAt = ago(age)
	}
	v.Samples = sampleAges(age, perSecond, 60)
	return v
}

func sampleAges(age time.Duration, perSecond int64, n int) []registry.Sample {
	var out []registry.Sample
	for i := range n {
		wave := 1 + 0.25*math.Sin(float64(i)/2) + 0.15*math.Sin(float64(i)*1.7)
		at := now.Truncate(registry.SampleEvery).Add(-time.Duration(n-1-i) * registry.SampleEvery)
		out = append(out, registry.Sample{At: at, Age: time.Duration(float64(age) * wave).Truncate(time.Millisecond), Changes: perSecond * 10})
	}
	return out
}

// sampleFleet has a table in every health.
func sampleFleet() *registry.Fleet {
	source := func(name string, retained int64, seen time.Duration) registry.SourceView {
		return registry.SourceView{
			Name: name, Kind: catalog.Postgres, Capture: catalog.Direct, WALBudget: 10 << 30,
			Log:    &registry.SourceLog{SourceStatus: registry.SourceStatus{End: 0x16B374D900, Confirmed: 0x16B374D848, Retained: retained, SlotState: "reserved", Active: true}, UpdatedAt: ago(seen)},
			Worker: &registry.Worker{ID: name, Source: name, PID: 4242, Version: "v0.1.0", StartedAt: ago(190 * time.Minute), SeenAt: ago(seen)},
		}
	}
	f := &registry.Fleet{Now: now, Sources: []registry.SourceView{source("shop", 48<<20, time.Second), source("crm", 8<<30, time.Second), source("ops", 11<<30, 31*time.Minute), {Name: "new", Kind: catalog.Postgres, Capture: catalog.Direct}}}
	f.Sources[2].Log.Active = false

	late := sampleTable("shop", "payments", catalog.Tier1m, catalog.Lagging, 74*time.Second, 5012)
	late.CurrentThrough = 0x16B3740000
	contacts := sampleTable("crm", "contacts", catalog.Tier5m, catalog.Quarantined, 31*time.Minute, 0)
	contacts.Since, contacts.Totals.LastBatchAt, contacts.Totals.Newest = ago(31*time.Minute), ago(31*time.Minute), ago(31*time.Minute)
	contacts.Fault = &registry.Fault{Code: catalog.CodeSchemaChanged, Message: "column phone was added at 16/B374D848; the lake's table does not have it", Hint: "re-snapshot the table after adding the column to its file"}
	contacts.CurrentThrough, contacts.HistoryThrough = 0x16B3700000, 0x16B3700000
	gap := sampleTable("crm", "activities", catalog.Tier15m, catalog.Gap, 3*time.Hour, 0)
	gap.Fault = &registry.Fault{Code: catalog.CodeGap, Message: "the slot was dropped: changes after 16/B0000000 are gone from the source", Hint: "start a new snapshot of the table"}
	snapshotting := sampleTable("shop", "rosters", catalog.Tier15m, catalog.Snapshotting, -1, 12_900)
	snapshotting.Samples = snapshotting.Samples[55:]
	snapshotting.Totals.CurrentRows = 0
	snapshotting.Snapshot = &catalog.SnapshotProgress{Generation: 1, Rows: 3_100_000, Estimate: 5_000_000, Chunks: 310, StartedAt: ago(240 * time.Second).UnixMicro()}
	for i := range snapshotting.Samples {
		snapshotting.Samples[i].Age = -1
	}
	paused := sampleTable("crm", "accounts", catalog.Tier1m, catalog.Paused, 11*time.Minute, 0)
	silent := sampleTable("ops", "gates", catalog.Tier1m, catalog.Streaming, 31*time.Minute, 0)
	silent.HeardAt, silent.Samples = ago(31*time.Minute), silent.Samples[:30]
	pending := sampleTable("new", "events", catalog.Realtime, catalog.Pending, -1, 0)
	pending.HeardAt, pending.Samples, pending.Totals, pending.SchemaVersion = time.Time{}, nil, registry.Totals{}, 0
	fresh := sampleTable("shop", "orders", catalog.Tier1m, catalog.Streaming, 1900*time.Millisecond, 405)
	fresh.VerifiedThrough = ago(80 * time.Second)
	fresh.Verified = &registry.Verification{At: ago(80 * time.Second), SourceRows: 177_361, LakeRows: 177_361}
	nokey := sampleTable("shop", "event_log", catalog.Realtime, catalog.Streaming, 900*time.Millisecond, 93)
	nokey.Config.PrimaryKey, nokey.Config.Current, nokey.Config.History, nokey.CurrentThrough, nokey.HistoryThrough = nil, false, false, 0, 0
	nokey.VerifiedThrough, nokey.Verified = ago(26*time.Hour), &registry.Verification{At: ago(time.Minute), SourceRows: 100, LakeRows: 97, Differing: 3}
	retired := sampleTable("shop", "old", catalog.Tier1d, catalog.Retired, 72*time.Hour, 0)
	retired.Samples = nil
	f.Tables = []registry.TableView{gap, contacts, paused, silent, pending, nokey, fresh, late, snapshotting, retired}
	return f
}

func longFleet() *registry.Fleet {
	v := sampleTable(strings.Repeat("s", 63), strings.Repeat("n", 63), catalog.Tier1m, catalog.Quarantined, time.Hour, 123_456_789)
	v.Name.Schema = strings.Repeat("<b>", 9)
	v.Config.Owner = strings.Repeat("o", 100)
	v.Totals = registry.Totals{Changes: math.MaxInt64, BronzeRows: math.MaxInt64, CurrentRows: math.MaxInt64, LastBatchAt: ago(400 * 24 * time.Hour)}
	v.Fault = &registry.Fault{Code: catalog.CodeDecode, Message: strings.Repeat("a value cannot be read, and the reason is long; ", 8), Hint: strings.Repeat("do something about it ", 12)}
	w := sampleTable("café", "таблица \"x\".y", catalog.Tier1m, catalog.Streaming, time.Second, 1)
	return &registry.Fleet{Now: now, Sources: []registry.SourceView{{Name: v.Source, Kind: catalog.Postgres, Capture: catalog.Direct}}, Tables: []registry.TableView{v, w}}
}

func sampleDetail() *registry.Detail {
	f := sampleFleet()
	epoch := catalog.Epoch{System: "7312345678901234567", Timeline: 1}
	d := &registry.Detail{Now: now, Source: f.Sources[0], Table: f.Tables[6], Samples: sampleAges(1900*time.Millisecond, 405, 300)}
	for i := range 12 {
		commit := catalog.LSN(0x16B374D848 - i*0x1000)
		b := registry.BatchRecord{
			Table: "public.orders", ID: string(rune('a' + i)), At: ago(time.Duration(4+3*i) * time.Second), Creates: 401 + i, Updates: 380, Deletes: i % 3, Bytes: 412_000,
			From:    catalog.Cursor{Epoch: epoch, Position: catalog.Position{Generation: 1, Commit: commit - 0x1000, Ordinal: 2}},
			To:      catalog.Cursor{Epoch: epoch, Position: catalog.Position{Generation: 1, Commit: commit, Ordinal: 4}},
			Bronze:  registry.Commit{Rows: 781, Files: 1, Bytes: 91_000, SnapshotID: 1, Took: 41 * time.Millisecond},
			Current: registry.Commit{Rows: 781, Removed: 380, Files: 2, SnapshotID: 2, Took: 63 * time.Millisecond},
		}
		if i > 0 {
			b.History = registry.Commit{Rows: 781, Removed: 380, Files: 2, SnapshotID: 3, Took: 1200 * time.Millisecond}
		}
		d.Batches = append(d.Batches, b)
	}
	d.Batches[1].Unfit, d.Batches[1].Unfits = 3, map[string]int{"delivered_on": 2, "amount": 1}
	d.Batches[11] = registry.BatchRecord{Table: "public.orders", ID: "first", At: ago(time.Hour), Reads: 41_745, Bytes: 9 << 20, To: d.Batches[11].To, Bronze: registry.Commit{Rows: 41_745, Took: time.Second}}
	event := func(before time.Duration, kind registry.EventKind, detail string) registry.Event {
		return registry.Event{At: ago(before), Kind: kind, Detail: json.RawMessage(detail)}
	}
	d.Events = []registry.Event{
		event(80*time.Second, registry.Reconciled, `{"differing": 0, "sourceRows": 177361, "lakeRows": 177361, "cursor": "16/B374D848"}`),
		event(50*time.Minute, registry.SchemaVersion, `{"version": 2, "columns": 5, "added": ["note"], "changed": ["status"]}`),
		event(time.Hour, registry.StateChanged, `{"from": "snapshotting", "to": "streaming"}`),
		event(3*time.Hour, registry.StateChanged, `{"from": "quarantined", "to": "snapshotting", "code": "x", "message": "an earlier reason"}`),
		event(3*time.Hour, registry.SchemaVersion, `{"version": 1, "columns": 4}`),
		event(26*time.Hour, registry.LeftFiles, `{"file": "tableconfigs/shop/public.orders.yaml"}`),
		event(26*time.Hour, registry.ConfigChanged, `{"version": 1}`),
	}
	columns := []catalog.Column{
		{Name: "id", Number: 1, Source: catalog.SourceType{Name: "bigint", Base: "int8"}, Type: catalog.Type{Kind: catalog.Int64}},
		{Name: "amount", Number: 2, Source: catalog.SourceType{Name: "numeric(12,2)", Base: "numeric"}, Type: catalog.Type{Kind: catalog.Decimal, Precision: 12, Scale: 2}},
		{Name: "status", Number: 3, Source: catalog.SourceType{Name: "shop.order_status", Base: "enum"}, Type: catalog.Type{Kind: catalog.Text}, Nullable: true},
		{Name: "email", Number: 4, Source: catalog.SourceType{Name: "text", Base: "text"}, Type: catalog.Type{Kind: catalog.Text}, Nullable: true},
		{Name: "note", Number: 5, Source: catalog.SourceType{Name: "text", Base: "text"}, Type: catalog.Type{Kind: catalog.Text}, Nullable: true},
	}
	d.Schemas = []registry.SchemaView{
		{Schema: &catalog.Schema{Version: 2, Columns: columns, Key: []int{0}}, SeenAt: ago(50 * time.Minute)},
		{Schema: &catalog.Schema{Version: 1, Columns: columns[:4], Key: []int{0}}, SeenAt: ago(3 * time.Hour)},
	}
	return d
}

func stoppedDetail() *registry.Detail {
	f := sampleFleet()
	return &registry.Detail{Now: now, Source: f.Sources[1], Table: f.Tables[1], Events: []registry.Event{
		{At: ago(31 * time.Minute), Kind: registry.StateChanged, Detail: json.RawMessage(`{"from": "streaming", "to": "quarantined", "code": "schema.changed", "message": "column phone was added"}`)},
	}}
}

func longDetail() *registry.Detail {
	f := longFleet()
	d := sampleDetail()
	d.Source, d.Table = f.Sources[0], f.Tables[0]
	return d
}
