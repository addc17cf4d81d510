package worker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// A change of shape stops its table where it is, with the columns by name and both
// types; the others go on, and the source keeps what the table has not taken. Cases
// C47-ADD-DEFAULT, C49-RENAME, C51-DROP-READD, C52-TYPE-CHANGE.
func TestAChangeOfShapeStopsItsTableAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup, changes string // one statement a line
		message        string
		missed         int    // changes of the table that the slot must still have
		undo           string // empty: not to be undone
	}{
		"C47 a column with a default": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY);\nINSERT INTO x VALUES (1),(2)",
			changes: "ALTER TABLE x ADD COLUMN c int DEFAULT 11;\nINSERT INTO x VALUES (3,22);\nUPDATE x SET id = id WHERE id = 1;\nDELETE FROM x WHERE id = 2",
			message: "added c integer", missed: 3,
			undo: "ALTER TABLE x DROP COLUMN c",
		},
		"C49 a rename": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY, price numeric(12,2), region text);\nINSERT INTO x VALUES (1,9.99,'north'),(3,1.00,'west')",
			changes: "ALTER TABLE x RENAME COLUMN price TO unit_price;\nINSERT INTO x VALUES (2,5.00,'south');\nUPDATE x SET region = 'east' WHERE id = 1",
			message: "renamed price numeric(12,2) to unit_price numeric(12,2)", missed: 2,
			undo: "ALTER TABLE x RENAME COLUMN unit_price TO price",
		},
		"C49 a rename of the key, and a column more": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY, v text);\nINSERT INTO x VALUES (1,'a'),(3,'c')",
			changes: "ALTER TABLE x RENAME COLUMN id TO key;\nALTER TABLE x ADD COLUMN w date;\nINSERT INTO x VALUES (2,'b','2026-01-01');\nUPDATE x SET key = 7 WHERE key = 1;\nDELETE FROM x WHERE key = 3",
			message: "renamed id integer to key integer", missed: 3,
			undo: "ALTER TABLE x RENAME COLUMN key TO id;\nALTER TABLE x DROP COLUMN w",
		},
		"C49 dropped and added under another name, which is no rename": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY, price int);\nINSERT INTO x VALUES (1,9)",
			changes: "ALTER TABLE x DROP COLUMN price;\nALTER TABLE x ADD COLUMN unit_price int;\nINSERT INTO x VALUES (2,5)",
			message: "added unit_price integer; dropped price integer", missed: 1,
		},
		"C51 dropped and added again with another type": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY, note int);\nINSERT INTO x VALUES (1,100)",
			changes: "ALTER TABLE x DROP COLUMN note;\nINSERT INTO x VALUES (2);\nALTER TABLE x ADD COLUMN note text;\nINSERT INTO x VALUES (3,'hello');\nUPDATE x SET note = 'now text' WHERE id = 1",
			message: "dropped note integer", missed: 3,
		},
		"C51 dropped and added again before a row is written": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY, note int);\nINSERT INTO x VALUES (1,100)",
			changes: "ALTER TABLE x DROP COLUMN note;\nALTER TABLE x ADD COLUMN note text;\nINSERT INTO x VALUES (3,'hello')",
			message: "dropped and added again note (integer before, text now)", missed: 1,
		},
		"C52 types": {
			setup:   "CREATE TABLE x (id int PRIMARY KEY, amt numeric(10,2), n int, s varchar(10), k varchar(5));\nINSERT INTO x VALUES (1,1.25,7,'12','a')",
			changes: "ALTER TABLE x ALTER n TYPE bigint, ALTER s TYPE int USING s::int, ALTER amt TYPE numeric(12,4);\nINSERT INTO x VALUES (2,1.2345,3000000000,42,'b');\nALTER TABLE x ALTER k TYPE varchar(500);\nINSERT INTO x VALUES (3,0,1,1,repeat('z',400))",
			message: "retyped amt from numeric(10,2) to numeric(12,4), n from integer to bigint, s from character varying(10) to integer", missed: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "\nprimary_key: [id]\nscd: [1, 2]\n"
			r := newRig(t, "", map[string]string{"public.x.yaml": "table: public.x" + file, "public.other.yaml": "table: public.other" + file})
			r.execEach(c.setup)
			r.exec("CREATE TABLE other (id int PRIMARY KEY, v text)")
			r.start()
			r.landed()
			r.execEach(c.changes)
			r.wait(func(v *registry.TableView) bool { return v.Name.Name != "x" || v.State == catalog.Quarantined })
			fault := r.state("public.x").Fault
			require.Equal(t, catalog.CodeSchemaChanged, fault.Code)
			// The message is as of the first row that was written; the catalog may be further by then.
			require.Contains(t, fault.Message, c.message)
			r.exec("INSERT INTO other VALUES (1,'while the table is stopped')")
			r.landed()
			_, rows := r.rows("public.other", catalog.Current)
			require.Len(t, rows, 1)
			r.stop()
			require.Equal(t, c.missed, r.slotHolds("x"))
			if c.undo == "" {
				return
			}
			r.execEach(c.undo)
			r.start()
			r.landed()
			require.Nil(t, r.state("public.x").Fault)
			r.requireEqual()
		})
	}
}

// execEach runs statements, one a line, each a transaction of its own.
func (r *rig) execEach(sql string) {
	r.t.Helper()
	for s := range strings.SplitSeq(sql, ";\n") {
		r.exec(s)
	}
}

// slotHolds counts a table's row changes that the slot has not been told to forget.
// Nobody may read the slot meanwhile.
func (r *rig) slotHolds(table string) (n int) {
	r.t.Helper()
	r.poll("the slot is free", "select not active from pg_replication_slots where slot_name = $1", r.source.Slot)
	err := r.conn.QueryRow(r.t.Context(), `select count(*) from pg_logical_slot_peek_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', $2)
where get_byte(data, 0) in (ascii('I'), ascii('U'), ascii('D')) and ('x' || encode(substr(data, 2, 4), 'hex'))::bit(32)::int8 = $3::regclass::oid::int8`,
		r.source.Slot, r.source.Publication, table).Scan(&n)
	require.NoError(r.t, err)
	return n
}
