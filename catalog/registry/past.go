package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// readPast fills the detail's batches, events, schemas and samples.
func readPast(ctx context.Context, tx pgx.Tx, d *Detail, source, table string) error {
	var id int64
	if err := tx.QueryRow(ctx, `select id from lakeweir.tables where source = $1 and name = $2`, source, table).Scan(&id); err != nil {
		return fmt.Errorf("find table %s/%s: %w", source, table, err)
	}
	collect := func(what, sql string, read func(pgx.Rows) error) error {
		rows, err := tx.Query(ctx, sql, id)
		if err == nil {
			err = read(rows)
		}
		if err != nil {
			return fmt.Errorf("read the %s of %s/%s: %w", what, source, table, err)
		}
		return nil
	}
	err := collect("batches", `select at, id, from_cursor, to_cursor, creates, updates, deletes, reads, truncates, unfit,
		unfits::text, newest, bytes, bronze::text, current::text, history::text
		from lakeweir.batches where table_id = $1 order by at desc, id desc limit 50`, func(rows pgx.Rows) (err error) {
		d.Batches, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (BatchRecord, error) { return scanBatch(row, table) })
		return err
	})
	if err != nil {
		return err
	}
	err = collect("events", `select at, kind, detail::text from lakeweir.table_events where table_id = $1 order by id desc limit 100`,
		func(rows pgx.Rows) (err error) {
			d.Events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
				var detail string
				err = row.Scan(&e.At, &e.Kind, &detail)
				e.Detail = json.RawMessage(detail)
				return e, err
			})
			return err
		})
	if err != nil {
		return err
	}
	err = collect("schemas", `select version, columns::text, seen_at from lakeweir.column_schemas where table_id = $1 order by version desc`,
		func(rows pgx.Rows) (err error) {
			d.Schemas, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v SchemaView, err error) {
				var version int
				var columns string
				if err := row.Scan(&version, &columns, &v.SeenAt); err != nil {
					return v, err
				}
				v.Schema, err = readSchema(version, columns)
				return v, err
			})
			return err
		})
	if err != nil {
		return err
	}
	return collect("samples", `select at, coalesce(age_ms, -1), changes from lakeweir.table_samples
		where at > now() - interval '1 hour' and table_id = $1 order by at`, func(rows pgx.Rows) (err error) {
		d.Samples, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Sample, err error) {
			var age int64
			err = row.Scan(&s.At, &age, &s.Changes)
			s.Age = time.Duration(age) * time.Millisecond
			return s, err
		})
		return err
	})
}

func scanBatch(row pgx.CollectableRow, table string) (BatchRecord, error) {
	b := BatchRecord{Table: table}
	var from, to string
	var unfits, bronze, current, history *string
	var newest *time.Time
	err := row.Scan(&b.At, &b.ID, &from, &to, &b.Creates, &b.Updates, &b.Deletes, &b.Reads, &b.Truncates, &b.Unfit,
		&unfits, &newest, &b.Bytes, &bronze, &current, &history)
	if err != nil {
		return b, err
	}
	if b.From, err = catalog.ParseCursor(from); err != nil {
		return b, err
	}
	if b.To, err = catalog.ParseCursor(to); err != nil {
		return b, err
	}
	if newest != nil {
		b.Newest = newest.UnixMicro()
	}
	if unfits != nil {
		if err := json.Unmarshal([]byte(*unfits), &b.Unfits); err != nil {
			return b, err
		}
	}
	for _, l := range []struct {
		doc  *string
		into *Commit
	}{{bronze, &b.Bronze}, {current, &b.Current}, {history, &b.History}} {
		if l.doc == nil {
			continue
		}
		var d layerDoc
		if err := json.Unmarshal([]byte(*l.doc), &d); err != nil {
			return b, err
		}
		*l.into = d.commit()
	}
	return b, nil
}
