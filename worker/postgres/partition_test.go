package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestPartitionsAndHeirsThatCannotBeReplicatedAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table p (id int, k text, v text, primary key (id, k)) partition by list (k);
create table p_ok partition of p for values in ('ok');
create table p_full partition of p for values in ('full');
alter table p_full replica identity full;
create table p_nothing partition of p for values in ('nothing');
alter table p_nothing replica identity nothing;
create unlogged table p_unlogged partition of p for values in ('unlogged');
create table p_sub partition of p for values in ('sub') partition by range (id);
create table p_sub_1 partition of p_sub for values from (1) to (9);
create unique index p_sub_1_id on p_sub_1 (id);
alter table p_sub_1 replica identity using index p_sub_1_id;
create table parent (id int primary key);
create table child (primary key (id)) inherits (parent);
create extension if not exists postgres_fdw;
create server elsewhere foreign data wrapper postgres_fdw;
create table f (id int, k text) partition by list (k);
create foreign table f_1 partition of f for values in ('x') server elsewhere`)
	for _, name := range []string{"p", "p_ok", "p_sub_1"} {
		l.table(name, "id", "k")
	}
	l.table("parent", "id")
	l.table("child", "id")
	l.table("f")
	found, err := Preflight(t.Context(), l.cfg, l.tables)
	require.NoError(t, err)
	var got []string
	for _, f := range found {
		if f.Severity == catalog.Blocks && f.Table != "" && f.Code != catalog.CodeSourceKey {
			got = append(got, f.Table+" "+string(f.Code)+": "+f.Message+" → "+f.Fix)
		}
	}
	const identity = " do not carry its key: the replica identity of the partition counts, not that of the table → ALTER TABLE "
	require.Equal(t, []string{
		"public.p source.replica_identity: updates and deletes in partition public.p_nothing of public.p" + identity + `"public"."p_nothing" REPLICA IDENTITY FULL;`,
		`public.p source.partition: partition public.p_unlogged of public.p is unlogged: its changes are not in the log → ALTER TABLE "public"."p_unlogged" SET LOGGED;`,
		"public.p source.replica_identity: updates and deletes in partition public.p_sub_1 of public.p" + identity + `"public"."p_sub_1" REPLICA IDENTITY FULL;`,
		"public.p_ok source.partition: public.p_ok is a partition of p: its changes are sent under that name → configure p, and take this table's file away",
		"public.p_sub_1 source.partition: public.p_sub_1 is a partition of p: its changes are sent under that name → configure p, and take this table's file away",
		`public.p_sub_1 source.replica_identity: deletes of public.p_sub_1 carry (id) only, which does not hold the configured key (id, k) → ALTER TABLE "public"."p_sub_1" REPLICA IDENTITY FULL; -- or set primary_key: [id] in the table's file`,
		"public.parent source.inherited: public.parent has tables that inherit from it (child): their rows show under its name, and their changes do not → use declarative partitioning, or replicate tables that nothing inherits from",
		"public.child source.inherited: public.child inherits from parent: its rows show under both, its changes under its own name only → use declarative partitioning, or a table of its own",
		"public.f source.partition: partition public.f_1 of public.f is a foreign table, whose changes are not in the log → detach it, or replicate the partitions that are tables",
		`public.f source.replica_identity: public.f has no replica identity: once it is published, the server will refuse to update and delete its rows → ALTER TABLE "public"."f" REPLICA IDENTITY FULL;`,
	}, got)
}

func TestLeavesAreComparedWithThoseThatWereKnown(t *testing.T) {
	t.Parallel()
	known := []catalog.Relation{{OID: 1, Name: "a", File: 11}, {OID: 2, Name: "b", File: 12}, {OID: 3, Name: "c", File: 13}}
	now := []leaf{{Relation: catalog.Relation{OID: 1, Name: "renamed", File: 11}}, {Relation: catalog.Relation{OID: 3, Name: "c", File: 33}}, {Relation: catalog.Relation{OID: 4, Name: "d", File: 14}}}
	c := comparePartitions(known, now)
	require.Equal(t, []catalog.Relation{{OID: 4, Name: "d", File: 14}}, relationsOf(c.added))
	require.Equal(t, []catalog.Relation{{OID: 2, Name: "b", File: 12}}, c.gone)
	require.Equal(t, []catalog.Relation{{OID: 3, Name: "c", File: 33}}, c.rewritten)
	require.Equal(t, partChange{}, comparePartitions(known, []leaf{{Relation: known[2]}, {Relation: known[0]}, {Relation: known[1]}}))
	require.Equal(t, "partitions a, b, c and 2 more", namesOf([]catalog.Relation{{Name: "a"}, {Name: "b"}, {Name: "c"}, {}, {}}))
}
