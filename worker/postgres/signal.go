package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
)

// Signals asks a source's connector, through its signal table, to read rows again. It
// connects for each signal. Safe for concurrent use.
type Signals struct{ cfg Config }

// NewSignals returns Signals; it does no I/O.
func NewSignals(cfg Config) *Signals { return &Signals{cfg: cfg.withDefaults()} }

// Signalled is a signal that was sent.
type Signalled struct {
	// Before is where the log stood just before the signal, and At when, by the source's
	// clock in microseconds since 1970 UTC.
	Before catalog.LSN
	At     int64
	// Keys is how many of the keys, the first ones, the signal is about, and Refused
	// which of them (by index) the server does not take for values of the columns.
	Keys    int
	Refused []int
}

// mostSignalData is what the signal table's column holds.
const mostSignalData = 4096

// ourSignals begin so.
const ourSignals = "lakeweir-read-"

// Read has the connector read the rows of a table whose columns are as the keys say, as
// many of the first ones as fit into a signal. The signal's id is the name, which begins
// with lakeweir-read-; signals of ours before it are cleared away.
func (s *Signals) Read(ctx context.Context, name string, table catalog.TableName, columns []string, keys [][]string) (Signalled, error) {
	var out Signalled
	pool, err := openPool(ctx, s.cfg.DSN, s.cfg.Source.Name, s.cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return out, err
	}
	defer pool.Close()
	failed := func(err error) error {
		return asError(s.cfg.Source.Name, fmt.Errorf("signal the connector of source %s: %w", s.cfg.Source.Name, err))
	}
	taken, err := takenKeys(ctx, pool, table, columns, keys)
	if err != nil {
		return out, failed(err)
	}
	var some [][]string
	var data string
	for i, key := range keys {
		if !taken[i] {
			out.Refused = append(out.Refused, i)
		} else {
			more := readSignal(table, columns, append(some, key))
			if utf8.RuneCountInString(more) > mostSignalData && len(some) > 0 {
				break
			}
			if utf8.RuneCountInString(more) > mostSignalData {
				return out, failed(errors.New("a key is too large for the signal table"))
			}
			some, data = append(some, key), more
		}
		out.Keys = i + 1
	}
	if len(some) == 0 {
		return out, nil
	}
	signals := quoteName(s.cfg.Source.Connector.SignalTable)
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var before string
		if err := tx.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text, (extract(epoch FROM clock_timestamp()) * 1e6)::int8").Scan(&before, &out.At); err != nil {
			return err
		}
		if out.Before, err = catalog.ParseLSN(before); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM "+signals+" WHERE starts_with(id, $1)", ourSignals); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO "+signals+" (id, type, data) VALUES ($1, 'execute-snapshot', $2)", name, data)
		return err
	})
	if err != nil {
		return out, failed(err)
	}
	return out, nil
}

// Missing says which of the keys the source does not have now. All of them must be such
// that the server takes them, or have been refused by Read, which none has.
func (s *Signals) Missing(ctx context.Context, table catalog.TableName, columns []string, keys [][]string) ([]bool, error) {
	pool, err := openPool(ctx, s.cfg.DSN, s.cfg.Source.Name, s.cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	failed := func(err error) error {
		return asError(s.cfg.Source.Name, fmt.Errorf("look for rows of %s: %w", table, err))
	}
	taken, err := takenKeys(ctx, pool, table, columns, keys)
	if err != nil {
		return nil, failed(err)
	}
	missing := make([]bool, len(keys))
	batch := &pgx.Batch{}
	for i, key := range keys {
		missing[i] = true
		if taken[i] {
			batch.Queue("SELECT NOT EXISTS (SELECT FROM " + quoteName(table) + " WHERE " + keyFilter(columns, [][]string{key}) + ")").
				QueryRow(func(row pgx.Row) error { return row.Scan(&missing[i]) })
		}
	}
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, failed(err)
	}
	return missing, nil
}

// readSignal is the data of a signal. Names of tables are regular expressions in it.
func readSignal(table catalog.TableName, columns []string, keys [][]string) string {
	type condition struct {
		Table  string `json:"data-collection"`
		Filter string `json:"filter"`
	}
	pattern := regexp.QuoteMeta(table.String())
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // text cannot fail
		Kind       string      `json:"type"`
		Tables     []string    `json:"data-collections"`
		Conditions []condition `json:"additional-conditions"`
	}{"incremental", []string{pattern}, []condition{{pattern, keyFilter(columns, keys)}}})
	return strings.TrimSpace(b.String())
}

// keyFilter is a condition that rows with one of the keys satisfy. Each text is given as
// the server prints it, and it is for the server to read it as the column's type.
func keyFilter(columns []string, keys [][]string) string {
	rows := make([]string, len(keys))
	for i, key := range keys {
		texts := make([]string, len(key))
		for j, text := range key {
			texts[j] = quoteLiteral(text)
		}
		rows[i] = "(" + strings.Join(texts, ", ") + ")"
	}
	return "(" + quoteIdents(columns) + ") IN (" + strings.Join(rows, ", ") + ")"
}

// takenKeys says which of the keys the server takes for values of the columns.
func takenKeys(ctx context.Context, pool *pgxpool.Pool, table catalog.TableName, columns []string, keys [][]string) ([]bool, error) {
	taken := make([]bool, len(keys))
	var look func(from, to int) error
	look = func(from, to int) error {
		if from == to {
			return nil
		}
		_, err := pool.Exec(ctx, "SELECT 1 FROM "+quoteName(table)+" WHERE "+keyFilter(columns, keys[from:to])+" LIMIT 0")
		switch {
		case err == nil:
			for i := from; i < to; i++ {
				taken[i] = true
			}
			return nil
		case !isBadText(err):
			return err
		case to == from+1:
			return nil
		}
		half := (from + to) / 2
		if err := look(from, half); err != nil {
			return err
		}
		return look(half, to)
	}
	return taken, look(0, len(keys))
}
