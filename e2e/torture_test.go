package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/torture"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// PyIceberg and Spark read bronze, current and history of every torture table, in
// both format versions, and see in each column of each row what the source says in
// its own functions. What they differ in is said here: Spark refuses tables that
// have a time column, and shows a uuid as a string.
func TestPyIcebergAndSparkAgreeWithTheSource(t *testing.T) {
	requireE2E(t)
	pyIceberg, err := readers.NewPyIceberg(t.Context())
	require.NoError(t, err)
	spark, err := readers.NewSpark(t.Context())
	require.NoError(t, err)
	bin := program(t)
	for _, version := range []string{"3", "2"} {
		t.Run("v"+version, func(t *testing.T) {
			run := tortured(t, bin, version)
			tables, err := pyIceberg.Read(t.Context(), run.stand.lake, run.names()...)
			require.NoError(t, err)
			run.requireAgrees(t, "PyIceberg", tables, icebergType, nil)
			if version == "3" {
				run.requireFound(t, pyIceberg)
			}

			tables, err = spark.Read(t.Context(), run.stand.lake, run.names()...)
			require.NoError(t, err)
			run.requireAgrees(t, "Spark", tables, sparkType, func(table string) bool { return strings.Contains(table, "clock") })
		})
	}
}

// run is the torture tables after a run, with what the source says of each row at
// first and at the end.
type run struct {
	stand       *stand
	plan        torture.Plan
	first, last map[string][]torture.Row // by table
}

// tortured makes the torture tables, half of them before the snapshot, and updates
// every row.
func tortured(t *testing.T, bin, version string) *run {
	t.Helper()
	r := &run{plan: torture.New(serverOf(t, localpgtest.Database(t)), torture.Limits{})}
	for _, left := range r.plan.Left {
		t.Log("left out: " + left)
	}
	files := map[string]string{}
	for _, table := range r.plan.Tables {
		files["public."+table.Name+".yaml"] = "table: public." + table.Name + "\nprimary_key: [id]\nscd: [1, 2]\n"
	}
	r.stand = newStand(t, bin, "format_version: "+version+"\n", files)
	s := r.stand
	s.exec(torture.Session)
	for _, sql := range r.plan.Setup {
		s.exec(sql)
	}
	each := func(do func(table *torture.Table) []string) {
		for i := range r.plan.Tables {
			s.exec(strings.Join(do(&r.plan.Tables[i]), ";\n"))
		}
	}
	rows := func(from, to int, statement func(row int) string) []string {
		var out []string
		for row := from; row < to; row++ {
			out = append(out, statement(row))
		}
		return out
	}
	each((*torture.Table).Create)
	each(func(table *torture.Table) []string { return rows(0, table.Rows/2, table.Insert) })
	s.start()
	s.landed(len(r.plan.Tables))
	each(func(table *torture.Table) []string { return rows(table.Rows/2, table.Rows, table.Insert) })
	r.first = r.ask(t)
	s.landed(len(r.plan.Tables))
	each(func(table *torture.Table) []string { return rows(0, table.Rows, table.Update) })
	r.last = r.ask(t)
	s.landed(len(r.plan.Tables))
	s.stop()
	return r
}

// ask returns what the source says of each row of each table.
func (r *run) ask(t *testing.T) map[string][]torture.Row {
	t.Helper()
	out := map[string][]torture.Row{}
	for i := range r.plan.Tables {
		table := &r.plan.Tables[i]
		result := r.stand.conn.PgConn().ExecParams(t.Context(), table.Normals(), nil, nil, nil, nil).Read()
		require.NoError(t, result.Err, table.Name)
		require.Len(t, result.Rows, table.Rows)
		for _, cells := range result.Rows {
			row, err := table.Row(cells)
			require.NoError(t, err)
			out[table.Name] = append(out[table.Name], row)
		}
	}
	return out
}

// names are the lake tables of every layer.
func (r *run) names() []string {
	var out []string
	for _, t := range r.plan.Tables {
		out = append(out, "bronze."+t.Name+"_cdc", "silver."+t.Name, "silver."+t.Name+"_history")
	}
	return out
}

// requireAgrees compares what a reader sees of every layer with the source.
func (r *run) requireAgrees(t *testing.T, reader string, tables []readers.Table, typeOf func(lake string) string, refuses func(table string) bool) {
	t.Helper()
	require.Len(t, tables, len(r.plan.Tables)*3)
	compared, read := 0, 0
	for i := range r.plan.Tables {
		table := &r.plan.Tables[i]
		bronze, current, history := tables[3*i], tables[3*i+1], tables[3*i+2]
		if refuses != nil && refuses(table.Name) {
			for _, layer := range tables[3*i : 3*i+3] {
				require.Contains(t, layer.Refused, "time", "%s was expected to refuse %s", reader, layer.Name)
			}
			t.Logf("%s refuses %s, which has columns of the type time: %s", reader, table.Name, current.Refused)
			continue
		}
		for _, layer := range []readers.Table{bronze, current, history} {
			require.Empty(t, layer.Refused, "%s %s", reader, layer.Name)
		}
		for _, c := range table.Columns {
			require.Equal(t, typeOf(c.Lake), current.Types[c.Name], "%s: %s (%s)", reader, c.Name, c.SQL)
			require.Equal(t, typeOf(c.Lake), history.Types[c.Name], "%s: %s (%s)", reader, c.Name, c.SQL)
			require.Equal(t, typeOf(c.Lake), bronze.Types["after."+c.Name], "%s: %s (%s)", reader, c.Name, c.SQL)
		}
		require.NotContains(t, current.Types, "doubled", "a generated column is left out")
		n, differ := table.Compare(r.first[table.Name], r.last[table.Name], torture.Layers{Bronze: bronze.Rows, Current: current.Rows, History: history.Rows})
		require.Empty(t, differ[:min(len(differ), 20)], "%s of %s: %d differences", reader, table.Name, len(differ))
		compared, read = compared+n, read+3
	}
	t.Logf("%s: %d values of %d lake tables, each as the source has it", reader, compared, read)
}

// requireFound asks for every value of the scalar columns with filters: the bounds
// that files carry must hide no row.
func (r *run) requireFound(t *testing.T, reader *readers.PyIceberg) {
	t.Helper()
	var current []string
	for _, table := range r.plan.Tables {
		current = append(current, "silver."+table.Name)
	}
	asked, wrong, err := reader.Find(t.Context(), r.stand.lake, "c", current...)
	require.NoError(t, err)
	require.Empty(t, wrong[:min(len(wrong), 20)], "%d wrong answers", len(wrong))
	t.Logf("PyIceberg: %d filters, each finds the rows that it should", asked)
}

// icebergType names a documented type as PyIceberg does.
func icebergType(lake string) string { return lake }

// sparkType names a documented type as Spark does.
func sparkType(lake string) string {
	if elem, ok := strings.CutPrefix(lake, "list<"); ok {
		return "array<" + sparkType(strings.TrimSuffix(elem, ">")) + ">"
	}
	switch lake {
	case "long":
		return "bigint"
	case "timestamp":
		return "timestamp_ntz"
	case "timestamptz":
		return "timestamp"
	case "uuid":
		return "string"
	}
	return strings.ReplaceAll(lake, ", ", ",")
}
