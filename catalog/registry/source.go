package registry

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/migrations"
)

// SourceStatus is where a source's log stands; field for field what a pipeline tells
// its observer.
type SourceStatus struct {
	End       catalog.LSN // the end of the log now
	Confirmed catalog.LSN // what the slot may forget
	Retained  int64       // bytes the slot holds back
	SlotState string      // as the server names it: reserved, extended, unreserved, lost; missing when there is none
	Active    bool
	// Stage is how near Retained is to the source's budget; empty when nobody judged.
	Stage catalog.BudgetStage
	// HeldBy says in words what makes the slot retain; empty when nothing does for long.
	HeldBy string
}

// SetSourceStatus writes where the source's log stands, and up to where the worker has
// saved everything.
func (r *Registry) SetSourceStatus(ctx context.Context, source string, s SourceStatus, flushed catalog.LSN) error {
	return r.exec(ctx, `insert into lakeweir.source_status (source, end_lsn, confirmed_lsn, flushed_lsn, retained_bytes, slot_state, active, budget_stage, held_by, updated_at)
		select name, $2::text::pg_lsn, $3::text::pg_lsn, $4::text::pg_lsn, $5, $6, $7, $8, $9, now() from lakeweir.sources where name = $1
		on conflict (source) do update set end_lsn = excluded.end_lsn, confirmed_lsn = excluded.confirmed_lsn, flushed_lsn = excluded.flushed_lsn,
			retained_bytes = excluded.retained_bytes, slot_state = excluded.slot_state, active = excluded.active,
			budget_stage = excluded.budget_stage, held_by = excluded.held_by, updated_at = now()`,
		source, s.End.String(), s.Confirmed.String(), flushed.String(), s.Retained, s.SlotState, s.Active, string(s.Stage), storable(s.HeldBy))
}

// Slot is the note of a slot that Lakeweir made or adopted.
type Slot struct {
	Source        string
	Name          string
	Epoch         catalog.Epoch
	ConsistentLSN catalog.LSN // from where the slot had every change
	FlushedLSN    catalog.LSN // the most that it may ever have been told to forget
	CreatedAt     time.Time   // set by WriteSlot
}

// ReadSlot returns the note of the source's slot, or nil when there is none.
func (r *Registry) ReadSlot(ctx context.Context, source string) (*Slot, error) {
	s := Slot{Source: source}
	var consistent, flushed string
	err := r.query(ctx, `select slot_name, system_id, timeline, consistent_lsn::text, flushed_lsn::text, created_at
		from lakeweir.source_slots where source = $1`, []any{source},
		&s.Name, &s.Epoch.System, &s.Epoch.Timeline, &consistent, &flushed, &s.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if s.ConsistentLSN, err = catalog.ParseLSN(consistent); err != nil {
		return nil, err
	}
	if s.FlushedLSN, err = catalog.ParseLSN(flushed); err != nil {
		return nil, err
	}
	return &s, nil
}

// WriteSlot replaces the note of the source's slot. It is durable when it returns.
// The source must be known to SyncConfig, else it fails with source.not_found.
func (r *Registry) WriteSlot(ctx context.Context, s Slot) error {
	var written int
	err := r.query(ctx, durable+`, put as (
		insert into lakeweir.source_slots (source, slot_name, system_id, timeline, consistent_lsn, flushed_lsn)
		select o.name, $2, $3, $4, $5::text::pg_lsn, $6::text::pg_lsn from durable, lakeweir.sources o where o.name = $1
		on conflict (source) do update set slot_name = excluded.slot_name, system_id = excluded.system_id, timeline = excluded.timeline,
			consistent_lsn = excluded.consistent_lsn, flushed_lsn = excluded.flushed_lsn, created_at = now(), flushed_at = now()
		returning 1)
		select count(*) from put`,
		[]any{s.Source, s.Name, s.Epoch.System, int64(s.Epoch.Timeline), s.ConsistentLSN.String(), s.FlushedLSN.String()}, &written)
	if err == nil && written == 0 {
		return noSource(s.Source)
	}
	return err
}

// WriteSlotFlush notes that the source's slot is about to be told to forget everything
// before the LSN. It is durable when it returns nil; until then the slot must not be
// told. A lower LSN than noted changes nothing. It fails with source.not_found when
// there is no note.
func (r *Registry) WriteSlotFlush(ctx context.Context, source string, through catalog.LSN) error {
	var written int
	err := r.query(ctx, durable+`, put as (
		update lakeweir.source_slots set flushed_at = now(), flushed_lsn = greatest(flushed_lsn, $2::text::pg_lsn)
		from durable where source = $1 returning 1)
		select count(*) from put`, []any{source, through.String()}, &written)
	if err == nil && written == 0 {
		return noSource(source)
	}
	return err
}

// durable makes the statement's own transaction wait for the disk, whatever the
// database's default is.
const durable = `with durable as materialized (select set_config('synchronous_commit', 'on', true))`

// Worker is one process that runs a source.
type Worker struct {
	ID        string // unique among processes
	Source    string
	PID       int
	Version   string
	StartedAt time.Time
	SeenAt    time.Time // set by Heartbeat, by the registry's clock
}

// Heartbeat says that the worker is alive. It fails with registry.version when a newer
// Lakeweir has changed the registry so that this binary must stop writing to it.
func (r *Registry) Heartbeat(ctx context.Context, w Worker) error {
	var minReader int64
	err := r.query(ctx, `with beat as (
		insert into lakeweir.workers (id, source, pid, version, started_at, seen_at) values ($1, $2, $3, $4, $5, now())
		on conflict (id) do update set seen_at = now())
		select min_reader from lakeweir.compatibility`, []any{w.ID, w.Source, w.PID, w.Version, w.StartedAt}, &minReader)
	if err == nil && minReader > migrations.Version() {
		err = r.fault(ctx, &migrations.IncompatibleError{Own: migrations.Version(), MinReader: minReader})
	}
	return err
}

func noSource(source string) *catalog.Error {
	return catalog.Errorf(catalog.NotFound, catalog.CodeNoSource, "lakeweir get sources lists those it knows",
		"the registry knows no source %s, or has no note of its slot", source)
}
