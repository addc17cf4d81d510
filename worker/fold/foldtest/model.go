// Package foldtest is a plain model of a source table, for tests: it lives a random
// life, writes the log that a source would hand over, and says what current and
// history must show, computed from the table's states and not by folding.
package foldtest

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

// NewSchema returns the schema of the model: a key, a tracked number, a large text
// that updates leave out when it did not change, and an untracked number.
func NewSchema() *catalog.Schema {
	return &catalog.Schema{
		Version: 1,
		Columns: []catalog.Column{
			{Name: "id", Type: catalog.Type{Kind: catalog.Int64}},
			{Name: "a", Type: catalog.Type{Kind: catalog.Int64}, Nullable: true},
			{Name: "body", Type: catalog.Type{Kind: catalog.Text}, Nullable: true},
			{Name: "c", Type: catalog.Type{Kind: catalog.Int64}, Nullable: true},
		},
		Key: []int{0},
	}
}

// Table returns the model's table with both layers, deleting softly or not.
func Table(soft bool) *catalog.Table {
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
	id   int64
	a, c int64 // 0 is NULL
	body *text
	// What the log says of it last, and the operation that made it what it is within
	// a transaction; 0 when the transaction did not touch it.
	at catalog.Position
	op change.Op
}

type interval struct {
	id, a, c int64
	body     *text
	from, to int64
	at       catalog.Position
	op       change.Op
}

// Source is a plain model of a database table and of the log it writes. It knows
// nothing of folds: its history is computed from the table's states.
type Source struct {
	rows    map[int64]*row // by key, after the last commit
	seen    map[*row]bool
	history []interval
	open    map[int64]int   // index in history by key
	last    map[int64]int64 // when the key's newest version began or ended
	Log     []Event
	commit  catalog.LSN
	time    int64
	texts   int
	// Apart keeps the clock from running backwards, and transactions from sharing a
	// time.
	Apart bool
}

// Event is one entry of the log.
type Event struct {
	op       change.Op
	id       int64
	other    int64 // of a key move, else 0
	a, c     int64
	body     string
	unsent   bool
	position catalog.Position
	time     int64
}

// NewSource returns a model whose table is empty.
func NewSource() *Source {
	return &Source{rows: map[int64]*row{}, seen: map[*row]bool{}, open: map[int64]int{}, last: map[int64]int64{}, commit: 1000, time: 1_000_000}
}

func (s *Source) newText(value string, known bool) *text {
	s.texts++
	return &text{value: fmt.Sprintf("%s-%d", value, s.texts), known: known}
}

// Transaction runs random statements and records what the log and the history say
// of them.
func (s *Source) Transaction(t *rapid.T) {
	s.commit += 8 * catalog.LSN(rapid.IntRange(1, 4).Draw(t, "lsn"))
	least := -6
	if s.Apart {
		least = 1
	}
	s.time += int64(rapid.IntRange(least, 4).Draw(t, "clock"))
	for _, r := range s.rows {
		r.op = 0
	}
	before := map[int64]row{}
	for id, r := range s.rows {
		if s.seen[r] {
			before[id] = *r
		}
	}
	ordinal := uint64(0)
	emit := func(op change.Op, r *row, other int64, unsent bool) {
		s.seen[r] = true
		e := Event{
			op: op, id: r.id, other: other, a: r.a, c: r.c, unsent: unsent && op != change.Delete, time: s.time,
			position: catalog.Position{Generation: 1, Commit: s.commit, Ordinal: ordinal},
		}
		if op != change.Delete {
			r.at = e.position
			if op != change.Update || r.op == 0 {
				r.op = op
			}
		}
		if r.body != nil && !e.unsent {
			e.body = r.body.value
			if op != change.Delete {
				r.body.known = true
			}
		}
		s.Log = append(s.Log, e)
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
			s.Log = append(s.Log, Event{op: change.Truncate, time: s.time, position: catalog.Position{Generation: 1, Commit: s.commit, Ordinal: ordinal}})
		}
	}
	s.compare(before, s.time)
}

// Live makes the table live: rows that were there before capture began, then
// transactions, and reads of chunks between them.
func (s *Source) Live(t *rapid.T, steps int) {
	for id := range int64(6) {
		if rapid.Bool().Draw(t, "before") {
			r := &row{id: id + 1, a: 1}
			if rapid.Bool().Draw(t, "text") {
				r.body = s.newText("old", false)
			}
			s.rows[r.id] = r
		}
	}
	for range rapid.IntRange(1, steps).Draw(t, "steps") {
		if rapid.IntRange(0, 4).Draw(t, "step") == 0 {
			s.Read(t)
		} else {
			s.Transaction(t)
		}
	}
}

