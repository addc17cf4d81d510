package demo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// keys are the shop's tables that have one.
func keys() map[string][]string {
	return map[string][]string{
		"customers": {"customer_id"}, "orders": {"order_id"}, "order_items": {"order_id", "line_no"},
		"payments": {"payment_id"}, "refunds": {"refund_id"}, "documents": {"document_id"},
	}
}

// TestTheOracleOfABusyShopEndsInItsTables lets the shop live for a while, twice on
// the same database, and checks the oracle against what can be known without it:
// its open versions are the live rows, value by value, and the versions of a key
// never overlap.
func TestTheOracleOfABusyShopEndsInItsTables(t *testing.T) {
	t.Parallel()
	dsn := localpgtest.Database(t)
	require.NoError(t, demo.Setup(t.Context(), dsn, 400))
	_, err := connect(t, dsn).Exec(t.Context(), "create table counted as select max(seq) as seq from demo_audit.changes")
	require.NoError(t, err)
	for seed := range uint64(2) {
		w := demo.NewWorkload(demo.WorkloadConfig{DSN: dsn, Rate: 3000, Seed: seed, MaxHold: 500 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		stats, err := w.Run(ctx)
		cancel()
		require.NoError(t, err)
		require.Greater(t, stats.Transactions, int64(20))
		require.Positive(t, stats.RolledBack)
		requireCountsAgree(t, dsn, stats)
	}
	conn := connect(t, dsn)
	for table, key := range keys() {
		columns := columnsOf(t, conn, table)
		open := requireSoundHistory(t, conn, table, key, columns)
		require.Equal(t, liveRows(t, conn, table, columns), open, table)
	}
}

func TestALostDatabaseEndsTheWorkload(t *testing.T) {
	t.Parallel()
	server, err := localpg.Start(t.Context(), localpg.Config{Dir: t.TempDir(), Settings: map[string]string{"fsync": "off"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	require.NoError(t, demo.Setup(t.Context(), server.DSN("postgres"), 100))
	w := demo.NewWorkload(demo.WorkloadConfig{DSN: server.DSN("postgres"), Rate: 500, MaxHold: 100 * time.Millisecond})
	done := make(chan error, 1)
	go func() {
		_, err := w.Run(t.Context())
		done <- err
	}()
	require.Eventually(t, func() bool { return w.Stats().Transactions > 20 }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, server.Stop(t.Context()))
	err = <-done
	require.Equal(t, catalog.Unavailable, catalog.KindOf(err), "%v", err)
	require.NotContains(t, err.Error(), "postgres://")
}

// requireCountsAgree checks the workload's statistics against the audit's growth,
// which it resets.
func requireCountsAgree(t *testing.T, dsn string, stats demo.Stats) {
	t.Helper()
	conn := connect(t, dsn)
	got := map[string]demo.Counts{}
	rows, err := conn.Query(t.Context(), `
		select tbl, count(*) filter (where op = 'I'), count(*) filter (where op = 'U'), count(*) filter (where op = 'D')
		from demo_audit.changes where seq > (select coalesce(max(seq), 0) from counted) group by tbl`)
	if err == nil {
		var table string
		var c demo.Counts
		_, err = pgx.ForEachRow(rows, []any{&table, &c.Inserted, &c.Updated, &c.Deleted}, func() error {
			got[table] = c
			return nil
		})
	}
	require.NoError(t, err)
	require.Equal(t, got, stats.Tables)
	_, err = conn.Exec(t.Context(), "insert into counted select max(seq) from demo_audit.changes")
	require.NoError(t, err)
}

func requireSoundHistory(t *testing.T, conn *pgx.Conn, table string, key, columns []string) map[string]string {
	t.Helper()
	open := map[string]string{}
	ends := map[string]int64{}
	versions := 0
	for v, err := range demo.History(t.Context(), conn, table, key, columns, columns) {
		require.NoError(t, err)
		versions++
		id := printed(v.Key)
		end, seen := ends[id]
		require.False(t, seen && v.From < end, "%s %s: versions overlap", table, id)
		require.LessOrEqual(t, v.From, v.To)
		require.Equal(t, v.To == demo.Open, v.Current)
		ends[id] = v.To
		if v.Current {
			require.NotContains(t, open, id, "%s %s: two open versions", table, id)
			open[id] = printed(v.Values)
		}
	}
	if table != "refunds" {
		require.Greater(t, versions, len(open), "%s: no row ever changed", table)
	}
	return open
}

func liveRows(t *testing.T, conn *pgx.Conn, table string, columns []string) map[string]string {
	t.Helper()
	var texts []string
	for _, c := range columns {
		texts = append(texts, strings.ReplaceAll("case when num_nulls(#) = 0 then format('%s', #) end", "#", c))
	}
	_, err := conn.Exec(t.Context(), "set timezone = 'UTC'")
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), "select "+strings.Join(texts, ", ")+" from "+table)
	require.NoError(t, err)
	out := map[string]string{}
	for rows.Next() {
		row, err := rows.Values()
		require.NoError(t, err)
		values := make([]demo.Value, len(row))
		for i, v := range row {
			if v == nil {
				values[i].Null = true
			} else {
				values[i].Text = v.(string)
			}
		}
		n := len(keys()[table])
		out[printed(values[:n])] = printed(values) // the key's columns come first in each table
	}
	require.NoError(t, rows.Err())
	return out
}

func columnsOf(t *testing.T, conn *pgx.Conn, table string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 order by attnum", "public."+table)
	require.NoError(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return columns
}

func printed(values []demo.Value) string { return fmt.Sprintf("%+v", values) }

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestTheShopGoesOnWhenSomebodyDropsAColumn(t *testing.T) {
	t.Parallel()
	dsn := localpgtest.Database(t)
	require.NoError(t, demo.Setup(t.Context(), dsn, 100))
	_, err := connect(t, dsn).Exec(t.Context(), "alter table documents drop column title")
	require.NoError(t, err)
	w := demo.NewWorkload(demo.WorkloadConfig{DSN: dsn, Rate: 2000, Seed: 1, MaxHold: 200 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	stats, err := w.Run(ctx)
	require.NoError(t, err)
	require.Positive(t, stats.Tables["orders"].Inserted)
	require.Zero(t, stats.Tables["documents"].Inserted)
}
