package worker_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

// tableFile is a table's file, and how it is called, for a name with any character.
func tableFile(n catalog.TableName, key ...string) (name, content string) {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	written := quote(n.Schema) + "." + quote(n.Name)
	table, _ := json.Marshal(written)
	columns, _ := json.Marshal(key)
	return url.PathEscape(written) + ".yaml", fmt.Sprintf("table: %s\nprimary_key: %s\nscd: [1, 2]\n", table, columns)
}

// oddColumns are names that break unquoted SQL, are read as nested fields, or are
// taken for something else somewhere.
var oddColumns = []string{
	"select", "a.b", "with space", "Ünïcode", `a"q`, "new\nline", "tab\t", "🚀", "_", " ", `back\slash`, "'quoted'", "$1", "%s{}", "op", "before",
	"after.id", "x.element", "pk", "NULL", "1", "a/b", "`tick`", "--", "A.b.C", strings.Repeat("é", 31) + "x", "\u200b", "row_number()", "file", "pos",
}

// TestC23NamesWithAnyCharacterStayApartAndWhole is case C23-NAME-CLASH on tables that
// the lake can tell apart, and on names with about every kind of character.
func TestC23NamesWithAnyCharacterStayApartAndWhole(t *testing.T) {
	t.Parallel()
	odd := catalog.TableName{Schema: `we"ird.sch ema`, Name: "new\nline/../тест.🚀"}
	twin1 := catalog.TableName{Schema: "public", Name: "a_table_name_that_uses_all_the_sixty_three_bytes_postgres_allo1"}
	twin2 := catalog.TableName{Schema: "public", Name: "a_table_name_that_uses_all_the_sixty_three_bytes_postgres_allo2"}
	names := map[catalog.TableName]string{
		{Schema: "a", Name: "b_c"}: "id", {Schema: "a_b", Name: "c"}: "id", {Schema: "public", Name: "order"}: "select",
		{Schema: "public", Name: " "}: "id", {Schema: "public", Name: "2"}: "id", twin1: "id", twin2: "id", odd: "select",
	}
	files := map[string]string{}
	for n, key := range names {
		name, content := tableFile(n, key)
		files[name] = content
	}
	r := newRig(t, "", files)
	r.source.Publication = "pub \"of\", 'all'"
	r.exec(`CREATE SCHEMA a; CREATE SCHEMA a_b;
CREATE TABLE a.b_c (id int PRIMARY KEY, v text);
CREATE TABLE a_b.c (id int PRIMARY KEY, w text);
CREATE TABLE public."order" ("select" int PRIMARY KEY, "a.b" text, "with space" text, "Ünïcode" text, "a""q" text);
CREATE TABLE public." " (id int PRIMARY KEY); CREATE TABLE public."2" (id int PRIMARY KEY);
CREATE TABLE public."` + twin1.Name + `" (id int PRIMARY KEY); CREATE TABLE public."` + twin2.Name + `" (id int PRIMARY KEY);
INSERT INTO a.b_c VALUES (1,'left'); INSERT INTO a_b.c VALUES (1,'right');
INSERT INTO public."order" VALUES (1,'dot','sp','ü','quote');
INSERT INTO public." " VALUES (7); INSERT INTO public."2" VALUES (2);
INSERT INTO public."` + twin1.Name + `" VALUES (1); INSERT INTO public."` + twin2.Name + `" VALUES (2)`)
	sanitized := pgx.Identifier{odd.Schema, odd.Name}.Sanitize()
	mood := pgx.Identifier{odd.Schema, "mood\n.🚀"}.Sanitize()
	var columns, values []string
	for i, c := range oddColumns[1:] {
		columns = append(columns, pgx.Identifier{c}.Sanitize()+" text")
		values = append(values, fmt.Sprintf("'value %d'", i))
	}
	r.exec("CREATE SCHEMA " + pgx.Identifier{odd.Schema}.Sanitize())
	r.exec("CREATE TYPE " + mood + " AS ENUM ('lo''w', 'new\nline')")
	r.exec("CREATE TABLE " + sanitized + ` ("select" int PRIMARY KEY, ` + strings.Join(columns, ", ") + ", mood " + mood + ", moods " + mood + "[])")
	row := func(id int) string {
		return fmt.Sprintf("INSERT INTO %s VALUES (%d, %s, 'lo''w', ARRAY['new\nline']::%s[])", sanitized, id, strings.Join(values, ", "), mood)
	}
	r.exec(row(1))
	r.start()
	r.landed()
	r.exec(row(2))
	r.exec("UPDATE " + sanitized + ` SET "a.b" = 'changed', "select" = 3 WHERE "select" = 1`)
	r.exec(`UPDATE public."order" SET "a.b" = 'dot2'; INSERT INTO a.b_c VALUES (2,'l'); DELETE FROM public." "; INSERT INTO public."2" VALUES (3)`)
	r.landed()
	r.requireEqual()
	got, rows := r.rowsOf(odd, catalog.Current)
	require.Subset(t, got, oddColumns)
	require.Len(t, rows, 2)
	_, rows = r.rowsOf(catalog.TableName{Schema: "public", Name: "order"}, catalog.History)
	require.Len(t, rows, 2)
	_, rows = r.rowsOf(catalog.TableName{Schema: "a_b", Name: "c"}, catalog.Current)
	require.Equal(t, "right", rows[0]["w"])

	bin := filepath.Join("..", ".cache", "venv", "bin", "python")
	if exec.Command(bin, "-c", "import pyiceberg.catalog.sql, pyarrow").Run() != nil {
		t.Skip("the rest needs PyIceberg, which the tests of worker/lake install into .cache/venv")
	}
	order := r.pyIceberg(bin, "silver", "order")
	require.Len(t, order, 1)
	require.Equal(t, map[string]any{"select": "1", "a.b": "dot2", "with space": "sp", "Ünïcode": "ü", `a"q`: "quote"}, sourceColumns(order[0]))
	require.Len(t, r.pyIceberg(bin, "bronze", r.source.LakeName(odd, catalog.Bronze)[1]), 4)
	for _, line := range r.pyIceberg(bin, "silver", r.source.LakeName(odd, catalog.Current)[1]) {
		require.Equal(t, "value 5", line["tab\t"])
	}
}

