package debezium

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// referenceRow is a row of the reference workload's payments and orders, whose columns
// are like those of most tables: names, states, amounts and instants.
var referenceSchema = columns("order_id text", "customer_id text", "channel text", "country text", "status text", "currency text",
	"total_minor int8", "item_count int4", "placed_at timestamptz", "updated_at timestamptz")

func referenceRecord(i int, schema string) []byte {
	row := fmt.Sprintf(`{"order_id":"OGB%08d","customer_id":"C%07d","channel":"web","country":"GB","status":"fulfilled","currency":"GBP","total_minor":%d,"item_count":%d,`+
		`"placed_at":"2026-03-%02dT%02d:34:56.%06dZ","updated_at":"2026-03-%02dT%02d:35:56.%06dZ"}`, i, i%100000, 1000+i, i%9+1, i%28+1, i%24, i%1000000, i%28+1, i%24, i%1000000)
	lsn := 33781144 + 136*i
	value := fmt.Sprintf(`{"before":null,"after":%s,"source":{"version":"3.5.0.Final","connector":"postgresql","name":"larkspur","ts_ms":1795981219393,"snapshot":"false","db":"shop",`+
		`"sequence":"[\"%d\",\"%d\"]","ts_us":1795981219393226,"ts_ns":1795981219393226000,"schema":"shop","table":"orders","txId":%d,"lsn":%d,"xmin":null},"transaction":null,`+
		`"op":"c","ts_ms":1795981219817,"ts_us":1795981219817347,"ts_ns":1795981219817347000}`, row, lsn, lsn, 900+i, lsn)
	if schema != "" {
		value = `{"schema":` + schema + `,"payload":` + value + `}`
	}
	return []byte(value)
}

// referenceBlock is the schema of the reference rows, as long as Debezium's is.
func referenceBlock() string {
	var fields []string
	for _, c := range referenceSchema.Columns {
		typ := map[catalog.ValueKind]string{
			catalog.Text: `"type":"string"`, catalog.Int64: `"type":"int64"`, catalog.Int32: `"type":"int32"`,
			catalog.TimestampTZ: `"type":"string","name":"io.debezium.time.ZonedTimestamp","version":1`,
		}[c.Type.Kind]
		fields = append(fields, `{`+typ+`,"optional":false,"field":"`+c.Name+`"}`)
	}
	row := `{"type":"struct","fields":[` + strings.Join(fields, ",") + `],"optional":true,"name":"larkspur.shop.orders.Value","field":"`
	return `{"type":"struct","fields":[` + row + `before"},` + row + `after"}],"optional":false,"name":"larkspur.shop.orders.Envelope","version":2}`
}

// Once its room is made, a decoder asks for none: what is left is the growth of Rows.
func TestDecodingAllocatesNothing(t *testing.T) {
	known := recordedSchemas(t)
	avro := ofTopic(samples(t, "avro.jsonl"), "av.app.customers")[0].Record
	for name, c := range map[string]struct {
		d     *Decoder
		value []byte
	}{
		"json":             {newDecoder(t, Config{Schema: referenceSchema}), referenceRecord(7, "")},
		"json with schema": {newDecoder(t, Config{Schema: referenceSchema}), referenceRecord(7, referenceBlock())},
		"avro":             {newDecoder(t, Config{Schema: columns("id int4", "name text", "email text", "note text"), Registry: known}), avro.Value},
	} {
		rec := Record{Key: []byte(`{"order_id":"OGB00000007"}`), Value: c.value, Headers: []Header{{Key: headerRun, Value: []byte("01a228d2-9166-79ff-b5e6-eb1d3ad93528")}}}
		var order Order
		rows := change.NewRows(c.d.cfg.Schema)
		n := int64(0)
		decode := func() {
			ev, err := c.d.Decode(t.Context(), &rec, rows)
			require.NoError(t, err)
			ev.LSN += catalog.LSN(n)
			if _, err := order.Place(&ev, 0, n); err != nil {
				t.Fatal(err)
			}
			n++
		}
		for range 5000 {
			decode()
		}
		require.Less(t, testing.AllocsPerRun(2000, decode), 1.0, name)
	}
}

func BenchmarkJSON(b *testing.B)       { benchmarkDecode(b, "") }
func BenchmarkJSONSchema(b *testing.B) { benchmarkDecode(b, referenceBlock()) }

func benchmarkDecode(b *testing.B, schema string) {
	b.Helper()
	records := make([]Record, 10000)
	size := 0
	for i := range records {
		records[i] = Record{
			Topic: "larkspur.shop.orders", Offset: int64(i), Value: referenceRecord(i, schema),
			Headers: []Header{{Key: headerRun, Value: []byte("01a228d2-9166-79ff-b5e6-eb1d3ad93528")}},
		}
		size += len(records[i].Value)
	}
	benchmark(b, newDecoder(b, Config{Schema: referenceSchema}), records, size)
}

func BenchmarkAvro(b *testing.B) {
	recorded := ofTopic(samples(b, "avro.jsonl"), "av.app.customers")[:5]
	records := make([]Record, 10000)
	size := 0
	for i := range records {
		records[i] = recorded[i%len(recorded)].Record
		size += len(records[i].Value)
	}
	d := newDecoder(b, Config{Schema: columns("id int4", "name text", "email text", "note text"), Registry: recordedSchemas(b)})
	benchmark(b, d, records, size)
}

// benchmark decodes and places events into the Rows of one batch, which then is full.
func benchmark(b *testing.B, d *Decoder, records []Record, size int) {
	b.Helper()
	var order Order
	rows := change.NewRows(d.cfg.Schema)
	b.SetBytes(int64(size / len(records)))
	b.ReportAllocs()
	n := 0
	start := cpuTime(b)
	for b.Loop() {
		if n%250000 == 0 {
			rows = change.NewRows(d.cfg.Schema)
		}
		rec := &records[n%len(records)]
		ev, err := d.Decode(b.Context(), rec, rows)
		require.NoError(b, err)
		ev.LSN = catalog.LSN(1<<20 + n)
		if _, err := order.Place(&ev, 0, int64(n)); err != nil {
			b.Fatal(err)
		}
		n++
	}
	// On a machine that others use, too, the clock says little.
	b.ReportMetric(float64(b.N)/(cpuTime(b)-start).Seconds(), "events/cpu-s")
}

// cpuTime is what the process has used, garbage collection included.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
