package debezium

import (
	"bytes"
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// envelope is what stands in one: the rows that were read of it, and what its source
// block says.
type envelope struct {
	before, after int
	op            byte
	hasOp         bool
	source        origin
	keys          keySet // of the record, to tell what it is when it is no envelope
}

// origin is a source block.
type origin struct {
	seen                 bool
	connector            connector
	lsn, txID            uint64
	hasLSN               bool
	micros, millis       int64
	hasMicros            bool
	snapshot             snapshotWord
	sequence             [2]uint64 // the last commit, and the LSN; 0 for null
	hasSequence, hasLast bool
}

// connector is whose envelope it is.
type connector uint8

const (
	connectorUnnamed connector = iota
	connectorPostgres
	connectorOther
)

// snapshotWord is what source.snapshot says.
type snapshotWord uint8

const (
	snapshotNone snapshotWord = iota
	snapshotInitial
	snapshotLast
	snapshotIncremental
	snapshotUnknown
)

func snapshotOf(word []byte) snapshotWord {
	switch string(word) {
	case "false":
		return snapshotNone
	case "true", "first", "first_in_data_collection":
		return snapshotInitial
	case "last", "last_in_data_collection":
		return snapshotLast
	case "incremental":
		return snapshotIncremental
	}
	return snapshotUnknown
}

// keySet are top-level keys that tell control records apart.
type keySet uint8

const (
	keyTime keySet = 1 << iota
	keyStatus
	keyID
	keyAggregate
	keyType
	keyData
	keyDDL
	keyOther
)

func keyNamed(name []byte) keySet {
	switch string(name) {
	case "ts_ms":
		return keyTime
	case "status":
		return keyStatus
	case "id":
		return keyID
	case "aggregate_type":
		return keyAggregate
	case "type":
		return keyType
	case "data":
		return keyData
	case "ddl", "tableChanges":
		return keyDDL
	}
	return keyOther
}

// control returns what a record without an operation is, or 0.
func (k keySet) control() Kind {
	switch {
	case k&keyDDL != 0:
		return SchemaChange
	case k&keyAggregate != 0:
		return Notification
	case k&(keyStatus|keyID) == keyStatus|keyID:
		return Transaction
	case k&(keyType|keyData) == keyType|keyData, k&(keyType|keyID) == keyType|keyID:
		return Signal
	case k == keyTime:
		return Heartbeat
	}
	return 0
}

// sequence reads ["33781144","33781144"], of which the first may be null.
func (o *origin) setSequence(text []byte) bool {
	s := scanner{b: text}
	if s.take('[') != nil {
		return false
	}
	for i := range o.sequence {
		if i > 0 && s.take(',') != nil {
			return false
		}
		switch s.space() {
		case 'n':
			if s.literal("null") != nil {
				return false
			}
			continue
		case '"':
		default:
			return false
		}
		raw, _, err := s.str()
		n, ok := parseUint(raw)
		if err != nil || !ok {
			return false
		}
		o.sequence[i] = n
		if i == 0 {
			o.hasLast = true
		}
	}
	o.hasSequence = true
	return s.take(']') == nil && s.end() == nil
}

func parseUint(text []byte) (uint64, bool) {
	var n uint64
	for _, b := range text {
		if b-'0' > 9 || n >= 1<<60 {
			return 0, false
		}
		n = n*10 + uint64(b-'0')
	}
	return n, len(text) > 0
}

// event makes sense of an envelope.
func (d *Decoder) event(ctx context.Context, e *envelope, rec *Record, into *change.Rows) (Event, error) {
	none := Event{Before: -1, After: -1, Other: -1}
	if !e.hasOp {
		if none.Kind = e.keys.control(); none.Kind == 0 {
			return none, undecodable("it is no envelope: is a transformation such as ExtractNewRecordState at work?")
		}
		return none, nil
	}
	if e.op == 'm' {
		none.Kind = Message
		return none, nil
	}
	o := &e.source
	if !o.seen {
		return none, undecodable("it has no source block")
	}
	if o.connector == connectorOther {
		return none, undecodable("it is not of a Postgres connector")
	}
	ev := Event{
		Kind: Row, Op: change.Op(e.op), Before: e.before, After: e.after, Other: -1,
		LSN: catalog.LSN(o.lsn), Sequence: catalog.LSN(o.sequence[0]), HasSequence: o.hasSequence, TxID: o.txID, CommitTime: o.micros,
	}
	if !o.hasMicros {
		ev.CommitTime = o.millis * 1000
	}
	d.headers(rec, &ev, into)
	switch ev.Op {
	case change.Truncate:
		ev.Kind, ev.Before, ev.After, ev.Other = Truncate, -1, -1, -1
	case change.Create, change.Read:
		ev.Before = -1
		if ev.After < 0 {
			return none, undecodable("it has no row after")
		}
	case change.Update:
		if ev.After < 0 {
			return none, undecodable("it has no row after")
		}
		if ev.Before >= 0 && d.cfg.FullIdentity {
			keepUnchanged(into, ev.Before, ev.After)
		}
		if ev.Before >= 0 {
			break
		}
		covers, err := d.keys.covers(ctx, d, rec.Key)
		if err != nil {
			return none, err
		}
		if !covers {
			return none, catalog.Errorf(catalog.Invalid, catalog.CodeIdentityChange,
				"set REPLICA IDENTITY FULL, or make primary_key what the records' key has; then read the table anew",
				"the records' key does not have every column of the configured key: a changed key could not be seen")
		}
	case change.Delete:
		ev.After = -1
		if ev.Before < 0 && len(d.cfg.Schema.Key) > 0 {
			return none, catalog.Errorf(catalog.Invalid, catalog.CodeKeyMissing,
				"give the table a primary key or REPLICA IDENTITY FULL; then read it anew", "a delete does not say which row")
		}
	default:
		return none, undecodable("its operation is none that is known")
	}
	if err := ev.read(o); err != nil {
		return none, err
	}
	if ev.After >= 0 {
		if err := d.listen(&ev, into); err != nil {
			return none, err
		}
	}
	return ev, nil
}

// read sets how the row was read, if it was.
func (ev *Event) read(o *origin) error {
	switch o.snapshot {
	case snapshotNone:
		ev.Snapshot = Streamed
	case snapshotInitial:
		ev.Snapshot = Initial
	case snapshotLast:
		ev.Snapshot = InitialLast
	case snapshotIncremental:
		ev.Snapshot = Incremental
	case snapshotUnknown:
		return undecodable("its source.snapshot is none that is known")
	}
	if (ev.Op == change.Read) != (ev.Snapshot != Streamed) {
		return undecodable("its operation and its source.snapshot do not agree")
	}
	if ev.Snapshot == Streamed {
		if !o.hasLSN {
			return undecodable("it has no lsn")
		}
		return nil
	}
	ev.TxID = 0
	if !o.hasLSN {
		if !o.hasSequence {
			return undecodable("it was read at no known place of the log: it has neither lsn nor sequence")
		}
		ev.LSN = catalog.LSN(o.sequence[1])
	}
	return nil
}

// keepUnchanged takes values that were not sent again from the row before, when that is
// whole.
func keepUnchanged(rows *change.Rows, before, after int) {
	for col := range rows.Schema().Columns {
		if rows.Mark(after, col) == change.Unavailable && rows.Mark(before, col) != change.Absent {
			rows.Copy(after, col, rows, before, col)
		}
	}
}

// The headers that say something.
const (
	headerNewKey = "__debezium.newkey"
	headerOldKey = "__debezium.oldkey"
	headerRun    = "__debezium.context.runId"
)

func (d *Decoder) headers(rec *Record, ev *Event, into *change.Rows) {
	for i := range rec.Headers {
		h := &rec.Headers[i]
		switch h.Key {
		case headerNewKey:
			if ev.Op == change.Delete {
				ev.MovedTo = true
				ev.Other = d.otherKey(h.Value, into)
			}
		case headerOldKey:
			if ev.Op == change.Create {
				ev.MovedFrom = true
				ev.Other = d.otherKey(h.Value, into)
			}
		case headerRun:
			ev.Run = parseRun(h.Value)
		}
	}
}

// parseRun reads a UUID; another text is not kept.
func parseRun(text []byte) RunID {
	var id RunID
	text = bytes.Trim(text, `"`)
	if len(text) != 36 {
		return RunID{}
	}
	n := 0
	for i := 0; i < len(text); i++ {
		if text[i] == '-' {
			continue
		}
		var b byte
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			b = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			b = c | 0x20 - 'a' + 10
		default:
			return RunID{}
		}
		if n == 32 {
			return RunID{}
		}
		id[n/2] = id[n/2]<<4 | b
		n++
	}
	return id
}

// otherKey reads the key in a header into a row of its own, or returns -1. Connect
// writes headers by rules of its own: only values of types that it writes as it writes
// them in records are taken.
func (d *Decoder) otherKey(text []byte, into *change.Rows) int {
	for _, col := range d.cfg.Schema.Key {
		if f := d.plain.columns[col].family; f != familyInt && f != familyText && f != familyUUID && f != familyBool {
			return -1
		}
	}
	s := scanner{b: text}
	if len(d.cfg.Schema.Key) == 0 || s.take('{') != nil {
		return -1
	}
	row := into.Add()
	found := 0
	var m members
	for {
		more, err := m.next(&s)
		if err != nil {
			return -1
		}
		if !more {
			break
		}
		col, ok := d.plain.byName[string(m.key)]
		if !ok || col < 0 || !d.plain.columns[col].isKey {
			if s.skip() != nil {
				return -1
			}
			continue
		}
		c := &d.plain.columns[col]
		value, err := d.jsonValue(&s, c)
		if err != nil || value.mark != change.Present || into.Mark(row, col) != change.Absent {
			return -1
		}
		store(into, row, col, c.fixed, value)
		found++
	}
	if s.end() != nil || found != len(d.cfg.Schema.Key) {
		return -1
	}
	return row
}
