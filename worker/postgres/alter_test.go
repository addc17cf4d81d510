package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
)

// alterations are commands, with what is told of them; late is what is told without the
// DDL log where that is less or later.
var alterations = map[string]struct {
	ddl, alter, want, late string
	rewrite                catalog.Rewrite // of the first change
}{
	"a nullable column":  {alter: "alter table x add w numeric(10,2)", want: "column w is new: numeric(10,2)"},
	"a constant default": {alter: "alter table x add w int not null default 7", want: "column w is new: integer not null default 7"},
	"a volatile default": {alter: "alter table x add w float8 default random()", want: "column w is new: double precision default random()", rewrite: catalog.RewriteValues},
	"an identity column": {alter: "alter table x add w int generated always as identity", want: "column w is new: integer not null default generated always as identity", rewrite: catalog.RewriteValues},
	"a dropped column":   {alter: "alter table x drop v", want: "column v is gone"},
	"a renamed column":   {alter: "alter table x rename v to w", want: "column v is now called w"},
	"a wider type":       {alter: "alter table x alter n type bigint", want: "column n: integer → bigint (lake: int → long)"},
	"a narrower type":    {alter: "alter table x alter n type smallint", want: "column n: integer → smallint (lake: int as before)", rewrite: catalog.RewriteNone},
	"a type by USING":    {alter: "alter table x alter n type text using 'n' || n", want: "column n: integer → text (lake: int → string)", rewrite: catalog.RewriteUnknown},
	"swapped names": {
		alter: "alter table x rename v to t;\nalter table x rename u to v;\nalter table x rename t to u",
		want:  "column v is now called t",
		late:  "column v is now called u; column u is now called v",
	},
	"a default":       {alter: "alter table x alter v set default 'none'", want: "column v: default NULL → 'none'::text"},
	"not null":        {alter: "alter table x alter v set not null", want: "column v: NULL is refused now"},
	"null again":      {alter: "alter table x alter n drop not null", want: "column n: NULL is allowed now"},
	"an enum's label": {alter: "alter type mood add value 'happy' before 'ok'", want: "column m: label \"happy\" is new", late: "-"},
	"a renamed label": {alter: "alter type mood rename value 'ok' to 'fine'", want: "column m: label \"ok\" is now \"fine\"", late: "-"},
	"a key": {
		alter: "alter table x drop constraint x_pkey, add primary key (n)",
		want:  "primary key: (id) → (n)",
	},
	"an identity":    {alter: "alter table x replica identity full", want: "replica identity: default → full"},
	"an expression":  {alter: "alter table x alter g drop expression", want: "column g: generated stored → none"},
	"another schema": {ddl: "create schema other", alter: "alter table x set schema other", want: "table public.x is now called other.x"},
	"a table's name": {alter: "alter table x rename to y", want: "table public.x is now called public.y"},
}

const alteredDDL = `create type mood as enum ('sad', 'ok');
create table x (id int primary key, v text, n int not null, u text, m mood, k int, g int generated always as (k * 2) stored);
create table other (id int primary key);
insert into x values (1, 'a', 1, 'b', 'ok');`

func TestEachAlterationIsToldAtItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range alterations {
		for _, logged := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, logged %v", name, logged), func(t *testing.T) {
				t.Parallel()
				l := newLab(t, alteredDDL)
				l.exec(c.ddl)
				l.parking(logged)
				l.table("x", "id")
				l.table("other", "id")
				l.begin()
				l.snapshotted()
				l.exec("update x set n = 2")
				l.exec(c.alter)
				where := "x"
				if strings.Contains(c.alter, "rename to") {
					where = "y"
				} else if strings.Contains(c.alter, "set schema") {
					where = "other.x"
				}
				l.exec("insert into other values (1)")
				l.exec("delete from " + where)
				l.drain()
				want := c.want
				if !logged && c.late != "" {
					want = c.late
				}
				l.same("other")
				if want == "-" {
					require.Empty(t, l.parked)
					return
				}
				f, parks := l.parked["public.x"]
				require.True(t, parks, "it goes on")
				require.NotNil(t, f.Change)
				require.Equal(t, want, f.Change.String())
				by := catalog.ByRelation
				if logged {
					by = catalog.ByDDLLog
				}
				require.Equal(t, by, f.Change.FoundBy)
				if c.rewrite != "" && logged {
					require.Equal(t, c.rewrite, f.Change.Changes[0].Rewrite)
				}
				events := l.store["public.x"].events
				require.Equal(t, "2", events[len(events)-1].after[2], "what came before was handed over, and no more")
				require.Negative(t, events[len(events)-1].position.Compare(f.Change.At.Position))
			})
		}
	}
}

func TestADroppedTableIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t, alteredDDL)
	l.parking(true)
	l.table("x", "id")
	l.table("other", "id")
	l.begin()
	l.snapshotted()
	l.exec("insert into x values (2, 'b', 2);\ndrop table x;\ninsert into other values (1);")
	l.drain()
	require.Equal(t, "table public.x is gone", l.parked["public.x"].Change.String())
	require.Nil(t, l.parked["public.x"].Change.After)
	require.Len(t, l.store["public.x"].events, 2)
	l.same("other")
}

// TestATableThatWasDroppedWhileNobodyRead is told when the source is started.
func TestATableThatWasDroppedWhileNobodyRead(t *testing.T) {
	t.Parallel()
	l := newLab(t, alteredDDL)
	l.parking(false)
	l.table("x", "id")
	l.table("other", "id")
	l.begin()
	l.snapshotted()
	l.crash()
	l.exec("insert into x values (2, 'b', 2);\ndrop table x;\ninsert into other values (1);")
	require.Empty(t, l.begin())
	l.drain()
	require.Equal(t, "table public.x is gone", l.parked["public.x"].Change.String())
	l.same("other")
}

// TestTheLakeFollowsAlterationsAmongChanges alters tables in the midst of transactions.
func TestTheLakeFollowsAlterationsAmongChanges(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		t.Run(fmt.Sprintf("logged %v", logged), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, alteredDDL)
			l.parking(logged)
			l.table("x", "id")
			l.table("other", "id")
			l.begin()
			l.snapshotted()
			l.together(
				"insert into x values (2, 'b', 2)",
				"alter table x add w int default 5",
				"insert into x (id, v, n) values (3, 'c', 3)",
				"alter table x rename v to z",
				"alter table x drop u",
				"update x set z = z || '!', w = 6 where id = 2",
				"alter table x alter n type bigint",
				"insert into x (id, n, w) values (4, 4, 4)",
			)
			l.exec("insert into x (id, n, w) values (5, 5000000000, 4);\ninsert into other values (1);")
			l.drain()
			require.Contains(t, l.parked, "public.x")
			require.Len(t, l.store["public.x"].events, 2)
			l.evolve("public.x")
			l.exec("update x set w = w where id < 3")
			l.drain()
			require.Empty(t, l.parked)
			l.evolved("x")
			l.same("other")

			// What is read anew and what is read again after a crash is the same.
			events := l.store["public.x"].events
			l.crash()
			require.Empty(t, l.begin())
			l.exec("insert into x (id, n) values (9, 9)")
			l.drain()
			require.Empty(t, l.parked)
			require.Len(t, l.store["public.x"].events, len(events)+1)
			l.evolved("x")
		})
	}
}

func TestColumnsThatSwapTheirNames(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		t.Run(fmt.Sprintf("logged %v", logged), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "create table x (id int primary key, a text, b text);\ninsert into x values (1, 'a', 'b');")
			l.parking(logged)
			l.table("x", "id")
			l.begin()
			l.snapshotted()
			l.together("alter table x rename a to t", "alter table x rename b to a", "alter table x rename t to b", "insert into x values (2, 'in b', 'in a')")
			l.drain()
			require.Equal(t, "column a is now called b; column b is now called a", l.parked["public.x"].Change.String())
			l.evolve("public.x")
			l.evolved("x")
		})
	}
}

