package debezium

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// fuzzSchema has a column of each family.
var fuzzSchema = columns("id int4", "big int8", "v text", "n numeric(10,2)", "wide numeric(30,5)", "free numeric", "b bytea", "ok bool", "f float8", "r float4",
	"d date", "t time(3)", "ts timestamp", "tz timestamptz", "ttz timetz", "i interval", "u uuid", "bits bit(12)", "var varbit", "h public.hstore", "p point",
	"poly polygon", "x xid", "m money", "la int4[]", "lt text[]", "ln numeric(5,2)[]", "lg polygon[]", "grid int4[][]", "span tstzrange")

const fuzzRow = `{"id":1,"big":9007199254740993,"v":"é\n\"","n":"12.50","wide":"1.5","free":"NAN","b":"AP8Q","ok":true,"f":1.5,"r":"NaN","d":19782,"t":3723456000,` +
	`"ts":1709210096123456,"tz":"2024-02-29T10:34:56.123456Z","ttz":"07:44:15Z","i":"P1Y-2M3DT4H5M-6.789S","u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","bits":"qgk=",` +
	`"var":"BQ==","h":"{\"k\":null}","p":{"x":1.5,"y":-2.0,"wkb":null,"srid":null},"poly":"KCgwLjAsMC4wKSk=","x":"MTIz","m":"1234.56","la":[1,null],"lt":["a",null],` +
	`"ln":["1.50"],"lg":"e30=","grid":[null],"span":"[\"2024-01-01 00:00:00+02\",)"}`

// requireSound checks what holds of every answer.
func requireSound(t *testing.T, d *Decoder, ev Event, err error, rows *change.Rows) {
	t.Helper()
	if err != nil {
		e, ok := errors.AsType[*catalog.Error](err)
		require.True(t, ok)
		require.NotEmpty(t, e.Code)
		require.NotEqual(t, catalog.Internal, e.Kind)
		require.Equal(t, []int{-1, -1, -1}, []int{ev.Before, ev.After, ev.Other})
		return
	}
	for _, row := range []int{ev.Before, ev.After, ev.Other} {
		require.Less(t, row, rows.Len())
	}
	if ev.Kind != Row {
		require.Equal(t, []int{-1, -1, -1}, []int{ev.Before, ev.After, ev.Other})
		return
	}
	require.True(t, ev.Before >= 0 || ev.After >= 0)
	for col := range d.cfg.Schema.Columns {
		if ev.After >= 0 {
			require.NotEqual(t, change.Absent, rows.Mark(ev.After, col))
		}
		if ev.Before >= 0 && !d.cfg.FullIdentity && !d.cfg.Schema.IsKey(col) {
			require.Equal(t, change.Absent, rows.Mark(ev.Before, col))
		}
	}
	if ev.After >= 0 {
		_ = texts(rows, ev.After) // every cell is of its type's form
	}
	var o Order
	if _, err := o.Place(&ev, 0, 1); err != nil {
		_, ok := errors.AsType[*catalog.Error](err)
		require.True(t, ok)
	}
}

func FuzzJSON(f *testing.F) {
	for _, op := range []string{"c", "r", "u", "d", "t", "m"} {
		f.Add([]byte(enveloped(op, fuzzRow, fuzzRow)))
	}
	for _, name := range []string{"types_tmicro.jsonl", "core.jsonl", "control.jsonl", "core_schema.jsonl"} {
		for _, r := range samples(f, name) {
			f.Add(r.Value)
		}
	}
	full := newDecoder(f, Config{Schema: fuzzSchema, FullIdentity: true, Monetary: "C"})
	key := newDecoder(f, Config{Schema: fuzzSchema, Decimal: DecimalPrecise, Time: Adaptive, Binary: Hex})
	small := newDecoder(f, Config{Schema: columns("id int8", "v text")})
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, d := range []*Decoder{full, key, small} {
			rows := change.NewRows(d.cfg.Schema)
			ev, err := d.Decode(t.Context(), &Record{Value: value}, rows)
			requireSound(t, d, ev, err, rows)
			if err == nil && ev.Kind == Row && len(value) > 0 && value[0] != avroMagic {
				requireJSONAgrees(t, value, rows, ev)
			}
		}
	})
}

