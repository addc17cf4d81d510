package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// stops runs a script and requires that it stops one table, with the changes
// before it read, while another goes on.
func (l *lab) stops(script, table string, state catalog.State, code catalog.Code, message string) {
	l.t.Helper()
	l.exec(script)
	l.exec("insert into other values (1)")
	l.drain()
	fault, stopped := l.faults[table]
	require.True(l.t, stopped, "%s goes on", table)
	require.Equal(l.t, state, fault.State)
	require.Equal(l.t, code, fault.Err.Code)
	require.Equal(l.t, message, fault.Err.Message)
	require.NotEmpty(l.t, fault.Err.Hint)
	require.Len(l.t, l.faults, 1)
	l.same("other")
}

func TestWhatStopsOneTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ddl, script, events string
		key                 []string
		change              func(*catalog.Table)
		state               catalog.State
		code                catalog.Code
		message             string
	}{
		"a delete that does not carry the key": {
			ddl:    "create table x (tenant text not null, id int primary key, unique (tenant, id));\nalter table x replica identity full;",
			key:    []string{"tenant", "id"},
			script: "insert into x values ('t1', 5), ('t1', 6);\nalter table x replica identity default;\ndelete from x where id = 5;\ndelete from x where id = 6;",
			events: "c after(t1, 5)\nc after(t1, 6)\n",
			code:   catalog.CodeKeyMissing, message: "a delete does not carry key column tenant: the replica identity leaves it out",
		},
		"an update under an identity without the key": {
			ddl:    "create table x (tenant text not null, id int primary key, unique (tenant, id));\nalter table x replica identity full;",
			key:    []string{"tenant", "id"},
			script: "insert into x values ('t1', 5);\nalter table x replica identity default;\nupdate x set tenant = 't2';",
			events: "c after(t1, 5)\n",
			code:   catalog.CodeIdentityChange, message: "the replica identity (DEFAULT) no longer carries the configured key: a changed key could not be seen",
		},
		"NULL in the key": {
			ddl:    "create table x (id int not null unique, v int);\nalter table x replica identity full;",
			script: "insert into x values (1, 1);\nalter table x alter id drop not null;\ninsert into x values (null, 1);",
			events: "c after(1, 1)\n",
			code:   catalog.CodeKeyNull, message: "a change has no value in key column id",
		},
		"a truncate that is refused": {
			ddl:    "create table x (id int primary key);",
			change: func(t *catalog.Table) { t.ApplyTruncates = false },
			script: "insert into x values (1);\ntruncate x;\ninsert into x values (2);",
			events: "c after(1)\n",
			code:   catalog.CodeTruncate, message: "the table was truncated and its configuration says apply_truncates: false",
		},
		"a column added": {
			ddl:    "create table x (id int primary key, v text);",
			script: "insert into x values (1, 'a');\nalter table x add w numeric(10,2), drop v;\ninsert into x values (2, 3.5);",
			events: "c after(1, a)\n",
			code:   catalog.CodeSchemaChanged, message: "the table has other columns than the lake: added w numeric(10,2); dropped v text",
		},
		"a column retyped": {
			ddl:    "create table x (id int primary key, v int);",
			script: "insert into x values (1, 1);\nalter table x alter v type bigint;\ninsert into x values (2, 2);",
			events: "c after(1, 1)\n",
			code:   catalog.CodeSchemaChanged, message: "the table has other columns than the lake: retyped v from integer to bigint",
		},
		"the last column dropped and added again": {
			ddl:    "create table x (id int primary key, v int);",
			script: "insert into x values (1, 1);\nalter table x drop v;\nalter table x add v int default 7;\ninsert into x values (2, 2);",
			events: "c after(1, 1)\n",
			code:   catalog.CodeSchemaChanged, message: "the table has other columns than the lake: dropped and added again v",
		},
		"a table renamed": {
			ddl:    "create table x (id int primary key);",
			script: "insert into x values (1);\nalter table x rename to y;\ninsert into y values (2);",
			events: "c after(1)\n",
			code:   catalog.CodeSchemaChanged, message: "the table has other columns than the lake: it is now called public.y",
		},
		"a table made again": {
			ddl:    "create table x (id int primary key);",
			script: "insert into x values (1);\ndrop table x;\ncreate table x (id int primary key);\nalter publication lakeweir_shop add table x;\ninsert into x values (2);",
			events: "c after(1)\n",
			state:  catalog.Gap,
			code:   catalog.CodeGap, message: "the table was dropped and made again: its rows went without a trace in the log",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, c.ddl+"\ncreate table other (id int primary key);")
			if c.key == nil {
				c.key = []string{"id"}
			}
			if c.state == "" {
				c.state = catalog.Quarantined
			}
			x := l.table("x", c.key...)
			if c.change != nil {
				c.change(x)
			}
			l.table("other", "id")
			l.begin()
			l.snapshotted()
			l.stops(c.script, "public.x", c.state, c.code, c.message)
			require.Equal(t, c.events, l.store["public.x"].script())
		})
	}
}

