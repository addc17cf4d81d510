package typemap_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

var update = flag.Bool("update", false, "rewrite generated and golden files")

func TestTypesPageIsUpToDate(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "reference", "types.md")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(typemap.Markdown()), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(typemap.Markdown(), string(have)), "run go test ./catalog/typemap -update")
}

// numericModifier is what Postgres 15 stores for numeric(precision, scale).
func numericModifier(precision, scale int32) int32 { return (precision<<16 | scale&0x7ff) + 4 }

func source(base string) catalog.SourceType { return catalog.SourceType{Base: base, Modifier: -1} }

func TestEveryPostgresTypeHasALakeType(t *testing.T) {
	t.Parallel()
	numeric := func(p, s int32) catalog.SourceType {
		return catalog.SourceType{Base: "numeric", Modifier: numericModifier(p, s)}
	}
	array := func(e catalog.SourceType, modifier int32) catalog.SourceType {
		return catalog.SourceType{Base: "array", Elem: &e, Modifier: modifier}
	}
	declared := func(e catalog.SourceType, dims int) catalog.SourceType {
		return catalog.SourceType{Base: "array", Elem: &e, Modifier: -1, Dims: dims}
	}
	cases := []struct {
		source catalog.SourceType
		want   string
	}{
		{source("int2"), "int"},
		{source("int8"), "long"},
		{source("numeric"), "string"},
		{numeric(1, 0), "decimal(1, 0)"},
		{numeric(38, 38), "decimal(38, 38)"},
		{numeric(39, 0), "string"},
		{numeric(3, 5), "decimal(5, 5)"},
		{numeric(3, 39), "string"},
		{numeric(5, -2), "decimal(7, 0)"},
		{numeric(30, -9), "string"},
		{source("bpchar"), "string"},
		{source("timetz"), "string"},
		{source("composite"), "string"},
		{source("a type of tomorrow"), "string"},
		{catalog.SourceType{}, "string"},
		{array(source("int4"), -1), "list<int>"},
		{array(source("numeric"), numericModifier(9, 3)), "list<decimal(9, 3)>"},
		{array(numeric(9, 3), -1), "list<decimal(9, 3)>"},
		{array(source("enum"), -1), "list<string>"},
		{array(source("box"), -1), "string"},
		{declared(source("int4"), 1), "list<int>"},
		{declared(source("int4"), 2), "string"},
		{array(array(source("int4"), -1), -1), "list<string>"},
		{catalog.SourceType{Base: "array"}, "string"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, typemap.Postgres(c.source).String(), "%+v", c.source)
	}
}

var (
	long     = catalog.Type{Kind: catalog.Int64}
	integer  = catalog.Type{Kind: catalog.Int32}
	text     = catalog.Type{Kind: catalog.Text}
	boolean  = catalog.Type{Kind: catalog.Bool}
	float4   = catalog.Type{Kind: catalog.Float32}
	float8   = catalog.Type{Kind: catalog.Float64}
	date     = catalog.Type{Kind: catalog.Date}
	clock    = catalog.Type{Kind: catalog.Time}
	stamp    = catalog.Type{Kind: catalog.Timestamp}
	stampTZ  = catalog.Type{Kind: catalog.TimestampTZ}
	uuid     = catalog.Type{Kind: catalog.UUID}
	binary   = catalog.Type{Kind: catalog.Binary}
	money    = decimal(12, 2)
	integers = list(integer)
	texts    = list(text)
)

func decimal(p, s int) catalog.Type {
	return catalog.Type{Kind: catalog.Decimal, Precision: p, Scale: s}
}

func list(elem catalog.Type) catalog.Type { return catalog.Type{Kind: catalog.List, Elem: &elem} }

