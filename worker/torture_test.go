package worker_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/torture"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// Every built-in type and its odd values, as a scalar, an array, a domain and a
// domain over an array, read by the snapshot, inserted by the stream and updated,
// is in each layer what the source prints, or NULL where the documentation says so,
// and then it is counted.
func TestTortureTablesReadAsTheSourcePrintsThem(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3", "2"} {
		t.Run("v"+version, func(t *testing.T) {
			t.Parallel()
			k := newTorture(t, version)
			k.r.start()
			k.r.landed()
			k.insert(1)
			first, firstNormal := k.read(), k.normals()
			k.r.landed()
			k.update()
			last, lastNormal := k.read(), k.normals()
			k.r.landed()
			for i := range k.plan.Tables {
				table := &k.plan.Tables[i]
				v := k.r.state("public." + table.Name)
				require.Equal(t, catalog.Streaming, v.State, "%s: %+v", table.Name, v.Fault)
				k.requireTypes(table)
				k.requireCurrent(table, last[table.Name])
				k.requireHistory(table, first[table.Name], last[table.Name])
				k.requireBronze(table, first[table.Name], last[table.Name])
			}
			for name, result := range k.r.compare(reconcile.Config{}) {
				require.True(t, result.Equal(), result.Text())
				unfit := map[string]int64{}
				for _, row := range last[strings.TrimPrefix(name, "public.")] {
					for _, column := range row.unfit {
						unfit[column]++
					}
				}
				require.Equal(t, unfit, result.Unfit, name)
			}
			k.r.stop() // by then all is counted
			for i := range k.plan.Tables {
				table := &k.plan.Tables[i]
				k.requireCounted(table, first[table.Name], last[table.Name])
			}
			k.requirePyIcebergAgrees(firstNormal, lastNormal)
		})
	}
}

// kit is the torture tables at a source, with a worker of its own.
type kit struct {
	r     *rig
	plan  torture.Plan
	plain *pgx.Conn // prints values under the settings that the worker uses
}

// printed is one row as the source prints it.
type printed struct {
	cells cells    // what has a place in the lake
	unfit []string // the columns of what has not, in order
}

// newTorture makes the tables with the first half of their rows.
func newTorture(t *testing.T, version string) *kit {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), localpgtest.Database(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	plan := torture.New(serverOf(t, conn), torture.Limits{})
	for _, left := range plan.Left {
		t.Log("left out: " + left)
	}
	files := map[string]string{}
	for _, table := range plan.Tables {
		files["public."+table.Name+".yaml"] = "table: public." + table.Name + "\nprimary_key: [id]\nscd: [1, 2]\n"
	}
	k := &kit{r: newRig(t, "format_version: "+version+"\n", files), plan: plan}
	for _, sql := range plan.Setup {
		k.r.exec(sql)
	}
	for i := range plan.Tables {
		for _, sql := range plan.Tables[i].Create() {
			k.r.exec(sql)
		}
	}
	k.insert(0)
	config, err := pgx.ParseConfig(k.r.dsn)
	require.NoError(t, err)
	maps.Copy(config.RuntimeParams, typemap.SessionSettings())
	k.plain, err = pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.plain.Close(t.Context()) })
	return k
}

// insert makes one half of the rows, one transaction a table.
func (k *kit) insert(half int) {
	k.r.t.Helper()
	for i := range k.plan.Tables {
		table := &k.plan.Tables[i]
		var sql []string
		for row := half * table.Rows / 2; row < (half+1)*table.Rows/2; row++ {
			sql = append(sql, table.Insert(row))
		}
		k.script(sql)
	}
}

// update gives every row other values.
func (k *kit) update() {
	k.r.t.Helper()
	for i := range k.plan.Tables {
		table := &k.plan.Tables[i]
		var sql []string
		for row := range table.Rows {
			sql = append(sql, table.Update(row))
		}
		k.script(sql)
	}
}

func (k *kit) script(sql []string) {
	k.r.t.Helper()
	_, err := k.r.conn.PgConn().Exec(k.r.t.Context(), strings.Join(sql, ";\n")).ReadAll()
	if e, ok := err.(*pgconn.PgError); ok && e.Position > 0 { //nolint:errorlint // it is not wrapped
		all := strings.Join(sql, ";\n")
		at := int(e.Position)
		require.NoError(k.r.t, err, "near %s", string([]rune(all)[max(0, at-40):min(at+120, len([]rune(all)))]))
	}
	require.NoError(k.r.t, err)
}

