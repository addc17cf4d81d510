package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
)

// TestRowsAndChangesShowTheSameValues reads one row by snapshot and its copy by
// the stream.
func TestRowsAndChangesShowTheSameValues(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create type mood as enum ('sad', 'ok');
create type pair as (a int, b text);
create domain cents as numeric(12,2);
create domain money_list as int[];
create table par (id int primary key, iv interval, c8 char(8), n12 numeric(12,0), n numeric, b bytea, ts timestamp, tz timestamptz,
 j jsonb, a int[], ta text[], f8 float8, f4 real, net inet, mo money, u uuid, bits bit(5), rng int4range, m mood, ms mood[], p pair,
 dom cents, doms money_list, d date, ti time, tt timetz, ov oidvector, x xml, e text, nul int, grid int[][], nan numeric(6,2));
insert into par values (1,'1 year 2 mons -3 days 04:05:06.789','abc',4200, 1e30, '\xdeadbeef','2024-06-15 10:30:45.123456',
 '2024-06-15 10:30:45.123456+02','{"b":1,"a":[true,null],"n":0.1000}','{1,NULL,3}','{"a,b",NULL,"NULL","q\"q",""}',0.1,0.1,'10.1.2.3/24','12.34',
 '7c9e6679-7425-40de-944b-e07fc1f90ae7',B'10101','[1,10)','ok','{sad,NULL}',row(1,'x y'),1.5,'{1,2}','0044-03-15 BC','23:59:59.999999','10:00+02','1 2 3','<a/>','',null,'{{1,2},{3,4}}','NaN');`)
	l.table("par", "id")
	l.begin()
	l.snapshotted()
	l.exec(`insert into par select 2,iv,c8,n12,n,b,ts,tz,j,a,ta,f8,f4,net,mo,u,bits,rng,m,ms,p,dom,doms,d,ti,tt,ov,x,e,nul,grid,nan from par where id = 1`)
	l.exec(`update par set id = id where id = 1`)
	l.drain()
	events := l.store["public.par"].events
	require.Len(t, events, 3)
	require.Equal(t, change.Read, events[0].op)
	require.Equal(t, events[0].after[1:], events[1].after[1:])
	require.Equal(t, events[0].after, events[2].after)
	// Whatever has a place in its type is what the source prints.
	source := strings.Split(l.live("par")[0], "|")
	unfit := 0
	for i, v := range events[0].after {
		if v == cellUnfit {
			unfit++
			continue
		}
		require.Equal(t, source[i], v, l.source.order[0].schema.Columns[i].Name)
	}
	require.Equal(t, 1, unfit, "NaN")
}

// TestKeysOfManyTypes reads tables in chunks of two by keys of types whose order
// and text differ, and rows by single keys.
func TestKeysOfManyTypes(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		"bigint":        "g * 1000000007::bigint - 5000000000",
		"numeric(12,3)": "(g - 5) * 1.125",
		"float8":        "(g - 5) / 3.0",
		"text":          "chr(60 + g) || 'é' || g",
		"char(6)":       "chr(60 + g)",
		"uuid":          "md5(g::text)::uuid",
		"timestamptz":   "timestamptz '1969-12-31 23:59:59.999999' + (g - 3) * interval '1 month'",
		"date":          "date '0001-01-03 BC' + g",
		"bytea":         "decode(md5(g::text), 'hex')",
		"color":         "(enum_range(null::color))[g]",
		"short":         "'s' || g",
		"inet":          "('10.0.0.' || g)::inet",
		"bool":          "g > 1",
		"interval":      "g * interval '40 days 1 hour'",
		"time":          "time '00:00' + g * interval '1 hour'",
		`"char"`:        "chr(64 + g)",
	}
	names := slices.Sorted(maps.Keys(types))
	ddl := []string{"create type color as enum ('z', 'y', 'x', 'w', 'v', 'u', 't', 's', 'r');", "create domain short as varchar(10);"}
	for i, name := range names {
		table := "k" + string(rune('a'+i))
		rows := "9"
		if name == "bool" {
			rows = "2"
		}
		ddl = append(ddl,
			"create table "+table+" (v text, k "+name+", n int, primary key (k, n));\nalter table "+table+" alter v set storage external;",
			"insert into "+table+" select repeat('v', 3000), "+types[name]+", 1 from generate_series(1, "+rows+") g;")
	}
	l := newLab(t, strings.Join(ddl, "\n"))
	for i := range names {
		l.table("k"+string(rune('a'+i)), "k", "n")
	}
	l.cfg.Source.Snapshot.ChunkRows = 2
	l.begin()
	l.until("a chunk of the first is read", func() bool { return l.store["public.ka"].snapshot != nil })
	for i := range names { // out of what is not read yet into what may be
		l.exec("update k" + string(rune('a'+i)) + " set n = -n")
	}
	l.snapshotted()
	require.Empty(t, l.faults)
	for i, name := range names {
		t.Log(name)
		l.same("k" + string(rune('a'+i)))
	}
}
