package postgres

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// keyValues are the odd members of each type that a key may have.
var keyValues = map[string][]string{
	"float4":                   {"0", "-0", "NaN", "Infinity", "-Infinity", "1.5", "1e-45", "3.4028235e38"},
	"float8":                   {"0", "-0", "NaN", "Infinity", "-Infinity", "0.1", "5e-324", "1e23"},
	"numeric":                  {"0", "0.00", "-0.0", "1", "1.0", "1.00", "-1.50", "-1.5", "10", "100", "1e30", "0.10", "NaN", "Infinity", "-Infinity", "1000.000"},
	"numeric(40,3)":            {"1", "1.0", "1.100", "NaN"},
	"numeric(12,2)":            {"1", "1.0", "1.00", "1.01", "-0"},
	"char(5)":                  {"a", "a ", "a    ", "A", "", "ab"},
	"bpchar":                   {"a", "a ", "a    ", "A", "", " a"},
	"text":                     {"a", "a ", "A", "", "ä", "ä"},
	"bytea":                    {`\x`, `\x00`, `\x0000`, `\xff`},
	"date":                     {"2024-02-29", "4713-01-01 BC", "5874897-12-31"},
	"timestamp":                {"2024-02-29 12:00", "2024-02-29 12:00:00.000001", "4713-01-01 BC"},
	"timestamptz":              {"2024-02-29 12:00+00", "2024-02-29 13:00+01"},
	"timetz":                   {"12:00+00", "13:00+01", "12:00-00", "24:00+00", "00:00+00", "12:00:00.1+05:30"},
	"interval":                 {"0", "1 day", "24:00:00", "-24:00:00", "-1 day", "1 mon", "30 days", "720:00:00", "1 year", "12 mons", "360 days", "1 mon -1 day", "29 days", "1 day -00:00:01", "23:59:59", "-1 days +24:00:00", "00:00:00.000001", "-00:00:00.5", "178000000 years", "2562047788:00:54.775807", "-2562047788:00:54.775807"},
	"uuid":                     {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "00000000-0000-0000-0000-000000000000"},
	"inet":                     {"10.0.0.1", "10.0.0.1/32", "10.0.0.1/24", "::1", "::ffff:10.0.0.1"},
	"cidr":                     {"10.0.0.0/8", "10.0.0.0/16"},
	"macaddr":                  {"08:00:2b:01:02:03", "08002b010203", "08:00:2b:01:02:04"},
	"bit varying":              {"1", "10", "01", ""},
	"int4[]":                   {"{}", "{1}", "{1,NULL}", "{NULL}", "{1,2}", "{01}"},
	"text[]":                   {"{}", `{""}`, `{a,b}`, `{"a,b"}`, "{NULL}", `{"NULL"}`},
	"numeric(6,2)[]":           {"{1}", "{1.0,2}", "{1.00}"},
	"daterange":                {"[2024-01-01,2024-01-31]", "[2024-01-01,2024-02-01)", "empty", "(,2024-01-01)"},
	"tstzrange":                {"[2024-01-01,2024-02-01)", "[2024-01-01,2024-02-01]", "empty", "(,)"},
	"int8multirange":           {"{[1,3)}", "{[1,2],[2,2]}", "{}"},
	"money":                    {"1", "1.00", "-1", "92233720368547758.07"},
	"pg_lsn":                   {"0/0", "0/10", "1/0"},
	"\"char\"":                 {"a", "b", ""},
	"name":                     {"a", "b"},
	"mood":                     {"low", "high"},
	"part_of_a_day":            {"1 day", "24:00", "30 days", "1 mon"},
	"interval day to second":   {"1 day", "24:00:00"},
	"numeric_of_a_domain":      {"7", "7.0", "7.000"},
	"timestamp with time zone": {"1000-01-01 BC", "294246-12-31"},
}

