package debezium

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

func TestRecordedEvents(t *testing.T) {
	t.Parallel()
	tables := recordedTables(t)
	full := func(cfg Config) Config {
		cfg.FullIdentity = true
		return cfg
	}
	for name, files := range map[string][]struct {
		file, topic string
		schema      *catalog.Schema
		cfg         Config
	}{
		"core.golden": {
			{"core.jsonl", "shop.app.customers", tables["app.customers"].schema(nil), Config{}},
			{"core.jsonl", "shop.app.orders", tables["app.orders"].schema(nil), full(Config{Decimal: DecimalPrecise})},
			{"core.jsonl", "shop.app.docs", tables["app.docs"].schema(nil), Config{}},
			{"core.jsonl", "shop.app.nopk", &catalog.Schema{Columns: columns("a int4", "b text").Columns}, full(Config{})},
			{"core.jsonl", "shop.app.trunc", columns("id int4", "v text"), Config{}},
			{"core.jsonl", "shop.message", columns("id int4"), Config{}},
		},
		"core_schema.golden": {
			{"core_schema.jsonl", "sch.app.customers", columns("id int4", "name text", "email text", "note text"), Config{}},
			{"core_schema.jsonl", "sch.app.orders", columns("id int8", "cust int4", "amount numeric(12,2)", "status text"), full(Config{})},
		},
		"nulldef.golden": {
			{"nulldef.jsonl", "nd.app.nulldef", columns("id int4", "a int4", "b text", "ts timestamp"), full(Config{})},
		},
		"avro.golden": {
			{"avro.jsonl", "av.app.customers", columns("id int4", "name text", "email text", "note text"), Config{}},
			{"avro.jsonl", "av.app.orders", columns("id int8", "cust int4", "amount numeric(12,2)", "status text"), full(Config{})},
		},
		"control.golden": {{"control.jsonl", "", columns("id int4"), Config{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, f := range files {
				f.cfg.Schema, f.cfg.Registry = f.schema, recordedSchemas(t)
				records := samples(t, f.file)
				if f.topic != "" {
					records = ofTopic(records, f.topic)
				}
				require.NotEmpty(t, records)
				b.WriteString(decodeAll(t, newDecoder(t, f.cfg), records))
			}
			golden(t, name, b.String())
		})
	}
}

// one decodes one record.
func one(t *testing.T, d *Decoder, rec Record) (Event, *change.Rows, error) {
	t.Helper()
	rows := change.NewRows(d.cfg.Schema)
	ev, err := d.Decode(t.Context(), &rec, rows)
	return ev, rows, err
}

// enveloped makes an envelope around rows.
func enveloped(op, before, after string) string {
	return `{"before":` + before + `,"after":` + after + `,"source":{"connector":"postgresql","ts_us":1795981219393226,"snapshot":"` + snapshotWordOf(op) +
		`","sequence":"[\"100\",\"120\"]","txId":9,"lsn":120},"op":"` + op + `"}`
}

func snapshotWordOf(op string) string {
	if op == "r" {
		return "true"
	}
	return "false"
}

// C05-BIGINT-JSON: numbers keep every digit, so two keys stay two.
func TestC05BigIntegersKeepEveryDigit(t *testing.T) {
	t.Parallel()
	d := newDecoder(t, Config{Schema: columns("id int8", "doc jsonb")})
	doc := `{"d": 0.1000, "h": 18446744073709551616, "n": 1234567890123456789}`
	var keys []string
	for _, row := range []string{
		`{"id":9007199254740993,"doc":"` + strings.ReplaceAll(doc, `"`, `\"`) + `"}`,
		`{"id":9007199254740992,"doc":"{}"}`, `{"id":9223372036854775807,"doc":null}`, `{"id":-9223372036854775808,"doc":null}`,
	} {
		ev, rows, err := one(t, d, Record{Value: []byte(enveloped("c", "null", row))})
		require.NoError(t, err)
		keys = append(keys, texts(rows, ev.After)["id"])
		if len(keys) == 1 {
			require.Equal(t, doc, texts(rows, ev.After)["doc"])
		}
	}
	require.Equal(t, []string{"9007199254740993", "9007199254740992", "9223372036854775807", "-9223372036854775808"}, keys)
}

// C09-TZ-SNAP: what is read and what is streamed are the same instant, whoever printed it.
func TestC09SnapshotAndStreamHaveTheSameInstant(t *testing.T) {
	t.Parallel()
	d := newDecoder(t, Config{Schema: columns("id int4", "created timestamptz", "local_dt timestamp", "during tstzrange"), FullIdentity: true})
	var seen []map[string]string
	for _, r := range []struct{ op, row string }{
		{"r", `{"id":1,"created":"2026-01-30T17:34:56Z","local_dt":1769776496000000,"during":"[\"2026-01-30 17:34:56+00\",\"2026-02-01 00:00:00+00\")"}`},
		{"c", `{"id":1,"created":"2026-01-30T17:34:56.000000Z","local_dt":"2026-01-30T12:34:56Z","during":"[\"2026-01-30 12:34:56-05\",\"2026-01-31 19:00:00-05\")"}`},
		{"c", `{"id":1,"created":"2026-01-30T12:34:56-05:00","local_dt":"2026-01-30T12:34:56","during":"[\"2026-01-30 23:04:56+05:30\",\"2026-02-01 05:30:00+05:30\")"}`},
	} {
		ev, rows, err := one(t, d, Record{Value: []byte(enveloped(r.op, "null", r.row))})
		require.NoError(t, err)
		seen = append(seen, texts(rows, ev.After))
	}
	require.Equal(t, map[string]string{
		"id": "1", "created": "2026-01-30 17:34:56+00", "local_dt": "2026-01-30 12:34:56",
		"during": `["2026-01-30 17:34:56+00","2026-02-01 00:00:00+00")`,
	}, seen[0])
	require.Equal(t, seen[0], seen[1])
	require.Equal(t, seen[0], seen[2])
}

// C27-TOMBSTONE: a null value, whatever its key, and one of no bytes say nothing.
func TestC27TombstonesAreNoRows(t *testing.T) {
	t.Parallel()
	d := newDecoder(t, Config{Schema: columns("id int4")})
	for _, rec := range []Record{
		{Key: []byte(`{"id":4}`)},
		{},
		{Key: []byte(`{"id":6}`), Value: []byte{}},
		{Value: []byte(`{"schema":null,"payload":null}`)},
	} {
		ev, rows, err := one(t, d, rec)
		require.NoError(t, err)
		require.Equal(t, Tombstone, ev.Kind)
		require.Zero(t, rows.Len())
	}
}

// C44-POISON: whatever is broken is an error with a code, and the next record is read.
func TestC44BrokenRecordsAreErrorsWithACode(t *testing.T) {
	t.Parallel()
	good := enveloped("c", "null", `{"id":1,"v":"a","n":"1.50"}`)
	row := func(r string) string { return enveloped("c", "null", r) }
	d := newDecoder(t, Config{Schema: columns("id int4", "v text", "n numeric(10,2)")})
	var b strings.Builder
	for _, bad := range []string{
		"x", "{", "[]", "null", "{}", `{"ts_ms":1,"foo":2}`, `"text"`, good + "x", good[:len(good)-1], good[:40], strings.Replace(good, `"id"`, `"id`, 1),
		strings.Replace(good, ":1,", ":01,", 1), strings.Replace(good, `"a"`, "\"a\x01\"", 1), strings.Replace(good, `"a"`, `"\ud800"`, 1),
		strings.Replace(good, `"a"`, `"\x"`, 1), strings.Replace(good, `"a"`, "\"\xff\"", 1), strings.Replace(good, `"a"`, `"\u0000"`, 1),
		row(`{"id":1,"v":"a"}`), row(`{"id":1,"v":"a","n":null,"w":1}`), row(`{"id":1,"id":2,"v":"a","n":null}`), row(`null`), row(`[]`), row(`7`),
		row(`{"id":1.5,"v":"a","n":null}`), row(`{"id":1e3,"v":"a","n":null}`), row(`{"id":"1","v":"a","n":null}`), row(`{"id":2147483648,"v":"a","n":null}`),
		row(`{"id":1,"v":2,"n":null}`), row(`{"id":1,"v":["a"],"n":null}`), row(`{"id":1,"v":{},"n":null}`), row(`{"id":true,"v":"a","n":null}`),
		row(`{"id":1,"v":"a","n":1.5}`), row(`{"id":1,"v":"a","n":"EtaH"}`), row(`{"id":1,"v":"a","n":"1234"}`), row(`{"id":1,"v":"a","n":"123456789.00"}`),
		row(`{"id":1,"v":"a","n":"1.234"}`), row(`{"id":1,"v":"a","n":"1e3"}`), row(`{"id":1,"v":"a","n":{"scale":20000,"value":"AQ=="}}`),
		strings.Replace(good, `"op":"c"`, `"op":"x"`, 1), strings.Replace(good, `"op":"c"`, `"op":1`, 1), strings.Replace(good, `"op":"c"`, `"op":"cc"`, 1),
		strings.Replace(good, `"op":"c"`, `"op":"c","op":"c"`, 1), strings.Replace(good, `"source":{`, `"origin":{`, 1),
		strings.Replace(good, `"postgresql"`, `"mysql"`, 1), strings.Replace(good, `"false"`, `"sometimes"`, 1), strings.Replace(good, `"false"`, `"true"`, 1),
		strings.Replace(good, `"lsn":120`, `"lsn":null`, 1), strings.Replace(good, `"lsn":120`, `"lsn":-1`, 1), strings.Replace(good, `"lsn":120`, `"lsn":1.5`, 1),
		strings.Replace(good, `[\"100\"`, `[100`, 1), strings.Replace(good, `[\"100\",`, `[`, 1),
		enveloped("u", "null", "null"), enveloped("d", "null", "null"),
		`{"schema":{"type":"struct"}}`, `{"schema":{"type":7},"payload":{}}`, `{"schema":[],"payload":{}}`, `{"schema":{},"payload":` + good, `{"payload":` + good + `}`,
		"\x00\x00\x00\x00", "\x00\x00\x00\x00\x09", "\x00\x00\x00\x00\x02", strings.Repeat("[", 100000), `{"x":` + strings.Repeat(`{"a":`, 100000),
	} {
		_, _, err := one(t, d, Record{Value: []byte(bad)})
		require.Error(t, err, bad)
		e, ok := errors.AsType[*catalog.Error](err)
		require.True(t, ok, bad)
		require.NotEmpty(t, e.Hint, bad)
		require.Empty(t, e.At)
		if len(bad) > 300 {
			bad = bad[:40] + "…"
		}
		b.WriteString(printable(bad) + "\n    " + showError(err) + "\n")
		_, _, err = one(t, d, Record{Value: []byte(good)})
		require.NoError(t, err)
	}
	golden(t, "broken.golden", b.String())
}

// C45-CONTROL-TOPICS: what is no row of a table is told by its shape.
func TestC45ControlRecordsAreNoRows(t *testing.T) {
	t.Parallel()
	d := newDecoder(t, Config{Schema: columns("id int4")})
	for value, kind := range map[string]Kind{
		`{"ts_ms":1795981209159}`: Heartbeat,
		`{"status":"BEGIN","id":"571:53195829","ts_ms":1,"event_count":null,"data_collections":null}`:                                                    Transaction,
		`{"id":"x","type":"execute-snapshot","data":{"data-collections":["app.a"],"type":"incremental"}}`:                                                Signal,
		`{"type":"execute-snapshot","data":{}}`:                                                                                                          Signal,
		`{"source":{"server":"shop"},"position":{"lsn":1},"ts_ms":1,"databaseName":"shop","ddl":"CREATE TABLE t(id int)","tableChanges":[]}`:             SchemaChange,
		`{"id":"5ab6803f","type":"COMPLETED","aggregate_type":"Initial Snapshot","additional_data":{"connector_name":"shop"},"timestamp":1795981218714}`: Notification,
		`{"op":"m","ts_ms":1,"source":{"connector":"postgresql","lsn":1},"transaction":null,"message":{"prefix":"lab","content":"aGVsbG8="}}`:            Message,
	} {
		for _, v := range []string{value, `{"schema":{"type":"struct","fields":[]},"payload":` + value + `}`} {
			ev, rows, err := one(t, d, Record{Value: []byte(v)})
			require.NoError(t, err, v)
			require.Equal(t, kind, ev.Kind, v)
			require.False(t, ev.Kind.IsChange())
			require.Equal(t, []int{-1, -1, -1}, []int{ev.Before, ev.After, ev.Other})
			require.Zero(t, rows.Len())
		}
	}
}

func TestOnlyTheKeyOfAnInventedRowIsTaken(t *testing.T) {
	t.Parallel()
	schema := columns("id int4", "name text", "n int4")
	before := `{"id":4,"name":"","n":0}`
	d := newDecoder(t, Config{Schema: schema})
	ev, rows, err := one(t, d, Record{Value: []byte(enveloped("d", before, "null"))})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"id": "4", "name": "<absent>", "n": "<absent>"}, texts(rows, ev.Before))
	ev, rows, err = one(t, d, Record{Value: []byte(enveloped("u", before, `{"id":4,"name":"b","n":1}`))})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"id": "4", "name": "<absent>", "n": "<absent>"}, texts(rows, ev.Before))

	d = newDecoder(t, Config{Schema: schema, FullIdentity: true})
	ev, rows, err = one(t, d, Record{Value: []byte(enveloped("d", before, "null"))})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"id": "4", "name": "", "n": "0"}, texts(rows, ev.Before))
	_, _, err = one(t, d, Record{Value: []byte(enveloped("d", `{"id":4,"name":""}`, "null"))})
	require.Equal(t, catalog.CodeSchemaChanged, catalog.Public(err).Code)
}

