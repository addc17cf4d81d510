package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// scanLake makes a lake with three orders, of which two are in current.
func scanLake(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	cfg := lake.Config{Catalog: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: "file://" + filepath.Join(dir, "lake")}
	l, err := lake.Open(t.Context(), cfg, nil)
	require.NoError(t, err)
	defer l.Close()
	kinds := []catalog.Column{
		{Name: "id", Type: catalog.Type{Kind: catalog.Int64}},
		{Name: "amount", Type: catalog.Type{Kind: catalog.Decimal, Precision: 12, Scale: 2}},
		{Name: "wide", Type: catalog.Type{Kind: catalog.Decimal, Precision: 30, Scale: 1}},
		{Name: "placed at", Type: catalog.Type{Kind: catalog.TimestampTZ}},
		{Name: "day", Type: catalog.Type{Kind: catalog.Date}},
		{Name: "paid", Type: catalog.Type{Kind: catalog.Bool}},
		{Name: "ratio", Type: catalog.Type{Kind: catalog.Float64}},
		{Name: "code", Type: catalog.Type{Kind: catalog.UUID}},
		{Name: "tags", Type: catalog.Type{Kind: catalog.List, Elem: &catalog.Type{Kind: catalog.Text}}},
		{Name: "note", Type: catalog.Type{Kind: catalog.Text}},
	}
	schema := &catalog.Schema{Version: 1, Columns: kinds, Key: []int{0}}
	source := &catalog.Source{Name: "shop", Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}}, FormatVersion: 3}
	table := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"id"}, Current: true}
	layers, err := l.ForSource(source).Open(t.Context(), table, schema)
	require.NoError(t, err)
	b := &change.Batch{Table: table, Rows: change.NewRows(schema), Epoch: catalog.Epoch{System: "1", Timeline: 1}}
	texts := [][]string{
		{"1", "10.50", "99999999999999999999999999999.5", "2026-01-31 10:00:00+00", "2026-01-31", "t", "0.5", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{a,\"b c\"}", "it's\ntwo lines"},
		{"2", "-3.00", "0.1", "0044-03-15 00:00:00+00 BC", "0044-03-15 BC", "f", "NaN", "00000000-0000-0000-0000-000000000000", "{}", strings.Repeat("long", 30)},
		{"3", "", "", "", "", "", "", "", "", ""},
	}
	var rows []fold.CurrentRow
	for i, line := range texts {
		row := b.Rows.Add()
		for col, text := range line {
			if text == "" {
				b.Rows.SetMark(row, col, change.Null)
				continue
			}
			fixed, value, err := typemap.Decode(kinds[col].Type, []byte(text), nil)
			require.NoError(t, err)
			if kinds[col].Type.Fixed() {
				b.Rows.SetFixed(row, col, fixed)
			} else {
				b.Rows.SetBytes(row, col, value)
			}
		}
		key, err := b.Rows.AppendKey(nil, row)
		require.NoError(t, err)
		c := change.Change{
			Op: change.Create, Before: -1, After: row, Other: -1, Key: key, LSN: 100, TxID: 7, CommitTime: 1_000_000,
			Position: catalog.Position{Generation: 1, Commit: 100, Ordinal: uint64(2 * i)},
		}
		b.Changes = append(b.Changes, c)
		if i < 2 {
			rows = append(rows, fold.CurrentRow{Image: change.Ref{Rows: b.Rows, Row: row}, Stamp: fold.Stamp{Position: c.Position, LSN: c.LSN, CommitTime: c.CommitTime}})
		}
	}
	to := pipeline.LayerState{Cursor: b.End(catalog.Cursor{}), CommitTime: 1_000_000}
	_, err = layers.Bronze.Append(t.Context(), []*change.Batch{b}, to)
	require.NoError(t, err)
	_, err = layers.Current.Write(t.Context(), fold.CurrentResult{Write: rows}, to)
	require.NoError(t, err)
	return []string{"--catalog", cfg.Catalog, "--warehouse", cfg.Warehouse}
}

// scanCase runs a command line as a person does and returns all that it says.
func scanCase(flags []string, args ...string) (string, int) {
	var out, errs bytes.Buffer
	env := func(string) (string, bool) { return "", false }
	code := run(append(append([]string{"scan"}, args...), flags...), strings.NewReader(""), &out, &errs, env)
	return out.String() + errs.String(), code
}

