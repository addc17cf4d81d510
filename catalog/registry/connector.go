package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// ConnectorView is what was seen last of a source's connector.
type ConnectorView struct {
	catalog.ConnectorStatus

	Since  time.Time // its state and those of its tasks
	SeenAt time.Time // by the registry's clock
}

// SetConnector writes how a source's connector is. A change of its state, or of that of
// a task, is added to the source's events in the same transaction. A source that
// SyncConfig does not know is left out.
func (r *Registry) SetConnector(ctx context.Context, source string, s catalog.ConnectorStatus) error {
	tasks := make([]catalog.ConnectorTask, 0, len(s.Tasks))
	for _, t := range s.Tasks {
		t.Trace, t.Worker = storable(t.Trace), storable(t.Worker)
		tasks = append(tasks, t)
	}
	doc, err := json.Marshal(tasks)
	if err != nil {
		return err
	}
	return r.exec(ctx, setConnector, source, s.Name, string(s.State), storable(s.Trace), string(doc), storable(s.Reason()))
}

const setConnector = `
with old as (
	select name, state, tasks from lakeweir.connectors where source = $1 for update
), new as (
	select o.name as source, $5::text::jsonb as tasks, old.state as was,
		(old.name, old.state, jsonb_path_query_array(old.tasks, '$[*].state')) is distinct from ($2::text, $3::text, jsonb_path_query_array($5::text::jsonb, '$[*].state')) as changed
	from lakeweir.sources o left join old on true where o.name = $1
), event as (
	insert into lakeweir.source_events (source, kind, detail)
	select source, 'connector', jsonb_strip_nulls(jsonb_build_object('connector', $2::text, 'from', was, 'to', $3::text,
		'tasks', jsonb_path_query_array(tasks, '$[*].state'), 'reason', nullif($6::text, ''))) from new where changed
)
insert into lakeweir.connectors as c (source, name, state, trace, tasks)
select source, $2, $3, $4, tasks from new
on conflict (source) do update set name = excluded.name, state = excluded.state, trace = excluded.trace, tasks = excluded.tasks, seen_at = now(),
	since = case when (select changed from new) then now() else c.since end`
