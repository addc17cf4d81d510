package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// ScanOptions say what scan reads.
type ScanOptions struct {
	Table    string
	Columns  []string
	Where    string
	Limit    int64 // 0: all
	Snapshot int64 // 0: the newest
	Lake     LakeFlags
}

func newScanCommand(app *App) *cobra.Command {
	var opts ScanOptions
	cmd := &cobra.Command{
		Use:   "scan LAKE_TABLE",
		Short: "Read rows of a lake table, of any layer",
		Long: `Read rows of a lake table without another engine. Rows come in no particular order.

The fields of a struct are columns of their own: after.status. Values are printed as
Postgres prints them.

--where takes comparisons joined by AND: =, !=, <, <=, >, >=, IS NULL, IS NOT NULL.
Texts, dates and times stand in single quotes, names with odd characters in double
quotes.`,
		Example: `  lakeweir scan silver.orders --limit 20
  lakeweir scan silver.orders --columns order_id,status --where "status = 'paid' and amount > 100"
  lakeweir scan silver.orders_history --where "order_id = 17 and is_current = true" -o json
  lakeweir scan bronze.orders_cdc --columns op,pk,_source_ts --where "op = 'd'" -o csv`,
		Args: wantArgs("LAKE_TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Table = args[0]
			return runScan(cmd.Context(), app, opts)
		},
	}
	cmd.Flags().StringSliceVar(&opts.Columns, "columns", nil, "columns to read, joined by commas; default all")
	cmd.Flags().StringVar(&opts.Where, "where", "", "conditions that rows must meet")
	cmd.Flags().Int64Var(&opts.Limit, "limit", 100, "read at most so many rows; 0 reads all")
	cmd.Flags().Int64Var(&opts.Snapshot, "snapshot", 0, "read this Iceberg snapshot; default the newest")
	app.lakeFlags(cmd, &opts.Lake)
	app.outputFlag(cmd, "table", "json", "csv")
	return cmd
}

