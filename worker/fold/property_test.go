package fold_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// run makes a random life of a table: rows that were there before capture began,
// transactions, and reads of chunks between them. In a calm one no row moves
// through a key that another still holds, and no two transactions share a time.
func run(t *rapid.T, calm bool) *source {
	s := newSource()
	s.calm = calm
	for id := range int64(6) {
		if rapid.Bool().Draw(t, "before") {
			r := &row{id: id + 1, a: 1}
			if rapid.Bool().Draw(t, "text") {
				r.body = s.newText("old", false)
			}
			s.rows[r.id] = r
		}
	}
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		if rapid.IntRange(0, 4).Draw(t, "step") == 0 {
			s.read(t)
		} else {
			s.transaction(t)
		}
	}
	return s
}

// cut splits the log anywhere but between the halves of a key move; whole says
// whether only between transactions.
func cut(t *rapid.T, log []event, whole bool) [][]event {
	var parts [][]event
	start := 0
	for i := 1; i < len(log); i++ {
		half := log[i].op == change.Create && log[i].other != 0
		inside := log[i].position.Commit == log[i-1].position.Commit
		if !half && !(whole && inside) && rapid.IntRange(0, 2).Draw(t, "cut") == 0 {
			parts = append(parts, log[start:i])
			start = i
		}
	}
	return append(parts, log[start:])
}

func TestAnySplitBetweenTransactionsFoldsToWhatTheSourceHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := run(t, false)
		l := newLayers(shopTable(rapid.Bool().Draw(t, "soft")))
		for _, part := range cut(t, s.log, true) {
			l.take(part)
		}
		require.Equal(t, s.currentText(), l.currentText(), "current")
		require.Equal(t, s.historyText(), l.historyText(), "history")
		requireSoundHistory(t, l)
	})
}

// Inside a transaction that is split, untracked columns of the version that it
// closes may already show what the first part wrote; all else is exact.
func TestASplitInsideATransactionFoldsToTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := run(t, true)
		l := newLayers(shopTable(rapid.Bool().Draw(t, "soft")))
		for _, part := range cut(t, s.log, false) {
			l.take(part)
		}
		require.Equal(t, s.currentText(), l.currentText(), "current")
		require.Equal(t, withoutUntracked(s.historyText()), withoutUntracked(l.historyText()), "history")
		requireSoundHistory(t, l)
	})
}

var untrackedOfClosed = regexp.MustCompile(`c=\d+ (\[\d+, \d{1,12}\))`)

func withoutUntracked(history string) string {
	lines := strings.Split(untrackedOfClosed.ReplaceAllString(history, "$1"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestReplayingAnyTailChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := run(t, false)
		l := newLayers(shopTable(rapid.Bool().Draw(t, "soft")))
		parts := cut(t, s.log, true)
		for i, part := range parts {
			cursor := l.cursor
			l.take(part)
			// Every part so far comes again, all at once, as after a crash.
			end := l.cursor
			var again []event
			for _, p := range parts[:i+1] {
				again = append(again, p...)
			}
			if len(again) > 0 && end.Compare(cursor) >= 0 {
				l.take(again)
			}
			require.Equal(t, end, l.cursor)
		}
		require.Equal(t, s.currentText(), l.currentText(), "current")
		require.Equal(t, s.historyText(), l.historyText(), "history")
	})
}

func requireSoundHistory(t require.TestingT, l *layers) {
	byKey := map[string][]fold.Version{}
	for _, v := range l.history {
		key, _ := v.Image.Rows.AppendKey(nil, v.Image.Row)
		byKey[string(key)] = append(byKey[string(key)], v)
	}
	for _, versions := range byKey {
		open := 0
		for i, v := range versions {
			require.LessOrEqual(t, v.From, v.To)
			if v.To == fold.Open {
				open++
			}
			for _, w := range versions[i+1:] {
				require.True(t, v.To <= w.From || w.To <= v.From, "I10: intervals of a key overlap")
			}
		}
		require.LessOrEqual(t, open, 1, "I10: two open versions of a key")
	}
}
