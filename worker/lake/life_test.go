package lake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// life is a random life of the model's table, cut into batches between transactions.
type life struct {
	source *foldtest.Source
	parts  [][]foldtest.Event
}

func newLife(seed int) life {
	return rapid.Custom(func(t *rapid.T) life {
		s := foldtest.NewSource()
		s.Live(t, 14)
		return life{s, foldtest.Cut(t, s.Log, true)}
	}).Example(seed)
}

// Whatever happens to a table, whenever the process starts anew and whether a layer
// is folded from memory or from bronze, Iceberg's own reader sees what the source had.
func TestLayersShowWhatTheSourceHad(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range 6 {
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					t.Parallel()
					for _, soft := range []bool{false, true} {
						dir := t.TempDir()
						liveThrough(t, func() *Lake { return open(t, dir) }, version, seed, soft)
					}
				})
			}
		})
	}
}

func liveThrough(t *testing.T, open func() *Lake, version format, seed int, soft bool) {
	t.Helper()
	table, schema := foldtest.Table(soft), foldtest.NewSchema()
	lf := newLife(seed)
	l := open()
	ls := openLayers(t, l, version, table, schema)
	var at catalog.Cursor
	var time int64
	for i, part := range lf.parts {
		if (i+seed)%4 == 3 { // everything that is only in memory is lost
			require.NoError(t, l.Close())
			l = open()
			ls = openLayers(t, l, version, table, schema)
		}
		b := foldtest.Batch(table, schema, part)
		b.Epoch = epoch
		for _, c := range b.Changes {
			time = max(time, c.CommitTime)
		}
		from := at
		at = b.End(at)
		to := pipeline.LayerState{Cursor: at, CommitTime: time}
		_, err := ls.Bronze.Append(t.Context(), []*change.Batch{b}, to)
		require.NoError(t, err)
		if (i+seed)%3 == 0 {
			b = readBack(t, ls, from.Position, at.Position)
		}
		require.NoError(t, ls.foldCurrent(t.Context(), b, to))
		b = foldtest.Batch(table, schema, part)
		if (i+seed)%3 == 1 {
			b = readBack(t, ls, from.Position, at.Position)
		}
		require.NoError(t, ls.foldHistory(t.Context(), b, to))
	}
	require.Equal(t, lf.source.CurrentText(), currentText(t, l, table), "current")
	require.Equal(t, lf.source.HistoryText(), historyText(t, l, table), "history")
}

// readBack reads a batch from bronze in small pieces and puts them together.
func readBack(t *testing.T, ls *layers, after, through catalog.Position) *change.Batch {
	t.Helper()
	var out *change.Batch
	for b, err := range ls.Bronze.Read(t.Context(), after, through, 3) {
		require.NoError(t, err)
		require.False(t, b.Changes[len(b.Changes)-1].MovedAway(), "a batch ends within a key move")
		if out == nil {
			out = b
			continue
		}
		for _, c := range b.Changes {
			for _, row := range []*int{&c.Before, &c.After, &c.Other} {
				if *row >= 0 {
					*row = out.Rows.CopyRow(b.Rows, *row)
				}
			}
			out.Changes = append(out.Changes, c)
		}
	}
	if out == nil {
		out = &change.Batch{Table: ls.table, Rows: change.NewRows(ls.schema), Epoch: epoch}
	}
	return out
}

// eachRow reads a table as any Iceberg reader would.
func eachRow(tb testing.TB, l *Lake, ident []string, f func(s *catalog.Schema, rows *change.Rows, row int)) {
	tb.Helper()
	v, err := l.View(tb.Context(), ident, 0)
	require.NoError(tb, err)
	s, parts, err := v.Scan(tb.Context(), ScanOptions{})
	require.NoError(tb, err)
	for rows, err := range parts {
		require.NoError(tb, err)
		for row := range rows.Len() {
			markUnavailable(s, rows, row)
			f(s, rows, row)
		}
	}
}

// markUnavailable puts back the marks that the lake keeps in a list.
func markUnavailable(s *catalog.Schema, rows *change.Rows, row int) {
	col := s.Index(colUnavailable)
	if col < 0 || !rows.HasValue(row, col) {
		return
	}
	typemap.EachElem(rows.Bytes(row, col), false, func(_ bool, _ int64, name []byte) {
		if i := s.Index(string(name)); i >= 0 { // bronze's are of its structs
			rows.SetMark(row, i, change.Unavailable)
		}
	})
}

func currentText(tb testing.TB, l *Lake, table *catalog.Table) string {
	tb.Helper()
	var lines []string
	eachRow(tb, l, source(3).LakeName(table.Name, catalog.Current), func(s *catalog.Schema, rows *change.Rows, row int) {
		if rows.Fixed(row, s.Index(colIsDeleted)) == 0 {
			lines = append(lines, foldtest.RowText(change.Ref{Rows: rows, Row: row}))
		}
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func historyText(tb testing.TB, l *Lake, table *catalog.Table) string {
	tb.Helper()
	var lines []string
	eachRow(tb, l, source(3).LakeName(table.Name, catalog.History), func(s *catalog.Schema, rows *change.Rows, row int) {
		from, to := rows.Fixed(row, s.Index(colValidFrom)), rows.Fixed(row, s.Index(colValidTo))
		require.Equal(tb, to == fold.Open, rows.Fixed(row, s.Index(colIsCurrent)) == 1, "is_current says what valid_to says")
		at := stampPosition(rows.Fixed(row, s.Index(colGeneration)), rows.Fixed(row, s.Index(colCommitLSN)), rows.Fixed(row, s.Index(colOrdinal)))
		lines = append(lines, foldtest.VersionText(fold.Version{
			Image: change.Ref{Rows: rows, Row: row}, From: from, To: to, Op: change.Op(rows.Bytes(row, s.Index(colHistoryOp))[0]), Stamp: fold.Stamp{Position: at},
		}))
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
