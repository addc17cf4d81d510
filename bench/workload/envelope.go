package workload

import "strconv"

// Record is a record of a table's topic. Key and Value belong to the maker and hold
// until the function that was given the record returns.
type Record struct {
	Table      string
	Op         byte // r, c, u or d
	Key, Value []byte
}

// envelope writes records as Debezium's Postgres connector does, as JSON without
// schema.
type envelope struct {
	key, value []byte
}

// event is a change to be written; before and after are rows as JSON, nil for none.
type event struct {
	table         string
	key           func([]byte) []byte
	before, after []byte
	last          stamp
	micros        int64 // of the commit
	commit        int64 // sequence[0]
	snapshot      string
}

func (w *envelope) write(e event) Record {
	b := append(append(w.key[:0], `{"`...), Key(e.table)...)
	w.key = append(e.key(append(b, `":"`...)), `"}`...)

	b = image(append(w.value[:0], `{"before":`...), e.before)
	b = image(append(b, `,"after":`...), e.after)
	b = append(b, `,"source":{"version":"3.5.0.Final","connector":"postgresql","name":"larkspur","ts_ms":`...)
	b = strconv.AppendInt(b, e.last.millis, 10)
	b = append(append(b, `,"snapshot":"`...), e.snapshot...)
	b = append(b, `","db":"shop","sequence":"[`...)
	if e.snapshot == "false" {
		b = strconv.AppendInt(append(b, `\"`...), e.commit, 10)
		b = append(b, `\"`...)
	} else {
		b = append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, `,\"`...), e.last.lsn, 10)
	b = strconv.AppendInt(append(b, `\"]","ts_us":`...), e.micros, 10)
	b = strconv.AppendInt(append(b, `,"ts_ns":`...), e.micros, 10)
	b = append(append(b, `000,"schema":"shop","table":"`...), e.table...)
	b = strconv.AppendInt(append(b, `","txId":`...), e.last.tx, 10)
	b = strconv.AppendInt(append(b, `,"lsn":`...), e.last.lsn, 10)
	b = append(append(b, `,"xmin":null},"transaction":null,"op":"`...), e.last.op)
	seen := e.micros + 180_000 + e.last.lsn%700_000 // when the connector saw it
	b = strconv.AppendInt(append(b, `","ts_ms":`...), seen/1000, 10)
	b = strconv.AppendInt(append(b, `,"ts_us":`...), seen, 10)
	b = strconv.AppendInt(append(b, `,"ts_ns":`...), seen, 10)
	b = append(b, "000}"...)
	w.value = b
	return Record{Table: e.table, Op: e.last.op, Key: w.key, Value: w.value}
}

func image(b, row []byte) []byte {
	if row == nil {
		return append(b, "null"...)
	}
	return append(b, row...)
}
