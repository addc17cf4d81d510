package fold_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// shop is the schema of the model: a key, a tracked number, a large text that
// updates leave out when it did not change, and an untracked number.
var shop = &catalog.Schema{
	Version: 1,
	Columns: []catalog.Column{
		{Name: "id", Type: catalog.Type{Kind: catalog.Int64}},
		{Name: "a", Type: catalog.Type{Kind: catalog.Int64}, Nullable: true},
		{Name: "body", Type: catalog.Type{Kind: catalog.Text}, Nullable: true},
		{Name: "c", Type: catalog.Type{Kind: catalog.Int64}, Nullable: true},
	},
	Key: []int{0},
}

func shopTable(soft bool) *catalog.Table {
	return &catalog.Table{
		Source: "shop", Name: catalog.TableName{Schema: "public", Name: "t"}, PrimaryKey: []string{"id"},
		Current: true, History: true, SoftDelete: soft, TrackExcept: []string{"c"}, ApplyTruncates: true,
	}
}

// text is a large value of one row. It is shared by all versions between which it
// did not change, and known once it was sent or read.
type text struct {
	value string
	known bool
}

// row is one row of the model's source table; it keeps its identity when its key
// moves.
type row struct {
	id      int64
	a, c    int64 // 0 is NULL
	body    *text
	streamd bool // some event of it has been sent
}

type interval struct {
	id, a, c int64
	body     *text
	from, to int64
}

// source is a plain model of a database table and of the log it writes. It knows
// nothing of folds: its history is computed from the table's states.
type source struct {
	rows    map[int64]*row // by key, after the last commit
	seen    map[*row]bool
	history []interval
	open    map[int64]int // index in history by key
	log     []event
	commit  catalog.LSN
	time    int64
	texts   int
	calm    bool // no rows move through occupied keys, no two transactions share a time
}

type event struct {
	op       change.Op
	id       int64
	other    int64 // of a key move, else 0
	a, c     int64
	body     string
	unsent   bool
	position catalog.Position
	time     int64
}

func newSource() *source {
	return &source{rows: map[int64]*row{}, seen: map[*row]bool{}, open: map[int64]int{}, commit: 1000, time: 1_000_000}
}

func (s *source) newText(value string, known bool) *text {
	s.texts++
	return &text{value: fmt.Sprintf("%s-%d", value, s.texts), known: known}
}

// transaction runs random statements and records what the log and the history say
// of them.
func (s *source) transaction(t *rapid.T) {
	s.commit += 8 * catalog.LSN(rapid.IntRange(1, 4).Draw(t, "lsn"))
	least := 0
	if s.calm {
		least = 1
	}
	s.time += int64(rapid.IntRange(least, 3).Draw(t, "clock"))
	before := map[int64]row{}
	for id, r := range s.rows {
		if s.seen[r] {
			before[id] = *r
		}
	}
	ordinal := uint64(0)
	emit := func(op change.Op, r *row, other int64, unsent bool) {
		s.seen[r] = true
		e := event{op: op, id: r.id, other: other, a: r.a, c: r.c, unsent: unsent && op != change.Delete, time: s.time,
			position: catalog.Position{Generation: 1, Commit: s.commit, Ordinal: ordinal}}
		if r.body != nil && !e.unsent {
			e.body = r.body.value
			if op != change.Delete {
				r.body.known = true
			}
		}
		s.log = append(s.log, e)
		ordinal++
	}
	move := func(r *row, to int64) {
		from := r.id
		ordinal += ordinal & 1
		emit(change.Delete, r, to, false)
		r.id = to
		if r.body != nil && !r.body.known {
			// What is read at the new key later says nothing to the versions of the old.
			r.body = &text{value: r.body.value}
		}
		emit(change.Create, r, from, r.body != nil)
	}
	for range rapid.IntRange(1, 6).Draw(t, "statements") {
		ids := sortedKeys(s.rows)
		id := int64(rapid.IntRange(1, 6).Draw(t, "id"))
		r := s.rows[id]
		ordinal += 2
		ordinal &^= 1
		switch kind := rapid.IntRange(0, 19).Draw(t, "kind"); {
		case r == nil && kind < 14:
			r = &row{id: id, a: int64(rapid.IntRange(0, 2).Draw(t, "a")), c: int64(rapid.IntRange(0, 1).Draw(t, "c"))}
			if rapid.Bool().Draw(t, "text") {
				r.body = s.newText("new", false)
			}
			s.rows[id] = r
			emit(change.Create, r, 0, false)
		case r != nil && kind < 9:
			sent := rapid.IntRange(0, 3).Draw(t, "change")
			switch sent {
			case 0:
				r.a = int64(rapid.IntRange(0, 2).Draw(t, "a"))
			case 1:
				r.c = int64(rapid.IntRange(0, 1).Draw(t, "c"))
			case 2:
				r.body = s.newText("changed", false)
			}
			emit(change.Update, r, 0, r.body != nil && sent != 2)
		case r != nil && kind < 13:
			emit(change.Delete, r, 0, false)
			delete(s.rows, id)
		case r != nil && kind < 16:
			to := int64(rapid.IntRange(1, 6).Draw(t, "to"))
			if s.rows[to] == nil {
				delete(s.rows, id)
				move(r, to)
				s.rows[to] = r
			}
		case kind == 16 && len(ids) > 1 && s.allSeen(): // swap, under a deferred constraint
			x, y := s.rows[ids[0]], s.rows[ids[1]]
			move(x, ids[1])
			move(y, ids[0])
			s.rows[ids[0]], s.rows[ids[1]] = y, x
		case kind == 17 && len(ids) > 0 && s.allSeen(): // everything moves up by one, lowest first
			for _, id := range ids {
				move(s.rows[id], id+1)
				ordinal += ordinal & 1
			}
			next := map[int64]*row{}
			for _, id := range ids {
				next[id+1] = s.rows[id]
			}
			s.rows = next
		case kind == 18:
			clear(s.rows)
			s.log = append(s.log, event{op: change.Truncate, time: s.time, position: catalog.Position{Generation: 1, Commit: s.commit, Ordinal: ordinal}})
		}
	}
	s.compare(before, s.time)
}

