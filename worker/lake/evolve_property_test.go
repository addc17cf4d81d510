package lake

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// evolvingLake is a lake that follows the model.
type evolvingLake struct {
	t       *testing.T
	m       *evolving
	dir     string
	version format
	open    func() *Lake
	lake    *Lake
	cat     *tricky
	ls      *layers
	schema  *catalog.Schema // that the layers are open under
	bronze  catalog.Cursor
	current catalog.Cursor
	history catalog.Cursor
	log     []string
	broken  bool // the warehouse fails now and then
}

// newEvolvingLake makes a lake in a folder; open opens it again and again.
func newEvolvingLake(t *testing.T, version format, seed int, dir string, open func() *Lake) *evolvingLake {
	t.Helper()
	e := &evolvingLake{t: t, m: newEvolving(seed), dir: dir, version: version, open: open}
	e.schema = e.m.schema()
	e.restart()
	stop, err := laketest.Watch(e.dir, func(op laketest.Op) laketest.Fate {
		if !op.Write || !e.broken {
			return laketest.Fate{}
		}
		switch e.m.r.IntN(30) {
		case 0:
			return laketest.Fate{Err: errBroken}
		case 1:
			return laketest.Fate{Full: true}
		case 2:
			return laketest.Fate{Unsynced: true}
		}
		return laketest.Fate{}
	})
	require.NoError(t, err)
	t.Cleanup(stop)
	e.restart()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(e.log, "\n"))
		}
	})
	return e
}

func (e *evolvingLake) note(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf(format, args...))
}

// restart loses everything that is only in memory.
func (e *evolvingLake) restart() {
	e.note("restart")
	if e.lake != nil {
		require.NoError(e.t, e.lake.Close())
	}
	e.lake = e.open()
	e.cat = &tricky{Catalog: e.lake.cat}
	e.lake.cat = e.cat
	e.ls = openLayers(e.t, e.lake, e.version, e.m.table(), e.schema)
}

// save brings what happened into bronze, and folds it into layers that do not lag, from
// memory or from bronze.
func (e *evolvingLake) save() {
	b := e.m.batch(e.schema)
	if len(b.Changes) == 0 {
		return
	}
	b.Epoch = epoch
	from := e.bronze
	e.bronze = b.End(e.bronze)
	to := pipeline.LayerState{Cursor: e.bronze, CommitTime: e.m.time}
	e.note("save up to %s", e.bronze.Position)
	_, err := e.ls.Bronze.Append(e.t.Context(), []*change.Batch{b}, to)
	require.NoError(e.t, err)
	if e.m.r.IntN(4) > 0 {
		e.fold(&e.current, from, b, e.ls.foldCurrent, "current")
	}
	if e.m.r.IntN(4) > 0 {
		e.fold(&e.history, from, b, e.ls.foldHistory, "history")
	}
}

func (e *evolvingLake) fold(at *catalog.Cursor, from catalog.Cursor, b *change.Batch, into func(context.Context, *change.Batch, pipeline.LayerState) error, what string) {
	for {
		if b == nil || *at != from || e.m.r.IntN(2) == 0 {
			b = readBack(e.t, e.ls, at.Position, e.bronze.Position)
		}
		err := into(e.t.Context(), copyBatch(b), pipeline.LayerState{Cursor: e.bronze, CommitTime: e.m.time})
		if errors.Is(err, pipeline.ErrStale) {
			continue
		}
		require.NoError(e.t, err, what)
		break
	}
	*at = e.bronze
	e.note("%s is at %s", what, at.Position)
}

// copyBatch keeps a batch as it is while a fold fills its cells.
func copyBatch(b *change.Batch) *change.Batch {
	out := *b
	out.Rows = change.NewRows(b.Rows.Schema())
	for row := range b.Rows.Len() {
		out.Rows.CopyRow(b.Rows, row)
	}
	out.Changes = slices.Clone(b.Changes)
	return &out
}

func (e *evolvingLake) catchUp() {
	if e.current != e.bronze {
		e.fold(&e.current, e.bronze, nil, e.ls.foldCurrent, "current")
	}
	if e.history != e.bronze {
		e.fold(&e.history, e.bronze, nil, e.ls.foldHistory, "history")
	}
}

