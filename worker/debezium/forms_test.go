package debezium

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// valueOf decodes one JSON value of a column.
func valueOf(t *testing.T, cfg Config, typ, value string) (string, error) {
	t.Helper()
	cfg.Schema = columns("id int4", "v "+typ)
	ev, rows, err := one(t, newDecoder(t, cfg), Record{Value: []byte(enveloped("c", "null", `{"id":1,"v":`+value+`}`))})
	if err != nil {
		return "", err
	}
	return texts(rows, ev.After)["v"], nil
}

func TestFormsOfValues(t *testing.T) {
	t.Parallel()
	adaptive, nanos, millis := Config{Time: Adaptive}, Config{Time: Nanoseconds}, Config{Time: Milliseconds}
	precise, hexes, url := Config{Decimal: DecimalPrecise}, Config{Binary: Hex}, Config{Binary: Base64URL}
	for _, c := range []struct {
		cfg              Config
		typ, value, want string
	}{
		{Config{}, "date", "0", "1970-01-01"},
		{Config{}, "date", "-2440588", "4714-11-24 BC"},
		{Config{}, "date", "-2440589", textUnfit},
		{Config{}, "date", "2145042905", "5874897-12-31"},
		{Config{}, "date", "2147483647", textUnfit},
		{Config{}, "date", `"-4713-11-24Z"`, "4714-11-24 BC"},
		{Config{}, "date", `"0000-03-01Z"`, "0001-03-01 BC"},
		{Config{}, "date", `"+12345-01-02"`, "12345-01-02"},
		{Config{}, "date", `"-5877611-06-21Z"`, textUnfit},
		{Config{}, "timestamp", "9223372036825200000", textUnfit},
		{Config{}, "timestamp", "-9223372036832400000", textUnfit},
		{Config{}, "timestamp", "-210866803200000000", "4714-11-24 00:00:00 BC"},
		{Config{}, "timestamp", "9223372036854775807", "294247-01-10 04:00:54.775807"},
		{Config{}, "timestamp(3)", "1709210096123000", "2024-02-29 12:34:56.123"},
		{adaptive, "timestamp(3)", "1709210096123", "2024-02-29 12:34:56.123"},
		{adaptive, "timestamp(3)", "9223372036825200", textUnfit},
		{adaptive, "timestamp(3)", "9224318015999999", textUnfit}, // 294276 AD
		{adaptive, "timestamp", "1709210096123456", "2024-02-29 12:34:56.123456"},
		{adaptive, "timestamp(4)", "1709210096123400", "2024-02-29 12:34:56.1234"},
		{adaptive, "time(3)", "3723456", "01:02:03.456"},
		{adaptive, "time", "86400000000", textUnfit},
		{Config{Time: AdaptiveTime}, "time(3)", "3723456000", "01:02:03.456"},
		{Config{Time: AdaptiveTime}, "timestamp(0)", "1709210096000", "2024-02-29 12:34:56"},
		{nanos, "timestamp", "1709210096123456000", "2024-02-29 12:34:56.123456"},
		{nanos, "time", "3723456000000", "01:02:03.456"},
		{millis, "timestamp(3)", "1709210096123", "2024-02-29 12:34:56.123"},
		{millis, "date", "19782", "2024-02-29"},
		{Config{}, "timestamptz", `"-0043-03-15T12:00:00.000000Z"`, "0044-03-15 12:00:00+00 BC"},
		{Config{}, "timestamptz", `"infinity"`, textUnfit},
		{Config{}, "timestamptz", `"+294276-12-31T23:59:59.999999Z"`, textUnfit},
		{Config{}, "timestamptz", `"2024-02-29T12:34:56+05:30"`, "2024-02-29 07:04:56+00"},
		{Config{}, "int2vector", "[]", textUnfit}, // Debezium sends no element
		{Config{}, "oidvector", `[1, {"a": null}]`, textUnfit},
		{Config{}, "float8", "-0.0", "-0"},
		{Config{}, "float8", "1.0E10", "10000000000"},
		{Config{}, "float4", "1.4e-45", "1e-45"},
		{Config{}, "float8", `"-Infinity"`, "-Infinity"},
		{Config{}, "int8", "-9223372036854775808", "-9223372036854775808"},
		{Config{}, "numeric", `"-0.10"`, "-0.10"},
		{Config{}, "numeric", `"NAN"`, "NaN"},
		{Config{}, "numeric", `"POSITIVE_INFINITY"`, "Infinity"},
		{Config{}, "numeric", `{"scale":0,"value":"AIA="}`, "128"},
		{Config{}, "numeric", `{"scale":-3,"value":"gA=="}`, "-128000"},
		{Config{}, "numeric(10,2)", `"NAN"`, textUnfit},
		{Config{}, "numeric(10,0)", `"1234"`, "1234"},
		{precise, "numeric(10,2)", `"EtaH"`, "12345.67"},
		{precise, "numeric(38,10)", `"/w=="`, "-0.0000000001"},
		{precise, "numeric(18,0)", `"DeC2s6dj//8="`, "999999999999999999"},
		{precise, "numeric(5,2)[]", `["bg==",null]`, "{1.10,NULL}"},
		{precise, "numeric[]", `[{"scale":2,"value":"bg=="}]`, "{1.10}"},
		{Config{Monetary: "en_US.UTF-8"}, "money", `"-1234567.80"`, "-$1,234,567.80"},
		{Config{Monetary: "C"}, "money", `"5"`, "$5.00"},
		{Config{Monetary: "C"}, "money", `"123.45"`, "$123.45"},
		{Config{Monetary: "de_DE.UTF-8"}, "money", `"1.00"`, textUnfit},
		{Config{Decimal: DecimalPrecise, Monetary: "C"}, "money", `"AeJA"`, "$1,234.56"},
		{Config{}, "bytea", `""`, `\x`},
		{Config{}, "bytea", `"AP8Q"`, `\x00ff10`},
		{url, "bytea", `"_-8="`, `\xffef`},
		{hexes, "bytea", `"00ff10"`, `\x00ff10`},
		{hexes, "xid", `"313233"`, "123"},
		{Config{}, "bit(1)", "true", "1"},
		{Config{}, "bit(12)", `"qgk="`, "100110101010"},
		{Config{}, "bit(12)", `"AQ=="`, "000000000001"},
		{Config{}, "bit", "false", "0"},
		{Config{}, "varbit", `"AQ=="`, textUnfit},
		{Config{}, "timetz", `"07:44:15Z"`, textUnfit},
		{Config{}, "interval", "37091106789000", textUnfit},
		{Config{}, "interval", `"PT0S"`, "00:00:00"},
		{Config{}, "public.hstore", `"{}"`, ""},
		{Config{}, "public.hstore", `{"longer":"a","b":null,"a":"q\"\\"}`, `"a"=>"q\"\\", "b"=>NULL, "longer"=>"a"`},
		{Config{}, "public.hstore", `"{\"é\":\"\\u00e9\"}"`, `"é"=>"é"`},
		{Config{}, "point", `{"x":1.0E22,"y":"NaN","wkb":"","srid":null}`, "(1e+22,NaN)"},
		{Config{}, "path", `"WygxLjBFLTcsLUluZmluaXR5KV0="`, "[(1e-07,-Infinity)]"},
		{Config{}, "box[]", `"eygxLjAsMS4wKSwoMC4wLDAuMCk7KDIuMCwyLjApLCgxLjUsMS4wKX0="`, "{(1,1),(0,0);(2,2),(1.5,1)}"},
		{Config{}, "point[]", `"eyIoMS4wLC0yLjApIixOVUxMfQ=="`, `{"(1,-2)",NULL}`},
		{Config{}, "text[]", "[]", "{}"},
		{Config{}, "text[]", `["","NULL",null,"a,\"b\""]`, `{"","NULL",NULL,"a,\"b\""}`},
		{Config{}, "int4[]", "[[1],[2]]", textUnfit},
		{Config{}, "int4[][]", "[null,null]", textUnfit},
		{Config{}, "int4[][]", "[]", "{}"},
		{Config{}, "date[]", "[19723,2147483647]", textUnfit},
		{Config{}, "date[]", `[19723,"2024-01-01Z"]`, "{2024-01-01,2024-01-01}"},
		{Config{}, "float8[]", `[1.5,"NaN"]`, "{1.5,NaN}"},
		{Config{}, "tstzrange", `"(,\"2024-01-01 00:00:00+02\"]"`, `(,"2023-12-31 22:00:00+00"]`},
		{Config{}, "tstzrange", `"empty"`, "empty"},
		{Config{}, "text[]", `["[Ljava.lang.String;@19bdefbf","[Ljava.lang.String;@13b7690b"]`, textUnfit},
		{Config{}, "jsonb[]", `["[[Ljava.lang.String;@3d245fb0"]`, textUnfit},
		{Config{}, "uuid[]", `["[Ljava.util.UUID;@19bdefbf"]`, textUnfit},
		{Config{}, "text[]", `["[Ljava.lang.String;@x"]`, "{[Ljava.lang.String;@x}"},
		{Config{}, "domain:range", `"[1,10)"`, "[1,10)"},
		{Config{}, "domain:range", `"empty"`, "empty"},
		{Config{}, "domain:range", `"WzEsMTAp"`, "[1,10)"},
		{Config{}, "domain:public.citext[]", `["TWl4ZWQ="]`, "{Mixed}"},
		{Config{}, "numeric", `"0.0000"`, "0.0000"},
		{Config{}, "numeric(30,-9)", `"-5000000000.000"`, "-5000000000"},
		{Config{}, "numeric(30,-9)[]", `["0.000",null]`, "{0,NULL}"},
		{Config{}, "time[]", `[86399999000]`, textUnfit},
		{Config{}, "time(3)[]", `[86399999000,null]`, "{23:59:59.999,NULL}"},
		{Config{}, "timestamp[]", `[-62135769600000000]`, textUnfit},
		{Config{}, "_box", "[]", "{}"},
		{Config{}, "_box", `["KDEsMSksKDAsMCk="]`, textUnfit},
		{Config{}, "domain:float4[]", `["MA==","MWUtNDU="]`, "{0,1e-45}"},
		{Config{}, "domain:jsonb[]", `["bnVsbA=="]`, `{"null"}`},
		{Config{}, "domain:interval[]", `["MSB5ZWFyIDIgbW9ucw=="]`, `{"1 year 2 mons"}`},
		{Config{}, "domain:timestamptz[]", `["NDcxNC0xMS0yNCAwMDowMDowMCswMCBCQw=="]`, `{"4714-11-24 00:00:00+00 BC"}`},
		{Config{}, "domain:numeric(5,2)[]", `["TmFO"]`, textUnfit},
		{Config{}, "oid", "4294967295", "4294967295"},
		{Config{}, "text", `"\u00e9\ud83d\ude00\/\b\f\n\r\t"`, "é😀/\b\f\n\r\t"},
	} {
		got, err := valueOf(t, c.cfg, c.typ, c.value)
		require.NoError(t, err, "%s %s", c.typ, c.value)
		require.Equal(t, c.want, got, "%s %s", c.typ, c.value)
	}
}

