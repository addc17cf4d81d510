package fold_test

import (
	"regexp"
	"slices"
	"strings"
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
}

func newLake(soft bool) *lake {
	return &lake{Layers: foldtest.NewLayers(), table: foldtest.Table(soft), schema: foldtest.NewSchema()}
}

func (l *lake) take(events []foldtest.Event) {
	if len(events) == 0 {
		return
	}
	b := []*change.Batch{foldtest.Batch(l.table, l.schema, events)}
	l.WriteCurrent(fold.Current(l.table, l.cursor, b, l.FindCurrent(fold.TouchedCurrent(l.table, b))))

	b = []*change.Batch{foldtest.Batch(l.table, l.schema, events)}
	touched := fold.TouchedHistory(b)
	found := l.FindHistory(touched, nil)
	if whole := fold.WholeHistory(l.cursor, b, found); len(whole) > 0 {
		found = l.FindHistory(touched, whole)
	}
	l.WriteHistory(fold.History(l.table, l.cursor, b, found))
	l.cursor = events[len(events)-1].Position()
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

// Inside a transaction that is split, untracked columns of the version that it
// closes may already show what the first part wrote; all else is exact.
func TestASplitInsideATransactionFoldsToTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := foldtest.NewSource()
		s.Calm = true
		s.Live(t, 12)
		l := newLake(rapid.Bool().Draw(t, "soft"))
		for _, part := range foldtest.Cut(t, s.Log, false) {
			l.take(part)
		}
		require.Equal(t, s.CurrentText(), l.CurrentText(), "current")
		require.Equal(t, withoutUntracked(s.HistoryText()), withoutUntracked(l.HistoryText()), "history")
		requireSoundHistory(t, l)
	})
}

var untrackedOfClosed = regexp.MustCompile(`c=\d+ (\[\d+, \d{1,12}\))`)

func withoutUntracked(history string) string {
	lines := strings.Split(untrackedOfClosed.ReplaceAllString(history, "$1"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
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