func runScan(ctx context.Context, app *App, opts ScanOptions) error {
	if opts.Limit < 0 {
		return catalog.Invalidf(catalog.CodeUsage, "--limit", "give 0 for all rows", "%d is less than none", opts.Limit)
	}
	scan := lake.ScanOptions{Columns: opts.Columns, Limit: opts.Limit}
	if opts.Where != "" {
		var err error
		if scan.Where, err = lake.ParseWhere(opts.Where); err != nil {
			return err
		}
	}
	config, err := opts.Lake.config(app)
	if err != nil {
		return err
	}
	l, err := lake.Open(ctx, config, app.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	view, err := findView(ctx, l, opts)
	if err != nil {
		return err
	}
	schema, rows, err := view.Scan(ctx, scan)
	if err != nil {
		return nearColumn(err, view.Columns(), scan)
	}
	out := bufio.NewWriter(app.Stdout)
	switch app.Output {
	case "json":
		err = writeJSONRows(out, schema, rows)
	case "csv":
		err = writeCSVRows(out, schema, rows)
	default:
		err = writeTableRows(out, schema, rows, opts.Limit)
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return err
}

// findView opens the table. Its name has its namespace's parts before it, joined by
// dots, and dots of its own, so each way to cut it is tried.
func findView(ctx context.Context, l *lake.Lake, opts ScanOptions) (*lake.View, error) {
	parts := strings.Split(opts.Table, ".")
	if len(parts) < 2 {
		return nil, catalog.Invalidf(catalog.CodeUsage, "", "write it as silver.orders, silver.orders_history or bronze.orders_cdc", "%q has no namespace", opts.Table)
	}
	var first error
	for cut := len(parts) - 1; cut > 0; cut-- {
		ident := append(append([]string{}, parts[:cut]...), strings.Join(parts[cut:], "."))
		view, err := l.View(ctx, ident, opts.Snapshot)
		if err == nil {
			return view, nil
		}
		if first == nil {
			first = err
		}
		if e := catalog.Public(err); e.Code != catalog.CodeLakeNoTable {
			return nil, err
		}
	}
	return nil, nearTable(ctx, l, opts, first)
}

// nearTable adds the table that was probably meant to an error that says that there is
// none of the name.
func nearTable(ctx context.Context, l *lake.Lake, opts ScanOptions, err error) error {
	if opts.Snapshot != 0 {
		return err // there may be the table, without the snapshot
	}
	tables, terr := l.Tables(ctx)
	if terr != nil {
		return err // which says more about what was asked
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = strings.Join(t.Ident, ".")
	}
	return didYouMean(err, opts.Table, names)
}

// nearColumn adds the column that was probably meant to an error of a scan that asks
// for a column that is not there.
func nearColumn(err error, columns []catalog.Column, scan lake.ScanOptions) error {
	known := map[string]bool{}
	var names []string
	for _, c := range columns {
		known[c.Name] = true
		names = append(names, c.Name)
		if top, _, ok := strings.Cut(c.Name, "."); ok {
			known[top] = true // perhaps a struct, which --columns may name
		}
	}
	asked := slices.Clone(scan.Columns)
	for _, c := range scan.Where {
		asked = append(asked, c.Column)
	}
	for _, name := range asked {
		if !known[name] {
			return didYouMean(err, name, names)
		}
	}
	return err
}

// didYouMean puts the nearest of names before an error's hint.
func didYouMean(err error, name string, names []string) error {
	e, ok := errors.AsType[*catalog.Error](err)
	near := tableconfig.Nearest(name, names)
	if !ok || near == "" {
		return err
	}
	out := *e
	out.Hint = fmt.Sprintf("did you mean %q? %s", near, e.Hint)
	return &out
}

// cellText is a value as Postgres prints it; false when it is NULL.
func cellText(rows *change.Rows, row, col int) (string, bool) {
	if !rows.HasValue(row, col) {
		return "", false
	}
	t := rows.Schema().Columns[col].Type
	if t.Fixed() {
		return string(typemap.AppendText(nil, t, rows.Fixed(row, col), nil)), true
	}
	return string(typemap.AppendText(nil, t, 0, rows.Bytes(row, col))), true
}

const (
	tableRows  = 1000 // rows whose widths decide those of the table's columns
	tableWidth = 60   // the most of a value that a table shows
)

// writeTableRows prints columns side by side, in stretches of some rows.
func writeTableRows(w io.Writer, schema *catalog.Schema, rows iter.Seq2[*change.Rows, error], limit int64) error {
	head := make([]string, len(schema.Columns))
	for i, c := range schema.Columns {
		head[i] = c.Name
	}
	var lines [][]string
	n := int64(0)
	for part, err := range rows {
		if err != nil {
			return err
		}
		for row := range part.Len() {
			line := make([]string, len(head))
			for col := range head {
				text, ok := cellText(part, row, col)
				if !ok {
					text = "NULL"
				}
				line[col] = oneLine(text)
			}
			lines = append(lines, line)
			n++
			if len(lines) == tableRows {
				if err := writeLines(w, head, lines); err != nil {
					return err
				}
				lines = lines[:0]
			}
		}
	}
	if len(lines) > 0 || n == 0 {
		if err := writeLines(w, head, lines); err != nil {
			return err
		}
	}
	word := " rows"
	if n == 1 {
		word = " row"
	}
	if n == limit && limit > 0 {
		word += ", the limit: --limit 0 reads all"
	}
	_, err := fmt.Fprintln(w, "("+strconv.FormatInt(n, 10)+word+")")
	return err
}

// oneLine shortens a value and shows control characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return '␤'
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > tableWidth {
		text = string([]rune(text)[:tableWidth-1]) + "…"
	}
	return text
}

func writeLines(w io.Writer, head []string, lines [][]string) error {
	widths := make([]int, len(head))
	for _, line := range append([][]string{head}, lines...) {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, line := range append([][]string{head}, lines...) {
		var b strings.Builder
		for i, text := range line {
			b.WriteString(text)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func writeCSVRows(w io.Writer, schema *catalog.Schema, rows iter.Seq2[*change.Rows, error]) error {
	out := csv.NewWriter(w)
	line := make([]string, len(schema.Columns))
	for i, c := range schema.Columns {
		line[i] = c.Name
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for part, err := range rows {
		if err != nil {
			return err
		}
		for row := range part.Len() {
			for col := range line {
				line[col], _ = cellText(part, row, col) // NULL is empty
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// writeJSONRows prints one object a line. Numbers and booleans are JSON's own where
// JSON has them exactly; all else is text, NULL is null.
func writeJSONRows(w io.Writer, schema *catalog.Schema, rows iter.Seq2[*change.Rows, error]) error {
	names := make([][]byte, len(schema.Columns))
	for i, c := range schema.Columns {
		name, err := json.Marshal(c.Name)
		if err != nil {
			return err
		}
		names[i] = name
	}
	var line []byte
	for part, err := range rows {
		if err != nil {
			return err
		}
		for row := range part.Len() {
			line = append(line[:0], '{')
			for col, c := range schema.Columns {
				if col > 0 {
					line = append(line, ',')
				}
				line = append(append(line, names[col]...), ':')
				if line, err = appendJSON(line, part, row, col, c.Type); err != nil {
					return err
				}
			}
			if _, err := w.Write(append(line, '}', '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendJSON(dst []byte, rows *change.Rows, row, col int, t catalog.Type) ([]byte, error) {
	text, ok := cellText(rows, row, col)
	switch {
	case !ok:
		return append(dst, "null"...), nil
	case t.Kind == catalog.Bool:
		return strconv.AppendBool(dst, text == "t"), nil
	case t.Kind == catalog.Int32 || t.Kind == catalog.Int64:
		return append(dst, text...), nil
	}
	b, err := json.Marshal(text)
	return append(dst, b...), err
}
