package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// written are tables that get every kind of statement.
var written = []struct {
	name string
	key  []string
	soft bool
}{
	{"by_key", []string{"id"}, false},  // REPLICA IDENTITY DEFAULT
	{"by_row", []string{"id"}, true},   // REPLICA IDENTITY FULL
	{"emptied", []string{"id"}, false}, // truncated again and again
	{"pairs", []string{"a", "b"}, true},
	{"swapped", []string{"id"}, false}, // a key that is checked at the end of a statement
}

// columnsWritten are those of a table with large values, of types with a placeholder
// and with NULLs, defaults and what an update leaves alone.
const columnsWritten = `(id int primary key, code text not null default 'none', n numeric(12,2) default 7.5, note text,
	big text, bytes bytea, tags text[], doc jsonb not null default '{}', at timestamptz)`

// writtenBefore makes the tables with the rows that are read.
func writtenBefore() []string {
	out := []string{
		"create table pairs (a text, b int, v text, primary key (a, b))",
		"insert into pairs select 'a' || i % 3, i, 'read' from generate_series(1, 30) i",
		"create table swapped (id int primary key deferrable, v text)",
		"alter table swapped replica identity full",
		"insert into swapped select i, 'read ' || i from generate_series(1, 10) i",
	}
	for _, table := range []string{"by_key", "by_row", "emptied"} {
		out = append(out, "create table "+table+" "+columnsWritten,
			"alter table "+table+" alter big set storage external, alter bytes set storage external, alter tags set storage external",
			fmt.Sprintf("insert into %s select i, 'c' || i, i / 3.0, case when i %% 4 > 0 then 'note ' || i end, %s, %s, array[repeat('t', 3000), null, i::text], '{\"a\": [1.50, null]}', timestamptz '2026-01-01' + i * interval '1 second' from generate_series(1, 60) i",
				table, large("i"), "decode("+large("i")+", 'escape')"))
	}
	return append(out, "alter table by_row replica identity full")
}

// large is a text that the server keeps outside of its row.
func large(i string) string { return "repeat(md5(" + i + "::text), 150)" }

// writeAll writes the statements, each as a transaction unless it says otherwise.
func writeAll(t *testing.T, dsn string) {
	t.Helper()
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	one, two := connect(), connect()
	exec := func(conn *pgx.Conn, sql string) {
		_, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		require.NoError(t, err, sql)
	}
	for _, table := range []string{"by_key", "by_row"} {
		for _, sql := range rowStatements() {
			exec(one, strings.ReplaceAll(sql, "$t", table))
		}
		copyRows(t, one, table, 500, 40)
		for _, s := range interleaved() {
			conn := one
			if s.second {
				conn = two
			}
			exec(conn, strings.ReplaceAll(s.sql, "$t", table))
		}
	}
	for _, sql := range emptying() {
		exec(one, sql)
	}
	copyRows(t, one, "emptied", 500, 40)
	exec(one, "update emptied set note = 'after the copy' where id % 2 = 0")
}

// rowStatements are statements on a table with the rows 1 to 60.
func rowStatements() []string {
	return []string{
		"insert into $t (id) values (101), (102)",
		"insert into $t (id, code, n, doc) values (103, '', null, '[]')",
		"update $t set note = 'beside large values' where id = 1",
		"update $t set note = null, n = null where id = 2",
		"update $t set note = note where id = 3", // changes nothing
		"update $t set big = big || 'more' where id = 4",
		"update $t set big = null, bytes = null, tags = null where id = 5",
		"update $t set note = 'beside NULL' where id = 5",
		"update $t set tags = tags || 'more'::text, doc = doc || '{\"b\": 1e10}' where id in (6, 7)",
		"update $t set code = 'twice' where id = 6; update $t set code = 'thrice' where id = 6", // one transaction
		"delete from $t where id = 8",
		"insert into $t (id, note) values (8, 'again')",
		"begin; delete from $t where id = 9; insert into $t (id, note) values (9, 'again in one transaction'); commit",
		"begin; insert into $t (id) values (104); update $t set note = 'x' where id = 104; delete from $t where id = 104; commit",
		"begin; insert into $t (id) values (105); update $t set note = 'x' where id = 105; update $t set note = 'y' where id = 105; commit",
		"begin; update $t set note = 'there' where id = 10; update $t set note = 'note 10' where id = 10; commit", // and back
		// Keys that move, with the large values that they do not send.
		"update $t set id = 201 where id = 11",
		"update $t set id = 202, note = 'moved' where id = 12",
		"update $t set id = 203, big = 'small now' where id = 13",
		"update $t set note = 'moved before' where id = 201",
		"begin; update $t set id = 204 where id = 14; update $t set note = 'moved and changed' where id = 204; update $t set id = 205 where id = 204; commit",
		"begin; delete from $t where id = 15; update $t set id = 15 where id = 16; commit",
		"begin; update $t set id = -1 where id = 17; update $t set id = 17 where id = 18; update $t set id = 18 where id = -1; commit", // they swap
		"begin; update $t set id = 206 where id = 19; update $t set id = 19 where id = 206; commit",                                    // and back
		"update $t set id = id + 1000 where id between 20 and 26",
		"begin; update $t set id = 207 where id = 27; delete from $t where id = 207; commit",
		"begin; update $t set id = 208 where id = 28; insert into $t (id, note) values (28, 'who came after'); commit",
		// What is rolled back.
		"begin; update $t set note = 'kept' where id = 29; savepoint s; update $t set note = 'lost' where id = 30; delete from $t where id = 31; rollback to s; update $t set note = 'kept too' where id = 32; commit",
		"begin; delete from $t; rollback",
		"begin; truncate $t; rollback",
		// Many at once.
		"update $t set n = n * 2 where id % 3 = 0",
		"insert into $t (id, note) values (33, 'new'), (106, 'new') on conflict (id) do update set note = 'was there'",
		"delete from $t where id between 34 and 36",
		"begin; update $t set note = 'all of them'; update $t set code = code || '.' where id % 2 = 0; delete from $t where id % 7 = 0; commit",
	}
}