func TestAFullRowBeforeLendsWhatWasNotSentAgain(t *testing.T) {
	t.Parallel()
	d := newDecoder(t, Config{Schema: columns("id int4", "body text"), FullIdentity: true})
	ev, rows, err := one(t, d, Record{Value: []byte(enveloped("u", `{"id":4,"body":"large"}`, `{"id":4,"body":"`+DefaultPlaceholder+`"}`))})
	require.NoError(t, err)
	require.Equal(t, "large", texts(rows, ev.After)["body"])
}

func TestPlaceholdersAreNeverValues(t *testing.T) {
	t.Parallel()
	schema := columns("id int4", "t text", "n numeric(1000,3)", "j jsonb", "b bytea", "h public.hstore", "p polygon", "ta text[]", "ia int4[]", "la int8[]", "da date[]",
		"ua uuid[]", "ba bytea[]", "m int4[][]", "mt text[][]", "bits bit(2000)", "dates daterange", "na numeric(5,2)[]")
	placeholder := func(p, b64 string) string {
		ints := strings.Trim(strings.Join(strings.Fields(strings.Trim(sprint([]byte(p)), "[]")), ","), " ")
		return `{"id":1,"t":"` + p + `","n":"` + p + `","j":"` + p + `","b":"` + b64 + `","h":"{\"` + p + `\":\"` + p + `\"}","p":"` + b64 + `","ta":["` + p + `"],"ia":[` + ints +
			`],"la":[` + ints + `],"da":[` + ints + `],"ua":["` + nameUUID(p) + `"],"ba":["` + b64 + `"],"m":[` + ints + `],"mt":["` + p + `"],"bits":"` + b64 + `","dates":"` + p + `","na":["` + p + `"]}`
	}
	for _, p := range []string{DefaultPlaceholder, "~"} {
		d := newDecoder(t, Config{Schema: schema, Placeholder: p})
		ev, rows, err := one(t, d, Record{Value: []byte(enveloped("u", "null", placeholder(p, base64Of(p))))})
		require.NoError(t, err)
		for name, text := range texts(rows, ev.After) {
			if name != "id" {
				require.Equal(t, "<unavailable>", text, name)
			}
		}
	}
	// The text of another setting, and a list that only contains it, are values.
	d := newDecoder(t, Config{Schema: columns("id int4", "t text", "ta text[]"), Placeholder: "~"})
	ev, rows, err := one(t, d, Record{Value: []byte(enveloped("u", "null", `{"id":1,"t":"`+DefaultPlaceholder+`","ta":["~","x"]}`))})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"id": "1", "t": DefaultPlaceholder, "ta": "{~,x}"}, texts(rows, ev.After))
}