// TestTwoKeysAreOneExactlyWhereTheServerHoldsThemEqual asks the server which values
// are equal, for every type that a key may have, odd ones and random ones.
func TestTwoKeysAreOneExactlyWhereTheServerHoldsThemEqual(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	l := newLab(t, `create type mood as enum ('low', 'high');
create domain part_of_a_day as interval;
create domain numeric_of_a_domain as numeric;`)
	for name, values := range keyValues {
		switch name {
		case "interval":
			for range 40 {
				values = append(values, fmt.Sprintf("%d mons %d days %d hours", r.IntN(3)-1, r.IntN(70)-35, 24*(r.IntN(7)-3)))
			}
		case "numeric":
			for range 40 {
				values = append(values, fmt.Sprintf("%d.%0*d", r.IntN(3), 1+r.IntN(3), r.IntN(3)))
			}
		}
		t.Run(name, func(t *testing.T) {
			var oid uint32
			var modifier int32
			l.exec("drop table if exists k")
			l.exec("create table k (n int, k " + name + ")")
			require.NoError(t, l.db.QueryRow(t.Context(), "select atttypid, atttypmod from pg_attribute where attrelid = 'k'::regclass and attname = 'k'").Scan(&oid, &modifier))
			types, err := readTypes(t.Context(), l.db, []wireColumn{{name: "k", oid: oid, modifier: modifier}})
			require.NoError(t, err)
			require.NotContains(t, []typemap.KeyForm{typemap.KeyUnknown, typemap.KeySpelled}, typemap.KeyFormOf(types[0].source))
			for i, v := range values {
				l.exec("insert into k values ($1, $2::text::"+name+")", i, v)
			}
			keys := keysOf(t, l, types[0].source)
			rows, err := l.db.Query(t.Context(), "select a.n, b.n, a.k = b.k from k a, k b")
			require.NoError(t, err)
			defer rows.Close()
			for rows.Next() {
				var a, b int
				var equal bool
				require.NoError(t, rows.Scan(&a, &b, &equal))
				require.Equal(t, equal, keys[a] == keys[b], "%s and %s", values[a], values[b])
			}
			require.NoError(t, rows.Err())
		})
	}
}

// keysOf reads the table k as the source does, and returns the keys by n.
func keysOf(t *testing.T, l *lab, typ catalog.SourceType) map[int]string {
	t.Helper()
	tab := &table{schema: &catalog.Schema{Columns: []catalog.Column{{Name: "k", Source: typ, Type: typemap.Postgres(typ)}}, Key: []int{0}}}
	b := newBuilder(tab.schema)
	rows, err := l.db.Query(t.Context(), "select n, k from k")
	require.NoError(t, err)
	defer rows.Close()
	out := map[int]string{}
	for rows.Next() {
		raw := rows.RawValues()
		var n int
		_, err := fmt.Sscan(string(raw[0]), &n)
		require.NoError(t, err)
		row := b.rows.Add()
		require.NoError(t, tab.set(b.rows, row, 0, raw[1]))
		key, err := b.key(row)
		if err != nil { // NaN of a decimal and the like stop the table
			require.ErrorIs(t, err, change.ErrKeyUnfit)
			key = fmt.Append(nil, "unfit ", string(raw[1]))
		}
		out[n] = string(key)
	}
	require.NoError(t, rows.Err())
	return out
}

