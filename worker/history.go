package worker

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// Version is a row of a table's history as text, for comparing it with what
// somebody else says of the table.
type Version struct {
	Values   []*string // as Postgres prints them, in the order of the columns; nil is NULL
	Unknown  []bool    // which of the values are NULL because they were never sent; nil for none
	From, To int64     // microseconds since 1970 UTC
	Current  bool
	Op       change.Op // of the change that opened it
}

// History is a table's history at one snapshot of the lake.
type History struct {
	// Columns are the source's, as the lake has them.
	Columns []string
	former  map[string]int // by names that columns had before and none has now
	// FirstRead and LastRead are when the first and the last of the table's existing
	// rows were read, in microseconds since 1970 UTC; zero when none was.
	FirstRead, LastRead int64

	view *lake.View
}

// OpenHistory looks at the history of a table in the lake.
func OpenHistory(ctx context.Context, l *lake.Lake, source *catalog.Source, table *catalog.Table) (*History, error) {
	bronze, err := l.View(ctx, source.LakeName(table.Name, catalog.Bronze), 0)
	if err != nil {
		return nil, err
	}
	view, err := l.View(ctx, source.LakeName(table.Name, catalog.History), 0)
	if err != nil {
		return nil, err
	}
	h := &History{view: view}
	for _, c := range bronze.Columns() {
		if name, ok := strings.CutPrefix(c.Name, "after."); ok { // the others are Lakeweir's own
			h.Columns = append(h.Columns, name)
		}
	}
	h.former = map[string]int{}
	for _, c := range bronze.Columns() {
		if name, ok := strings.CutPrefix(c.Name, "after."); ok {
			for _, was := range c.Was {
				h.former[was] = slices.Index(h.Columns, name)
			}
		}
	}
	return h, h.readTimes(ctx, bronze)
}

// readTimes finds the times that bronze's reads carry.
func (h *History) readTimes(ctx context.Context, bronze *lake.View) error {
	_, parts, err := bronze.Scan(ctx, lake.ScanOptions{Columns: []string{"op", "_source_ts"}})
	if err != nil {
		return err
	}
	for rows, err := range parts {
		if err != nil {
			return err
		}
		for row := range rows.Len() {
			if string(rows.Bytes(row, 0)) != string(change.Read) {
				continue
			}
			at := rows.Fixed(row, 1)
			if h.FirstRead == 0 {
				h.FirstRead = at
			}
			h.FirstRead, h.LastRead = min(h.FirstRead, at), max(h.LastRead, at)
		}
	}
	return nil
}

// Versions yields every version, in any order. The sequence ends after an error.
func (h *History) Versions(ctx context.Context) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		n := len(h.Columns)
		columns := append(append(make([]string, 0, n+5), h.Columns...), "valid_from", "valid_to", "is_current", "_op", "_unavailable_columns")
		schema, parts, err := h.view.Scan(ctx, lake.ScanOptions{Columns: columns})
		if err != nil {
			yield(Version{}, err)
			return
		}
		for rows, err := range parts {
			if err != nil {
				yield(Version{}, err)
				return
			}
			for row := range rows.Len() {
				v := Version{
					From: rows.Fixed(row, n), To: rows.Fixed(row, n+1), Current: rows.Fixed(row, n+2) == 1,
					Op: change.Op(rows.Bytes(row, n+3)[0]), Values: make([]*string, n),
				}
				for col := range n {
					v.Values[col] = cellText(rows, row, col, schema.Columns[col].Type)
				}
				if rows.HasValue(row, n+4) {
					v.Unknown = h.unknown(rows.Bytes(row, n+4))
				}
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// unknown reads a list of columns.
func (h *History) unknown(list []byte) []bool {
	out := make([]bool, len(h.Columns))
	typemap.EachElem(list, false, func(_ bool, _ int64, name []byte) {
		if i := slices.Index(h.Columns, string(name)); i >= 0 {
			out[i] = true
		} else if i, ok := h.former[string(name)]; ok {
			out[i] = true
		}
	})
	return out
}

func cellText(rows *change.Rows, row, col int, t catalog.Type) *string {
	if !rows.HasValue(row, col) {
		return nil
	}
	var b []byte
	if t.Fixed() {
		b = typemap.AppendText(nil, t, rows.Fixed(row, col), nil)
	} else {
		b = typemap.AppendText(nil, t, 0, rows.Bytes(row, col))
	}
	s := string(b)
	return &s
}