func TestAMoveNamesTheOtherKey(t *testing.T) {
	t.Parallel()
	run := Header{Key: headerRun, Value: []byte("01a228d2-9166-79ff-b5e6-eb1d3ad93528")}
	move := func(d *Decoder, op, row, header, key string) (Event, *change.Rows) {
		before, after := "null", row
		if op == "d" {
			before, after = row, "null"
		}
		ev, rows, err := one(t, d, Record{Value: []byte(enveloped(op, before, after)), Headers: []Header{{Key: header, Value: []byte(key)}, run}})
		require.NoError(t, err)
		return ev, rows
	}
	d := newDecoder(t, Config{Schema: columns("id int4", "v text")})
	ev, rows := move(d, "d", `{"id":3,"v":""}`, headerNewKey, `{"id":30}`)
	require.True(t, ev.MovedTo)
	require.Equal(t, "30", texts(rows, ev.Other)["id"])
	require.Equal(t, "01a228d2916679ffb5e6eb1d3ad93528", ev.Run.String())
	ev, rows = move(d, "c", `{"id":30,"v":"x"}`, headerOldKey, `{"id":3}`)
	require.True(t, ev.MovedFrom)
	require.Equal(t, map[string]string{"id": "3", "v": "<absent>"}, texts(rows, ev.Other))
	for _, unreadable := range []string{"Struct{id=3}", `{"id":null}`, `{}`, `{"id":3`, `{"id":3}x`, `{"id":3,"id":3}`, ""} {
		ev, _ = move(d, "c", `{"id":30,"v":"x"}`, headerOldKey, unreadable)
		require.True(t, ev.MovedFrom)
		require.Equal(t, -1, ev.Other, unreadable)
	}
	d = newDecoder(t, Config{Schema: columns("day timestamp", "v text")})
	ev, _ = move(d, "c", `{"day":1709210096123456,"v":"x"}`, headerOldKey, `{"day":1709210096123456}`)
	require.Equal(t, -1, ev.Other, "headers are written by other rules than records")
}

