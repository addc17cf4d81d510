package registry

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// RereadReason says who asked for rows to be read again.
type RereadReason string

// The reasons.
const (
	RereadRepair      RereadReason = "repair"      // a comparison found that they differ
	RereadRemake      RereadReason = "remake"      // as repair, and the lake's rows are to be made anew from bronze
	RereadUnavailable RereadReason = "unavailable" // a fold wrote them without values that were never sent
)

// RereadForm says how the keys of a request are written.
type RereadForm string

// The forms.
const (
	RereadPlain  RereadForm = "plain"  // a JSON array of keys, each an array of texts
	RereadSealed RereadForm = "sealed" // the same, sealed: the key has personal columns
	RereadMasked RereadForm = "masked" // as plain, with personal columns as the lake shows them
)

// Reread is a request to read rows of a table again. Keys are opaque here, and hold
// no personal value in clear.
type Reread struct {
	ID     int64 // set by RequestReread
	Table  string
	Reason RereadReason
	Form   RereadForm
	Keys   string
	Count  int // how many keys
}

// keepRereads is for how long requests that are done are remembered.
const keepRereads = 30 * 24 * time.Hour

// RequestReread keeps a request until it is done and returns its id. It is durable
// when it returns. It fails with table.not_found when the registry does not know the
// table.
func (r *Registry) RequestReread(ctx context.Context, source string, q Reread) (int64, error) {
	var id int64
	err := r.query(ctx, durable+`, forgotten as (
		delete from lakeweir.rereads where done_at < now() - $7::bigint * interval '1 second')
		insert into lakeweir.rereads (table_id, reason, form, keys, count)
		select t.id, $3, $4, $5, $6 from durable, lakeweir.tables t where t.source = $1 and t.name = $2 returning id`,
		[]any{source, q.Table, string(q.Reason), string(q.Form), q.Keys, q.Count, int64(keepRereads.Seconds())}, &id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "lakeweir get tables lists those it knows",
			"the registry knows no table %s of source %s", q.Table, source)
	}
	return id, err
}

// PendingRereads returns the requests of a source's tables that are not done, the
// oldest first, at most so many of each table.
func (r *Registry) PendingRereads(ctx context.Context, source string, most int) ([]Reread, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, `select r.id, t.name, r.reason, r.form, r.keys, r.count
		from lakeweir.tables t cross join lateral (select * from lakeweir.rereads where table_id = t.id and done_at is null order by id limit $2) r
		where t.source = $1 order by r.id`, source, most)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q Reread, err error) {
		return q, row.Scan(&q.ID, &q.Table, &q.Reason, &q.Form, &q.Keys, &q.Count)
	})
	return out, r.fault(ctx, err)
}

// FinishRereads marks requests as done and forgets their keys. One that is done
// already stays as it is.
func (r *Registry) FinishRereads(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return r.exec(ctx, `update lakeweir.rereads set done_at = now(), keys = '' where id = any($1) and done_at is null`, ids)
}

// CountRereads returns how many of the requests are not done yet.
func (r *Registry) CountRereads(ctx context.Context, ids []int64) (int, error) {
	var n int
	err := r.query(ctx, `select count(*) from lakeweir.rereads where id = any($1) and done_at is null`, []any{ids}, &n)
	return n, err
}

// WorkerSeen returns for how long no worker of the source has said that it is alive,
// by the registry's clock; false when none ever has.
func (r *Registry) WorkerSeen(ctx context.Context, source string) (ago time.Duration, ever bool, err error) {
	var seconds *float64
	err = r.query(ctx, `select extract(epoch from now() - max(seen_at))::float8 from lakeweir.workers where source = $1`, []any{source}, &seconds)
	if err != nil || seconds == nil {
		return 0, false, err
	}
	return time.Duration(*seconds * float64(time.Second)), true, nil
}
