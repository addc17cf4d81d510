package foldtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
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

// Copy returns the layers as they are now.
func (l *Layers) Copy() *Layers {
	return &Layers{current: maps.Clone(l.current), history: maps.Clone(l.history), next: l.next}
}

// FindCurrentKeys returns the current rows of the keys, images copied.
func (l *Layers) FindCurrentKeys(keys *fold.KeySet) []fold.CurrentFound {
	all := l.FindCurrent(fold.Touched{All: true, ImageAll: true})
	return slices.DeleteFunc(all, func(f fold.CurrentFound) bool { return !keys.Has(f.Key) })
}

// FindHistoryKeys returns every version of the keys, images copied.
func (l *Layers) FindHistoryKeys(keys *fold.KeySet) []fold.VersionFound {
	var found []fold.VersionFound
	for _, p := range l.places() {
		v, ok := l.history[p]
		if !ok {
			continue
		}
		if key, _ := v.Image.Rows.AppendKey(nil, v.Image.Row); keys.Has(key) {
			v.Image = copied(v.Image)
			found = append(found, fold.VersionFound{Key: key, Place: p, Row: v})
		}
	}
	return found
}

// FindClosed returns when the last closed version of each of the keys ended, when
// that was after a time.
func (l *Layers) FindClosed(keys [][]byte, since int64) []fold.VersionFound {
	var found []fold.VersionFound
	for _, key := range keys {
		last := since
		for _, v := range l.FindHistoryKeys(fold.NewKeySet(key)) {
			if v.Row.To != fold.Open {
				last = max(last, v.Row.To)
			}
		}
		if last > since {
			found = append(found, fold.Closed(key, last))
		}
	}
	return found
}

// CurrentBefore returns what the layer held of the touched keys before, and which of
// their rows are new.
func (l *Layers) CurrentBefore(before *Layers, cursor catalog.Position, t fold.Touched) fold.CurrentBefore {
	out := fold.CurrentBefore{Cursor: cursor, Found: before.FindCurrent(t)}
	had := map[change.Place]bool{}
	for i := range out.Found {
		p := &out.Found[i].Place
		had[*p] = true
		if _, ok := l.current[*p]; !ok {
			p.File = fold.Gone
		}
	}
	for _, f := range l.FindCurrent(t) {
		if !had[f.Place] {
			out.Since = append(out.Since, f.Place)
		}
	}
	return out
}

// HistoryBefore is CurrentBefore for history.
func (l *Layers) HistoryBefore(before *Layers, cursor catalog.Position, t fold.Touched) fold.HistoryBefore {
	out := fold.HistoryBefore{Cursor: cursor, Found: before.FindHistory(t, nil)}
	for i := range out.Found {
		if p := &out.Found[i].Place; l.history[*p].Image.IsZero() {
			p.File = fold.Gone
		}
	}
	keys := fold.NewKeySet(t.Keys...)
	if t.All {
		keys = fold.AllKeys()
	}
	for _, f := range l.FindHistoryKeys(keys) {
		if _, had := before.history[f.Place]; !had {
			out.Since = append(out.Since, f.Place)
		}
	}
	return out
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
		lines = append(lines, VersionText(v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// VersionText prints a version of the model's schema.
func VersionText(v fold.Version) string {
	return fmt.Sprintf("%s [%d, %d) %c %s", RowText(v.Image), v.From, v.To, v.Op, v.Stamp.Position)
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

// Tamper does to some rows what another writer might: takes them away, doubles them,
// or changes when they held.
func (l *Layers) Tamper(t *rapid.T) {
	for _, p := range l.places() {
		r, inCurrent := l.current[p]
		v, inHistory := l.history[p]
		how := rapid.IntRange(0, 5).Draw(t, "tamper")
		switch {
		case how == 0 && inCurrent:
			delete(l.current, p)
		case how == 0 && inHistory:
			delete(l.history, p)
		case how == 1 && inHistory:
			l.history[change.Place{Row: l.next}] = v
			l.next++
		case how == 2 && inHistory:
			v.To = v.From + 1
			l.history[p] = v
		case how == 3 && inCurrent:
			r.Image = copied(r.Image)
			r.Image.Rows.SetFixed(r.Image.Row, 1, 77)
			l.current[p] = r
		}
	}
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
