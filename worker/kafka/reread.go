package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Rows are read again by the connector, which is asked by a signal: what it finds comes
// in the table's topic, as incremental reads. A key that it does not find comes as nothing
// at all. So a reading notes what comes of its keys from before the signal on. When the
// connector has told that it is through, and the topic was read up to where it ended then,
// a key has been read, or was changed since the signal (then it is asked for once more),
// or else the source did not have it when its log stood at the signal.

var _ pipeline.Rereader = (*Source)(nil)

// request is a pipeline.Reread that is under way.
type request struct {
	pipeline.Reread

	table *table
}

// reading is one signal, for some keys of a request. It belongs to Next but for scans.
type reading struct {
	*request

	name       string
	columns    []string
	asked      [][]string
	keys       map[string]int // encoded, and which of asked it is
	generation uint32
	noted      map[string]seenKey
	truncated  catalog.LSN // the newest Commit of a truncate

	scans chan scan
	ended *scan // once it has come
}

// seenKey is what has come of a key: the newest Commits at which it was read and changed.
type seenKey struct{ read, changed catalog.LSN }

// scan is how a signal ended.
type scan struct {
	Signalled

	missing []bool // of the keys that were asked for: the source did not have it afterwards
	ends    ends   // of the topics then
	err     error
}

// Reread implements pipeline.Rereader.
func (s *Source) Reread(q pipeline.Reread) {
	s.mu.Lock()
	s.requested = append(s.requested, q)
	s.mu.Unlock()
	s.wake()
}

// readAgain takes requests up, sends the next signal, and draws the conclusions of the
// last one when the table's topic was read that far.
func (s *Source) readAgain(out *pipeline.Slice) error {
	s.mu.Lock()
	for _, q := range s.requested {
		switch t := s.byName[q.Table]; {
		case t == nil || t.heartbeat || s.cfg.Signals == nil: // the next source is asked again
		case q.Masked:
			s.cfg.Logger.Warn("rows whose key is masked cannot be asked for through a connector", "table", t.cfg.ID(), "request", q.ID)
		default:
			s.requests = append(s.requests, &request{Reread: q, table: t})
		}
	}
	s.requested = nil
	s.mu.Unlock()
	if s.reading == nil {
		return s.signal(out)
	}
	r := s.reading
	if r.ended == nil {
		select {
		case o := <-r.scans:
			r.ended = &o
		default:
			return nil
		}
	}
	t := r.table
	switch {
	case t.stopped.Load(): // the next source is asked again
		s.forget(r)
	case r.ended.err != nil:
		s.unread(r, r.ended.err)
	case t.order.Generation != r.generation:
		s.unread(r, errors.New("the table was read anew meanwhile"))
	case t.half == nil && t.readTo(r.ended.ends[t.topic]):
		return s.conclude(r, out)
	}
	return nil
}

// signal begins the next reading.
func (s *Source) signal(out *pipeline.Slice) error {
	if s.cfg.Clock().Before(s.signalAfter) {
		return nil
	}
	for i, q := range s.requests {
		t := q.table
		switch {
		case t.stopped.Load():
			s.requests = append(s.requests[:i:i], s.requests[i+1:]...)
			return nil
		case !t.began || len(t.parts) == 0 || t.snapshot == nil || !t.snapshot.Done:
			continue // the reading of the whole table brings them
		}
		r := &reading{
			request: q, name: "lakeweir-read-" + uuid.NewString(), keys: map[string]int{}, generation: t.order.Generation,
			noted: map[string]seenKey{}, scans: make(chan scan, 1),
		}
		if err := r.choose(); err != nil {
			return err
		}
		s.requests = append(s.requests[:i:i], s.requests[i+1:]...)
		if len(r.asked) == 0 {
			return s.answer(r, nil, out)
		}
		s.reading, t.reading = r, r
		s.signals.Go(func() {
			o, err := s.haveRead(s.running, r)
			o.err = err
			r.scans <- o
			s.wake()
		})
		return nil
	}
	return nil
}

// mostAsked bounds the keys of one signal.
const mostAsked = 500

// choose takes keys of the request; what can be no key of the table is left out of it.
func (r *reading) choose() error {
	t := r.table
	scratch := newBuilder(t.schema)
	for _, col := range t.schema.Key {
		r.columns = append(r.columns, t.schema.Columns[col].Name)
	}
	var left [][]string
	for _, key := range r.Keys {
		if len(r.asked) == mostAsked {
			left = append(left, key)
			continue
		}
		row, ok := keyRow(scratch.rows, key)
		if !ok {
			continue
		}
		encoded, err := scratch.key(row)
		if err != nil {
			continue // no row of the lake has it
		}
		if _, twice := r.keys[string(encoded)]; !twice {
			r.keys[string(encoded)] = len(r.asked)
			r.asked = append(r.asked, key)
		}
	}
	r.Keys = left
	return nil
}

