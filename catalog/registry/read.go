package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// Fleet reads everything that the fleet page and the commands show, of one moment.
func (r *Registry) Fleet(ctx context.Context) (*Fleet, error) {
	f := &Fleet{}
	err := r.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if err = tx.QueryRow(ctx, `select now()`).Scan(&f.Now); err != nil {
			return err
		}
		if f.Sources, err = readSources(ctx, tx, "%"); err != nil {
			return err
		}
		if f.Tables, err = readTables(ctx, tx, "", ""); err != nil {
			return err
		}
		return readSamples(ctx, tx, f.Tables)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Tables reads what is known of every table, by source and name.
func (r *Registry) Tables(ctx context.Context) ([]TableView, error) {
	f, err := r.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return f.Tables, nil
}

// Sources reads what is known of every source, by name.
func (r *Registry) Sources(ctx context.Context) (out []SourceView, err error) {
	err = r.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		out, err = readSources(ctx, tx, "%")
		return err
	})
	return out, err
}

// BronzeThrough is how far the worker has said that a table's bronze is complete, and
// why the table is stopped, nil when it is not. 0 when nothing was said.
func (r *Registry) BronzeThrough(ctx context.Context, source, table string) (through catalog.LSN, fault *Fault, err error) {
	err = r.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var bronze, code, message, hint *string
		err := tx.QueryRow(ctx, `select s.bronze_through::text, s.code, s.message, s.hint from lakeweir.tables t
			join lakeweir.table_status s on s.table_id = t.id where t.source = $1 and t.name = $2`, source, table).Scan(&bronze, &code, &message, &hint)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read how far table %s/%s is: %w", source, table, err)
		}
		if code != nil && *code != "" {
			fault = &Fault{Code: catalog.Code(*code), Message: *message, Hint: *hint}
		}
		return parseLSNs(lsnInto{bronze, &through})
	})
	return through, fault, err
}