// allSeen reports whether the lake knows every row. Rows that move through a key
// occupied by a row it does not know yet are only right once that key is read.
func (s *source) allSeen() bool {
	if s.calm {
		return false
	}
	for _, r := range s.rows {
		if !s.seen[r] {
			return false
		}
	}
	return true
}

// read is a chunk: it reads the rows of some keys as they are now.
func (s *source) read(t *rapid.T) {
	s.commit += 8
	s.time++
	before := map[int64]row{}
	for id, r := range s.rows {
		if s.seen[r] {
			before[id] = *r
		}
	}
	low := int64(rapid.IntRange(1, 6).Draw(t, "low"))
	high := int64(rapid.IntRange(1, 7).Draw(t, "high"))
	ordinal := uint64(0)
	for _, id := range sortedKeys(s.rows) {
		if id < low || id > high {
			continue
		}
		r := s.rows[id]
		s.seen[r] = true
		e := event{op: change.Read, id: id, a: r.a, c: r.c, time: s.time, position: catalog.Position{Generation: 1, Commit: s.commit - 1, Ordinal: ordinal}}
		if r.body != nil {
			r.body.known = true
			e.body = r.body.value
		}
		s.log = append(s.log, e)
		ordinal += 2
	}
	s.compare(before, s.time)
}

// compare extends the history by one step, from the state of the seen rows before
// to their state now.
func (s *source) compare(before map[int64]row, at int64) {
	now := map[int64]*row{}
	for id, r := range s.rows {
		if s.seen[r] {
			now[id] = r
		}
	}
	for id := range union(before, now) {
		was, had := before[id]
		is, has := now[id]
		i, open := s.open[id]
		switch {
		case had && has && open && was.a == is.a && was.body == is.body:
			s.history[i].c = is.c
		case had && has:
			s.history[i].to = at
			s.begin(is, at)
		case had:
			s.history[i].to = at
			delete(s.open, id)
		case has:
			s.begin(is, at)
		}
	}
}

func (s *source) begin(r *row, at int64) {
	s.open[r.id] = len(s.history)
	s.history = append(s.history, interval{id: r.id, a: r.a, c: r.c, body: r.body, from: at, to: fold.Open})
}

