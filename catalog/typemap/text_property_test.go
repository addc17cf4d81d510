package typemap_test

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// drawText draws a text that Postgres prints for a value of a type, made by other
// means than typemap's.
func drawText(t *rapid.T, typ catalog.Type) string {
	digits := func(name string, n int) string {
		return rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), n, n, -1).Draw(t, name)
	}
	instant := func(layout string) string {
		seconds := rapid.Int64Range(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()).Draw(t, "seconds")
		micros := rapid.SampledFrom([]int64{0, 1, 10, 500_000, 123_456, 999_999}).Draw(t, "micros")
		return time.Unix(seconds, micros*1000).UTC().Format(layout)
	}
	switch typ.Kind {
	case catalog.Bool:
		return rapid.SampledFrom([]string{"t", "f"}).Draw(t, "bool")
	case catalog.Int32:
		return strconv.Itoa(int(rapid.Int32().Draw(t, "int")))
	case catalog.Int64:
		return strconv.FormatInt(rapid.Int64().Draw(t, "long"), 10)
	case catalog.Float32, catalog.Float64: // halves are their own shortest form
		return strconv.FormatFloat(float64(rapid.IntRange(-199_999, 199_999).Draw(t, "halves"))/2, 'f', -1, 64)
	case catalog.Date:
		return instant("2006-01-02")
	case catalog.Time:
		return instant("15:04:05.999999")
	case catalog.Timestamp:
		return instant("2006-01-02 15:04:05.999999")
	case catalog.TimestampTZ:
		return instant("2006-01-02 15:04:05.999999-07")
	case catalog.UUID:
		h := hex.EncodeToString(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
	case catalog.Binary:
		return `\x` + hex.EncodeToString(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case catalog.Text:
		return strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", "")
	case catalog.Decimal:
		whole := strings.TrimLeft(digits("whole", rapid.IntRange(0, typ.Precision-typ.Scale).Draw(t, "places")), "0")
		if whole == "" {
			whole = "0"
		}
		text := whole
		if typ.Scale > 0 {
			text += "." + digits("fraction", typ.Scale)
		}
		if strings.Trim(text, "0.") != "" && rapid.Bool().Draw(t, "negative") {
			text = "-" + text
		}
		return text
	case catalog.List:
		elems := make([]string, rapid.IntRange(0, 5).Draw(t, "length"))
		for i := range elems {
			elems[i] = "NULL"
			if rapid.IntRange(0, 4).Draw(t, "null") > 0 {
				elems[i] = quotedElem(drawText(t, *typ.Elem))
			}
		}
		return "{" + strings.Join(elems, ",") + "}"
	}
	t.Fatalf("no texts for %s", typ)
	return ""
}

// quotedElem writes an element as array_out does.
func quotedElem(text string) string {
	if text != "" && !strings.EqualFold(text, "NULL") && !strings.ContainsAny(text, "{},\"\\ \t\n\r\v\f") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func TestEveryTextSurvivesValueAndBack(t *testing.T) {
	t.Parallel()
	for _, typ := range append(allTypes(), decimal(18, 18), decimal(38, 38), decimal(38, 0), decimal(19, 0), decimal(1, 0)) {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				text := drawText(t, typ)
				fixed, value, err := typemap.Decode(typ, []byte(text), nil)
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				if got := string(typemap.AppendText(nil, typ, fixed, value)); got != text {
					t.Fatalf("%q became %q", text, got)
				}
			})
		})
	}
}
