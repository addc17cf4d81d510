package e2e

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/torture"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// shopLayers are the shop's tables in the lake.
func shopLayers() []string {
	var out []string
	for _, table := range demo.Tables() {
		out = append(out, "bronze."+table+"_cdc")
		if _, ok := shopKeys[table]; ok {
			out = append(out, "silver."+table, "silver."+table+"_history")
		}
	}
	return out
}

// requireShopAgrees has PyIceberg and Spark read every layer of the shop. Both must
// see the same rows; current must have the source's, every column; history must have
// the versions that the oracle folds from the triggers' record; and bronze must have
// each change that was committed, once. It returns the lake's tables by name.
func requireShopAgrees(t *testing.T, s *stand, changes demo.Stats) map[string]readers.Table {
	t.Helper()
	pyIceberg, err := readers.NewPyIceberg(t.Context())
	require.NoError(t, err)
	spark, err := readers.NewSpark(t.Context())
	require.NoError(t, err)
	names := shopLayers()
	tables, err := pyIceberg.Read(t.Context(), s.lake, names...)
	require.NoError(t, err)
	others, err := spark.Read(t.Context(), s.lake, names...)
	require.NoError(t, err)
	require.Len(t, tables, len(names))
	require.Len(t, others, len(names))
	by := map[string]readers.Table{}
	rows := 0
	for i, table := range tables {
		require.Empty(t, table.Refused, table.Name)
		require.Empty(t, others[i].Refused, table.Name)
		requireSameRows(t, "PyIceberg and Spark: "+table.Name, lines(table.Rows), lines(others[i].Rows))
		by[table.Name] = table
		rows += len(table.Rows)
	}
	t.Logf("PyIceberg and Spark see the same %d rows in %d lake tables", rows, len(names))
	for _, table := range demo.Tables() {
		requireEventsOnce(t, by["bronze."+table+"_cdc"], changes.Tables[table])
		key, ok := shopKeys[table]
		if !ok {
			continue
		}
		current, history := by["silver."+table], by["silver."+table+"_history"]
		columns := columnsOf(t, s.conn, table)
		requireSameRows(t, "source and "+current.Name, sourceRows(t, s.conn, table, columns, current.Types), lines(pick(current.Rows, columns)))
		requireHistory(t, s.conn, table, key, columns, history)
	}
	return by
}

// lines are rows as text, sorted.
func lines(rows []map[string]any) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		text, _ := json.Marshal(row) // what came from JSON goes there
		out[i] = string(text)
	}
	slices.Sort(out)
	return out
}

func pick(rows []map[string]any, columns []string) []map[string]any {
	out := make([]map[string]any, len(rows))
	for i, row := range rows {
		out[i] = map[string]any{}
		for _, c := range columns {
			out[i][c] = row[c]
		}
	}
	return out
}

// requireSameRows compares two sorted lists.
func requireSameRows(t *testing.T, what string, a, b []string) {
	t.Helper()
	var onlyA, onlyB []string
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	require.Emptyf(t, slices.Concat(onlyA[:min(len(onlyA), 5)], onlyB[:min(len(onlyB), 5)]),
		"%s: %d rows only the first has, %d only the second", what, len(onlyA), len(onlyB))
}

func columnsOf(t *testing.T, conn *pgx.Conn, table string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "select attname::text from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum", "public."+table)
	require.NoError(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return columns
}