func sortedKeys(m map[int64]*row) []int64 {
	ids := make([]int64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func union(a map[int64]row, b map[int64]*row) map[int64]bool {
	u := map[int64]bool{}
	for id := range a {
		u[id] = true
	}
	for id := range b {
		u[id] = true
	}
	return u
}

// batch turns events into a batch as a source would hand it over.
func batch(t *catalog.Table, events []event) *change.Batch {
	b := &change.Batch{Table: t, Rows: change.NewRows(shop)}
	image := func(e *event, id int64, keyOnly bool) int {
		r := b.Rows.Add()
		b.Rows.SetFixed(r, 0, id)
		if keyOnly {
			return r
		}
		number := func(col int, v int64) {
			if v == 0 {
				b.Rows.SetMark(r, col, change.Null)
				return
			}
			b.Rows.SetFixed(r, col, v)
		}
		number(1, e.a)
		number(3, e.c)
		switch {
		case e.unsent:
			b.Rows.SetMark(r, 2, change.Unavailable)
		case e.body == "":
			b.Rows.SetMark(r, 2, change.Null)
		default:
			b.Rows.SetBytes(r, 2, []byte(e.body))
		}
		return r
	}
	for i := range events {
		e := &events[i]
		c := change.Change{Op: e.op, Before: -1, After: -1, Other: -1, Position: e.position, LSN: e.position.Commit, CommitTime: e.time}
		if e.op != change.Truncate {
			c.Key = keyOf(e.id)
			if e.op == change.Delete {
				c.Before = image(e, e.id, true)
			} else {
				c.After = image(e, e.id, false)
			}
			if e.other != 0 {
				c.OtherKey = keyOf(e.other)
				c.Other = image(e, e.other, true)
			}
		}
		b.Changes = append(b.Changes, c)
	}
	return b
}

func keyOf(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// layers is a lake in memory that applies what the folds say.
type layers struct {
	table   *catalog.Table
	cursor  catalog.Position
	current map[change.Place]fold.CurrentRow
	history map[change.Place]fold.Version
	next    int64
}

func newLayers(t *catalog.Table) *layers {
	return &layers{table: t, current: map[change.Place]fold.CurrentRow{}, history: map[change.Place]fold.Version{}}
}

// take folds events into both layers, each image read back from a copy so that
// nothing is shared with the batch.
func (l *layers) take(events []event) {
	if len(events) == 0 {
		return
	}
	b := []*change.Batch{batch(l.table, events)}
	touched := fold.TouchedCurrent(l.table, b)
	l.applyCurrent(fold.Current(l.table, l.cursor, b, l.findCurrent(touched)))

	b = []*change.Batch{batch(l.table, events)}
	touched = fold.TouchedHistory(b)
	found := l.findHistory(touched, nil)
	if whole := fold.WholeHistory(l.cursor, b, found); len(whole) > 0 {
		found = l.findHistory(touched, whole)
	}
	l.applyHistory(fold.History(l.table, l.cursor, b, found))
	l.cursor = events[len(events)-1].position
}

func (l *layers) findCurrent(t fold.Touched) []fold.CurrentFound {
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

func (l *layers) findHistory(t fold.Touched, whole [][]byte) []fold.VersionFound {
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

func (l *layers) places() []change.Place {
	var out []change.Place
	for n := range l.next {
		out = append(out, change.Place{Row: n})
	}
	return out
}

func (l *layers) applyCurrent(r fold.CurrentResult) {
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

func (l *layers) applyHistory(r fold.HistoryResult) {
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
	rows := change.NewRows(shop)
	return change.Ref{Rows: rows, Row: rows.CopyRow(r.Rows, r.Row)}
}

// The states as text, one line a row, in order.

func (l *layers) currentText() string {
	var lines []string
	for _, r := range l.current {
		if !r.Deleted {
			lines = append(lines, rowText(r.Image))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (l *layers) historyText() string {
	var lines []string
	for _, v := range l.history {
		lines = append(lines, fmt.Sprintf("%s [%d, %d)", rowText(v.Image), v.From, v.To))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func rowText(r change.Ref) string {
	body := "null"
	switch {
	case r.Rows.Mark(r.Row, 2) == change.Unavailable:
		body = "unavailable"
	case r.Rows.HasValue(r.Row, 2):
		body = string(r.Rows.Bytes(r.Row, 2))
	}
	return fmt.Sprintf("%d a=%d body=%s c=%d", r.Rows.Fixed(r.Row, 0), r.Rows.Fixed(r.Row, 1), body, r.Rows.Fixed(r.Row, 3))
}

func (s *source) currentText() string {
	var lines []string
	for id, r := range s.rows {
		if s.seen[r] {
			lines = append(lines, wantText(id, r.a, r.c, r.body))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s *source) historyText() string {
	var lines []string
	for _, v := range s.history {
		lines = append(lines, fmt.Sprintf("%s [%d, %d)", wantText(v.id, v.a, v.c, v.body), v.from, v.to))
	}
	slices.SortFunc(lines, cmp.Compare)
	return strings.Join(lines, "\n")
}

func wantText(id, a, c int64, body *text) string {
	b := "null"
	switch {
	case body != nil && !body.known:
		b = "unavailable"
	case body != nil:
		b = body.value
	}
	return fmt.Sprintf("%d a=%d body=%s c=%d", id, a, b, c)
}
