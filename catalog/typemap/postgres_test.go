package typemap_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// The server is the judge: whatever it prints must be decoded, and printed again
// just so.
func TestDecodeAgreesWithWhatPostgresPrints(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	many := func(n int, f func() string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = f()
		}
		return out
	}
	digits := func(n int) string {
		b := []byte{byte('1' + random.IntN(9))}
		for range n - 1 {
			b = append(b, byte('0'+random.IntN(10)))
		}
		return string(b)
	}
	sign := func() string { return []string{"", "-"}[random.IntN(2)] }
	floats := func(size int) []string {
		bits := map[int]func() float64{
			32: func() float64 { return float64(math.Float32frombits(random.Uint32())) },
			64: func() float64 { return math.Float64frombits(random.Uint64()) },
		}[size]
		out := append(many(4000, func() string {
			f := bits()
			if math.IsInf(f, 0) {
				return "Infinity"
			}
			return strconv.FormatFloat(f, 'g', -1, 64)
		}), many(3000, func() string { // few digits: these are the ones that lie halfway
			s := sign() + digits(1+random.IntN(17)) + "e" + strconv.Itoa(random.IntN(50)-25)
			if f, err := strconv.ParseFloat(s, size); err != nil || f == 0 {
				return "1" // the server refuses what is out of range
			}
			return s
		})...)
		for e := range 38 {
			out = append(out, fmt.Sprintf("1e%d", e), fmt.Sprintf("1e-%d", e), strconv.FormatFloat(math.Ldexp(1, e+23), 'g', -1, 64), strconv.FormatFloat(math.Ldexp(1, -e), 'g', -1, 64))
		}
		if size == 64 {
			for e := 50; e < 300; e += 7 {
				out = append(out, fmt.Sprintf("1e%d", e), strconv.FormatFloat(math.Ldexp(1, e), 'g', -1, 64))
			}
			return append(out, "4.9e-324", "1.7976931348623157e308", "2.2250738585072014e-308", "1e23", "9007199254740993", "0", "-0", "NaN", "-Infinity", "Infinity")
		}
		return append(out, "1e-45", "3.4028235e38", "1.17549435e-38", "16777216", "16777217", "0", "-0", "NaN", "-Infinity", "Infinity")
	}
	randomBytes := func() string {
		b := make([]byte, random.IntN(40))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return `\x` + hex.EncodeToString(b)
	}
	numeric := func(p, s int32) catalog.SourceType {
		return catalog.SourceType{Base: "numeric", Modifier: numericModifier(p, s)}
	}
	array := func(e catalog.SourceType) catalog.SourceType {
		return catalog.SourceType{Base: "array", Elem: &e, Modifier: -1}
	}
	dates := many(1000, func() string {
		y := []int{random.IntN(9999) + 1, random.IntN(200) + 1900, random.IntN(290000) + 1, random.IntN(4712) + 1}
		i := random.IntN(4)
		s := fmt.Sprintf("%04d-%02d-%02d", y[i], random.IntN(12)+1, random.IntN(28)+1)
		if i == 3 {
			s += " BC"
		}
		return s
	})
	stamps := make([]string, 0, len(dates))
	for _, d := range dates {
		d, bc := strings.CutSuffix(d, " BC")
		s := fmt.Sprintf("%s %02d:%02d:%02d.%06d", d, random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1_000_000)/[]int{1, 10, 1000, 1_000_000}[random.IntN(4)])
		if bc {
			s += " BC"
		}
		stamps = append(stamps, s)
	}
	stamps = append(stamps, "4714-11-24 00:00:00 BC", "294247-01-10 04:00:54.775807", "2000-02-29 23:59:59.999999", "epoch", "0001-01-01 00:00:00")
	words := []string{"", "NULL", "null", "a", "a b", `"`, `\`, "{", "}", ",", "ü€😀", "tab\there", "line\nfeed", "\v\f", "a,b", ";", "'", "NULLS", "[1:2]={1}"}

	cases := []struct {
		cast   string
		source catalog.SourceType
		values []string
		unfit  []string
	}{
		{"bool", source("bool"), []string{"t", "f"}, nil},
		{"int2", source("int2"), []string{"-32768", "32767", "0"}, nil},
		{"int4", source("int4"), []string{"-2147483648", "2147483647"}, nil},
		{"int8", source("int8"), append(many(200, func() string { return strconv.FormatInt(int64(random.Uint64()), 10) }), "-9223372036854775808", "9223372036854775807"), nil},
		{"float4", source("float4"), floats(32), nil},
		{"float8", source("float8"), floats(64), nil},
		{"numeric", source("numeric"), []string{"NaN", "Infinity", "1.50", "1e30", "1e-30", digits(100)}, nil},
		{"numeric(12,2)", numeric(12, 2), append(many(200, func() string { return sign() + digits(1+random.IntN(10)) + "." + digits(2) }), "0", "-0.01", "0.005"), []string{"NaN"}},
		{"numeric(18,6)", numeric(18, 6), many(100, func() string { return sign() + digits(12) + "." + digits(6) }), nil},
		{"numeric(38,10)", numeric(38, 10), append(many(200, func() string { return sign() + digits(1+random.IntN(28)) + "." + digits(10) }), "9999999999999999999999999999.9999999999"), []string{"NaN"}},
		{"numeric(38,38)", numeric(38, 38), many(50, func() string { return sign() + "0." + digits(38) }), nil},
		{"numeric(5,-2)", numeric(5, -2), []string{"1234567", "-9999900", "49", "0"}, nil},
		{"numeric(3,5)", numeric(3, 5), []string{"0.00123", "-0.00999", "0"}, nil},
		{"numeric(50,2)", numeric(50, 2), []string{digits(48) + ".25"}, nil},
		{"text", source("text"), words, nil},
		{"char(8)", source("bpchar"), []string{"", "abc", "üü"}, nil},
		{"date", source("date"), append(dates, "4714-11-24 BC", "5874897-12-31", "2000-02-29"), []string{"infinity", "-infinity"}},
		{"time", source("time"), []string{"00:00:00", "23:59:59.999999", "12:00:00.5"}, []string{"24:00:00"}},
		{"timestamp", source("timestamp"), stamps, []string{"infinity", "-infinity", "294276-12-31 23:59:59", "294247-01-10 04:00:54.775808"}},
		{"timestamptz", source("timestamptz"), stamps, []string{"infinity", "294276-12-31 23:59:59+00"}},
		{"timetz", source("timetz"), []string{"12:00:00+02", "24:00:00-08"}, nil},
		{"interval", source("interval"), []string{"1 year -3 days 04:05:06.7", "-1 day", "0"}, nil},
		{"uuid", source("uuid"), []string{"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "00000000-0000-0000-0000-000000000000"}, nil},
		{"bytea", source("bytea"), many(100, randomBytes), nil},
		{"jsonb", source("jsonb"), []string{`{"b":1,"a":[1.50,null,"x"]}`, "3", "null"}, nil},
		{"inet", source("inet"), []string{"10.0.0.1", "::1/64"}, nil},
		{"money", source("money"), []string{"12.5", "-3"}, nil},
		{"int4range", source("int4range"), []string{"[1,5)", "empty"}, nil},
		{"int4[]", array(source("int4")), []string{"{}", "{1,NULL,3}", "[1:2]={4,5}"}, []string{"{{1},{2}}", "[0:1]={1,2}"}},
		{"numeric(12,2)[]", array(numeric(12, 2)), []string{"{1,2.5,NULL,-0.01}"}, []string{"{1,NaN}"}},
		{"float8[]", array(source("float8")), []string{"{1e20,NaN,-0,1e23}"}, nil},
		{"timestamptz[]", array(source("timestamptz")), []string{"{2026-01-01 00:00:00+02,NULL}"}, []string{"{infinity}"}},
		{"bytea[]", array(source("bytea")), []string{`{"\\x00ff","\\x"}`}, nil},
		{"uuid[]", array(source("uuid")), []string{"{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"}, nil},
		{"bool[]", array(source("bool")), []string{"{t,f,NULL}"}, nil},
		{"inet[]", array(source("inet")), []string{"{10.0.0.1,NULL,::1/64}"}, nil},
		{"int4range[]", array(source("int4range")), []string{`{"[1,5)",empty}`}, nil},
		{"box[]", array(source("box")), []string{"{(1,1),(0,0);(2,2),(1,1)}"}, nil},
		{"interval[]", array(source("interval")), []string{`{"1 day 02:00:00"}`}, nil},
	}

	ctx := t.Context()
	config, err := pgconn.ParseConfig(localpgtest.Database(t))
	require.NoError(t, err)
	maps.Copy(config.RuntimeParams, typemap.SessionSettings())
	conn, err := pgconn.ConnectConfig(ctx, config)
	require.NoError(t, err)
	defer conn.Close(ctx)

	ask := func(cast string, values []string) [][]byte {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = fmt.Sprintf("(%d, '%s')", i, strings.ReplaceAll(v, "'", "''"))
		}
		results, err := conn.Exec(ctx, "SELECT v::"+cast+" FROM (VALUES "+strings.Join(quoted, ",")+") x(i, v) ORDER BY i").ReadAll()
		require.NoError(t, err, cast)
		var out [][]byte
		for _, row := range results[0].Rows {
			out = append(out, row[0])
		}
		require.Len(t, out, len(values))
		return out
	}
	for _, c := range cases {
		typ := typemap.Postgres(c.source)
		for i, printed := range ask(c.cast, c.values) {
			fixed, value, err := typemap.Decode(typ, printed, nil)
			require.NoError(t, err, "%s %s", c.cast, printed)
			require.Equal(t, string(printed), string(typemap.AppendText(nil, typ, fixed, value)), "%s %s", c.cast, c.values[i])
		}
		if len(c.unfit) > 0 {
			for _, printed := range ask(c.cast, c.unfit) {
				_, _, err := typemap.Decode(typ, printed, nil)
				require.ErrorIs(t, err, typemap.ErrUnfit, "%s %s", c.cast, printed)
			}
		}
	}

	// Any list of any words, made by the server itself.
	for range 200 {
		list := make([]string, random.IntN(6))
		for i := range list {
			list[i] = "E'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(words[random.IntN(len(words))]) + "'"
			if random.IntN(5) == 0 {
				list[i] = "NULL"
			}
		}
		results, err := conn.Exec(ctx, "SELECT ARRAY["+strings.Join(list, ",")+"]::text[]").ReadAll()
		require.NoError(t, err)
		printed := results[0].Rows[0][0]
		_, value, err := typemap.Decode(texts, printed, nil)
		require.NoError(t, err, "%s", printed)
		require.Equal(t, string(printed), string(typemap.AppendText(nil, texts, 0, value)))
	}
}
