package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Commit describes one commit to a layer; field for field what a pipeline knows.
type Commit struct {
	Rows       int   // rows written
	Removed    int   // rows removed
	Total      int64 // rows that the layer holds after it; negative when unknown
	Bytes      int64
	Files      int
	SnapshotID int64 // 0 when nothing was committed
	Took       time.Duration
}

// BatchRecord describes one committed batch of one table.
type BatchRecord struct {
	Table    string
	ID       string
	At       time.Time
	From, To catalog.Cursor
	Creates, Updates, Deletes, Reads, Truncates,
	Unfit int
	Newest  int64 // commit time of the newest change, microseconds since 1970 UTC; 0 when there is none
	Bytes   int64
	Bronze  Commit
	Current Commit
	History Commit
	Unfits  map[string]int // columns with values that did not fit their type, and how many
}

// Changes is how many changes the batch holds.
func (b *BatchRecord) Changes() int {
	return b.Creates + b.Updates + b.Deletes + b.Reads + b.Truncates
}

type layerDoc struct {
	Rows       int    `json:"rows"`
	Removed    int    `json:"removed"`
	Total      *int64 `json:"total,omitempty"`
	Files      int    `json:"files"`
	Bytes      int64  `json:"bytes"`
	Millis     int64  `json:"ms"`
	SnapshotID int64  `json:"snapshotId"`
}

func layerDocOf(c Commit) *layerDoc {
	if c == (Commit{}) {
		return nil
	}
	d := &layerDoc{Rows: c.Rows, Removed: c.Removed, Files: c.Files, Bytes: c.Bytes, Millis: c.Took.Milliseconds(), SnapshotID: c.SnapshotID}
	if c.Total >= 0 {
		d.Total = &c.Total
	}
	return d
}

func (d *layerDoc) commit() Commit {
	if d == nil {
		return Commit{}
	}
	c := Commit{Rows: d.Rows, Removed: d.Removed, Total: -1, Files: d.Files, Bytes: d.Bytes, SnapshotID: d.SnapshotID, Took: time.Duration(d.Millis) * time.Millisecond}
	if d.Total != nil {
		c.Total = *d.Total
	}
	return c
}

// batchRow is a BatchRecord on its way into SQL.
type batchRow struct {
	Name      string         `json:"name"`
	ID        string         `json:"id"`
	At        time.Time      `json:"at"`
	From      string         `json:"from_cursor"`
	To        string         `json:"to_cursor"`
	Creates   int            `json:"creates"`
	Updates   int            `json:"updates"`
	Deletes   int            `json:"deletes"`
	Reads     int            `json:"reads"`
	Truncates int            `json:"truncates"`
	Unfit     int            `json:"unfit"`
	Unfits    map[string]int `json:"unfits"`
	Newest    *time.Time     `json:"newest"`
	Bytes     int64          `json:"bytes"`
	Bronze    *layerDoc      `json:"bronze"`
	Current   *layerDoc      `json:"current"`
	History   *layerDoc      `json:"history"`
}

// RecordBatches adds batches of one source's tables and their sums, in one statement.
// A batch recorded twice (same id and time) counts once. A layer's rows are what its
// newest commit says it holds, else the sum of what was written and removed. Tables that SyncConfig does
// not know are left out. About once in ten minutes it also forgets old batches,
// samples and events.
func (r *Registry) RecordBatches(ctx context.Context, source string, batches []BatchRecord) error {
	if len(batches) == 0 {
		return nil
	}
	rows := make([]batchRow, len(batches))
	for i, b := range batches {
		rows[i] = batchRow{
			Name: b.Table, ID: b.ID, At: b.At.Truncate(time.Microsecond), From: b.From.String(), To: b.To.String(),
			Creates: b.Creates, Updates: b.Updates, Deletes: b.Deletes, Reads: b.Reads, Truncates: b.Truncates,
			Unfit: b.Unfit, Unfits: b.Unfits, Bytes: b.Bytes,
			Bronze: layerDocOf(b.Bronze), Current: layerDocOf(b.Current), History: layerDocOf(b.History),
		}
		if b.Newest != 0 {
			t := time.UnixMicro(b.Newest).UTC()
			rows[i].Newest = &t
		}
	}
	doc, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if err := r.exec(ctx, recordBatches, source, string(doc)); err != nil {
		return err
	}
	return r.pruneSometimes(ctx)
}