func TestASchemaShowsThatAColumnChanged(t *testing.T) {
	t.Parallel()
	block := func(typ string) string {
		return `{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int32","field":"id"},` + typ + `],"field":"after"}]}`
	}
	for typ, want := range map[string]struct {
		schema *catalog.Schema
		says   string
	}{
		`{"type":"int64","field":"c"}`:                                {columns("id int4", "c int4"), "column c was int4 and now comes as int64"},
		`{"type":"string","field":"c"}`:                               {columns("id int4", "c int8"), "column c was int8 and now comes as string"},
		`{"type":"int32","field":"b2"}`:                               {columns("id int4", "c int4"), "a record has column b2, which the lake's table has not"},
		`{"type":"int32","name":"io.debezium.time.Date","field":"c"}`: {columns("id int4", "c timestamp"), "column c was timestamp and now comes as int32 (io.debezium.time.Date)"},
		`{"type":"double","field":"c"}`:                               {columns("id int4", "c float4"), "column c was float4 and now comes as float64"},
		`{"type":"array","items":{"type":"int64"},"field":"c"}`:       {columns("id int4", "c int4[]"), "column c was int4[] and now comes as array"},
	} {
		d := newDecoder(t, Config{Schema: want.schema})
		_, _, err := one(t, d, Record{Value: []byte(`{"schema":` + block(typ) + `,"payload":` + enveloped("c", "null", `{"id":1,"c":1}`) + `}`)})
		require.Error(t, err, typ)
		require.Equal(t, catalog.CodeSchemaChanged, catalog.Public(err).Code)
		require.Equal(t, want.says, catalog.Public(err).Message)
	}
	// A smallint that became an integer is the same to the lake.
	d := newDecoder(t, Config{Schema: columns("id int4", "c int2")})
	ev, rows, err := one(t, d, Record{Value: []byte(`{"schema":` + block(`{"type":"int32","field":"c"}`) + `,"payload":` + enveloped("c", "null", `{"id":1,"c":70000}`) + `}`)})
	require.NoError(t, err)
	require.Equal(t, "70000", texts(rows, ev.After)["c"])
}