func TestWhatTheLakeCannotTellApartDoesNotStopATable(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create type mood as enum ('sad', 'ok');
create domain small as varchar(5) check (value <> '');
create table x (id int primary key, v varchar(5), m mood, d small, at timestamp(0));`)
	l.table("x", "id")
	l.begin()
	l.snapshotted()
	l.exec(`insert into x values (1, 'a', 'ok', 'd', '2026-01-01');
alter table x alter v type varchar(50);
alter type mood add value 'happy' before 'ok';
insert into x values (2, 'a longer one', 'happy', 'dd', '2026-01-01');
alter table x alter v type text, alter at type timestamp(3);
insert into x values (3, 'text', 'sad', 'ddd', '2026-01-01 00:00:00.123');
alter table x alter v set not null;
insert into x values (4, '', 'sad', null, null);`)
	l.drain()
	require.Empty(t, l.faults)
	l.same("x")
}

func TestAShapeTheRegistryDoesNotKnowStopsTheTableAtStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table x (id int primary key, v text);\ncreate table other (id int primary key);")
	l.table("x", "id")
	l.table("other", "id")
	l.begin()
	l.snapshotted()
	known := l.source.order[0].schema
	l.crash()
	l.exec("alter table x add w int")
	l.source = New(l.cfg)
	defer closeSource(t, l.source)
	resumes := l.resumes()
	resumes[0].Schema = known
	faults, err := l.source.Start(t.Context(), resumes)
	require.NoError(t, err)
	require.Len(t, faults, 1)
	require.Equal(t, "the table has other columns than the lake: added w integer", faults[0].Err.Message)
}

func TestGeneratedColumnsAreLeftOutOfRowsAndChangesAlike(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table gen (id int primary key, cm numeric(6,1), inch numeric generated always as (cm/2.54) stored);
insert into gen values (1,254);`)
	l.table("gen", "id")
	l.begin()
	l.snapshotted()
	l.exec("update gen set cm = 508 where id = 1;\ninsert into gen values (2,127);")
	l.drain()
	require.Equal(t, "r after(1, 254.0)\nu after(1, 508.0)\nc after(2, 127.0)\n", l.store["public.gen"].script())
}

// TestADescriptionThatCannotBeLookedUpIsTakenAgain ends Next while the columns of
// a table are looked up: nothing is skipped.
func TestADescriptionThatCannotBeLookedUpIsTakenAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table x (id int primary key, v varchar(5));")
	l.table("x", "id")
	l.begin()
	l.snapshotted()
	l.exec("insert into x values (1, 'a');\nalter table x alter v type varchar(9);\ninsert into x values (2, 'b');")
	nobody, err := openPool(t.Context(), "postgres://postgres@127.0.0.1:1/none?sslmode=disable", "shop", time.Second, 1)
	require.NoError(t, err)
	defer nobody.Close()
	l.source.lookups = nobody
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		slice, err := l.source.Next(ctx)
		cancel()
		if err != nil {
			break
		}
		l.store["public.x"].pending = append(l.store["public.x"].pending, slice.Batches...)
		require.Empty(t, slice.Faults)
	}
	l.source.lookups = l.source.pool
	l.drain()
	require.Empty(t, l.faults)
	l.same("x")
}