func TestScanPrintsRowsOfAnyLayer(t *testing.T) {
	t.Parallel()
	flags := scanLake(t)
	cases := [][]string{
		{"silver.orders", "--columns", "id,amount,wide,placed at,day,paid,ratio,code,tags,note"},
		{"silver.orders", "--columns", "id,amount,wide,placed at,day,paid,ratio,tags,note", "-o", "json"},
		{"silver.orders", "--columns", "id,note,tags", "-o", "csv"},
		{"bronze.orders_cdc", "--columns", "op,pk,after.id,after.tags,_commit_lsn,_source_ts"},
		{"bronze.orders_cdc", "--columns", "after.id", "--where", "after.note is null"},
		{"bronze.orders_cdc", "--columns", "after.id", "--where", "after.amount > 1 and op = 'c'"},
		{"silver.orders", "--columns", "id", "--where", "id = 2"},
		{"silver.orders", "--columns", "id", "--where", "id <> 2 AND paid = true and amount >= 10.5"},
		{"silver.orders", "--columns", "id", "--where", "wide > 1"},
		{"silver.orders", "--columns", "id", "--where", `"placed at" < '2026-01-01'`},
		{"silver.orders", "--columns", "id", "--where", "day >= '2026-01-31' and note is not null"},
		{"silver.orders", "--columns", "id", "--where", "code = 'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'"},
		{"silver.orders", "--columns", "id", "--where", "note = 'it''s\ntwo lines'"},
		{"silver.orders", "--columns", "id", "--where", "ratio < 1"},
		{"silver.orders", "--columns", "id", "--where", "tags is not null"},
		{"bronze.orders_cdc", "--columns", "after.id,op", "--where", "after.tags is not null and after.wide > 0.2", "--limit", "5"},
		{"bronze.orders_cdc", "--columns", "after.id", "--where", "after.ratio <= 0.5 and after.note != 'x' and after.day > '2000-01-01'"},
		{"bronze.orders_cdc", "--columns", "after.id", "--where", "_lsn > 5 and _source_ts >= '1970-01-01 00:00:01+00'"},
		{"bronze.orders_cdc", "--columns", "after.id,_ordinal", "--where", "_ordinal = 2"},
		{"silver.orders", "--columns", "id", "--limit", "1"},
		{"bronze.orders_cdc", "--columns", "op", "--limit", "3"},
	}
	compareGolden(t, "scan.golden", flags, cases)
}

func TestScanExplainsMistakes(t *testing.T) {
	t.Parallel()
	flags := scanLake(t)
	cases := [][]string{
		{"orders"},
		{"silver.oders"},
		{"orders.silver"},
		{"nowhere.near"},
		{"silver.orders", "--columns", "id,amout"},
		{"silver.orders", "--snapshot", "17"},
		{"silver.orders", "--limit", "-1"},
		{"silver.orders", "--where", "amout > 5"},
		{"silver.orders", "--where", "amount > five"},
		{"silver.orders", "--where", "amount > "},
		{"silver.orders", "--where", "amount"},
		{"silver.orders", "--where", "amount ~ 5"},
		{"silver.orders", "--where", "id = 1 or id = 2"},
		{"silver.orders", "--where", "note = 'open"},
		{"silver.orders", "--where", "note = NULL"},
		{"silver.orders", "--where", "note is nil"},
		{"silver.orders", "--where", "(id = 1)"},
		{"silver.orders", "--where", "tags = 'a'"},
		{"silver.orders", "--where", `"placed at" > yesterday`},
		{"bronze.orders_cdc", "--where", "_other_pk is null"},
		{"bronze.orders_cdc", "--where", "op = 'd' and _sourcets > '2026-01-31'"},
		{"silver.orders", "--where", "ünïcode = 'x' and amount = x"},
	}
	compareGolden(t, "scan-mistakes.golden", flags, cases)
}

var snapshotID = regexp.MustCompile(`newest snapshot is \d+`)

func compareGolden(t *testing.T, name string, flags []string, cases [][]string) {
	t.Helper()
	var got strings.Builder
	for _, args := range cases {
		text, code := scanCase(flags, args...)
		text = snapshotID.ReplaceAllString(text, "newest snapshot is N")
		got.WriteString("$ lakeweir scan")
		for _, a := range args {
			if strings.ContainsAny(a, " \n'\"<>()") {
				a = "«" + a + "»"
			}
			got.WriteString(" " + a)
		}
		got.WriteString("\n" + text)
		if code != 0 {
			got.WriteString("exit " + string(rune('0'+code)) + "\n")
		}
		got.WriteString("\n")
	}
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got.String()))
}
