package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// The kinds of event in a source's life, each with what its detail holds.
const (
	BudgetStaged EventKind = "wal_budget"   // detail: from, to, retainedBytes, budgetBytes, heldBy
	SlotDropped  EventKind = "slot_dropped" // detail: slot, retainedBytes, budgetBytes

	ConnectorChanged EventKind = "connector" // detail: connector, from, to, tasks (their states), reason
)

// RecordSourceEvent adds an event to the life of a source.
func (r *Registry) RecordSourceEvent(ctx context.Context, source string, kind EventKind, detail map[string]any) error {
	if detail == nil {
		detail = map[string]any{}
	}
	return r.exec(ctx, `insert into lakeweir.source_events (source, kind, detail)
		select name, $2, $3 from lakeweir.sources where name = $1`, source, string(kind), detail)
}

// SourceEvents returns the newest 100 events of a source, the newest first.
func (r *Registry) SourceEvents(ctx context.Context, source string) ([]Event, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, `select at, kind, detail::text from lakeweir.source_events
		where source = $1 order by id desc limit 100`, source)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out := []Event{}
	var e Event
	var at time.Time
	var detail string
	_, err = pgx.ForEachRow(rows, []any{&at, &e.Kind, &detail}, func() error {
		e.At, e.Detail = at, json.RawMessage(detail)
		out = append(out, e)
		return nil
	})
	return out, r.fault(ctx, err)
}
