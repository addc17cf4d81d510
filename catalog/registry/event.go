package registry

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// EventKind is what happened in a table's life.
type EventKind string

// The kinds, each with what its detail holds.
const (
	StateChanged  EventKind = "state_changed"  // detail: from, to; code, message and hint when it stopped
	SchemaVersion EventKind = "schema_version" // detail: version, and columns added, dropped, changed
	ConfigChanged EventKind = "config_changed" // detail: version
	LeftFiles     EventKind = "left_files"     // no file names it any more; detail: file
	CameBack      EventKind = "came_back"      // a file names it again; detail: file
	Started       EventKind = "started"        // a worker began to read it; detail: worker, cursor
	Reconciled    EventKind = "reconciled"     // detail: differing, sourceRows, lakeRows, cursor
	SkipAsked     EventKind = "skip_asked"     // a person has a change passed by; detail: partition and offset or position, reason, by
	RecordSkipped EventKind = "record_skipped" // a worker has passed it by; detail: partition and offset or position, code, reason, by
	MaybeMissing  EventKind = "maybe_missing"  // Debezium may have left out rows before a record; detail: partition, offset, lsn, sequence, txId, rows, run, nextRun, message, hint
	Partitions    EventKind = "partitions"     // partitions came with rows, or went with some; detail: attached or gone; repaired once it is mended

	SchemaChanged     EventKind = "schema_change" // the source's columns changed, or somebody decided on it; detail: id, from, to; changes, verdict, rule, by, message
	QuarantineChanged EventKind = "quarantine"    // what comes for it is parked, or handed back; detail: id, from, to; code, message, hint, by, runs, abandoned
)

// Event is one of them.
type Event struct {
	At     time.Time
	Kind   EventKind
	Detail json.RawMessage // an object; never a row value or a secret
}

// RecordEvent adds an event to the life of a table. Events that other calls imply
// (states, schemas, configs, comparisons) are added by those.
func (r *Registry) RecordEvent(ctx context.Context, source, table string, kind EventKind, detail map[string]any) error {
	if detail == nil {
		detail = map[string]any{}
	}
	return r.exec(ctx, `insert into lakeweir.table_events (table_id, kind, detail)
		select id, $3, $4 from lakeweir.tables where source = $1 and name = $2`, source, table, string(kind), detail)
}

func addEvent(ctx context.Context, tx pgx.Tx, table int64, kind EventKind, detail map[string]any) error {
	_, err := tx.Exec(ctx, `insert into lakeweir.table_events (table_id, kind, detail) values ($1, $2, $3)`, table, string(kind), detail)
	return err
}

func dotted(parts []string) string { return strings.Join(parts, ".") }
