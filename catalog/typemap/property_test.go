package typemap_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// drawValue draws a value of a type as Decode would return it.
func drawValue(t *rapid.T, typ catalog.Type) (int64, []byte) {
	switch typ.Kind {
	case catalog.Bool:
		return rapid.Int64Range(0, 1).Draw(t, "bool"), nil
	case catalog.Int32:
		return int64(rapid.Int32().Draw(t, "int")), nil
	case catalog.Int64:
		return rapid.Int64().Draw(t, "long"), nil
	case catalog.Float32:
		f := math.Float32frombits(rapid.Uint32().Draw(t, "float"))
		if f != f {
			f = float32(math.NaN())
		}
		return int64(math.Float32bits(f)), nil
	case catalog.Float64:
		f := math.Float64frombits(rapid.Uint64().Draw(t, "double"))
		if f != f {
			f = math.NaN()
		}
		return int64(math.Float64bits(f)), nil
	case catalog.Date:
		return rapid.Int64Range(-2440588, 2145031948).Draw(t, "days"), nil
	case catalog.Time:
		return rapid.Int64Range(0, 86_400_000_000-1).Draw(t, "time"), nil
	case catalog.Timestamp, catalog.TimestampTZ:
		return rapid.Int64Range(-210866803200000000, math.MaxInt64).Draw(t, "timestamp"), nil
	case catalog.UUID:
		return 0, rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")
	case catalog.Binary:
		return 0, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case catalog.Text:
		return 0, []byte(strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", ""))
	case catalog.Decimal:
		digits := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), typ.Precision, typ.Precision, -1).Draw(t, "digits")
		whole := digits[:typ.Precision-typ.Scale]
		s := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + "0" + whole + "." + digits[len(whole):]
		fixed, b, err := typemap.Decode(typ, []byte(strings.TrimSuffix(s, ".")), nil)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return fixed, b
	case catalog.List:
		var list []byte
		for range rapid.IntRange(0, 5).Draw(t, "length") {
			if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
				list = typemap.AppendElemNull(list)
				continue
			}
			fixed, b := drawValue(t, *typ.Elem)
			if typ.Elem.Fixed() {
				list = typemap.AppendElemFixed(list, fixed)
			} else {
				list = typemap.AppendElemBytes(list, b)
			}
		}
		return 0, list
	}
	return 0, nil
}

func TestEveryValueSurvivesTextAndBack(t *testing.T) {
	t.Parallel()
	for _, typ := range append(allTypes(), decimal(18, 18), decimal(38, 38), decimal(19, 0), decimal(1, 0)) {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				fixed, value := drawValue(t, typ)
				text := typemap.AppendText(nil, typ, fixed, value)
				fixed2, value2, err := typemap.Decode(typ, text, nil)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if fixed != fixed2 || !bytes.Equal(value, value2) {
					t.Fatalf("%s became %d %x, was %d %x", text, fixed2, value2, fixed, value)
				}
			})
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "{1,NULL}", "2026-01-01 00:00:00+00 BC", "-12.50", `{"a\"b","\\x00"}`, "[0:1]={1,2}", "1e+20", "24:00:00"} {
		for i := range allTypes() {
			f.Add(uint8(i), []byte(seed))
		}
	}
	types := allTypes()
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		typ := types[int(kind)%len(types)]
		fixed, value, err := typemap.Decode(typ, text, nil)
		if err != nil {
			return
		}
		// Text is canonical only from AppendText on; the value may not change any more.
		canonical := typemap.AppendText(nil, typ, fixed, value)
		fixed2, value2, err := typemap.Decode(typ, canonical, nil)
		if err != nil || fixed != fixed2 || !bytes.Equal(value, value2) {
			t.Fatalf("%s %q became %q: %v", typ, text, canonical, err)
		}
	})
}
