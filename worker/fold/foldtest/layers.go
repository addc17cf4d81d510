package foldtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// Layers are current and history in memory: they find and apply what folds say,
// and panic when a fold removes a row that is not there.
type Layers struct {
	current map[change.Place]fold.CurrentRow
	history map[change.Place]fold.Version
	next    int64
}

// NewLayers returns empty layers.
func NewLayers() *Layers {
	return &Layers{current: map[change.Place]fold.CurrentRow{}, history: map[change.Place]fold.Version{}}
}

// FindCurrent returns the current rows of the touched keys, images copied.
func (l *Layers) FindCurrent(t fold.Touched) []fold.CurrentFound {
	var found []fold.CurrentFound
	for _, p := range l.places() {
		r, ok := l.current[p]
		if !ok {
			continue
		}
		key, _ := r.Image.Rows.AppendKey(nil, r.Image.Row)
		i := slices.IndexFunc(t.Keys, func(k []byte) bool { return slices.Equal(k, key) })
		if i < 0 && !t.All {
			continue
		}
		if i >= 0 && t.Image[i] || t.All && t.ImageAll {
			r.Image = copied(r.Image)
		} else {
			r.Image = change.Ref{}
		}
		found = append(found, fold.CurrentFound{Key: key, Place: p, Row: r})
	}
	return found
}

// FindHistory returns the open versions of the touched keys and all of the whole
// ones', images copied.
func (l *Layers) FindHistory(t fold.Touched, whole [][]byte) []fold.VersionFound {
	var found []fold.VersionFound
	has := func(keys [][]byte, key []byte) bool {
		return slices.ContainsFunc(keys, func(k []byte) bool { return slices.Equal(k, key) })
	}
	for _, p := range l.places() {
		v, ok := l.history[p]
		if !ok {
			continue
		}
		key, _ := v.Image.Rows.AppendKey(nil, v.Image.Row)
		if v.To == fold.Open && (t.All || has(t.Keys, key)) || has(whole, key) {
			v.Image = copied(v.Image)
			found = append(found, fold.VersionFound{Key: key, Place: p, Row: v})
		}
	}
	return found
}

func (l *Layers) places() []change.Place {
	var out []change.Place
	for n := range l.next {
		out = append(out, change.Place{Row: n})
	}
	return out
}

// WriteCurrent applies a result.
func (l *Layers) WriteCurrent(r fold.CurrentResult) {
	for _, p := range r.Remove {
		if _, ok := l.current[p]; !ok {
			panic("removed a row that is not there")
		}
		delete(l.current, p)
	}
	for _, w := range r.Write {
		w.Image = copied(w.Image)
		l.current[change.Place{Row: l.next}] = w
		l.next++
	}
}

// WriteHistory applies a result.
func (l *Layers) WriteHistory(r fold.HistoryResult) {
	for _, p := range r.Remove {
		if _, ok := l.history[p]; !ok {
			panic("removed a version that is not there")
		}
		delete(l.history, p)
	}
	for _, w := range r.Write {
		w.Image = copied(w.Image)
		l.history[change.Place{Row: l.next}] = w
		l.next++
	}
}

func copied(r change.Ref) change.Ref {
	rows := change.NewRows(r.Rows.Schema())
	return change.Ref{Rows: rows, Row: rows.CopyRow(r.Rows, r.Row)}
}

// CurrentText returns the live rows, one a line, in order.
func (l *Layers) CurrentText() string {
	var lines []string
	for _, r := range l.current {
		if !r.Deleted {
			lines = append(lines, RowText(r.Image))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// HistoryText returns the versions, one a line, in order.
func (l *Layers) HistoryText() string {
	var lines []string
	for _, v := range l.history {
		lines = append(lines, fmt.Sprintf("%s [%d, %d)", RowText(v.Image), v.From, v.To))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// RowText prints a row of the model's schema.
func RowText(r change.Ref) string {
	body := "null"
	switch {
	case r.Rows.Mark(r.Row, 2) == change.Unavailable:
		body = "unavailable"
	case r.Rows.HasValue(r.Row, 2):
		body = string(r.Rows.Bytes(r.Row, 2))
	}
	return fmt.Sprintf("%d a=%d body=%s c=%d", r.Rows.Fixed(r.Row, 0), r.Rows.Fixed(r.Row, 1), body, r.Rows.Fixed(r.Row, 3))
}

// HistoryProblems returns how the history breaks invariant I10.
func (l *Layers) HistoryProblems() []string {
	byKey := map[string][]fold.Version{}
	for _, v := range l.history {
		key, _ := v.Image.Rows.AppendKey(nil, v.Image.Row)
		byKey[string(key)] = append(byKey[string(key)], v)
	}
	var problems []string
	for _, versions := range byKey {
		open := 0
		for i, v := range versions {
			if v.From > v.To {
				problems = append(problems, "an interval that ends before it begins: "+RowText(v.Image))
			}
			if v.To == fold.Open {
				open++
			}
			for _, w := range versions[i+1:] {
				if v.To > w.From && w.To > v.From {
					problems = append(problems, "intervals of a key overlap: "+RowText(v.Image)+" and "+RowText(w.Image))
				}
			}
		}
		if open > 1 {
			problems = append(problems, "two open versions of a key: "+RowText(versions[0].Image))
		}
	}
	return problems
}
