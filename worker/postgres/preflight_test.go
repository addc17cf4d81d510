package postgres

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Fatalf("%s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

func printFindings(list []catalog.Finding) string {
	var b strings.Builder
	for _, f := range list {
		where := f.Source
		if f.Table != "" {
			where += "/" + f.Table
		}
		fmt.Fprintf(&b, "%s %s %s\n    %s\n", f.Severity, f.Code, where, f.Message)
		if f.Fix != "" {
			fmt.Fprintf(&b, "    → %s\n", f.Fix)
		}
	}
	return b.String()
}

// TestPreflightReportsEverythingAtOnce holds the findings of a source with about
// every mistake there is.
func TestPreflightReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table pf1 (id int primary key, v text);
alter table pf1 replica identity nothing;
create table pf2 (a int, b text);
create table kn (id int primary key, tenant text not null, v text);
create table nulls (a int unique, b text);
create table gen (id int primary key, cm numeric(6,1), inch numeric generated always as (cm/2.54) stored, _lsn int, "Valid_From" date);
create view v as select 1 as id;
create unlogged table u (id int primary key);
create table parts (id int primary key, at date) partition by range (id);
create table filtered (id int primary key, v text);
create table narrow (id int primary key, v text, secret text);
create table good (id int primary key, v text);
create table outside (id int primary key);
create table folded (id int primary key, "Id" int, "_Unavailable_Columns" int, tags text[], "Tags.Element" text, note text, "note.element" text);
create publication pf_pub for table pf1, pf2, kn, nulls, gen, parts, filtered where (id > 5), narrow (id, v), good, folded with (publish = 'insert, update');`)
	l.cfg.Source.Publication, l.cfg.Source.Slot = "pf_pub", "pf_slot"
	l.table("pf1", "id")
	l.table("pf2").Current = true
	l.table("kn", "tenant", "id")
	l.table("nulls", "a")
	gen := l.table("gen", "id")
	gen.TrackColumns = []string{"cm", "inch", "colour"}
	gen.PII = map[string]catalog.Protection{"email": catalog.Redact}
	l.table("v", "id")
	l.table("u", "id")
	l.table("parts", "id")
	l.table("filtered", "id")
	l.table("narrow", "id").TrackExcept = []string{"secret"}
	l.table("good", "id")
	l.table("outside", "id")
	l.table("folded", "id")
	l.table("nowhere", "id")
	list, err := Preflight(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	var database string
	require.NoError(t, l.db.QueryRow(t.Context(), "select current_database()").Scan(&database))
	golden(t, "preflight.golden", strings.ReplaceAll(printFindings(list), database, "shop"))
}

// What Debezium cannot capture is named before the connector fails, and is no matter to
// direct capture.
func TestPreflightNamesWhatAConnectorCannotCapture(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create type mood as enum ('sad');
create type nothing as enum ();
create domain worst as mood;
create domain spans as interval[];
create domain span as interval;
create table a (id int primary key, i interval, s interval(3)[], n name[], m money[], x xml[], p point[], r refcursor[], v bit varying(3)[], d spans, e span[], t text[], o mood[], c refcursor, w int2vector);
create publication lakeweir_shop for table a;`)
	l.table("a", "id")
	found := func() string {
		list, err := Preflight(t.Context(), l.cfg, l.tables)
		require.NoError(t, err)
		return printFindings(slices.DeleteFunc(list, func(f catalog.Finding) bool { return f.Code != catalog.CodeSourceType }))
	}
	require.Empty(t, found())
	l.cfg.Source.Capture = catalog.Debezium
	var database string
	require.NoError(t, l.db.QueryRow(t.Context(), "select current_database()").Scan(&database))
	golden(t, "preflight-debezium.golden", strings.ReplaceAll(found(), database, "shop"))
}

