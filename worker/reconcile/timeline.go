package reconcile

import (
	"cmp"
	"slices"

	"github.com/lakeweir/lakeweir/worker/fold"
)

// timeline checks the history of a table against the rules that hold for every
// key: intervals do not overlap, at most one is open, is_current says which, and
// the open one shows what current shows in the tracked columns.
type timeline struct {
	intervals []interval
	current   map[digest]digest // key → tracked columns, of current's live rows
	compared  bool              // current was given
	wrong     violations
}

type interval struct {
	key      digest
	from, to int64
	tracked  digest
}

func newTimeline() *timeline { return &timeline{current: map[digest]digest{}} }

// addCurrent notes a live row of current.
func (t *timeline) addCurrent(key, tracked digest) { t.current[key] = tracked }

// add notes a row of history.
func (t *timeline) add(key digest, from, to int64, isCurrent bool, tracked digest) {
	switch {
	case isCurrent != (to == fold.Open):
		t.wrong.add(key, "history: is_current is %v and valid_to is %s", isCurrent, instant(to))
	case from > to:
		t.wrong.add(key, "history: an interval ends at %s, before it begins at %s", instant(to), instant(from))
	}
	t.intervals = append(t.intervals, interval{key: key, from: from, to: to, tracked: tracked})
}

// finish returns what is wrong. It compares with current when it was given.
func (t *timeline) finish() violations {
	slices.SortFunc(t.intervals, func(a, b interval) int {
		return cmp.Or(a.key.compare(b.key), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for i := range t.intervals {
		v := &t.intervals[i]
		if i > 0 && t.intervals[i-1].key == v.key && t.intervals[i-1].to > v.from {
			p := &t.intervals[i-1]
			if p.to == fold.Open && v.to == fold.Open {
				t.wrong.add(v.key, "history: two intervals are open, from %s and from %s", instant(p.from), instant(v.from))
			} else {
				t.wrong.add(v.key, "history: an interval from %s to %s overlaps one from %s", instant(p.from), instant(p.to), instant(v.from))
			}
		}
		if v.to != fold.Open || !t.compared {
			continue
		}
		live, ok := t.current[v.key]
		switch {
		case !ok:
			t.wrong.add(v.key, "history: an interval is open, and current has no such row")
		case live != v.tracked:
			t.wrong.add(v.key, "history: the open interval does not show what current shows")
		}
		t.current[v.key] = digest{} // met; a second open one was reported above
	}
	for key, tracked := range t.current {
		if tracked != (digest{}) {
			t.wrong.add(key, "history: current has the row, and no interval is open")
		}
	}
	return t.wrong
}