// TestKeysOfWhichEqualityIsNotKnownAreRefused holds what the check says of keys.
func TestKeysOfWhichEqualityIsNotKnownAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create type mood as enum ('low', 'high');
create type pair as (a int, b numeric);
create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table doc (k jsonb primary key);
create table made (k pair primary key);
create table floats (k float8[] primary key);
create table span (k numrange primary key);
create table cased (k text collate nocase primary key);
create table finer (k text collate nocase not null);
create unique index on finer (k collate "C");
create table feel (k mood primary key);
create table later (k int primary key deferrable initially deferred);
create table secret (k numeric primary key);
create table padded (k char(5) primary key);
create table patterns (k text not null);
create unique index on patterns (k text_pattern_ops);
create table maybe (k int unique);
create table mixed (k int not null unique deferrable, z int not null, unique (k, z));`)
	for _, name := range []string{"doc", "made", "floats", "span", "cased", "finer", "feel", "later", "secret", "padded", "patterns", "maybe", "mixed"} {
		table := l.table(name, "k")
		if name == "secret" || name == "padded" {
			table.PII = map[string]catalog.Protection{"k": catalog.Tokenize}
		}
	}
	l.exec("alter table finer replica identity full;\nalter table patterns replica identity full;\nalter table maybe replica identity full;\nalter table mixed replica identity using index mixed_k_z_key")
	list, err := Preflight(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range list {
		if f.Table != "" && f.Code != catalog.CodeSourcePublication {
			b.WriteString(printFindings([]catalog.Finding{f}))
		}
	}
	golden(t, "preflight-keys.golden", b.String())
}

// A value of the key that the lake's type cannot hold stops the table, whether it
// is read or streamed.
func TestAKeyThatDoesNotFitStopsItsTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ typ, fits, unfit string }{
		"decimal":   {"numeric(12,2)", "1.5", "NaN"},
		"timestamp": {"timestamp", "2024-01-01", "infinity"},
		"date":      {"date", "2024-01-01", "-infinity"},
		"time":      {"time", "12:00", "24:00"},
		"array":     {"int[]", "{1}", "{{1}}"},
	} {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " streamed ", streamed), func(t *testing.T) {
				t.Parallel()
				l := newLab(t, "create table k (k "+c.typ+" primary key, v text);\ncreate table other (id int primary key);")
				l.exec("insert into k values ('" + c.fits + "')")
				l.table("k", "k")
				l.table("other", "id")
				bad := "insert into k values ('" + c.unfit + "')"
				if !streamed {
					l.exec(bad)
				}
				l.begin()
				if streamed {
					l.until("the row is read", func() bool { return l.store["public.k"].has(change.Read) })
					l.exec(bad)
				}
				l.until("the table stops", func() bool { _, stopped := l.faults["public.k"]; return stopped })
				require.Equal(t, catalog.CodeKeyUnfit, l.faults["public.k"].Err.Code)
				require.Contains(t, l.faults["public.k"].Err.Message, "key column k ("+typeName(t, l)+")")
				l.exec("insert into other values (7)")
				l.until("the other goes on", func() bool { return len(l.store["public.other"].folded()) == 1 })
			})
		}
	}
}

func typeName(t *testing.T, l *lab) (name string) {
	t.Helper()
	require.NoError(t, l.db.QueryRow(t.Context(), "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'k'::regclass and attname = 'k'").Scan(&name))
	return name
}

// TestKeysOfManyTypesAreReadByChunksAndFollowed reads tables whose keys are of odd
// types by small chunks, while rows are spelled anew, moved and deleted.
func TestKeysOfManyTypesAreReadByChunksAndFollowed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		typ    string
		values []string
	}{
		"numeric":  {"numeric", []string{"1", "1.0", "1.00", "2", "2.5", "2.50", "-3.10", "NaN", "Infinity", "0", "0.00", "7e20"}},
		"float8":   {"float8", []string{"0", "-0", "NaN", "1.5", "1e300", "-Infinity", "2", "3"}},
		"interval": {"interval", []string{"1 day", "24:00:00", "1 mon", "30 days", "2 days", "-1 day", "48:00:00"}},
		"nocase":   {"text collate nocase", []string{"a", "A", "b", "B", "ß", "c", "C", "d"}},
		"bpchar":   {"bpchar", []string{"a", "a ", "b", "b  ", "", "  "}},
		"bytea":    {"bytea", []string{`\x00`, `\x0000`, `\xff`, `\x`, `\x01`}},
		"int[]":    {"int[]", []string{"{}", "{1}", "{1,NULL}", "{2,3}"}},
		"timetz":   {"timetz", []string{"12:00+00", "13:00+01", "14:00+02", "24:00+00"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			l := newLab(t, `create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);`)
			l.exec("create table k (k " + c.typ + ", part int, v text, body text, primary key (k, part));\nalter table k alter body set storage external")
			l.exec("insert into k select v::"+strings.Fields(c.typ)[0]+", p, 'seed', repeat('x', 3000 + p) from unnest($1::text[]) v, generate_series(1, 6) p on conflict do nothing", array(c.values))
			l.table("k", "k", "part")
			l.cfg.Source.Snapshot.ChunkRows = 2
			l.begin()
			for range 60 {
				l.exec(randomKeyChange(r, c.values))
				if r.IntN(4) == 0 {
					l.next()
					l.saveAll()
				}
			}
			l.snapshotted()
			for range 60 {
				l.exec(randomKeyChange(r, c.values))
			}
			l.drain()
			require.Empty(t, l.faults)
			l.same("k")
		})
	}
}

func array(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = `"` + strings.ReplaceAll(v, `\`, `\\`) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// randomKeyChange touches a row by any spelling of its key, unless that is taken.
func randomKeyChange(r *rand.Rand, values []string) string {
	pick := func() string { return quoteLiteral(values[r.IntN(len(values))]) }
	where := fmt.Sprintf(" where k = %s and part = %d", pick(), 1+r.IntN(6))
	switch r.IntN(5) {
	case 0:
		return fmt.Sprintf("insert into k values (%s, %d, 'new', repeat('n', 2600)) on conflict do nothing", pick(), 1+r.IntN(6))
	case 1:
		return "delete from k" + where
	case 2:
		return "update k set v = v || 'x'" + where
	}
	to := pick()
	return fmt.Sprintf("update k o set k = %s%s and not exists (select from k p where p.k = %s and p.part = o.part and p.ctid <> o.ctid)", to, where, to)
}
