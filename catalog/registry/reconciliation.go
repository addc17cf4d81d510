package registry

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reconciliation is the result of one comparison of a table's source with its lake
// tables. When nothing differs, the table is verified through At.
type Reconciliation struct {
	ID         string
	Source     string
	Table      string
	At         time.Time // when the source was read
	Cursor     string    // the place in the source's log that was compared
	SourceRows int64
	LakeRows   int64
	Differing  int64
	Report     json.RawMessage // an object or nil; keys in it are masked
	Took       time.Duration
}

// RecordReconciliation keeps a comparison and adds it to the table's events. One
// recorded twice counts once.
func (r *Registry) RecordReconciliation(ctx context.Context, c Reconciliation) error {
	return r.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var id int64
		var report any
		if len(c.Report) > 0 {
			report = string(c.Report)
		}
		err := tx.QueryRow(ctx, `insert into lakeweir.reconciliations (id, table_id, at, cursor, source_rows, lake_rows, differing, report, took_ms)
			select $1, t.id, $4, $5, $6, $7, $8, $9::text::jsonb, $10 from lakeweir.tables t where t.source = $2 and t.name = $3
			on conflict (id) do nothing returning table_id`,
			c.ID, c.Source, c.Table, c.At, c.Cursor, c.SourceRows, c.LakeRows, c.Differing, report, c.Took.Milliseconds()).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // known already, or a table nobody configured
		}
		if err != nil {
			return err
		}
		return addEvent(ctx, tx, id, Reconciled, map[string]any{"differing": c.Differing, "sourceRows": c.SourceRows, "lakeRows": c.LakeRows, "cursor": c.Cursor})
	})
}