// trouble has the next commits fail, answers get lost and other writers come first.
func (e *evolvingLake) trouble() (calm func()) {
	e.broken = e.m.r.IntN(2) == 0
	first := e.cat.commits
	fate := map[int]int{}
	for n := range 12 {
		fate[first+1+n] = e.m.r.IntN(6)
	}
	e.cat.commit = func(n int) (bool, error) {
		switch fate[n] {
		case 0:
			return false, errBroken
		case 1:
			return true, errBroken
		case 2:
			e.foreign()
		}
		return true, nil
	}
	if e.m.r.IntN(3) == 0 { // the process ends in between
		last := first + 1 + e.m.r.IntN(4)
		was := e.cat.commit
		e.cat.commit = func(n int) (bool, error) {
			if n >= last {
				return n == last && fate[n]%2 == 0, errBroken
			}
			return was(n)
		}
	}
	return func() { e.cat.commit, e.broken = nil, false }
}

// foreign has another program change something about every layer.
func (e *evolvingLake) foreign() {
	broken := e.broken
	e.broken = false // for others it works
	defer func() { e.broken = broken }()
	other := e.open()
	defer other.Close()
	for _, kind := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
		ident := source(e.version).LakeName(e.m.table().Name, kind)
		tbl, err := other.cat.LoadTable(e.t.Context(), ident)
		require.NoError(e.t, err)
		_, _, err = other.cat.CommitTable(e.t.Context(), ident, nil, []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{"touched": tbl.MetadataLocation()})})
		require.NoError(e.t, err)
	}
}

func (e *evolvingLake) evolve() {
	e.save()
	if e.m.r.IntN(3) > 0 {
		e.catchUp()
	}
	from := e.schema
	did := e.m.evolve()
	to := e.m.schema()
	e.note("evolve: %s", did)
	for attempt := 0; ; attempt++ {
		calm := e.trouble()
		if attempt > 8 {
			calm()
		}
		err := e.lake.Evolve(e.t.Context(), source(e.version), e.m.table(), from, to)
		calm()
		if err == nil {
			break
		}
		require.Equal(e.t, catalog.CodeLakeUnavailable, catalog.Public(err).Code, "%v", err)
		e.note("again: %v", err)
		if e.m.r.IntN(2) == 0 { // the worker is started anew, and knows the new schema alone
			require.NoError(e.t, e.lake.Close())
			e.lake = e.open()
			e.cat = &tricky{Catalog: e.lake.cat}
			e.lake.cat, e.ls = e.cat, nil
		}
	}
	e.schema = to
	if e.ls == nil {
		e.ls = openLayers(e.t, e.lake, e.version, e.m.table(), to)
	} else {
		ls, err := e.lake.Reopen(e.t.Context(), source(e.version), e.m.table(), to, e.ls.Layers)
		require.NoError(e.t, err)
		e.ls.Layers, e.ls.schema = ls, to
	}
	e.lake.findMost = 1 + e.m.r.IntN(4)
	for _, f := range e.m.fills() {
		e.fill(f)
	}
	e.lake.findMost = 100_000
}

// fill is done again until it is done, like evolve.
func (e *evolvingLake) fill(f pipeline.Fill) {
	for attempt := 0; ; attempt++ {
		calm := e.trouble()
		if attempt > 8 {
			calm()
		}
		err := e.lake.Fill(e.t.Context(), e.ls.Layers, f)
		calm()
		if err == nil {
			return
		}
		code := catalog.Public(err).Code
		require.Contains(e.t, []catalog.Code{catalog.CodeLakeUnavailable, catalog.CodeLakeConflict}, code, "%v", err)
		e.note("fill again: %v", err)
		if e.m.r.IntN(2) == 0 {
			e.restart()
		}
	}
}

// rollBack sets a layer that is made of bronze back to an older snapshot.
func (e *evolvingLake) rollBack(kind catalog.Layer, at *catalog.Cursor, state func(context.Context) (pipeline.LayerState, error)) {
	ident := source(e.version).LakeName(e.m.table().Name, kind)
	tbl, err := e.lake.cat.LoadTable(e.t.Context(), ident)
	require.NoError(e.t, err)
	s := tbl.CurrentSnapshot()
	for range 1 + e.m.r.IntN(6) {
		if s == nil || s.ParentSnapshotID == nil {
			return
		}
		s = tbl.SnapshotByID(*s.ParentSnapshotID)
	}
	_, _, err = e.lake.cat.CommitTable(e.t.Context(), ident, nil, []table.Update{table.NewSetSnapshotRefUpdate(table.MainBranch, s.SnapshotID, table.BranchRef, 0, 0, 0)})
	require.NoError(e.t, err)
	st, err := state(e.t.Context())
	require.NoError(e.t, err)
	*at = st.Cursor
	e.note("%s was rolled back to %s", kind, at.Position)
}