// sourceRows asks the source for a table's rows in the readers' form; types are
// those that a reader sees.
func sourceRows(t *testing.T, conn *pgx.Conn, table string, columns []string, types map[string]string) []string {
	t.Helper()
	var fields []string
	for _, c := range columns {
		form := torture.Column{Name: c, Lake: types[c]}.Normal()
		if strings.HasPrefix(types[c], "list<") {
			form = "(" + form + ")::json"
		}
		fields = append(fields, "'"+c+"', "+form)
	}
	rows, err := conn.Query(t.Context(), "select json_build_object("+strings.Join(fields, ", ")+")::text from public."+table)
	require.NoError(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	out := make([]map[string]any, len(texts))
	for i, text := range texts {
		require.NoError(t, json.Unmarshal([]byte(text), &out[i]))
	}
	return lines(out)
}

// requireEventsOnce counts bronze's changes, reads not among them, and looks for two
// at one place of the log.
func requireEventsOnce(t *testing.T, bronze readers.Table, want demo.Counts) {
	t.Helper()
	var got demo.Counts
	places := map[string]int{}
	for _, row := range bronze.Rows {
		switch row["op"] {
		case "c":
			got.Inserted++
		case "u":
			got.Updated++
		case "d":
			got.Deleted++
		}
		places[fmt.Sprint(row["_generation"], row["_commit_lsn"], row["_lsn"], row["_ordinal"])]++
	}
	// An update that moves a row to another key is a delete and a create.
	moved := got.Inserted - want.Inserted
	require.Equal(t, demo.Counts{Inserted: want.Inserted + moved, Updated: want.Updated - moved, Deleted: want.Deleted + moved}, got, bronze.Name)
	for place, n := range places {
		require.Equal(t, 1, n, "%s: %s", bronze.Name, place)
	}
}

// requireHistory holds a table's versions, as PyIceberg sees them, against the
// oracle's.
func requireHistory(t *testing.T, conn *pgx.Conn, table string, key, columns []string, history readers.Table) {
	t.Helper()
	lake := func(yield func(demo.Interval, error) bool) {
		for _, row := range history.Rows {
			v, err := interval(row, key, columns, history.Types)
			if !yield(v, err) {
				return
			}
		}
	}
	n := 0
	oracle := func(yield func(demo.Interval, error) bool) {
		for v, err := range demo.History(t.Context(), conn, table, key, columns, columns) {
			n++
			if !yield(v, err) {
				return
			}
		}
	}
	differences, err := demo.Comparison{Columns: columns}.Compare(iter.Seq2[demo.Interval, error](lake), oracle)
	require.NoError(t, err)
	require.Empty(t, differences[:min(len(differences), 5)], "%s: %d versions differ from the oracle's %d", history.Name, len(differences), n)
	t.Logf("%s: %d versions, as the oracle has them", history.Name, n)
}

func interval(row map[string]any, key, columns []string, types map[string]string) (demo.Interval, error) {
	v := demo.Interval{Current: row["is_current"] == "true", FromSnapshot: row["_op"] == "r"}
	var err error
	if v.From, err = strconv.ParseInt(fmt.Sprint(row["valid_from"]), 10, 64); err != nil {
		return v, err
	}
	if v.To, err = strconv.ParseInt(fmt.Sprint(row["valid_to"]), 10, 64); err != nil {
		return v, err
	}
	unknown, _ := row["_unavailable_columns"].([]any)
	for _, c := range columns {
		value := demo.Value{Null: row[c] == nil, Unknown: slices.Contains(unknown, any(c))}
		if !value.Null {
			if value.Text, err = postgresText(row[c], types[c]); err != nil {
				return v, fmt.Errorf("%s: %w", c, err)
			}
		}
		v.Values = append(v.Values, value)
	}
	for _, c := range key {
		v.Key = append(v.Key, v.Values[slices.Index(columns, c)])
	}
	return v, nil
}

// postgresText is a value in the readers' form as Postgres prints it, for the types
// that the shop has.
func postgresText(value any, lake string) (string, error) {
	if elements, ok := value.([]any); ok {
		return arrayText(elements), nil
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("a value of type %T", value)
	}
	switch lake {
	case "boolean":
		return text[:1], nil
	case "date":
		days, err := strconv.Atoi(text)
		return time.Unix(0, 0).UTC().AddDate(0, 0, days).Format(time.DateOnly), err
	case "timestamptz":
		micros, err := strconv.ParseInt(text, 10, 64)
		return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.999999") + "+00", err
	}
	return text, nil
}

func arrayText(elements []any) string {
	words := make([]string, len(elements))
	for i, e := range elements {
		if e == nil {
			words[i] = "NULL"
			continue
		}
		words[i] = fmt.Sprint(e)
		if words[i] == "" || strings.ContainsAny(words[i], `{}," \`) || strings.EqualFold(words[i], "null") {
			words[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(words[i]) + `"`
		}
	}
	return "{" + strings.Join(words, ",") + "}"
}
