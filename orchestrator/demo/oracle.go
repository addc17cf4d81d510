package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed oracle.sql
var oracleSQL string

// Value is a column's value as Postgres prints it, with dates in ISO form and
// times in UTC.
type Value struct {
	Text string
	Null bool
	// Unknown marks a value that was never sent, which the lake says it lacks. The
	// oracle never sets it.
	Unknown bool
}

// Interval is one version of one row: what it was, from when until when.
type Interval struct {
	Key     []Value // in the key's order
	Values  []Value // in the order of the columns asked for
	From    int64   // microseconds since 1970 UTC
	To      int64   // likewise; Open for the version that holds now
	Current bool
	// FromSnapshot marks a version that the lake knows from reading the row, so
	// that it may have begun earlier. The oracle never sets it.
	FromSnapshot bool
}

// Open is the end of a version that still holds: 9999-12-31 00:00 UTC.
const Open int64 = 253402214400000000

// History yields the versions that the lake must have of a shop table, by key and
// time, folded in SQL from the audit. key and all name its key's and all wanted
// columns; only a change of a tracked one makes a version. It needs
// track_commit_timestamp since before the audit began. It reads one snapshot, so
// it may run beside the workload; what commits later is not in it. The sequence
// ends after an error.
func History(ctx context.Context, conn *pgx.Conn, table string, key, tracked, all []string) iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		if err := history(ctx, conn, table, key, tracked, all, yield); err != nil {
			yield(Interval{}, fmt.Errorf("fold the audit of %s: %w", table, err))
		}
	}
}

func history(ctx context.Context, conn *pgx.Conn, table string, key, tracked, all []string, yield func(Interval, error) bool) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	_, err = tx.Exec(ctx, `set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
		set local bytea_output = 'hex'; set local extra_float_digits = 1; set local work_mem = '64MB'`)
	if err != nil {
		return err
	}
	if tracked == nil {
		tracked = []string{} // not NULL
	}
	rows, err := tx.Query(ctx, historySQL(table, key, all), table, tracked)
	if err != nil {
		return err
	}
	defer rows.Close()
	var from, to *time.Time
	texts := make([]*string, len(key)+len(all))
	into := []any{&from, &to}
	for i := range texts {
		into = append(into, &texts[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if from == nil {
			return errors.New("a commit time is missing: track_commit_timestamp was not on all the time")
		}
		values := make([]Value, len(texts))
		for i, text := range texts {
			if text == nil {
				values[i] = Value{Null: true}
			} else {
				values[i] = Value{Text: *text}
			}
		}
		v := Interval{Key: values[:len(key)], Values: values[len(key):], From: from.UnixMicro(), To: Open, Current: true}
		if to != nil {
			v.To, v.Current = to.UnixMicro(), false
		}
		if !yield(v, nil) {
			return nil
		}
	}
	return rows.Err()
}

// historySQL wraps the fold so that each column comes out as Postgres prints it.
// format, unlike a cast, keeps the blanks of char(n).
func historySQL(table string, key, all []string) string {
	var b strings.Builder
	b.WriteString("select h.valid_from, h.valid_to")
	for _, c := range slices.Concat(key, all) {
		column := "r." + pgx.Identifier{c}.Sanitize()
		fmt.Fprintf(&b, ", case when num_nulls(%[1]s) = 0 then format('%%s', %[1]s) end", column)
	}
	fmt.Fprintf(&b, "\nfrom (\n%s) h cross join lateral jsonb_populate_record(null::%s, h.\"row\") r\norder by h.key, h.version",
		oracleSQL, pgx.Identifier{"public", table}.Sanitize())
	return b.String()
}