// interleaved are transactions of two sessions at the same time. The one that began,
// and wrote, first commits last; then they write to one row in turn.
func interleaved() []struct {
	second bool
	sql    string
} {
	type step = struct {
		second bool
		sql    string
	}
	return []step{
		{false, "begin; update $t set note = 'first to write' where id = 40; insert into $t (id) values (301)"},
		{true, "begin; update $t set note = 'first to commit' where id = 41; insert into $t (id) values (302)"},
		{false, "update $t set note = 'in between' where id = 43"},
		{true, "commit"},
		{true, "update $t set note = 'alone' where id = 44"},
		{false, "update $t set note = 'second in one' where id = 41"},
		{false, "commit"},
		{true, "begin; update $t set id = 303 where id = 45"},
		{false, "begin; update $t set id = 304 where id = 46; insert into $t (id, note) values (46, 'while another moves')"},
		{false, "commit"},
		{true, "update $t set note = 'after the move' where id = 303"},
		{true, "commit"},
		{false, "update $t set note = 'a' where id = 47"},
		{true, "update $t set note = 'b' where id = 47"},
		{false, "update $t set note = 'c' where id = 47"},
	}
}

// emptying are the statements of the other tables.
func emptying() []string {
	return []string{
		"update pairs set v = 'changed' where a = 'a1'",
		"update pairs set b = b + 100 where a = 'a2'",
		"update pairs set a = 'b' || b, v = 'moved' where b between 3 and 6",
		"begin; delete from pairs where b = 9; insert into pairs values ('a0', 9, 'again'); commit",
		"update swapped set id = 11 - id where id in (1, 10)",         // they swap in one statement
		"update swapped set id = id % 5 + 1 where id between 1 and 5", // and around
		"begin; set constraints all deferred; update swapped set id = 7 where id = 6; update swapped set id = 6 where v = 'read 7'; commit",
		"update swapped set v = v || '!' where id > 5",
		"update emptied set note = 'before' where id < 10",
		"truncate emptied",
		"insert into emptied (id, note) select i, 'after' from generate_series(1, 20) i",
		"begin; update emptied set note = 'before the second' where id = 1; truncate emptied; insert into emptied (id, note) values (1, 'between'), (2, 'between'); truncate emptied; insert into emptied (id, note, big) select i, 'within', " + large("i") + " from generate_series(2, 9) i; commit",
		"update emptied set code = 'later' where id = 2",
		"begin; insert into emptied (id) values (90); truncate emptied; commit",
		"truncate emptied", // nothing is there
		"insert into emptied (id, note) select i, 'last' from generate_series(1, 5) i",
	}
}

// copyRows adds rows by one COPY.
func copyRows(t *testing.T, conn *pgx.Conn, table string, from, rows int) {
	t.Helper()
	var lines strings.Builder
	for i := range rows {
		fmt.Fprintf(&lines, "%d\tcopied %d\t\\N\n", from+i, i)
	}
	_, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(lines.String()), "copy "+table+" (id, note, n) from stdin")
	require.NoError(t, err)
}