func TestCanonicalTextComesBackAsItWas(t *testing.T) {
	t.Parallel()
	const nines = "99999999999999999999999999999999999999"
	cases := []struct {
		typ   catalog.Type
		texts []string
	}{
		{boolean, []string{"t", "f"}},
		{integer, []string{"0", "-1", "2147483647", "-2147483648"}},
		{long, []string{"9223372036854775807", "-9223372036854775808", "9007199254740993"}},
		{float4, []string{"0", "-0", "1", "0.1", "1e+06", "100000", "1e-45", "3.4028235e+38", "NaN", "Infinity", "-Infinity", "1.1754944e-38", "0.0001", "1e-05", "1.6777216e+07"}},
		{float8, []string{"0", "-0", "0.1", "1e+20", "1e-07", "0.0001", "123456789012345", "1e+15", "1.2345678901234568e+17", "5e-324", "1.7976931348623157e+308", "9.999999999999999e+22", "-2.5", "NaN", "Infinity"}},
		{money, []string{"12.50", "0.00", "-0.01", "9999999999.99", "-9999999999.99"}},
		{decimal(18, 0), []string{"999999999999999999", "-999999999999999999", "0"}},
		{decimal(19, 0), []string{"9999999999999999999", "-1", "0"}},
		{decimal(38, 0), []string{nines, "-" + nines}},
		{decimal(38, 38), []string{"0." + nines, "-0." + nines, "0.00000000000000000000000000000000000001"}},
		{decimal(5, 5), []string{"0.00123", "-0.99999"}},
		{date, []string{"1970-01-01", "2000-02-29", "1900-02-28", "0001-01-01", "0001-12-31 BC", "0044-03-15 BC", "4713-11-24 BC", "5874897-12-31", "12026-06-01"}},
		{clock, []string{"00:00:00", "23:59:59.999999", "12:34:56.5"}},
		{stamp, []string{"2026-01-01 00:00:00.123456", "1969-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC", "294246-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807", "4713-11-24 00:00:00 BC"}},
		{stampTZ, []string{"2026-01-01 00:00:00+00", "1969-12-31 23:59:59.5+00", "0001-12-31 23:59:59.9+00 BC"}},
		{uuid, []string{"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}},
		{binary, []string{`\x`, `\x00ff10`}},
		{text, []string{"", "NULL", "Zürich \"{}\\"}},
		{integers, []string{"{}", "{1}", "{1,NULL,-3}", "{NULL}"}},
		{texts, []string{`{""}`, `{a,NULL,"NULL","null","a,b"," ","a\"b","\\","{x}",ü}`}},
		{list(binary), []string{`{"\\x00ff","\\x",NULL}`}},
		{list(stampTZ), []string{`{"2026-01-01 00:00:00+00",NULL}`}},
		{list(uuid), []string{`{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}`}},
		{list(decimal(38, 2)), []string{`{1.00,-2.50,NULL}`}},
		{list(float8), []string{`{NaN,1e+20,-0,Infinity}`}},
		{list(boolean), []string{`{t,f,NULL}`}},
	}
	for _, c := range cases {
		var buf []byte
		for _, want := range c.texts {
			fixed, value, err := typemap.Decode(c.typ, []byte(want), buf)
			require.NoError(t, err, "%s %s", c.typ, want)
			require.Equal(t, want, string(typemap.AppendText(nil, c.typ, fixed, value)), "%s", c.typ)
			if c.typ.Kind != catalog.Text {
				buf = value
			}
		}
	}
}

func TestDecodeGivesTheValueThatTheLakeStores(t *testing.T) {
	t.Parallel()
	cases := []struct {
		typ   catalog.Type
		text  string
		fixed int64
	}{
		{money, "12.5", 1250}, // a text with less scale than the column is still exact
		{money, "12.5000", 1250},
		{money, "-0.01", -1},
		{date, "2000-01-01", 10957},
		{date, "0001-12-31 BC", -719163},
		{stamp, "1970-01-01 00:00:01.5", 1_500_000},
		{stampTZ, "1970-01-01 02:00:00+02", 0},
		{stampTZ, "1970-01-01 00:00:00-03:30", 12_600_000_000},
		{clock, "00:00:00.000001", 1},
	}
	for _, c := range cases {
		fixed, _, err := typemap.Decode(c.typ, []byte(c.text), nil)
		require.NoError(t, err, c.text)
		require.Equal(t, c.fixed, fixed, c.text)
	}
}

func TestLegalValuesWithoutAPlaceAreUnfit(t *testing.T) {
	t.Parallel()
	cases := map[string]catalog.Type{
		"NaN":                          money,
		"Infinity":                     decimal(38, 0),
		"0.001":                        money,
		"10000000000.00":               money,
		"1000000000000000000":          decimal(18, 0),
		"infinity":                     date,
		"-infinity":                    stamp,
		"294247-01-10 04:00:54.775808": stamp,
		"294276-12-31 23:59:59.999999": stamp,
		"294276-12-31 23:59:59+00":     stampTZ,
		"24:00:00":                     clock,
		"{{1,2},{3,4}}":                integers,
		"[0:1]={1,2}":                  integers,
		"[1:2][1:1]={{a},{b}}":         texts,
		"{2026-01-01,infinity}":        list(date),
		"{NaN}":                        list(money),
		"\xff":                         text,
		"{\xff}":                       texts,
	}
	for text, typ := range cases {
		_, _, err := typemap.Decode(typ, []byte(text), nil)
		require.ErrorIs(t, err, typemap.ErrUnfit, "%s %q", typ, text)
	}
}

func TestTextOfAnotherTypeIsMalformed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		typ   catalog.Type
		texts []string
	}{
		{boolean, []string{"", "true", "T", "1"}},
		{integer, []string{"", "-", "2147483648", "1.0", "+1", " 1", "1e3", "0x10"}},
		{long, []string{"9223372036854775808", "-9223372036854775809", "99999999999999999999999999"}},
		{float8, []string{"", "inf", "nan", "0x1p-2", "1_000", "1e999", "infinity"}},
		{money, []string{"", "-", ".", "1.", ".5", "1.2.3", "1e3", "12,50", "--1"}},
		{date, []string{"", "2026", "2026-13-01", "2026-02-29", "2026-00-10", "0000-01-01", "2026-01-01 ", "01-01-2026", "999999999-01-01"}},
		{clock, []string{"", "25:00:00", "24:00:00.000001", "12:60:00", "12:00", "12:00:00.", "12:00:00.1234567", "12:00:00+00"}},
		{stamp, []string{"2026-01-01", "2026-01-01T00:00:00", "2026-01-01 00:00:00+00", "2026-01-01 24:00:00"}},
		{stampTZ, []string{"2026-01-01 00:00:00", "2026-01-01 00:00:00+", "2026-01-01 00:00:00+0", "2026-01-01 00:00:00Z", "2026-01-01 00:00:00+00:00:00:00"}},
		{uuid, []string{"", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g"}},
		{binary, []string{"", "x00", `\x0`, `\xzz`, `\000`}},
		{integers, []string{"", "1", "{", "{1", "{1,}", "{,1}", "{1}x", "{1}}", "{a}", `{"1`, `{"1"2}`, "[0:1]", "{1 ,2}"}},
		{texts, []string{`{a"b}`, `{a\b}`, `{"a\`, `{"a\"}`, `{a{b}`, `{"a"`}},
	}
	for _, c := range cases {
		for _, s := range c.texts {
			_, _, err := typemap.Decode(c.typ, []byte(s), nil)
			require.ErrorIs(t, err, typemap.ErrMalformed, "%s %q", c.typ, s)
		}
	}
}

func TestErrorsDoNotShowTheValue(t *testing.T) {
	t.Parallel()
	for _, typ := range allTypes() {
		_, _, err := typemap.Decode(typ, []byte("secret\xff"), nil)
		require.Error(t, err, typ)
		require.NotContains(t, err.Error(), "secret", typ)
	}
}

func allTypes() []catalog.Type {
	scalars := []catalog.Type{boolean, integer, long, float4, float8, money, decimal(38, 5), date, clock, stamp, stampTZ, uuid, binary, text}
	all := scalars
	for _, s := range scalars {
		all = append(all, list(s))
	}
	return all
}

func TestDecodeAndAppendTextDoNotAllocate(t *testing.T) {
	cases := map[string]catalog.Type{
		"123456789012": long, "12.50": money, "99999999999999999999.12345": decimal(38, 5),
		"2026-01-01 00:00:00.5+00": stampTZ, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11": uuid,
		`\x00ff`: binary, "{1,NULL,3}": integers, "12.25": float8, "some text": text,
	}
	buf, out := make([]byte, 0, 256), make([]byte, 0, 256)
	for s, typ := range cases {
		in := []byte(s)
		n := testing.AllocsPerRun(100, func() {
			fixed, value, err := typemap.Decode(typ, in, buf)
			if err != nil {
				t.Fatal(err)
			}
			out = typemap.AppendText(out[:0], typ, fixed, value)
		})
		require.Zero(t, n, s)
	}
}

func BenchmarkDecode(b *testing.B) {
	row := []struct {
		typ  catalog.Type
		text []byte
	}{
		{long, []byte("123456789")},
		{money, []byte("1234.50")},
		{stampTZ, []byte("2026-01-01 12:34:56.789012+00")},
		{text, []byte("somebody@example.com")},
		{integer, []byte("17")},
		{boolean, []byte("t")},
		{uuid, []byte("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")},
		{date, []byte("2026-01-01")},
	}
	var buf []byte
	for b.Loop() {
		for _, c := range row {
			_, v, _ := typemap.Decode(c.typ, c.text, buf)
			if c.typ.Kind != catalog.Text {
				buf = v
			}
		}
	}
}