func (e *evolvingLake) requireSame() {
	e.t.Helper()
	require.Equal(e.t, e.m.currentText(), e.text(catalog.Current), "current")
	require.Equal(e.t, e.m.historyText(), e.text(catalog.History), "history")
	require.Equal(e.t, e.m.bronzeText(), e.text(catalog.Bronze), "bronze")
}

// text prints a layer as another reader sees it.
func (e *evolvingLake) text(kind catalog.Layer) string {
	e.t.Helper()
	return strings.Join(e.lines(kind), "\n")
}

func (e *evolvingLake) lines(kind catalog.Layer) []string {
	e.t.Helper()
	var lines []string
	eachRow(e.t, e.lake, source(e.version).LakeName(e.m.table().Name, kind), func(s *catalog.Schema, rows *change.Rows, row int) {
		if kind == catalog.Bronze {
			at := stampPosition(rows.Fixed(row, s.Index(colGeneration)), rows.Fixed(row, s.Index(colCommitLSN)), rows.Fixed(row, s.Index(colOrdinal)))
			lines = append(lines, fmt.Sprintf("%s %s %s", rows.Bytes(row, s.Index(colOp)), at, shownAfter(s, rows, row)))
			return
		}
		line := shown(s, rows, row)
		if kind == catalog.History {
			line = fmt.Sprintf("%d %d %s", rows.Fixed(row, s.Index(colValidFrom)), rows.Fixed(row, s.Index(colValidTo)), line)
		}
		lines = append(lines, line)
	})
	slices.Sort(lines)
	return lines
}

// evolveRuns is how many random lives TestLayersFollowColumnsThatChange looks at.
func evolveRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("LAKEWEIR_EVOLVE_RUNS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// However a table's columns change between its rows' changes, whatever becomes of the
// commits, from memory or from bronze: the layers show what the table holds, and made
// anew from bronze they show it again.
func TestLayersFollowColumnsThatChange(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range evolveRuns(t) {
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					newEvolvingLake(t, version, seed, dir, func() *Lake { return open(t, dir) }).live()
				})
			}
		})
	}
}

func TestColumnsChangeThroughARESTCatalog(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := httptest.NewServer(laketest.Serve(open(t, dir).cat))
			t.Cleanup(server.Close)
			newEvolvingLake(t, version, 5, dir, func() *Lake { return openConfig(t, Config{Catalog: server.URL}) }).live()
		})
	}
}

// live changes rows and columns, and compares.
func (e *evolvingLake) live() {
	for range 14 {
		switch e.m.r.IntN(5) {
		case 0:
			e.evolve()
		case 4:
			switch e.m.r.IntN(6) {
			case 0:
				e.rollBack(catalog.Current, &e.current, e.ls.Current.State)
			case 1:
				e.rollBack(catalog.History, &e.history, e.ls.History.State)
				e.ls.history = e.history.Position
			}
		case 1:
			if e.m.r.IntN(3) == 0 {
				e.restart()
			}
			fallthrough
		default:
			for range 1 + e.m.r.IntN(3) {
				e.m.live()
			}
			e.save()
		}
	}
	e.save()
	e.catchUp()
	e.requireSame()
	e.remakeAll()
	e.requireSame()
}

// remakeAll makes current and history anew from bronze alone.
func (e *evolvingLake) remakeAll() {
	e.note("make the layers anew")
	other := open(e.t, e.dir)
	defer other.Close()
	for _, kind := range []catalog.Layer{catalog.Current, catalog.History} {
		require.NoError(e.t, other.cat.DropTable(e.t.Context(), source(e.version).LakeName(e.m.table().Name, kind)))
	}
	e.current, e.history = catalog.Cursor{}, catalog.Cursor{}
	e.restart()
	e.catchUp()
}