const recordBatches = `
with added as (
	insert into lakeweir.batches (table_id, at, id, from_cursor, to_cursor, creates, updates, deletes, reads, truncates,
		unfit, unfits, newest, bytes, bronze, current, history)
	select t.id, n.at, n.id, from_cursor, to_cursor, creates, updates, deletes, reads, truncates,
		unfit, unfits, newest, bytes, bronze, current, history
	from jsonb_to_recordset($2::text::jsonb) as n(name text, id text, at timestamptz, from_cursor text, to_cursor text,
		creates bigint, updates bigint, deletes bigint, reads bigint, truncates bigint, unfit bigint, unfits jsonb,
		newest timestamptz, bytes bigint, bronze jsonb, current jsonb, history jsonb)
	join lakeweir.tables t on t.source = $1 and t.name = n.name
	on conflict do nothing
	returning *
), sums as (
	select table_id, sum(creates + updates + deletes + reads + truncates)::bigint as changes, sum(reads)::bigint as reads, max(at) as at, max(newest) as newest,
		sum(coalesce((bronze->>'rows')::bigint - (bronze->>'removed')::bigint, 0))::bigint as bronze,
		(array_agg((bronze->>'total')::bigint order by at desc) filter (where bronze ? 'total'))[1] as bronze_total,
		sum(coalesce((current->>'rows')::bigint - (current->>'removed')::bigint, 0))::bigint as current,
		(array_agg((current->>'total')::bigint order by at desc) filter (where current ? 'total'))[1] as current_total,
		sum(coalesce((history->>'rows')::bigint - (history->>'removed')::bigint, 0))::bigint as history,
		(array_agg((history->>'total')::bigint order by at desc) filter (where history ? 'total'))[1] as history_total
	from added group by table_id order by table_id
), samples as (
	insert into lakeweir.table_samples as o (at, table_id, changes)
	select ` + bucketNow + `, table_id, changes - reads from sums order by table_id
	on conflict (at, table_id) do update set changes = o.changes + excluded.changes
)
insert into lakeweir.table_totals as o (table_id, changes, bronze_rows, current_rows, history_rows, last_batch_at, newest)
select table_id, changes, coalesce(bronze_total, bronze), coalesce(current_total, current), coalesce(history_total, history), at, newest from sums order by table_id
on conflict (table_id) do update set changes = o.changes + excluded.changes,
	bronze_rows = coalesce((select bronze_total from sums where sums.table_id = o.table_id), o.bronze_rows + excluded.bronze_rows),
	current_rows = coalesce((select current_total from sums where sums.table_id = o.table_id), o.current_rows + excluded.current_rows),
	history_rows = coalesce((select history_total from sums where sums.table_id = o.table_id), o.history_rows + excluded.history_rows),
	last_batch_at = greatest(o.last_batch_at, excluded.last_batch_at),
	newest = greatest(o.newest, excluded.newest)`

const (
	keepBatches = 10_000
	keepEvents  = 1_000
	pruneEvery  = 10 * time.Minute
)

// pruneSometimes runs Prune when this process has not for ten minutes.
func (r *Registry) pruneSometimes(ctx context.Context) error {
	now := time.Now().UnixNano() //nolint:forbidigo // only how often housekeeping runs depends on it
	last := r.pruned.Load()
	if last == 0 { // the first call only starts the clock
		r.pruned.CompareAndSwap(0, now)
		return nil
	}
	if now-last < int64(pruneEvery) || !r.pruned.CompareAndSwap(last, now) {
		return nil
	}
	return r.Prune(ctx)
}

// Prune forgets what pages no longer show: all but the newest 10,000 batches of the
// last seven days and 1,000 events of each table, events of sources older than 90 days,
// samples older than an hour, and schema changes and quarantines that have ended and
// are followed by 1,000 newer ones of their table.
func (r *Registry) Prune(ctx context.Context) error { return r.prune(ctx, keepBatches, keepEvents) }

func (r *Registry) prune(ctx context.Context, batches, events int) error {
	if err := r.exec(ctx, `delete from lakeweir.table_samples where at < now() - interval '65 minutes'`); err != nil {
		return err
	}
	if err := r.exec(ctx, `delete from lakeweir.workers where seen_at < now() - interval '7 days'`); err != nil {
		return err
	}
	err := r.exec(ctx, `delete from lakeweir.batches b using lakeweir.tables t
		where b.table_id = t.id and b.at < greatest(now() - interval '7 days', coalesce(
			(select k.at from lakeweir.batches k where k.table_id = t.id order by k.at desc offset $1 limit 1), '-infinity'))`, batches-1)
	if err != nil {
		return err
	}
	if err := r.exec(ctx, `delete from lakeweir.source_events where at < now() - interval '90 days'`); err != nil {
		return err
	}
	for _, which := range []struct{ table, ended string }{
		{"table_events", "true"},
		{"schema_changes", "e.state in ('applied', 'superseded')"},
		{"quarantines", "e.swept_at is not null"},
	} {
		err := r.exec(ctx, `delete from lakeweir.`+which.table+` e using lakeweir.tables t
			where e.table_id = t.id and `+which.ended+` and e.id < (select k.id from lakeweir.`+which.table+` k
				where k.table_id = t.id order by k.id desc offset $1 limit 1)`, events-1)
		if err != nil {
			return err
		}
	}
	return nil
}
