package debezium

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// foreseen are the findings for a table of such columns, in lines.
func foreseen(cfg Config, pairs ...string) string {
	cfg.Table = &catalog.Table{Source: "shop", Name: catalog.ParseTableName("app.t")}
	cfg.Schema = columns(append([]string{"id int8"}, pairs...)...)
	var b strings.Builder
	for _, f := range Foresee(cfg) {
		fmt.Fprintf(&b, "%s %s %s/%s: %s\n    → %s\n", f.Severity, f.Code, f.Source, f.Table, f.Message, f.Fix)
	}
	return b.String()
}

func TestWhatDebeziumLosesIsForeseenFromTheTypes(t *testing.T) {
	t.Parallel()
	golden(t, "foresee.golden", foreseen(Config{Binary: Bytes},
		"a interval[]", "b name[]", "c money[]", "d xml[]", "e point[]", "f refcursor[]", "g varbit[]", `odd"name interval[]`,
		"place public.geometry", "nums numeric(8,2)[]", "flags varbit", "blob bytea", "at timetz", "span interval", "lasts interval",
		"addr composite", "addrs composite[]", "grid int4[][]", "price money", "clock time(6)[]", "short time(3)[]", "words text[]", "cur refcursor", "vec int2vector", "oids oidvector",
	))
	require.Empty(t, foreseen(Config{Binary: Bytes, Monetary: "C"}, "n int4", "t text", "words text[]", "price money", "blob bytea", "at timestamptz", "u uuid", "bits bit(8)"))
	require.Empty(t, foreseen(Config{Binary: Bytes, FullIdentity: true}, "short time(3)[]"))
}

// An array of domains comes, unlike an array of what they are over.
func TestAnArrayOfDomainsIsNotForeseenToBeMissing(t *testing.T) {
	t.Parallel()
	require.NotContains(t, foreseen(Config{Binary: Bytes}, "a domain:interval[]"), "never comes")
	require.Contains(t, foreseen(Config{Binary: Bytes}, "a interval[]"), "never comes")
}

// REPLICA IDENTITY FULL, or a column that cannot be NULL, makes NULL tell what it means.
func TestAFullIdentityIsAskedForWhereNullMeansTwoThings(t *testing.T) {
	t.Parallel()
	const fix = `ALTER TABLE "app"."t" REPLICA IDENTITY FULL;`
	require.Contains(t, foreseen(Config{Binary: Bytes}, "nums numeric(8,2)[]"), fix)
	require.Empty(t, foreseen(Config{Binary: Bytes, FullIdentity: true}, "nums numeric(8,2)[]"))
	require.Contains(t, foreseen(Config{Binary: Base64}, "blob bytea"), "binary.handling.mode")

	cfg := Config{Binary: Bytes, Table: &catalog.Table{Name: catalog.ParseTableName("app.t")}, Schema: columns("id int8", "nums numeric(8,2)[]")}
	cfg.Schema.Columns[1].Nullable = false
	require.Empty(t, Foresee(cfg))
}

// What the recorded connectors did not send, and nothing else, is foreseen to be missing
// from the columns that they were given.
func TestWhatTheRecordedConnectorsDidNotSendIsForeseen(t *testing.T) {
	t.Parallel()
	tables := recordedTables(t)
	sent := map[string]map[string]bool{}
	for _, r := range samples(t, "types_tmicro.jsonl") { // which has every column that Debezium can send
		_, name, _ := strings.Cut(r.Topic, ".")
		if sent[name] == nil {
			sent[name] = map[string]bool{}
		}
		for column := range columnsSent(t, r.Value) {
			sent[name][column] = true
		}
	}
	checked := 0
	for name, columns := range sent {
		table := tables[name]
		cfg := Config{Binary: Bytes, FullIdentity: true, Table: &catalog.Table{Name: catalog.ParseTableName(name)}, Schema: table.schema(nil)}
		var blocks strings.Builder
		for _, f := range Foresee(cfg) {
			if f.Severity == catalog.Blocks {
				blocks.WriteString(f.Message)
			}
		}
		for _, c := range table.Columns {
			if c.Name == "c_gen" { // generated
				continue
			}
			checked++
			require.Equal(t, !columns[c.Name], strings.Contains(blocks.String(), c.Name+" ("), "%s.%s (%s)", name, c.Name, c.Source.Name)
		}
	}
	require.Greater(t, checked, 30)
}
