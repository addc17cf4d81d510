package registry

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// Skip has the worker pass by a record of a table's topic that it cannot read.
type Skip struct {
	Table     string // catalog.TableName.String()
	Partition int32
	Offset    int64
	Reason    string
	By        string // who asked for it
	At        time.Time
}

// AddSkip keeps a skip, and says so in the life of its table. It is durable when it
// returns, and the first of two for one record counts. It fails with table.not_found
// when the registry does not know the table.
func (r *Registry) AddSkip(ctx context.Context, source string, s Skip) error {
	detail := map[string]any{"partition": s.Partition, "offset": s.Offset, "reason": storable(s.Reason), "by": storable(s.By)}
	var id int64
	err := r.query(ctx, durable+`, known as (
		select t.id from durable, lakeweir.tables t where t.source = $1 and t.name = $2), put as (
		insert into lakeweir.skips (table_id, partition, "offset", reason, actor)
		select id, $3, $4, $5, $6 from known on conflict do nothing returning table_id), told as (
		insert into lakeweir.table_events (table_id, kind, detail) select table_id, $7, $8 from put)
		select id from known`,
		[]any{source, s.Table, s.Partition, s.Offset, storable(s.Reason), storable(s.By), string(SkipAsked), detail}, &id)
	if errors.Is(err, pgx.ErrNoRows) {
		return catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "lakeweir get tables lists those it knows",
			"the registry knows no table %s of source %s", s.Table, source)
	}
	return err
}

// Skips returns the skips of a source's tables.
func (r *Registry) Skips(ctx context.Context, source string) ([]Skip, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, `select t.name, s.partition, s."offset", s.reason, s.actor, s.at
		from lakeweir.skips s join lakeweir.tables t on t.id = s.table_id where t.source = $1 order by t.name, s.partition, s."offset"`, source)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Skip, err error) {
		return s, row.Scan(&s.Table, &s.Partition, &s.Offset, &s.Reason, &s.By, &s.At)
	})
	return out, r.fault(ctx, err)
}