// Table reads one table with its past, or fails with table.not_found.
func (r *Registry) Table(ctx context.Context, source, table string) (*Detail, error) {
	d := &Detail{}
	err := r.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select now()`).Scan(&d.Now); err != nil {
			return err
		}
		tables, err := readTables(ctx, tx, source, table)
		if err != nil {
			return err
		}
		if len(tables) == 0 {
			return noTable(source, table)
		}
		if err := readSamples(ctx, tx, tables); err != nil {
			return err
		}
		d.Table = tables[0]
		sources, err := readSources(ctx, tx, source)
		if err != nil {
			return err
		}
		d.Source = sources[0]
		return readPast(ctx, tx, d, source, table)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// read runs do on one snapshot of the registry.
func (r *Registry) read(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return r.fault(ctx, pgx.BeginTxFunc(within, r.pool, options, func(tx pgx.Tx) error { return do(within, tx) }))
}

const selectSources = `
select o.name, o.kind, o.capture, o.file, o.wal_budget, coalesce((o.config->>'walBudgetNear')::int, 0), coalesce(o.config->>'onWalBudget', ''),
	st.end_lsn::text, st.confirmed_lsn::text, st.flushed_lsn::text, st.retained_bytes, st.slot_state, st.active, st.budget_stage, st.held_by, st.updated_at,
	sl.slot_name, sl.system_id, sl.timeline, sl.consistent_lsn::text, sl.flushed_lsn::text, sl.created_at,
	w.id, w.pid, w.version, w.started_at, w.seen_at,
	k.name, k.state, k.trace, k.tasks::text, k.since, k.seen_at
from lakeweir.sources o
left join lakeweir.connectors k on k.source = o.name
left join lakeweir.source_status st on st.source = o.name
left join lakeweir.source_slots sl on sl.source = o.name
left join lateral (select * from lakeweir.workers w where w.source = o.name order by w.seen_at desc limit 1) w on true
where $1 = '%' or o.name = $1 order by o.name`

func readSources(ctx context.Context, tx pgx.Tx, name string) ([]SourceView, error) {
	rows, err := tx.Query(ctx, selectSources, name)
	if err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	out, err := pgx.CollectRows(rows, scanSource)
	if err != nil {
		return nil, fmt.Errorf("read the sources: %w", err)
	}
	return out, nil
}

func scanSource(row pgx.CollectableRow) (v SourceView, err error) {
	var end, confirmed, flushed, state, stage, held, slot, system, consistent, noted, worker, version *string
	var retained, timeline *int64
	var active *bool
	var pid *int
	var updated, created, started, seen *time.Time
	var connector, connectorState, trace, tasks *string
	var since, connectorSeen *time.Time
	err = row.Scan(&v.Name, &v.Kind, &v.Capture, &v.File, &v.WALBudget, &v.NearBudget, &v.OnBudget,
		&end, &confirmed, &flushed, &retained, &state, &active, &stage, &held, &updated,
		&slot, &system, &timeline, &consistent, &noted, &created,
		&worker, &pid, &version, &started, &seen,
		&connector, &connectorState, &trace, &tasks, &since, &connectorSeen)
	if err != nil {
		return v, err
	}
	if updated != nil {
		v.Log = &SourceLog{UpdatedAt: *updated, SourceStatus: SourceStatus{
			Retained: *retained, SlotState: *state, Active: *active, Stage: catalog.BudgetStage(*stage), HeldBy: *held,
		}}
		if err := parseLSNs(lsnInto{end, &v.Log.End}, lsnInto{confirmed, &v.Log.Confirmed}, lsnInto{flushed, &v.Log.Flushed}); err != nil {
			return v, err
		}
	}
	if slot != nil {
		v.Slot = &Slot{Source: v.Name, Name: *slot, Epoch: catalog.Epoch{System: *system, Timeline: uint32(*timeline)}, CreatedAt: *created}
		if err := parseLSNs(lsnInto{consistent, &v.Slot.ConsistentLSN}, lsnInto{noted, &v.Slot.FlushedLSN}); err != nil {
			return v, err
		}
	}
	if connector != nil {
		v.Connector = &ConnectorView{Since: *since, SeenAt: *connectorSeen, ConnectorStatus: catalog.ConnectorStatus{
			Name: *connector, State: catalog.ConnectorState(*connectorState), Trace: *trace,
		}}
		if err := json.Unmarshal([]byte(*tasks), &v.Connector.Tasks); err != nil {
			return v, fmt.Errorf("read the tasks of connector %s: %w", *connector, err)
		}
	}
	if worker != nil {
		v.Worker = &Worker{ID: *worker, Source: v.Name, PID: *pid, Version: *version, StartedAt: *started, SeenAt: *seen}
	}
	return v, nil
}

const selectTables = `
select t.source, t.schema_name, t.table_name, t.config, t.config_version, t.file, t.in_files, t.retired_at is not null,
	coalesce((select max(version) from lakeweir.column_schemas c where c.table_id = t.id), 0),
	coalesce(s.state, ''), s.since, s.code, s.message, s.hint, s.snapshot::text,
	s.bronze_through::text, s.current_through::text, s.history_through::text, s.fresh_at, s.updated_at,
	coalesce(o.changes, 0), coalesce(o.bronze_rows, 0), coalesce(o.current_rows, 0), coalesce(o.history_rows, 0), o.last_batch_at, o.newest,
	r.at, r.source_rows, r.lake_rows, r.differing,
	(select max(at) from lakeweir.reconciliations v where v.table_id = t.id and v.differing = 0)
from lakeweir.tables t
left join lakeweir.table_status s on s.table_id = t.id
left join lakeweir.table_totals o on o.table_id = t.id
left join lateral (select * from lakeweir.reconciliations r where r.table_id = t.id order by r.at desc limit 1) r on true
where $1 = '' or (t.source = $1 and t.name = $2)
order by t.source, t.schema_name, t.table_name`

func readTables(ctx context.Context, tx pgx.Tx, source, table string) ([]TableView, error) {
	rows, err := tx.Query(ctx, selectTables, source, table)
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	out, err := pgx.CollectRows(rows, scanTable)
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	return out, nil
}

func scanTable(row pgx.CollectableRow) (v TableView, err error) {
	var retired bool
	var since, freshAt, heardAt, lastBatch, newest, comparedAt, verified *time.Time
	var code, message, hint, snapshot, bronze, current, history *string
	var sourceRows, lakeRows, differing *int64
	err = row.Scan(&v.Source, &v.Name.Schema, &v.Name.Name, &v.Config, &v.ConfigVersion, &v.File, &v.InFiles, &retired, &v.SchemaVersion,
		&v.State, &since, &code, &message, &hint, &snapshot, &bronze, &current, &history, &freshAt, &heardAt,
		&v.Totals.Changes, &v.Totals.BronzeRows, &v.Totals.CurrentRows, &v.Totals.HistoryRows, &lastBatch, &newest,
		&comparedAt, &sourceRows, &lakeRows, &differing, &verified)
	if err != nil {
		return v, err
	}
	v.Since, v.FreshAt, v.HeardAt, v.VerifiedThrough = at(since), at(freshAt), at(heardAt), at(verified)
	v.Totals.LastBatchAt, v.Totals.Newest = at(lastBatch), at(newest)
	if err := parseLSNs(lsnInto{bronze, &v.BronzeThrough}, lsnInto{current, &v.CurrentThrough}, lsnInto{history, &v.HistoryThrough}); err != nil {
		return v, err
	}
	if code != nil && *code != "" {
		v.Fault = &Fault{Code: catalog.Code(*code), Message: *message, Hint: *hint}
	}
	if snapshot != nil {
		var d snapshotDoc
		if err := json.Unmarshal([]byte(*snapshot), &d); err != nil {
			return v, fmt.Errorf("read the snapshot progress of %s: %w", v.ID(), err)
		}
		v.Snapshot = &catalog.SnapshotProgress{Generation: d.Generation, Done: d.Done, Rows: d.Rows, Estimate: d.Estimate, Chunks: d.Chunks, StartedAt: d.StartedAt}
	}
	if comparedAt != nil {
		v.Verified = &Verification{At: *comparedAt, SourceRows: *sourceRows, LakeRows: *lakeRows, Differing: *differing}
	}
	switch {
	case retired:
		v.State = catalog.Retired
	case v.State == "":
		v.State = catalog.Pending
	}
	return v, nil
}

// readSamples gives each table its samples of the last ten minutes.
func readSamples(ctx context.Context, tx pgx.Tx, tables []TableView) error {
	index := make(map[string]*TableView, len(tables))
	for i := range tables {
		index[tables[i].ID()] = &tables[i]
	}
	rows, err := tx.Query(ctx, `select t.source || '/' || t.name, p.at, coalesce(p.age_ms, -1), p.changes
		from lakeweir.table_samples p join lakeweir.tables t on t.id = p.table_id
		where p.at > now() - interval '10 minutes' order by p.at`)
	if err != nil {
		return fmt.Errorf("read the samples: %w", err)
	}
	var id string
	var s Sample
	var age int64
	_, err = pgx.ForEachRow(rows, []any{&id, &s.At, &age, &s.Changes}, func() error {
		if v := index[id]; v != nil {
			s.Age = time.Duration(age) * time.Millisecond
			v.Samples = append(v.Samples, s)
		}
		return nil
	})
	return err
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// lsnInto is a column that may be NULL, and where it goes.
type lsnInto struct {
	text *string
	into *catalog.LSN
}

// parseLSNs leaves the place of a NULL as it is.
func parseLSNs(pairs ...lsnInto) error {
	for _, p := range pairs {
		if p.text == nil {
			continue
		}
		l, err := catalog.ParseLSN(*p.text)
		if err != nil {
			return err
		}
		*p.into = l
	}
	return nil
}