func TestAColumnThatDebeziumLeavesOutSaysWhy(t *testing.T) {
	t.Parallel()
	d := newDecoder(t, Config{Schema: columns("id int4", "area box")})
	_, _, err := one(t, d, Record{Value: []byte(enveloped("c", "null", `{"id":1}`))})
	require.Contains(t, catalog.Public(err).Hint, "include.unknown.datatypes")
}

func TestAnErrorShowsNoValue(t *testing.T) {
	t.Parallel()
	const secret = "zz-marker-7f3"
	d := newDecoder(t, Config{Schema: columns("id int4", "n numeric(6,2)", "u uuid", "b bytea", "at timestamptz", "i interval", "h public.hstore")})
	nulls := `{"id":1,"n":null,"u":null,"b":null,"at":null,"i":null,"h":null}`
	for _, column := range []string{"id", "n", "u", "b", "at", "i", "h"} {
		at := strings.Index(nulls, `"`+column+`":`) + len(column) + 3
		end := at + strings.IndexAny(nulls[at:], ",}")
		_, _, err := one(t, d, Record{Value: []byte(enveloped("c", "null", nulls[:at]+`"`+secret+`"`+nulls[end:]))})
		require.Error(t, err, column)
		require.NotContains(t, showError(err), secret)
		require.NotContains(t, err.Error(), secret)
		require.Contains(t, showError(err), column)
	}
	_, _, err := one(t, d, Record{Value: []byte(`{"op":"c","after":{"id":3,"email":"` + secret)})
	require.NotContains(t, showError(err), secret)
}