func TestPreflightOfARoleWithoutRights(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table a (id int primary key);\nalter table a enable row level security;\ncreate table b (id int primary key);\ncreate publication lakeweir_shop for table b;")
	role := "reader_" + l.cfg.Source.Slot
	l.exec("create role " + role + " login")
	l.exec("grant select on a to " + role)
	l.cfg.DSN = catalog.Secret(strings.Replace(l.dsn, "postgres@", role+"@", 1))
	l.table("a", "id")
	l.table("b", "id")
	list, err := Preflight(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	golden(t, "preflight-role.golden", strings.NewReplacer(role, "reader", l.cfg.Source.Slot, "slot").Replace(printFindings(list)))

	_, err = l.tryBegin()
	require.Error(t, err)
	require.Equal(t, catalog.CodeSourceGrant, catalog.Public(err).Code)
	require.Equal(t, "role "+role+" may not replicate", catalog.Public(err).Message)
}

func TestPreflightOfServersThatCannotServe(t *testing.T) {
	t.Parallel()
	f := facts{
		version: 120004, recovery: true, database: "shop", role: "app", slots: 10, senders: 10,
		settings: map[string]string{
			"wal_level": "replica", "max_replication_slots": "10", "max_wal_senders": "10", "wal_sender_timeout": "5000",
			"max_slot_wal_keep_size": "1024", "idle_replication_slot_timeout": "3600", "logical_decoding_work_mem": "1024",
		},
	}
	source := &catalog.Source{Name: "shop", Slot: "lakeweir_shop", Publication: "lakeweir_shop", WALBudget: 10 << 30}
	table := &catalog.Table{Name: catalog.ParseTableName("orders"), PrimaryKey: []string{"id"}}
	f.tables = make([]tableFacts, 1)
	f.tables[0] = tableFacts{
		oid: 1, kind: "r", permanent: true, identity: "d", selectable: true,
		attributes: []attribute{{wireColumn: wireColumn{name: "id"}, notNull: true}},
		types:      []catalog.SourceType{{Name: "integer", Base: "int4"}},
		indexes:    []indexFacts{{columns: []string{"id"}, primary: true, immediate: true, plain: true}},
	}
	out := printFindings(judge(source, []*catalog.Table{table}, f))
	f.slot = &slotFacts{plugin: "pgoutput", database: "shop", walStatus: "lost"}
	out += "\nwith a lost slot\n" + printFindings(judgeSlotOnly(source, f))
	f.slot = &slotFacts{plugin: "wal2json", database: "shop"}
	out += "\nwith a slot of another plugin\n" + printFindings(judgeSlotOnly(source, f))
	f.slot = &slotFacts{plugin: "pgoutput", database: "other"}
	out += "\nwith a slot of another database\n" + printFindings(judgeSlotOnly(source, f))
	golden(t, "preflight-server.golden", out)
}

// TestTablesWithBlockingFindingsDoNotStart is the check at start-up: what the
// check command says keeps just those tables from starting.
func TestTablesWithBlockingFindingsDoNotStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table pf1 (id int primary key, v text);
alter table pf1 replica identity nothing;
create table pf2 (a int, b text);
create table good (id int primary key, v text);
insert into good values (1, 'a');`)
	l.table("pf1", "id")
	l.table("pf2")
	l.table("good", "id")
	faults := l.begin()
	require.Len(t, faults, 2)
	for _, f := range faults {
		require.Equal(t, catalog.Quarantined, f.State)
		require.Equal(t, catalog.CodeSourceIdentity, f.Err.Code)
	}
	l.exec("update pf1 set v = 'b';\nupdate pf2 set b = 'x';") // the server would refuse both had they been published
	l.snapshotted()
	l.same("good")
}

func TestAPublicationThatLeavesChangesOutKeepsTheSourceFromStarting(t *testing.T) {
	t.Parallel()
	l := newLab(t, "create table a (id int primary key);\ncreate publication lakeweir_shop for table a with (publish = 'insert, update');")
	l.table("a", "id")
	_, err := l.tryBegin()
	require.Error(t, err)
	e := catalog.Public(err)
	require.Equal(t, catalog.CodeSourcePublication, e.Code)
	require.Equal(t, "publication lakeweir_shop leaves out delete and truncate: such changes would never reach the lake", e.Message)
	require.Equal(t, `ALTER PUBLICATION "lakeweir_shop" SET (publish = 'insert, update, delete, truncate');`, e.Hint)
	l.exec(e.Hint)
	require.Empty(t, l.begin())
}

// TestARoleWithOnlyWhatItNeeds reads with a role that owns nothing: slot and
// publication are made by others.
func TestARoleWithOnlyWhatItNeeds(t *testing.T) {
	t.Parallel()
	l := labOn(t, localpgtest.Database(t), "create table a (id int primary key, v text);\ninsert into a values (1, 'x');\ncreate publication lakeweir_shop for table a;")
	role := "reader_" + l.cfg.Source.Slot
	l.exec("create role " + role + " login replication")
	l.exec("grant select on a to " + role)
	l.cfg.DSN = catalog.Secret(strings.Replace(l.dsn, "postgres@", role+"@", 1))
	l.cfg.Source.CreateSlot = false
	l.table("a", "id")
	_, err := l.tryBegin()
	require.Error(t, err)
	require.Equal(t, "source shop has no slot "+l.cfg.Source.Slot+" and may not make one", catalog.Public(err).Message)
	l.exec("select pg_create_logical_replication_slot($1, 'pgoutput')", l.cfg.Source.Slot)
	l.begin()
	l.snapshotted()
	l.exec("insert into a values (2, 'y')")
	l.drain()
	l.same("a")
}

func TestPartitionedTablesAreReadThroughTheirRoot(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table p (id int, at int, v text, primary key (id, at)) partition by range (at);
create table p1 partition of p for values from (0) to (10);
create table p2 partition of p for values from (10) to (20);
insert into p select g, g, 'v' from generate_series(0, 19) g;`)
	l.table("p", "id", "at")
	l.cfg.Source.Snapshot.ChunkRows = 7
	l.begin()
	l.snapshotted()
	l.exec("update p set v = 'w' where at > 5;\nupdate p set at = 15 where id = 3;\ndelete from p where id = 12;")
	l.drain()
	l.same("p")
}

// From Postgres 18 on the server refuses every update and delete of a published
// table whose FULL identity holds a generated column that the publication does not
// send: publishing it would break its writers.
func TestAFullIdentityWithAGeneratedColumnIsNotPublishedOnPostgres18(t *testing.T) {
	t.Parallel()
	table := &catalog.Table{Name: catalog.ParseTableName("public.gen"), PrimaryKey: []string{"id"}}
	have := tableFacts{identity: "f", attributes: []attribute{{wireColumn: wireColumn{name: "id"}}, {wireColumn: wireColumn{name: "inch"}, generated: true}}}
	judge := func(version int, have tableFacts) string {
		out := findings{source: "shop"}
		judgeColumns(&out, table, facts{version: version}, have)
		return printFindings(out.list)
	}
	const refused = "the replica identity of public.gen is FULL, and its generated inch is not published"
	got := judge(180000, have)
	require.Contains(t, got, "error source.replica_identity shop/public.gen\n    "+refused+": once it is published, the server will refuse to update and delete its rows")
	require.NotContains(t, judge(170000, have), refused)

	published := have
	published.published = true
	require.Contains(t, judge(180000, published), "warning source.replica_identity")
	published.only = []string{"id", "inch"} // publish_generated_columns = stored
	require.NotContains(t, judge(180000, published), refused)
	other := have
	other.identity = "d"
	require.NotContains(t, judge(180000, other), refused)
}