// requireJSONAgrees compares a row's texts and integers with what encoding/json makes of
// the record.
func requireJSONAgrees(t *testing.T, value []byte, rows *change.Rows, ev Event) {
	t.Helper()
	require.True(t, json.Valid(value))
	if ev.After < 0 {
		return
	}
	type envelope struct{ After map[string]json.RawMessage }
	var v struct {
		envelope
		Payload envelope
	}
	if json.Unmarshal(value, &v) != nil { // it takes AFTER for after
		return
	}
	row := v.After
	if row == nil {
		row = v.Payload.After
	}
	got := texts(rows, ev.After)
	for _, c := range rows.Schema().Columns {
		if rows.Mark(ev.After, rows.Schema().Index(c.Name)) != change.Present {
			continue
		}
		switch c.Source.Base {
		case "text":
			var want string
			require.NoError(t, json.Unmarshal(row[c.Name], &want))
			require.Equal(t, want, got[c.Name])
		case "int4", "int8":
			if string(row[c.Name]) != "-0" {
				require.Equal(t, string(row[c.Name]), got[c.Name])
			}
		}
	}
}

func FuzzJSONSchema(f *testing.F) {
	row := `{"type":"struct","fields":[{"type":"int32","field":"id"},{"type":"string","field":"v"},{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"},"field":"n"}],"field":"after"}`
	f.Add([]byte(`{"type":"struct","fields":[`+row+`]}`), []byte(enveloped("c", "null", `{"id":1,"v":"a","n":"EtaH"}`)))
	f.Add([]byte("null"), []byte("null"))
	for _, name := range []string{"core_schema.jsonl", "types_trecs.jsonl", "types_tdefs.jsonl"} {
		for _, r := range samples(f, name) {
			var v struct{ Schema, Payload json.RawMessage }
			if json.Unmarshal(r.Value, &v) == nil {
				f.Add([]byte(v.Schema), []byte(v.Payload))
			}
		}
	}
	schema := columns("id int4", "v text", "n numeric(10,2)", "d date", "l int4[]")
	f.Fuzz(func(t *testing.T, block, payload []byte) {
		value := []byte(`{"schema":` + string(block) + `,"payload":` + string(payload) + `}`)
		d := newDecoder(t, Config{Schema: schema})
		rows := change.NewRows(schema)
		ev, err := d.Decode(t.Context(), &Record{Value: value}, rows)
		requireSound(t, d, ev, err, rows)
		again := change.NewRows(schema)
		ev2, err2 := d.Decode(t.Context(), &Record{Value: value}, again)
		require.Equal(t, show(ev, err, rows), show(ev2, err2, again), "a schema that is known reads the same")
	})
}

func FuzzAvro(f *testing.F) {
	known := recordedSchemas(f)
	for _, r := range samples(f, "avro.jsonl") {
		if r.Value != nil {
			f.Add(known[binary.BigEndian.Uint32(r.Value[1:])], r.Value[avroHeader:])
		}
	}
	f.Add(`{"type":"record","name":"a","fields":[{"name":"op","type":"string"},{"name":"x","type":{"type":"array","items":"null"}}]}`, []byte{2, 'c', 0xfe, 0xff, 0xff, 0xff, 0x0f})
	f.Add(`{"type":"record","name":"a","fields":[{"name":"x","type":"a"},{"name":"y","type":"a"}]}`, []byte{})
	f.Add(avroOfEverything, []byte{2, 2})
	schema := columns("id int4", "name text", "email text", "note text")
	f.Fuzz(func(t *testing.T, text string, value []byte) {
		d := newDecoder(t, Config{Schema: schema, Registry: schemas{7: text}})
		rows := change.NewRows(schema)
		ev, err := d.Decode(t.Context(), &Record{Value: append([]byte{0, 0, 0, 0, 7}, value...)}, rows)
		requireSound(t, d, ev, err, rows)
	})
}

// FuzzScanner compares what the scanner takes for JSON with what encoding/json does.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{enveloped("c", fuzzRow, fuzzRow), `[1e5,-0.0,"\u00e9\ud83d\ude00",true,false,null,{},[]]`, "01", "1.", "-", `"\x"`, "\"\t\"", "[1,]", "{\"a\":1,}", " 1 ", "1e", "\"a"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		err := s.skip()
		if err == nil {
			err = s.end()
		}
		if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) <= maxDepth {
			require.Equal(t, json.Valid(b), err == nil)
		}
		if err != nil || s.b[0] != '"' {
			return
		}
		raw, escaped, _ := (&scanner{b: b}).str()
		got := raw
		if escaped {
			if got, err = unescape(nil, raw); err != nil {
				return // half a surrogate pair, or NUL
			}
		}
		if !utf8.Valid(got) {
			return // encoding/json repairs it; a column's value is refused
		}
		var want string
		require.NoError(t, json.Unmarshal(b, &want))
		require.Equal(t, want, string(got))
	})
}