// read asks the source for every row of every table.
func (k *kit) read() map[string]map[string]printed {
	k.r.t.Helper()
	out := map[string]map[string]printed{}
	for i := range k.plan.Tables {
		table := &k.plan.Tables[i]
		texts, unfits := k.ask(table.Texts()), k.ask(table.Unfits())
		require.Len(k.r.t, texts, table.Rows)
		rows := map[string]printed{}
		for n, row := range texts {
			p := printed{cells: cells{"id": string(row[0])}}
			for col, c := range table.Columns {
				switch text := row[col+1]; {
				case string(unfits[n][col+1]) == "t":
					p.unfit = append(p.unfit, c.Name)
				case text != nil:
					p.cells[c.Name] = string(text)
				}
			}
			rows[string(row[0])] = p
		}
		out[table.Name] = rows
	}
	return out
}

// ask returns the rows of a query as the server's output functions print them.
func (k *kit) ask(sql string) [][][]byte {
	k.r.t.Helper()
	result := k.plain.PgConn().ExecParams(k.r.t.Context(), sql, nil, nil, nil, nil).Read()
	require.NoError(k.r.t, result.Err, sql)
	return result.Rows
}

// requireTypes checks the column types that are documented, and that the generated
// column is not there.
func (k *kit) requireTypes(table *torture.Table) {
	k.r.t.Helper()
	want := map[string]string{"id": "int"}
	for _, c := range table.Columns {
		want[c.Name] = c.Lake
	}
	l, err := lake.Open(k.r.t.Context(), k.r.lakeCfg, testLogger(k.r.t))
	require.NoError(k.r.t, err)
	defer l.Close()
	for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
		v, err := l.View(k.r.t.Context(), k.r.source.LakeName(catalog.ParseTableName("public."+table.Name), layer), 0)
		require.NoError(k.r.t, err)
		got := map[string]string{}
		for _, c := range v.Columns() {
			name, isAfter := strings.CutPrefix(c.Name, "after.")
			if isAfter || layer != catalog.Bronze && !strings.HasPrefix(c.Name, "_") && !strings.HasPrefix(c.Name, "valid_") && c.Name != "is_current" {
				got[name] = c.Type.String()
			}
		}
		require.Empty(k.r.t, cmp.Diff(want, got), "%s of %s", layer, table.Name)
	}
}

// sourceCells are the columns of a row of the lake that are the source's.
func sourceCells(table *torture.Table, row cells, prefix string) cells {
	out := cells{}
	if v, ok := row[prefix+"id"]; ok {
		out["id"] = v
	}
	for _, c := range table.Columns {
		if v, ok := row[prefix+c.Name]; ok {
			out[c.Name] = v
		}
	}
	return out
}

func (k *kit) requireCurrent(table *torture.Table, want map[string]printed) {
	k.r.t.Helper()
	_, rows := k.r.rows("public."+table.Name, catalog.Current)
	require.Len(k.r.t, rows, len(want))
	for _, row := range rows {
		require.Empty(k.r.t, cmp.Diff(want[row["id"]].cells, sourceCells(table, row, "")), "current of %s id=%s", table.Name, row["id"])
	}
}

// requireHistory checks both versions of each row; a row that shows the same before
// and after, NULL for values of which neither has a place, has one.
func (k *kit) requireHistory(table *torture.Table, first, last map[string]printed) {
	k.r.t.Helper()
	_, rows := k.r.rows("public."+table.Name, catalog.History)
	versions := 0
	for id := range last {
		if versions++; !maps.Equal(first[id].cells, last[id].cells) {
			versions++
		}
	}
	require.Len(k.r.t, rows, versions, "history of %s", table.Name)
	for _, row := range rows {
		want := first[row["id"]]
		if row["is_current"] == "t" {
			want = last[row["id"]]
		}
		require.Empty(k.r.t, cmp.Diff(want.cells, sourceCells(table, row, "")), "history of %s id=%s", table.Name, row["id"])
	}
}

