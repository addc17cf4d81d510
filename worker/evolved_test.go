package worker_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// What a real Postgres makes of its rows when columns are added with a default, widened,
// renamed and dropped is what the lake then shows, and bronze folds to it.
func TestAnEvolvedTableIsProvedEqual(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{
		"public.thing.yaml": "table: public.thing\nprimary_key: [id]\nscd: [1, 2]\nsoft_delete: true\n",
	})
	r.exec("CREATE TABLE thing (id int PRIMARY KEY, v text, n int, f float4, d numeric(9,2), a int[], gone text)")
	r.exec("INSERT INTO thing SELECT g, 'seed', g, g / 3.0, g / 7.0, ARRAY[g, NULL], 'g' FROM generate_series(1, 50) g")
	r.start()
	r.landed()
	r.exec("UPDATE thing SET v = 'changed', n = -n WHERE id % 3 = 0")
	r.exec("UPDATE thing SET id = id + 100 WHERE id % 10 = 0")
	r.exec("DELETE FROM thing WHERE id % 7 = 0")
	r.landed()
	r.stop()

	table := r.table("public.thing")
	from, err := r.registry.Schema(t.Context(), r.source.Name, "public.thing")
	require.NoError(t, err)
	r.exec(`ALTER TABLE thing ADD COLUMN level float4 DEFAULT 0.1, ADD COLUMN tags text[] DEFAULT '{a,"b c"}',
		ALTER n TYPE bigint, ALTER f TYPE float8, ALTER d TYPE numeric(20,2), ALTER a TYPE bigint[], DROP COLUMN gone`)
	r.exec("ALTER TABLE thing RENAME v TO w")
	var now time.Time
	var at string
	require.NoError(t, r.conn.QueryRow(t.Context(), "SELECT clock_timestamp(), pg_current_wal_lsn()::text").Scan(&now, &at))
	commit, err := catalog.ParseLSN(at)
	require.NoError(t, err)

	to := *from
	to.Version++
	to.Columns = slices.Clone(from.Columns)
	to.Columns[1] = to.Columns[1].Renamed("w")
	to.Columns[6].Dropped = true
	source := func(name, base string) catalog.SourceType {
		return catalog.SourceType{Name: name, Base: base, Modifier: -1}
	}
	text, long := source("text", "text"), source("bigint", "int8")
	for i, s := range map[int]catalog.SourceType{
		2: long, 3: source("double precision", "float8"), 4: {Name: "numeric(20,2)", Base: "numeric", Modifier: 20<<16 | 2 + 4}, 5: {Name: "bigint[]", Base: "array", Modifier: -1, Elem: &long},
	} {
		to.Columns[i].Source, to.Columns[i].Type = s, typemap.Postgres(s)
	}
	for i, s := range []catalog.SourceType{source("real", "float4"), {Name: "text[]", Base: "array", Modifier: -1, Elem: &text}} {
		to.Columns = append(to.Columns, catalog.Column{Name: []string{"level", "tags"}[i], Number: 8 + i, Source: s, Type: typemap.Postgres(s), Nullable: true})
	}
	l, err := lake.Open(t.Context(), r.lakeCfg, testLogger(t))
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, l.Evolve(t.Context(), r.source, table, from, &to))
	layers, err := l.ForSource(r.source).Open(t.Context(), table, &to)
	require.NoError(t, err)
	st, err := layers.Bronze.State(t.Context())
	require.NoError(t, err)
	for column, value := range map[string]string{"level": "0.1", "tags": `{a,"b c"}`} {
		require.NoError(t, l.Fill(t.Context(), layers, pipeline.Fill{
			Column: column, Value: value, At: catalog.Position{Generation: st.Cursor.Position.Generation, Commit: commit}, CommitTime: now.UnixMicro(),
		}))
	}

	all, err := worker.Compare(t.Context(), worker.CompareConfig{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), Lake: r.lakeCfg, Logger: testLogger(t),
		Options: reconcile.Config{Through: func(context.Context, *catalog.Table) (catalog.LSN, error) { return math.MaxUint64, nil }},
	})
	require.NoError(t, err)
	require.NoError(t, all[0].Err)
	result := all[0].Result
	require.True(t, result.Equal(), result.Text())
	require.True(t, result.Refolded, result.Text())
	require.EqualValues(t, 42, result.SourceRows)
}