// TestARenameThatWasTakenBackStopsNothing is undone before anybody reads it.
func TestARenameThatWasTakenBackStopsNothing(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		t.Run(fmt.Sprintf("logged %v", logged), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "create table x (id int primary key, a text);\ninsert into x values (1, 'a');")
			l.parking(logged)
			l.table("x", "id")
			l.begin()
			l.snapshotted()
			l.crash()
			l.exec(`alter table x rename a to b;
insert into x values (2, 'b');
alter table x add c int;
insert into x values (3, 'c', 3);
alter table x drop c;
alter table x rename b to a;
insert into x values (4, 'd');`)
			l.begin()
			l.drain()
			require.Empty(t, l.parked)
			l.same("x")
		})
	}
}

// TestAChangeThatWasTakenBackIsReleased narrows a type and widens it again.
func TestAChangeThatWasTakenBackIsReleased(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		for _, restart := range []bool{true, false} {
			t.Run(fmt.Sprintf("logged %v, restarted %v", logged, restart), func(t *testing.T) {
				t.Parallel()
				l := newLab(t, alteredDDL)
				l.parking(logged)
				l.table("x", "id")
				l.begin()
				l.snapshotted()
				l.exec("alter table x alter n type smallint;\ninsert into x values (2, 'b', 2);")
				l.drain()
				f := l.parked["public.x"]
				require.NotNil(t, f.Change)
				l.exec("alter table x alter n type int;\ninsert into x values (3, 'b', 100000);")
				l.drain()
				released := *l.store["public.x"].schema
				released.At = f.Change.At
				if restart {
					l.crash()
					l.begin()
				}
				l.replay("public.x", &released)
				l.drain()
				require.Empty(t, l.parked)
				l.evolved("x")
			})
		}
	}
}

func TestWhatTheDDLLogWrites(t *testing.T) {
	t.Parallel()
	l := newLab(t, alteredDDL)
	l.parking(true)
	l.table("x", "id")
	l.begin()
	l.snapshotted()
	l.exec(`alter table x add c int default 5, add s timestamptz default '2026-01-01 00:00:00+02', add a int[] default '{1,2}', add b box default '(1,1),(0,0)';`)
	l.drain()
	after := l.parked["public.x"].Change.After
	missing := func(name string) string {
		d := after.Column(name).Default
		require.NotNil(t, d)
		require.NotNil(t, d.Missing, name)
		return *d.Missing
	}
	require.Equal(t, "5", missing("c"))
	require.Equal(t, "2025-12-31 22:00:00+00", missing("s"))
	require.Equal(t, "{1,2}", missing("a"))
	require.Equal(t, "(1,1),(0,0)", missing("b"))
	require.Equal(t, []catalog.EnumLabel{{Name: "sad"}, {Name: "ok"}}, withoutOIDs(after.Column("m").Labels))
	require.Equal(t, []string{"id"}, after.Key)
	require.True(t, after.Column("g").Unsent)
	now, err := readDefinitions(t.Context(), l.source.pool, []uint32{after.OID})
	require.NoError(t, err)
	require.Empty(t, schemadiff.Diff(l.tables[0], after, l.source.order[0].sent(now[after.OID]).Definition, schemadiff.Commands{}))
}

func withoutOIDs(labels []catalog.EnumLabel) []catalog.EnumLabel {
	out := make([]catalog.EnumLabel, len(labels))
	for i, l := range labels {
		out[i].Name = l.Name
	}
	return out
}

