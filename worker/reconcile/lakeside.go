package reconcile

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Lake is where the lake tables of a source are read from.
type Lake interface {
	// View loads the newest snapshot of a layer; it fails with lake.no_table when
	// the lake does not have it.
	View(ctx context.Context, table *catalog.Table, layer catalog.Layer) (View, error)
	// Open is that of pipeline.Lake; only tables that exist are opened.
	Open(ctx context.Context, table *catalog.Table, schema *catalog.Schema) (pipeline.Layers, error)
}

// View is one snapshot of a lake table, read as any engine would read it.
type View interface {
	State() (pipeline.LayerState, error)
	// Columns returns the columns; a field of a struct is "after.status".
	Columns() []catalog.Column
	// Rows yields the named columns of every row, in any order.
	Rows(ctx context.Context, columns []string) iter.Seq2[*change.Rows, error]
}

// Names of the columns that Lakeweir adds to its layers.
const (
	ownDeleted      = "_is_deleted"
	ownUnavailable  = "_unavailable_columns"
	ownGeneration   = "_generation"
	ownCommitLSN    = "_commit_lsn"
	ownOrdinal      = "_ordinal"
	ownLSN          = "_lsn"
	ownUpdatedAt    = "_updated_at"
	ownSourceTS     = "_source_ts"
	ownFromSnapshot = "_from_snapshot"
	ownValidFrom    = "valid_from"
	ownValidTo      = "valid_to"
	ownIsCurrent    = "is_current"
	ownOp           = "_op"
)

// sourceColumns returns the source's columns as the lake has them, from bronze's
// images, with the configured key. Those that the source has dropped come last.
func sourceColumns(bronze View, table *catalog.Table) (*catalog.Schema, error) {
	s := &catalog.Schema{Version: 1}
	for _, c := range bronze.Columns() {
		if name, ok := strings.CutPrefix(c.Name, "after."); ok {
			c.Name, c.Number = name, 0 // the lake's number is none of the source's
			s.Columns = append(s.Columns, c)
		}
	}
	slices.SortStableFunc(s.Columns, func(a, b catalog.Column) int {
		switch {
		case a.Dropped == b.Dropped:
			return 0
		case b.Dropped:
			return -1
		}
		return 1
	})
	for _, name := range table.PrimaryKey {
		i := s.Index(name)
		if i < 0 {
			return nil, catalog.Errorf(catalog.Invalid, catalog.CodeSourceColumn, "correct primary_key in "+table.File,
				"the lake's bronze table of %s has no key column %q", table.Name, name)
		}
		s.Key = append(s.Key, i)
	}
	return s, nil
}

// withoutDropped is a schema of sourceColumns without what the source has dropped: there
// is nothing to compare it with. The indexes of the others stay as they are.
func withoutDropped(s *catalog.Schema) *catalog.Schema {
	out := *s
	out.Columns = slices.DeleteFunc(slices.Clone(s.Columns), func(c catalog.Column) bool { return c.Dropped })
	return &out
}

func columnNames(s *catalog.Schema) []string {
	out := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		out[i] = c.Name
	}
	return out
}

// texter prints rows of the lake as the source would.
type texter struct {
	arena []byte
	ends  []int
	row   rowText
}

// row returns the first n columns of a row as text, until the next call.
func (t *texter) of(rows *change.Rows, row, n int) rowText {
	if t.arena == nil {
		t.arena = make([]byte, 0, 1024)
	}
	t.arena, t.ends, t.row = t.arena[:0], t.ends[:0], t.row[:0]
	columns := rows.Schema().Columns[:n]
	for col := range columns {
		if rows.HasValue(row, col) {
			t.arena = appendCell(t.arena, rows, row, col)
		}
		t.ends = append(t.ends, len(t.arena))
	}
	start := 0
	for col, end := range t.ends {
		if rows.HasValue(row, col) {
			t.row = append(t.row, t.arena[start:end:end])
		} else {
			t.row = append(t.row, nil)
		}
		start = end
	}
	return t.row
}

// appendCell appends the text of a cell that has a value. What it returns is never
// nil, which would be NULL.
func appendCell(dst []byte, rows *change.Rows, row, col int) []byte {
	if dst == nil {
		dst = []byte{}
	}
	typ := rows.Schema().Columns[col].Type
	if typ.Fixed() {
		return typemap.AppendText(dst, typ, rows.Fixed(row, col), nil)
	}
	return typemap.AppendText(dst, typ, 0, rows.Bytes(row, col))
}