// failing is a registry that is down.
type failing struct{ err error }

func (f failing) Schema(context.Context, uint32) (string, error) { return "", f.err }

func TestARegistryThatIsDownIsAskedAgain(t *testing.T) {
	t.Parallel()
	rec := samples(t, "avro.jsonl")[0].Record
	cfg := Config{Schema: columns("id int4", "name text", "email text", "note text")}
	_, _, err := one(t, newDecoder(t, cfg), rec)
	require.Equal(t, catalog.CodeDecode, catalog.Public(err).Code, "no registry")
	cfg.Registry = failing{errors.New("connection refused")}
	_, _, err = one(t, newDecoder(t, cfg), rec)
	require.Equal(t, catalog.Unavailable, catalog.KindOf(err))
	own := catalog.Errorf(catalog.Denied, catalog.CodeSourceGrant, "log in", "no")
	cfg.Registry = failing{own}
	_, _, err = one(t, newDecoder(t, cfg), rec)
	require.Equal(t, own, err)
}

// With a configured key that is not the record's, an update without the row before may have
// changed it, and nobody would see.
func TestAnUpdateThatMayHaveMovedUnseenIsRefused(t *testing.T) {
	t.Parallel()
	value := []byte(enveloped("u", "null", `{"email":"a","id":1}`))
	d := newDecoder(t, Config{Schema: columns("email text", "id int4"), Registry: schemas{
		1: `{"type":"record","name":"Key","fields":[{"name":"id","type":"int"}]}`, 2: `{"type":"record","name":"Key","fields":[{"name":"email","type":"string"}]}`,
	}})
	for key, says := range map[string]string{
		`{"id":1}`: "key", `{"schema":{"type":"struct"},"payload":{"id":1}}`: "key", "\x00\x00\x00\x00\x01\x02": "key", "\x00\x00\x00\x00\x03\x02": "registry",
		`{"email":"a"}`: "", `{"id":1,"email":"a"}`: "", `{"schema":{"type":"struct"},"payload":{"email":"a"}}`: "", "\x00\x00\x00\x00\x02\x02a": "", "": "",
	} {
		for range 2 {
			_, _, err := one(t, d, Record{Key: []byte(key), Value: value})
			switch says {
			case "":
				require.NoError(t, err, key)
			case "key":
				require.Equal(t, catalog.CodeIdentityChange, catalog.Public(err).Code, key)
			case "registry":
				require.Equal(t, catalog.Unavailable, catalog.KindOf(err), key)
			}
		}
	}
	// With the row before it can be seen.
	_, _, err := one(t, d, Record{Key: []byte(`{"id":1}`), Value: []byte(enveloped("u", `{"email":"b","id":1}`, `{"email":"a","id":1}`))})
	require.NoError(t, err)
}