// keyRow adds a row with a key alone; false when its texts are none of the columns' types.
func keyRow(rows *change.Rows, key []string) (int, bool) {
	schema := rows.Schema()
	if len(key) != len(schema.Key) || len(key) == 0 {
		return 0, false
	}
	row := rows.Add()
	for i, col := range schema.Key {
		fixed, bytes, err := typemap.Decode(schema.Columns[col].Type, []byte(key[i]), nil)
		switch {
		case err != nil:
			return row, false
		case schema.Columns[col].Type.Fixed():
			rows.SetFixed(row, col, fixed)
		default:
			rows.SetBytes(row, col, bytes)
		}
	}
	return row, true
}

// note notes what a change says of the keys that are being read.
func (r *reading) note(b *builder, c *change.Change, snapshot debezium.Snapshot) {
	at := c.Position.Commit
	if c.Op == change.Truncate {
		r.truncated = max(r.truncated, at)
		return
	}
	for _, key := range [][]byte{c.Key, c.OtherKey} {
		if _, asked := r.keys[string(key)]; !asked || len(key) == 0 {
			continue
		}
		n := r.noted[string(key)]
		switch snapshot {
		case debezium.Incremental:
			n.read = max(n.read, at)
			b.remake = b.remake || r.Remake
		case debezium.Streamed:
			n.changed = max(n.changed, at)
		case debezium.Initial, debezium.InitialLast:
		}
		r.noted[string(key)] = n
	}
}

// conclude says of each key what has become of it, once everything that could be said of
// it has been read.
func (s *Source) conclude(r *reading, out *pipeline.Slice) error {
	var gone []int
	var unseen [][]string
	before := r.ended.Before
	refused := map[int]bool{}
	for _, i := range r.ended.Refused {
		refused[i] = true
	}
	for key, i := range r.keys {
		n := r.noted[key]
		switch {
		case i >= r.ended.Keys:
			r.Keys = append(r.Keys, r.asked[i])
		case refused[i], n.read >= before:
		case n.changed >= before || r.truncated >= before:
			r.Keys = append(r.Keys, r.asked[i]) // it may have come without values that were not sent
		case r.ended.missing[i]:
			gone = append(gone, i)
		default: // it has come since, which the topic will tell; or the connector may not see it
			unseen = append(unseen, r.asked[i])
		}
	}
	r.Keys = append(r.Keys, unseen...)
	if len(unseen) > 0 {
		s.later(r, errUnseen)
	} else {
		s.unreadTimes = 0
	}
	s.forget(r)
	return s.answer(r, gone, out)
}

// answer hands over the keys that are not there, and says when the request is through.
func (s *Source) answer(r *reading, gone []int, out *pipeline.Slice) error {
	t := r.table
	b := t.into()
	partition, offset := t.newest()
	for n, i := range gone {
		row, _ := keyRow(b.rows, r.asked[i])
		key, err := b.key(row)
		if err != nil {
			return err
		}
		b.changes = append(b.changes, change.Change{
			Op: change.Delete, Before: row, After: -1, Other: -1, Key: key, Partition: partition, Offset: offset,
			Position: t.order.Absence(r.ended.Before, n), LSN: r.ended.Before, CommitTime: r.ended.At,
		})
		b.remake = b.remake || r.Remake
	}
	if len(r.Keys) > 0 { // the others have their turn
		s.requests = append(s.requests, r.request)
	} else {
		b.rereads = append(b.rereads, r.ID)
	}
	b.moved = true
	return s.give(t, t.atEnd() && !s.fetched(t), out)
}

// forget ends a reading.
func (s *Source) forget(r *reading) { s.reading, r.table.reading = nil, nil }

// errUnseen is a connector that does not read what the source has.
var errUnseen = errors.New("the connector has not found rows that the source has: may its role see them all?")

// unread has the keys asked for again, later.
func (s *Source) unread(r *reading, err error) {
	s.forget(r)
	r.Keys = append(r.Keys, r.asked...)
	s.requests = append(s.requests, r.request)
	s.later(r, err)
}

// later puts the next signal off.
func (s *Source) later(r *reading, err error) {
	s.unreadTimes++
	wait := min(time.Second<<min(s.unreadTimes-1, 6), time.Minute)
	s.signalAfter = s.cfg.Clock().Add(wait)
	if !errors.Is(err, context.Canceled) {
		s.cfg.Logger.Warn("rows not read again, trying later", "table", r.table.cfg.ID(), "wait", wait, "error", err)
	}
}

// readTo reports whether a table's topic was read up to these ends.
func (t *table) readTo(e map[int32]int64) bool {
	for n, end := range e {
		if p := t.parts[n]; end > 0 && (p == nil || p.next < end) {
			return false
		}
	}
	return true
}

// newest is where the newest record stands that was read of the table's topic, in its
// first partition.
func (t *table) newest() (partition int32, offset int64) {
	for n := range int32(len(t.parts)) {
		if p := t.parts[n]; p != nil {
			return n, max(p.next-1, 0)
		}
	}
	return 0, 0
}