// What may mean several things is not guessed.
func TestAmbiguousValuesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg              Config
		typ, value, says string
	}{
		{Config{}, "timestamp(3)", "1709210096123", "time.precision.mode"},                     // milliseconds
		{Config{Time: Milliseconds}, "timestamp", "1709210096123", "time.precision.mode"},      // microseconds are lost
		{Config{Time: Nanoseconds}, "time", "1", "time.precision.mode"},                        // half a microsecond
		{Config{}, "time", "86400000001", "time.precision.mode"},                               // nanoseconds
		{Config{}, "timestamptz", "1709210096123456", "number"},                                // no setting does so
		{Config{}, "numeric(10,2)", "12.5", "decimal.handling.mode"},                           // double
		{Config{}, "numeric(10,2)", `"1234"`, "decimal.handling.mode"},                         // text, or three bytes
		{Config{}, "numeric(10,2)", `"EtaH"`, "decimal.handling.mode"},                         // bytes
		{Config{Decimal: DecimalPrecise}, "numeric(10,2)", `"12.50"`, "decimal.handling.mode"}, // text
		{Config{}, "bytea", `"0"`, "binary.handling.mode"},
		{Config{Binary: Hex}, "bytea", `"AP8Q"`, "binary.handling.mode"},
		{Config{}, "tstzrange", `"[\"01/02/2024 00:00:00 CET\",)"`, "DateStyle"},
		{Config{}, "public.vector", "[1,2]", "array"},
		{Config{}, "public.geometry", `{"wkb":"","srid":1}`, "object"},
		{Config{}, "bit(4)", `"/w=="`, "altered"},
		{Config{}, "public.hstore", `"{\"a\":1}"`, "object of texts"},
		{Config{}, "public.hstore", `{"a":"1","a":"2"}`, "twice"},
		{Config{}, "interval", `"P1W"`, "ISO"},
		{Config{}, "interval", `"P1.5D"`, "ISO"},
		{Config{}, "interval", `"P1DT"`, "ISO"},
		{Config{}, "point", `{"x":1}`, "point"},
		{Config{}, "float8", `"1.5"`, "text"},
		{Config{}, "date", `"2024-02-30"`, "date"},
		{Config{}, "date", "1.5", "number"},
	} {
		_, err := valueOf(t, c.cfg, c.typ, c.value)
		require.Error(t, err, "%s %s", c.typ, c.value)
		require.Contains(t, catalog.Public(err).Message, c.says, "%s %s", c.typ, c.value)
	}
}