// Of some types Debezium sends NULL for a large value that did not change.
func TestANullThatMayBeAnUnchangedValueIsNotTaken(t *testing.T) {
	t.Parallel()
	types := []string{"numeric[]", "timestamp[]", "float8[]", "bool[]", "varbit", "bytea", "polygon", "bytea[]", "domain:text[]", "public.cube"}
	for _, typ := range types {
		for _, nullable := range []bool{true, false} {
			schema := columns("id int4", "v "+typ)
			schema.Columns[1].Nullable = nullable
			value := func(op string) []byte { return []byte(enveloped(op, "null", `{"id":1,"v":null}`)) }
			d := newDecoder(t, Config{Schema: schema})
			for _, rec := range []Record{{Value: value("u")}, {Value: value("c"), Headers: []Header{{Key: headerOldKey, Value: []byte(`{"id":2}`)}}}} {
				ev, rows, err := one(t, d, rec)
				if nullable {
					require.Equal(t, catalog.CodeIdentityChange, catalog.Public(err).Code, typ)
					require.Contains(t, catalog.Public(err).Hint, "REPLICA IDENTITY FULL")
					continue
				}
				require.NoError(t, err)
				require.Equal(t, "<unavailable>", texts(rows, ev.After)["v"], typ)
			}
			for _, op := range []string{"c", "r"} {
				ev, rows, err := one(t, d, Record{Value: value(op)})
				require.NoError(t, err)
				require.Equal(t, "<null>", texts(rows, ev.After)["v"], typ)
			}
			ev, rows, err := one(t, newDecoder(t, Config{Schema: schema, FullIdentity: true}), Record{Value: value("u")})
			require.NoError(t, err)
			require.Equal(t, "<null>", texts(rows, ev.After)["v"], typ)
		}
	}
	// These have a placeholder, so NULL is NULL.
	for _, typ := range []string{"text", "jsonb", "numeric", "public.hstore", "text[]", "int8[]", "uuid[]", "bytea", "polygon", "bytea[]", "pg_lsn", "int4"} {
		ev, rows, err := one(t, newDecoder(t, Config{Schema: columns("id int4", "v "+typ), Binary: Bytes}), Record{Value: []byte(enveloped("u", "null", `{"id":1,"v":null}`))})
		require.NoError(t, err)
		require.Equal(t, "<null>", texts(rows, ev.After)["v"], typ)
	}
}