func (k *kit) requireBronze(table *torture.Table, first, last map[string]printed) {
	k.r.t.Helper()
	_, rows := k.r.rows("public."+table.Name, catalog.Bronze)
	require.Len(k.r.t, rows, len(first)+len(last))
	ops := map[string]int{}
	for _, row := range rows {
		id, op := row["pk.id"], row["op"]
		ops[op]++
		want := first[id]
		if op == "u" {
			want = last[id]
		}
		require.Empty(k.r.t, cmp.Diff(want.cells, sourceCells(table, row, "after.")), "bronze of %s id=%s %s", table.Name, id, op)
		named := ""
		if want.unfit != nil {
			named = "{" + strings.Join(want.unfit, ",") + "}"
		}
		require.Equal(k.r.t, named, row["_unfit_columns"], "bronze of %s id=%s %s", table.Name, id, op)
		if op == "u" && table.Full {
			require.Empty(k.r.t, cmp.Diff(first[id].cells, sourceCells(table, row, "before.")), "bronze's before of %s id=%s", table.Name, id)
		}
	}
	require.Equal(k.r.t, map[string]int{"r": table.Rows / 2, "c": table.Rows / 2, "u": table.Rows}, ops)
}

// requireCounted checks that the registry has counted every value that is NULL for
// want of a place, by column; those of before images count as well.
func (k *kit) requireCounted(table *torture.Table, first, last map[string]printed) {
	k.r.t.Helper()
	want := map[string]int{}
	for _, step := range []struct {
		rows  map[string]printed
		times int
	}{{first, 1 + map[bool]int{true: 1}[table.Full]}, {last, 1}} {
		for _, row := range step.rows {
			for _, c := range row.unfit {
				want[c] += step.times
			}
		}
	}
	require.Empty(k.r.t, cmp.Diff(want, k.r.unfits("public."+table.Name)), table.Name)
}

// normals asks the source for every row of every table in the form that a reader's
// values are brought to.
func (k *kit) normals() map[string][]torture.Row {
	k.r.t.Helper()
	out := map[string][]torture.Row{}
	for i := range k.plan.Tables {
		table := &k.plan.Tables[i]
		for _, cells := range k.ask(table.Normals()) {
			row, err := table.Row(cells)
			require.NoError(k.r.t, err)
			out[table.Name] = append(out[table.Name], row)
		}
	}
	return out
}

// requirePyIcebergAgrees reads every layer by a reader that shares nothing with the
// worker and compares with what the source says in its own functions.
func (k *kit) requirePyIcebergAgrees(first, last map[string][]torture.Row) {
	k.r.t.Helper()
	reader, err := readers.NewPyIceberg(k.r.t.Context())
	if err != nil && os.Getenv("CI") == "" && os.Getenv("LAKEWEIR_REQUIRE") == "" {
		k.r.t.Skipf("PyIceberg is not to be had: %v", err)
	}
	require.NoError(k.r.t, err)
	var names []string
	for _, t := range k.plan.Tables {
		names = append(names, "bronze."+t.Name+"_cdc", "silver."+t.Name, "silver."+t.Name+"_history")
	}
	tables, err := reader.Read(k.r.t.Context(), readers.Lake{File: strings.TrimPrefix(k.r.lakeCfg.Catalog, "sqlite://"), Name: "lakeweir"}, names...)
	require.NoError(k.r.t, err)
	compared := 0
	for i := range k.plan.Tables {
		table := &k.plan.Tables[i]
		n, differences := table.Compare(first[table.Name], last[table.Name], torture.Layers{Bronze: tables[3*i].Rows, Current: tables[3*i+1].Rows, History: tables[3*i+2].Rows})
		require.Empty(k.r.t, differences[:min(len(differences), 20)], "%s: %d differences", table.Name, len(differences))
		compared += n
	}
	k.r.t.Logf("PyIceberg: %d values of %d lake tables, each as the source has it", compared, len(tables))
}

// serverOf asks what the server can make.
func serverOf(t testing.TB, conn *pgx.Conn) torture.Server {
	t.Helper()
	var s torture.Server
	var number string
	require.NoError(t, conn.QueryRow(t.Context(), "show server_version_num").Scan(&number))
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	s.Major = n / 10000
	rows, err := conn.Query(t.Context(), "select name::text from pg_available_extensions")
	require.NoError(t, err)
	s.Extensions, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	slices.Sort(s.Extensions)
	return s
}
