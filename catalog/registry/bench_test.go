package registry_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// BenchmarkFleetOf400Tables measures what a second of a large fleet costs: the status
// of every table, a batch of every table, and one reading of the page, with the samples
// of an hour behind it.
func BenchmarkFleetOf400Tables(b *testing.B) {
	dsn := localpgtest.Database(b)
	r, err := registry.Open(b.Context(), catalog.Secret(dsn))
	require.NoError(b, err)
	defer r.Close()
	var tables []catalog.Table
	var statuses []registry.TableStatus
	var batches []registry.BatchRecord
	for i := range 400 {
		t := table(fmt.Sprintf("t%03d", i))
		tables = append(tables, t)
		statuses = append(statuses, registry.TableStatus{Table: t.Name.String(), State: catalog.Streaming, BronzeThrough: 9, CurrentThrough: 9, HistoryThrough: 9})
		batches = append(batches, batch(t.Name.String(), "", 100))
	}
	require.NoError(b, r.SyncConfig(b.Context(), []catalog.Source{shop()}, tables))
	conn, err := pgx.Connect(b.Context(), dsn)
	require.NoError(b, err)
	defer func() { _ = conn.Close(b.Context()) }()
	_, err = conn.Exec(b.Context(), `insert into lakeweir.table_samples select to_timestamp(floor(extract(epoch from now()) / 10) * 10) - n * interval '10 seconds', t.id, 1500, 100
		from lakeweir.tables t, generate_series(1, 360) n`)
	require.NoError(b, err)
	_, err = conn.Exec(b.Context(), `vacuum analyze lakeweir.table_samples`)
	require.NoError(b, err)

	b.Run("statuses", func(b *testing.B) {
		for b.Loop() {
			for i := range statuses {
				statuses[i].FreshAt = time.Now().Add(-time.Second)
			}
			require.NoError(b, r.SetTableStatuses(b.Context(), "shop", statuses))
		}
	})
	b.Run("batches", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			for i := range batches {
				batches[i].ID, batches[i].At = strconv.Itoa(n), time.Now()
			}
			require.NoError(b, r.RecordBatches(b.Context(), "shop", batches))
		}
	})
	b.Run("fleet", func(b *testing.B) {
		for b.Loop() {
			f, err := r.Fleet(b.Context())
			require.NoError(b, err)
			require.Len(b, f.Tables, 400)
		}
	})
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			d, err := r.Table(b.Context(), "shop", "public.t200")
			require.NoError(b, err)
			require.GreaterOrEqual(b, len(d.Samples), 300)
		}
	})
}