// TestTheDDLLogStaysOutOfTheWay installs it twice, alters what is not ours, and removes it.
func TestTheDDLLogStaysOutOfTheWay(t *testing.T) {
	t.Parallel()
	l := newLab(t, alteredDDL)
	findings := func() string {
		list, err := Preflight(t.Context(), l.cfg, nil)
		require.NoError(t, err)
		var out []catalog.Finding
		for _, f := range list {
			if f.Code == catalog.CodeSourceDDLLog {
				out = append(out, f)
			}
		}
		return printFindings(out)
	}
	require.Contains(t, findings(), "note source.ddl_log shop\n    the DDL log is not installed")
	l.parking(true)
	require.NoError(t, PrepareDDLLog(t.Context(), l.cfg))
	require.Empty(t, findings())
	l.exec("alter event trigger lakeweir_ddl_drop disable")
	require.Contains(t, findings(), "warning source.ddl_log")
	l.exec("alter event trigger lakeweir_ddl_drop enable")

	// Whatever goes wrong inside, the command is carried out.
	l.exec(`create temporary table mine (id int);
alter table mine add v int;
drop table mine;
create table unpublished (id int);
alter table unpublished add v int;
create domain small as int;
alter domain small add check (value > 0);
drop table unpublished;
create view seen as select 1;
drop view seen;
drop function lakeweir_ddl.definitions(oid[]);
alter table x add w int;
alter table x drop w;`)
	require.NoError(t, PrepareDDLLog(t.Context(), l.cfg))

	role := "ddl_" + l.cfg.Source.Slot
	l.exec("create role " + role)
	l.exec("grant all on schema public to " + role)
	l.exec("set role " + role)
	l.exec("create table theirs (id int);\nalter table theirs add v int;\ndrop table theirs;")
	l.exec("reset role")

	require.NoError(t, RemoveDDLLog(t.Context(), l.cfg))
	require.NoError(t, RemoveDDLLog(t.Context(), l.cfg))
	require.Contains(t, findings(), "not installed")
	l.exec("alter table x add w int")

	cfg := l.cfg
	l.exec("alter role " + role + " login")
	cfg.DSN = catalog.Secret(strings.Replace(l.dsn, "postgres@", role+"@", 1))
	err := PrepareDDLLog(t.Context(), cfg)
	require.Equal(t, catalog.CodeSourceGrant, catalog.Public(err).Code)
}

// remembered is TableNotes in memory.
type remembered struct {
	mu        sync.Mutex
	relations map[string][]catalog.Relation
}

func (*remembered) ReadGap(context.Context, string) (*catalog.Error, uint32, error) {
	return nil, 0, nil
}
func (*remembered) NoteGap(context.Context, string, uint32, *catalog.Error) error { return nil }
func (*remembered) ForgetGap(context.Context, string) error                       { return nil }

func (n *remembered) ReadRelations(_ context.Context, table string) ([]catalog.Relation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.relations[table]), nil
}

func (n *remembered) WriteRelations(_ context.Context, table string, relations []catalog.Relation) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.relations[table] = slices.Clone(relations)
	return nil
}

// TestPartitionsThatComeAreLookedAtAtOnce attaches one with rows, and adds a column to
// all: the partitioned table is one table.
func TestPartitionsThatComeAreLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table x (id int primary key, v text) partition by range (id);
create table x1 partition of x for values from (0) to (100);
create table x2 (id int primary key, v text);
insert into x values (1, 'a');
insert into x2 values (101, 'b'), (102, 'c');`)
	l.parking(true)
	l.cfg.TableNotes = &remembered{relations: map[string][]catalog.Relation{}}
	l.cfg.Source.Heartbeat.Interval = time.Hour // and so is the look at partitions
	l.table("x", "id")
	l.begin()
	l.snapshotted()
	l.exec("alter table x attach partition x2 for values from (100) to (200)")
	l.until("the rows have come", func() bool { return len(l.store["public.x"].folded()) == 3 })
	require.Empty(t, l.parked)
	l.exec("alter table x add w int;\ninsert into x values (2, 'd', 4), (103, 'e', 5);")
	l.drain()
	require.Equal(t, "column w is new: integer", l.parked["public.x"].Change.String())
	l.evolve("public.x")
	require.Equal(t, "4", l.store["public.x"].folded()[string([]byte{0, 0, 0, 0, 0, 0, 0, 2})][2])
}