// Cut splits the log at random, anywhere but between the halves of a key move;
// with whole, only between transactions.
func Cut(t *rapid.T, log []Event, whole bool) [][]Event {
	var parts [][]Event
	start := 0
	for i := 1; i < len(log); i++ {
		if log[i].FollowsHalf() || whole && SameTransaction(log[i-1], log[i]) {
			continue
		}
		if rapid.IntRange(0, 2).Draw(t, "cut") == 0 {
			parts = append(parts, log[start:i])
			start = i
		}
	}
	return append(parts, log[start:])
}

// FollowsHalf reports whether e is the second half of a key move.
func (e Event) FollowsHalf() bool { return e.op == change.Create && e.other != 0 }

// Position returns where the event stands.
func (e Event) Position() catalog.Position { return e.position }

// Time returns when the event's transaction committed.
func (e Event) Time() int64 { return e.time }

// SameTransaction reports whether two events are of one transaction or chunk.
func SameTransaction(a, b Event) bool { return a.position.Commit == b.position.Commit }

// allSeen reports whether the lake knows every row. Rows that move through a key
// occupied by a row it does not know yet are only right once that key is read.
func (s *Source) allSeen() bool {
	for _, r := range s.rows {
		if !s.seen[r] {
			return false
		}
	}
	return true
}

// Read is a chunk: it reads the rows of some keys as they are now.
func (s *Source) Read(t *rapid.T) {
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
		r.op, r.at = change.Read, catalog.Position{Generation: 1, Commit: s.commit - 1, Ordinal: ordinal}
		e := Event{op: change.Read, id: id, a: r.a, c: r.c, time: s.time, position: catalog.Position{Generation: 1, Commit: s.commit - 1, Ordinal: ordinal}}
		if r.body != nil {
			r.body.known = true
			e.body = r.body.value
		}
		s.Log = append(s.Log, e)
		ordinal += 2
	}
	s.compare(before, s.time)
}

// compare extends the history by one step, from the state of the seen rows before
// to their state now.
func (s *Source) compare(before map[int64]row, at int64) {
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
		at := max(at, s.last[id]) // the key's time does not run backwards
		switch {
		case had && has && open && was.a == is.a && was.body == is.body:
			s.history[i].c = is.c
		case had && has:
			s.history[i].to = at
			s.begin(is, at)
		case had:
			s.history[i].to, s.last[id] = at, at
			delete(s.open, id)
		case has:
			s.begin(is, at)
		}
	}
}

func (s *Source) begin(r *row, at int64) {
	s.open[r.id], s.last[r.id] = len(s.history), at
	s.history = append(s.history, interval{id: r.id, a: r.a, c: r.c, body: r.body, from: at, to: fold.Open, at: r.at, op: r.op})
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

// Batch turns events into a batch as a source would hand it over.
func Batch(t *catalog.Table, schema *catalog.Schema, events []Event) *change.Batch {
	b := &change.Batch{Table: t, Rows: change.NewRows(schema), Whole: true}
	image := func(e *Event, id int64, keyOnly bool) int {
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
		if e.op != change.Read {
			c.TxID = uint64(e.position.Commit)
		}
		if e.op != change.Truncate {
			c.Key = Key(e.id)
			if e.op == change.Delete {
				c.Before = image(e, e.id, true)
			} else {
				c.After = image(e, e.id, false)
			}
			if e.other != 0 {
				c.OtherKey = Key(e.other)
				c.Other = image(e, e.other, true)
			}
		}
		b.Changes = append(b.Changes, c)
	}
	return b
}

// Key returns the encoded key of a row.
func Key(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// CurrentText returns the rows that current must show, one a line, in order.
func (s *Source) CurrentText() string {
	var lines []string
	for id, r := range s.rows {
		if s.seen[r] {
			lines = append(lines, wantText(id, r.a, r.c, r.body))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// HistoryText returns the versions that history must show, one a line, in order.
func (s *Source) HistoryText() string {
	var lines []string
	for _, v := range s.history {
		lines = append(lines, fmt.Sprintf("%s [%d, %d) %c %s", wantText(v.id, v.a, v.c, v.body), v.from, v.to, v.op, v.at))
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
