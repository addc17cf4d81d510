package fold_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
)

// lake folds parts of a log into layers in memory.
type lake struct {
	*foldtest.Layers
	table  *catalog.Table
	schema *catalog.Schema
	cursor catalog.Position
	newest int64
	taken  []foldtest.Event // with bronze's place in this, each once
	// before is the layers before the transaction that the cursor stands in.
	before       *foldtest.Layers
	beforeCursor catalog.Position
}

func newLake(soft bool) *lake {
	return &lake{Layers: foldtest.NewLayers(), table: foldtest.Table(soft), schema: foldtest.NewSchema()}
}

func (l *lake) batch(events []foldtest.Event) []*change.Batch {
	return []*change.Batch{foldtest.Batch(l.table, l.schema, events)}
}

// take folds events as they come: what goes on with the last transaction by itself.
func (l *lake) take(events []foldtest.Event) {
	n := 0
	for n < len(events) && events[n].Position().Compare(l.cursor) > 0 && fold.Resumes(l.cursor, &l.batch(events[n : n+1])[0].Changes[0]) {
		n++
	}
	if n > 0 {
		l.redo(events[:n])
	}
	events = events[n:]
	for len(events) > 0 {
		n := 0
		for n < len(events) && foldtest.SameTransaction(events[0], events[n]) {
			n++
		}
		l.before, l.beforeCursor = l.Copy(), l.cursor
		l.plain(events[:n])
		events = events[n:]
	}
}

func (l *lake) plain(events []foldtest.Event) {
	b := l.batch(events)
	l.WriteCurrent(fold.Current(l.table, l.cursor, b, l.FindCurrent(fold.TouchedCurrent(l.table, b))))
	b = l.batch(events)
	touched := fold.TouchedHistory(b)
	found := l.FindHistory(touched, nil)
	if whole := fold.WholeHistory(b, found); len(whole) > 0 {
		found = l.FindHistory(touched, whole)
	}
	l.WriteHistory(fold.History(l.table, l.cursor, b, l.returning(b, found)))
	l.passed(events)
}

func (l *lake) returning(b []*change.Batch, found []fold.VersionFound) []fold.VersionFound {
	keys, since := fold.Returning(l.newest, b, found)
	return append(found, l.FindClosed(keys, since)...)
}

func (l *lake) redo(events []foldtest.Event) {
	all := fold.Touched{All: true, ImageAll: true}
	var whole []foldtest.Event
	for _, e := range l.taken {
		if e.Position().Compare(l.beforeCursor) > 0 {
			whole = append(whole, e)
		}
	}
	whole = append(whole, events...)
	b := l.batch(whole)
	l.WriteCurrent(fold.RedoCurrent(l.table, l.CurrentBefore(l.before, l.beforeCursor, all), b))
	b = l.batch(whole)
	before := l.HistoryBefore(l.before, l.beforeCursor, all)
	before.Found = l.returning(b, before.Found)
	l.WriteHistory(fold.RedoHistory(l.table, before, b))
	l.passed(events)
}

func (l *lake) passed(events []foldtest.Event) {
	for _, e := range events {
		if e.Position().Compare(l.cursor) > 0 {
			l.cursor = e.Position()
			l.taken = append(l.taken, e)
			l.newest = max(l.newest, e.Time())
		}
	}
}

func TestAnySplitBetweenTransactionsFoldsToWhatTheSourceHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := foldtest.NewSource()
		s.Live(t, 12)
		l := newLake(rapid.Bool().Draw(t, "soft"))
		for _, part := range foldtest.Cut(t, s.Log, true) {
			l.take(part)
		}
		require.Equal(t, s.CurrentText(), l.CurrentText(), "current")
		require.Equal(t, s.HistoryText(), l.HistoryText(), "history")
		requireSoundHistory(t, l)
	})
}

func TestASplitInsideATransactionFoldsToTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := foldtest.NewSource()
		s.Live(t, 12)
		l := newLake(rapid.Bool().Draw(t, "soft"))
		for _, part := range foldtest.Cut(t, s.Log, false) {
			l.take(part)
		}
		require.Equal(t, s.CurrentText(), l.CurrentText(), "current")
		require.Equal(t, s.HistoryText(), l.HistoryText(), "history")
		requireSoundHistory(t, l)
	})
}

func TestADerivationFoldsToTheSameHoweverItIsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := foldtest.NewSource()
		s.Live(t, 12)
		l := newLake(rapid.Bool().Draw(t, "soft"))
		d := fold.NewDerivation(l.table)
		for _, part := range foldtest.Cut(t, s.Log, false) {
			d.Add(l.batch(part)[0])
			if rapid.IntRange(0, 3).Draw(t, "compact") == 0 {
				d.Compact()
			}
		}
		l.WriteCurrent(fold.RemakeCurrent(fold.AllKeys(), d, nil, false))
		l.WriteHistory(fold.RemakeHistory(fold.AllKeys(), d, nil, false))
		require.Equal(t, s.CurrentText(), l.CurrentText(), "current")
		require.Equal(t, s.HistoryText(), l.HistoryText(), "history")
	})
}

func TestReplayingWhatWasFoldedChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := foldtest.NewSource()
		s.Live(t, 12)
		l := newLake(rapid.Bool().Draw(t, "soft"))
		var taken []foldtest.Event
		for _, part := range foldtest.Cut(t, s.Log, true) {
			l.take(part)
			taken = append(taken, part...)
			l.take(taken) // all of it again, as after a crash
		}
		require.Equal(t, s.CurrentText(), l.CurrentText(), "current")
		require.Equal(t, s.HistoryText(), l.HistoryText(), "history")
	})
}

func requireSoundHistory(t require.TestingT, l *lake) {
	for _, problem := range l.HistoryProblems() {
		require.Fail(t, problem)
	}
}
