package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

const selectQuarantines = `
select q.id, t.source, t.name, coalesce(q.change_id, 0), q.since, q.code, q.reason, q.hint, q.evidence::text, q.at::text, q.state,
	coalesce(q.key, ''), q.key_id, q.folder, coalesce(q.through::text, '{}'), q.runs, q.events, q.bytes, q.replays, q.replayed,
	q.asked_at, q.asked_by, q.asked_for, q.released_at, q.abandoned, q.swept_at
from lakeweir.quarantines q join lakeweir.tables t on t.id = q.table_id `

// OpenQuarantines returns the quarantines that are not released, of a source or, when it
// is empty, of all; the oldest first.
func (r *Registry) OpenQuarantines(ctx context.Context, source string) ([]Quarantine, error) {
	return r.quarantines(ctx, `where q.state <> 'released' and ($1 = '' or t.source = $1) order by q.id limit $2`, source, mostOpen)
}

// Quarantines returns the newest 100 quarantines of a table, the newest first.
func (r *Registry) Quarantines(ctx context.Context, source, table string) ([]Quarantine, error) {
	return r.quarantines(ctx, `where t.source = $1 and t.name = $2 order by q.id desc limit $3`, source, table, mostPast)
}

// UnsweptQuarantines returns the quarantines of a source that were released and whose
// files may still be there, the oldest first.
func (r *Registry) UnsweptQuarantines(ctx context.Context, source string) ([]Quarantine, error) {
	return r.quarantines(ctx, `where q.state = 'released' and q.swept_at is null and t.source = $1 order by q.id limit $2`, source, mostPast)
}

// Quarantine returns one of them, or fails with quarantine.not_found.
func (r *Registry) Quarantine(ctx context.Context, id int64) (*Quarantine, error) {
	all, err := r.quarantines(ctx, `where q.id = $1`, id)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noQuarantine(id)
	}
	return &all[0], nil
}

func (r *Registry) quarantines(ctx context.Context, where string, args ...any) ([]Quarantine, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, selectQuarantines+where, args...)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out, err := pgx.CollectRows(rows, scanQuarantine)
	return out, r.fault(ctx, err)
}

func scanQuarantine(row pgx.CollectableRow) (q Quarantine, err error) {
	var evidence, place, key, through, askedBy, askedFor string
	var runs, replayed int64
	var asked, released, swept *time.Time
	err = row.Scan(&q.ID, &q.Source, &q.Table, &q.Change, &q.Since, &q.Fault.Code, &q.Fault.Message, &q.Fault.Hint, &evidence, &place, &q.State,
		&key, &q.KeyID, &q.Folder, &through, &runs, &q.Parked.Events, &q.Parked.Bytes, &q.Replays, &replayed,
		&asked, &askedBy, &askedFor, &released, &q.Abandoned, &swept)
	if err != nil {
		return q, err
	}
	q.Key, q.Parked.Runs, q.Replayed = catalog.Secret(key), uint64(runs), uint64(replayed)
	q.ReleasedAt, q.SweptAt = at(released), at(swept)
	if asked != nil {
		q.Asked = &ReleaseRequest{At: *asked, By: askedBy, Reason: askedFor}
	}
	if err := unmarshal(docInto{evidence, &q.Evidence}, docInto{place, &q.At}, docInto{through, &q.Parked.Through}); err != nil {
		return q, fmt.Errorf("read quarantine %d: %w", q.ID, err)
	}
	return q, nil
}