// pyIceberg reads a table by PyIceberg.
func (r *rig) pyIceberg(bin, namespace, table string) []map[string]any {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), bin, filepath.Join("lake", "testdata", "read.py"),
		"sqlite:///"+strings.TrimPrefix(r.lakeCfg.Catalog, "sqlite://"), "lakeweir", r.lakeCfg.Warehouse, namespace, table)
	out, err := cmd.Output()
	require.NoError(r.t, err, "%s", cmd.Stderr)
	var rows []map[string]any
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		row := map[string]any{}
		require.NoError(r.t, dec.Decode(&row))
		rows = append(rows, row)
	}
	return rows
}

func sourceColumns(row map[string]any) map[string]any {
	for _, own := range lake.ReservedColumns() {
		delete(row, own)
	}
	return row
}

// requireEqual compares source and lake, and the layers with each other.
func (r *rig) requireEqual() {
	r.t.Helper()
	outcomes, err := worker.Compare(r.t.Context(), worker.CompareConfig{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey, Lake: r.lakeCfg, Registry: r.registry, Logger: testLogger(r.t),
	})
	require.NoError(r.t, err)
	for _, o := range outcomes {
		require.NoError(r.t, o.Err, o.Table.ID())
		require.True(r.t, o.Result.Equal(), "%s\n%v\n%v", o.Result.Line(), o.Result.Differences, o.Result.ViolationsAre)
		require.Zero(r.t, o.Result.Unsettled, o.Table.ID())
	}
}

// Case C23-NAME-CLASH: where files alone say that two tables would be one in the
// lake, they are refused before anything is started.
func TestC23TablesThatWouldBeOneInTheLakeAreRefusedByTheFiles(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]catalog.TableName{
		"case":          {{Schema: "public", Name: "Events"}, {Schema: "public", Name: "events"}},
		"its history":   {{Schema: "public", Name: "orders"}, {Schema: "public", Name: "orders_history"}},
		"case of ß":     {{Schema: "public", Name: "straße"}, {Schema: "public", Name: "STRASSE"}},
		"dots in names": {{Schema: "a.b", Name: "c"}, {Schema: "a", Name: "b.c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"shop/source.yaml": {Data: []byte("kind: postgres\ncapture: direct\nconnection: ${env:X}\ndefaults: {owner: team}\n")}}
			for _, n := range pair {
				file, content := tableFile(n, "id")
				files["shop/"+file] = &fstest.MapFile{Data: []byte(content)}
			}
			_, problems := tableconfig.Load(files, ".")
			if name == "case of ß" { // upper case makes two letters of it, which no reader's folding does
				require.NoError(t, problems.Err())
				return
			}
			text := problems.Text()
			require.Contains(t, text, string(catalog.CodeConfigCollision))
			for _, n := range pair {
				file, _ := tableFile(n)
				require.True(t, strings.Contains(text, n.String()) || strings.Contains(text, file), text)
			}
		})
	}
}

// The check refuses each column name that the lake's tables have themselves.
func TestColumnsCalledAsOursAreRefused(t *testing.T) {
	t.Parallel()
	name, content := tableFile(catalog.TableName{Schema: "public", Name: "t"}, "id")
	r := newRig(t, "", map[string]string{name: content})
	columns := []string{"id int primary key"}
	for _, c := range lake.ReservedColumns() {
		columns = append(columns, strings.ToUpper(c[:1])+c[1:]+" int")
	}
	r.exec("CREATE TABLE t (" + strings.Join(columns, ", ") + ")")
	findings, err := postgres.Preflight(t.Context(), postgres.Config{Source: r.source, DSN: catalog.Secret(r.dsn)}, r.tables)
	require.NoError(t, err)
	for _, c := range lake.ReservedColumns() {
		require.True(t, slices.ContainsFunc(findings, func(f catalog.Finding) bool {
			return f.Severity == catalog.Blocks && strings.Contains(f.Message, "column "+c+" of")
		}), "%s in %v", c, findings)
	}
}
