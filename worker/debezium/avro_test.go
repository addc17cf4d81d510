package debezium

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// avroOfEverything is an envelope whose row has a field of each form that Debezium writes.
const avroOfEverything = `{"type":"record","name":"Envelope","namespace":"s.app.t","fields":[
{"name":"before","type":["null",{"type":"record","name":"Value","fields":[
 {"name":"id","type":"int"},
 {"name":"small","type":{"type":"int","connect.type":"int16"}},
 {"name":"big","type":["null","long"],"default":null},
 {"name":"r","type":"float"},{"name":"f","type":["null","double"]},
 {"name":"ok","type":"boolean"},
 {"name":"n","type":{"type":"bytes","scale":2,"precision":10,"connect.version":1,"connect.parameters":{"scale":"2"},"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}},
 {"name":"free","type":["null",{"type":"record","name":"VariableScaleDecimal","namespace":"io.debezium.data","fields":[{"name":"scale","type":"int"},{"name":"value","type":"bytes"}],"connect.name":"io.debezium.data.VariableScaleDecimal"}]},
 {"name":"d","type":{"type":"int","connect.version":1,"connect.name":"io.debezium.time.Date"}},
 {"name":"ts3","type":{"type":"long","connect.version":1,"connect.name":"io.debezium.time.Timestamp"}},
 {"name":"t","type":{"type":"long","connect.version":1,"connect.name":"io.debezium.time.MicroTime"}},
 {"name":"b","type":["null","bytes"]},
 {"name":"mood","type":{"type":"enum","name":"Mood","symbols":["sad","ok"]}},
 {"name":"la","type":["null",{"type":"array","items":["null","int"]}]},
 {"name":"h","type":{"type":"map","values":["null","string"]}},
 {"name":"p","type":{"type":"record","name":"Point","namespace":"io.debezium.data.geometry","fields":[{"name":"x","type":"double"},{"name":"y","type":"double"},{"name":"wkb","type":["null","bytes"]},{"name":"srid","type":["null","int"]}]}},
 {"name":"half_price_","type":"string"}],"connect.name":"s.app.t.Value"}],"default":null},
{"name":"after","type":["null","Value"],"default":null},
{"name":"source","type":{"type":"record","name":"Source","namespace":"io.debezium","fields":[
 {"name":"connector","type":"string"},{"name":"snapshot","type":[{"type":"string","connect.default":"false"},"null"],"default":"false"},
 {"name":"sequence","type":["null","string"]},{"name":"ts_us","type":["null","long"]},{"name":"txId","type":["null","long"]},{"name":"lsn","type":["null","long"]}]}},
{"name":"op","type":"string"}]}`

// avroText builds Avro's binary form.
type avroText []byte

func (b avroText) long(n int64) avroText {
	return binary.AppendUvarint(b, uint64(n)<<1^uint64(n>>63))
}
func (b avroText) text(s string) avroText { return append(b.long(int64(len(s))), s...) }
func (b avroText) double(f float64) avroText {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

func TestEveryFormOfAvroIsRead(t *testing.T) {
	t.Parallel()
	schema := columns("id int4", "small int2", "big int8", "r float4", "f float8", "ok bool", "n numeric(10,2)", "free numeric", "d date", "ts3 timestamp(3)", "t time", "b bytea",
		"mood enum", "la int4[]", "h public.hstore", "p point", "half%price! text")
	b := avroText{0, 0, 0, 0, 3}.long(0).long(1) // no before, an after
	b = b.long(-7).long(-32768).long(1).long(math.MinInt64)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(3.14))
	b = append(b.long(1).double(math.Inf(-1)), 1)
	b = b.text("\x12\xd6\x87").long(1).long(30).text("\x01").long(19782).long(1709210096123).long(86399123456)
	b = b.long(1).text("\x00\xff\x10").long(1)
	b = b.long(1).long(-2).long(3).long(1).long(1).long(0).long(0)           // a block of two with its size: 1, NULL
	b = b.long(2).text("longer").long(1).text("v").text("k").long(0).long(0) // a map of two
	b = b.double(1.5).double(-2).long(0).long(0)
	b = b.text("x")
	b = b.text("postgresql").long(1).long(1).text(`["100","120"]`).long(1).long(5).long(1).long(9).long(1).long(120)
	b = b.text("u")
	d := newDecoder(t, Config{Schema: schema, Registry: schemas{3: avroOfEverything}})
	ev, rows, err := one(t, d, Record{Value: b})
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"id": "-7", "small": "-32768", "big": "-9223372036854775808", "r": "3.14", "f": "-Infinity", "ok": "t", "n": "12345.67",
		"free": "0.000000000000000000000000000001", "d": "2024-02-29", "ts3": "2024-02-29 12:34:56.123", "t": "23:59:59.123456", "b": `\x00ff10`, "mood": "ok",
		"la": "{1,NULL}", "h": `"k"=>NULL, "longer"=>"v"`, "p": "(1.5,-2)", "half%price!": "x",
	}, texts(rows, ev.After))
	require.Equal(t, Streamed, ev.Snapshot)
	require.EqualValues(t, 120, ev.LSN)
	require.EqualValues(t, 100, ev.Sequence)
	require.EqualValues(t, 9, ev.TxID)
	for i := range b { // cut anywhere, it is an error
		_, _, err := one(t, d, Record{Value: b[:i]})
		require.Equal(t, i > 0, err != nil, "%d bytes", i)
	}
	_, _, err = one(t, d, Record{Value: append(b, 0)})
	require.Error(t, err)
}
