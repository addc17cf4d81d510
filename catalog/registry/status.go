package registry

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// TableStatus is where a table is in its life; field for field what a pipeline tells
// its observer.
type TableStatus struct {
	Table    string // catalog.TableName.String()
	State    catalog.State
	Fault    *catalog.Error // why it is stopped, else nil
	Snapshot *catalog.SnapshotProgress
	// BronzeThrough, CurrentThrough and HistoryThrough are how far each layer is
	// known to be complete; zero when the layer is not kept or nothing is known.
	BronzeThrough, CurrentThrough, HistoryThrough catalog.LSN
	// FreshAt is the time up to which the layers show the source, by the source's
	// clock; zero when unknown.
	FreshAt time.Time
}

// statusRow is a TableStatus on its way into SQL.
type statusRow struct {
	Name     string        `json:"name"`
	State    catalog.State `json:"state"`
	Code     catalog.Code  `json:"code"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint"`
	Snapshot *snapshotDoc  `json:"snapshot"`
	Bronze   *string       `json:"bronze"`
	Current  *string       `json:"current"`
	History  *string       `json:"history"`
	FreshAt  *time.Time    `json:"fresh_at"`
}

// snapshotDoc is the progress without its bounds and keys, which are row values.
type snapshotDoc struct {
	Generation uint32 `json:"generation"`
	Done       bool   `json:"done"`
	Rows       int64  `json:"rows"`
	Estimate   int64  `json:"estimate"`
	Chunks     int    `json:"chunks"`
	StartedAt  int64  `json:"startedAt"`
}

// SetTableStatuses writes the status of tables of one source, in one statement
// however many there are. A change of state or of its reason is added to the table's
// events in the same transaction, and the age of what is fresh to its samples.
// Tables that SyncConfig does not know are left out.
func (r *Registry) SetTableStatuses(ctx context.Context, source string, statuses []TableStatus) error {
	if len(statuses) == 0 {
		return nil
	}
	rows := make([]statusRow, 0, len(statuses))
	seen := make(map[string]int, len(statuses))
	for _, s := range statuses {
		row := statusRow{Name: s.Table, State: s.State, Bronze: lsn(s.BronzeThrough), Current: lsn(s.CurrentThrough), History: lsn(s.HistoryThrough)}
		if s.Fault != nil {
			row.Code, row.Message, row.Hint = s.Fault.Code, storable(s.Fault.Error()), storable(s.Fault.Hint)
		}
		if p := s.Snapshot; p != nil {
			row.Snapshot = &snapshotDoc{p.Generation, p.Done, p.Rows, p.Estimate, p.Chunks, p.StartedAt}
		}
		if !s.FreshAt.IsZero() {
			row.FreshAt = &s.FreshAt
		}
		if i, ok := seen[s.Table]; ok { // the later one counts
			rows[i] = row
			continue
		}
		seen[s.Table] = len(rows)
		rows = append(rows, row)
	}
	doc, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return r.exec(ctx, setStatuses, source, string(doc))
}

// setStatuses locks the old rows in the tables' order, so that two writers cannot
// deadlock. All its parts see the rows as they were before it.
const setStatuses = `
with new as (
	select t.id, n.* from jsonb_to_recordset($2::text::jsonb) as n(name text, state text, code text, message text, hint text,
		snapshot jsonb, bronze text, current text, history text, fresh_at timestamptz)
	join lakeweir.tables t on t.source = $1 and t.name = n.name
), old as (
	select s.table_id, s.state, s.code, s.message from lakeweir.table_status s
	where s.table_id in (select id from new) order by s.table_id for update
), events as (
	insert into lakeweir.table_events (table_id, kind, detail)
	select new.id, 'state_changed', jsonb_strip_nulls(jsonb_build_object('from', old.state, 'to', new.state,
		'code', nullif(new.code, ''), 'message', nullif(new.message, ''), 'hint', nullif(new.hint, '')))
	from new left join old on old.table_id = new.id
	where (old.state, old.code, old.message) is distinct from (new.state, new.code, new.message)
), samples as (
	insert into lakeweir.table_samples as o (at, table_id, age_ms)
	select ` + bucketNow + `, id, greatest(0, extract(epoch from now() - fresh_at) * 1000)::bigint
	from new where fresh_at is not null order by id
	on conflict (at, table_id) do update set age_ms = excluded.age_ms
	where o.age_ms is null or excluded.age_ms > o.age_ms
)
insert into lakeweir.table_status as o (table_id, state, since, code, message, hint, snapshot,
	bronze_through, current_through, history_through, fresh_at, updated_at)
select new.id, state, now(), code, message, hint, snapshot, bronze::pg_lsn, current::pg_lsn, history::pg_lsn, fresh_at, now()
from new left join (select table_id from old) locked on locked.table_id = new.id order by new.id
on conflict (table_id) do update set state = excluded.state,
	since = case when o.state = excluded.state and o.code = excluded.code then o.since else now() end,
	code = excluded.code, message = excluded.message, hint = excluded.hint, snapshot = excluded.snapshot,
	bronze_through = excluded.bronze_through, current_through = excluded.current_through,
	history_through = excluded.history_through, fresh_at = excluded.fresh_at, updated_at = now()`

// bucketNow is the ten seconds that now() falls into; sampleEvery says how long they
// are. Buckets start at whole multiples, so that every writer has the same.
const bucketNow = `to_timestamp(floor(extract(epoch from now()) / 10) * 10)`

const sampleEvery = 10 * time.Second

// storable replaces the one character that Postgres cannot hold in text: a message
// about a bad value may quote it.
func storable(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

func lsn(l catalog.LSN) *string {
	if l == 0 {
		return nil
	}
	s := l.String()
	return &s
}
