package registry

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// Skip has the worker pass by a change that it cannot read: a record of a table's topic
// or, of a source that is captured directly, the change at a position.
type Skip struct {
	Table     string // catalog.TableName.String()
	Partition int32
	Offset    int64
	Position  catalog.Position // zero for a record of a topic
	Reason    string
	By        string // who asked for it
	At        time.Time
	// PassedAt is when a worker passed it by last, zero when none has; Code and Message
	// are why it could not be read.
	PassedAt time.Time
	Code     catalog.Code
	Message  string
}

// place is what the skip is of, in columns: NULLs stand for what it is not of.
func (s *Skip) place() (partition *int32, offset *int64, position *string) {
	if s.Position.IsZero() {
		return &s.Partition, &s.Offset, nil
	}
	text := s.Position.String()
	return nil, nil, &text
}

func (s *Skip) detail() map[string]any {
	d := map[string]any{"reason": storable(s.Reason), "by": storable(s.By)}
	if s.Position.IsZero() {
		d["partition"], d["offset"] = s.Partition, s.Offset
	} else {
		d["position"] = s.Position.String()
	}
	return d
}

// AddSkip keeps a skip, and says so in the life of its table. It is durable when it
// returns, and the first of two for one change counts. It fails with table.not_found
// when the registry does not know the table.
func (r *Registry) AddSkip(ctx context.Context, source string, s Skip) error {
	partition, offset, position := s.place()
	var id int64
	err := r.query(ctx, durable+`, known as (
		select t.id from durable, lakeweir.tables t where t.source = $1 and t.name = $2), put as (
		insert into lakeweir.skips (table_id, partition, "offset", position, reason, actor)
		select id, $3, $4, $5, $6, $7 from known on conflict do nothing returning table_id), told as (
		insert into lakeweir.table_events (table_id, kind, detail) select table_id, $8, $9 from put)
		select id from known`,
		[]any{source, s.Table, partition, offset, position, storable(s.Reason), storable(s.By), string(SkipAsked), s.detail()}, &id)
	if errors.Is(err, pgx.ErrNoRows) {
		return catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "lakeweir get tables lists those it knows",
			"the registry knows no table %s of source %s", s.Table, source)
	}
	return err
}

// PassedBy says that a worker has passed a change by, and why it could not be read: the
// skip becomes a dead letter that can be looked up. It is told in the life of the table
// each time.
func (r *Registry) PassedBy(ctx context.Context, source string, s Skip, why Fault) error {
	partition, offset, position := s.place()
	detail := s.detail()
	detail["code"] = why.Code
	doc, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	return r.exec(ctx, `with known as (
		select t.id from lakeweir.tables t where t.source = $1 and t.name = $2), passed as (
		update lakeweir.skips k set passed_at = now(), code = $6, message = $7 from known
		where k.table_id = known.id and (k.partition, k."offset", k.position) is not distinct from ($3::integer, $4::bigint, $5::text))
		insert into lakeweir.table_events (table_id, kind, detail) select id, $8, $9::text::jsonb from known`,
		source, s.Table, partition, offset, position, string(why.Code), storable(why.Message), string(RecordSkipped), string(doc))
}

// Skips returns the skips of a source's tables, with what became of them.
func (r *Registry) Skips(ctx context.Context, source string) ([]Skip, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, `select t.name, coalesce(s.partition, 0), coalesce(s."offset", 0), s.position, s.reason, s.actor, s.at,
		s.passed_at, s.code, s.message
		from lakeweir.skips s join lakeweir.tables t on t.id = s.table_id where t.source = $1
		order by t.name, s.partition, s."offset", s.at, s.position`, source)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Skip, err error) {
		var position *string
		var passed *time.Time
		if err := row.Scan(&s.Table, &s.Partition, &s.Offset, &position, &s.Reason, &s.By, &s.At, &passed, &s.Code, &s.Message); err != nil {
			return s, err
		}
		s.PassedAt = at(passed)
		if position != nil {
			s.Position, err = catalog.ParsePosition(*position)
		}
		return s, err
	})
	return out, r.fault(ctx, err)
}