// Each interval is printed as the server prints it.
func TestIntervalsPrintAsTheServerDoes(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), localpgtest.Database(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	random := rand.New(rand.NewPCG(7, 7))
	var spans []span
	for range 400 {
		s := span{random.Int64N(60) - 30, random.Int64N(80) - 40, random.Int64N(200*3600*microsToDay) - 100*3600*microsToDay}
		switch random.IntN(5) {
		case 0:
			s.months = 0
		case 1:
			s.days = 0
		case 2:
			s.micros = 0
		case 3:
			s.micros %= 1000
		}
		spans = append(spans, s)
	}
	var values []string
	for _, s := range spans {
		values = append(values, fmt.Sprintf("(make_interval(months => %d, days => %d) + %d * interval '1 microsecond')::text", s.months, s.days, s.micros))
	}
	var server []string
	require.NoError(t, conn.QueryRow(t.Context(), "select array["+strings.Join(values, ",")+"]").Scan(&server))
	for i, s := range spans {
		seconds := s.micros % (60 * microsToDay)
		iso := fmt.Sprintf("P%dY%dM%dDT%dH%dM", s.months/12, s.months%12, s.days, s.micros/3600/microsToDay, s.micros/60/microsToDay%60)
		if seconds < 0 {
			iso, seconds = iso+"-", -seconds
		}
		iso += fmt.Sprintf("%d.%06dS", seconds/microsToDay, seconds%microsToDay)
		got, err := valueOf(t, Config{}, "interval", `"`+iso+`"`)
		require.NoError(t, err, iso)
		require.Equal(t, server[i], got, iso)
	}
}
