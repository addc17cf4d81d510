package debezium

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
)

// runs are the connectors that recorded the tables of types.
var runs = []struct {
	name string
	cfg  Config
}{
	{"tmicro", Config{Time: Microseconds}},
	{"trec", Config{}}, // dates and times in ISO 8601
	{"trecs", Config{}},
	{"tdef", Config{Time: Adaptive, Decimal: DecimalPrecise}}, // Debezium's defaults
	{"tdefs", Config{}},                                       // the same with schemas, which say it
	{"talt", Config{Decimal: DecimalPrecise, Binary: Hex}},
}

// Whatever does not come out as the direct path makes it of the server's text is in the
// golden file, and is a value that Debezium destroyed.
func TestValuesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	tables := recordedTables(t)
	var b strings.Builder
	seen := 0
	for _, run := range runs {
		records := samples(t, "types_"+run.name+".jsonl")
		for i := range records {
			rec := &records[i]
			_, name, _ := strings.Cut(rec.Topic, ".")
			table := tables[name]
			cfg := run.cfg
			cfg.FullIdentity = true
			cfg.Ignored = []string{"c_gen"}
			cfg.Monetary = "C"
			sent := columnsSent(t, rec.Value)
			cfg.Schema = table.schema(func(name string) bool { return sent[name] })
			d := newDecoder(t, cfg)
			rows := change.NewRows(cfg.Schema)
			ev, err := d.Decode(t.Context(), &rec.Record, rows)
			require.NoError(t, err, "%s %s", run.name, rec.label)
			require.Equal(t, Row, ev.Kind)
			got := texts(rows, ev.After)
			for _, c := range cfg.Schema.Columns {
				want, ok := table.Rows[rec.label][c.Name]
				if !ok {
					want = "<null>"
				}
				if c.Name == "id" { // each phase has its own
					continue
				}
				seen++
				if got[c.Name] != want {
					fmt.Fprintf(&b, "%s %s %s.%s (%s): %s becomes %s\n", run.name, rec.phase, rec.label, c.Name, c.Source.Name, want, got[c.Name])
				}
			}
		}
	}
	require.Greater(t, seen, 2000)
	golden(t, "destroyed.golden", b.String())
}

// columnsSent are those of a record's row.
func columnsSent(t testing.TB, value []byte) map[string]bool {
	t.Helper()
	var v struct {
		After   map[string]json.RawMessage
		Payload struct{ After map[string]json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(value, &v))
	out := map[string]bool{}
	for _, row := range []map[string]json.RawMessage{v.After, v.Payload.After} {
		for name := range row {
			out[name] = true
		}
	}
	return out
}
