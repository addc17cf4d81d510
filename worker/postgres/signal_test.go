package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// signal is what a connector reads of one.
type signal struct {
	Type       string   `json:"type"`
	Tables     []string `json:"data-collections"`
	Conditions []struct {
		Table  string `json:"data-collection"`
		Filter string `json:"filter"`
	} `json:"additional-conditions"`
}

// signalled returns the only signal of the table, and the rows that its filter finds.
func (l *lab) signalled(table, column string) (name string, s signal, found []string) {
	l.t.Helper()
	var data string
	require.NoError(l.t, l.db.QueryRow(l.t.Context(), "select id, data from lakeweir.signals where type = 'execute-snapshot'").Scan(&name, &data))
	require.LessOrEqual(l.t, utf8.RuneCountInString(data), mostSignalData)
	require.NoError(l.t, json.Unmarshal([]byte(data), &s))
	require.Len(l.t, s.Conditions, 1)
	rows, err := l.db.Query(l.t.Context(), "select "+column+"::text from "+table+" where "+s.Conditions[0].Filter+" order by 1")
	require.NoError(l.t, err, s.Conditions[0].Filter)
	found, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(l.t, err)
	return name, s, found
}

func newSignalLab(t *testing.T, sql string) (*lab, *Signals) {
	t.Helper()
	l := newLab(t, sql+"\ncreate schema lakeweir;\n"+signalTableSQL(catalog.ParseTableName("lakeweir.signals"))+";")
	l.cfg.Source.Connector = &catalog.Connector{SignalTable: catalog.ParseTableName("lakeweir.signals")}
	return l, NewSignals(l.cfg)
}

// TestASignalAsksForTheRowsOfItsKeysAlone, whatever the keys are made of.
func TestASignalAsksForTheRowsOfItsKeysAlone(t *testing.T) {
	t.Parallel()
	l, s := newSignalLab(t, `create type mood as enum ('sad', 'o''k');
create table "Odd.Name" (a int, "b c" text, m mood, n numeric, primary key (a, "b c", m, n));
insert into "Odd.Name" select g, t, 'o''k', 1.50 from generate_series(1, 3) g, unnest(array['x', 'it''s', 'back\slash', 'ä "q" {}', '?', E'two\nlines']) t;`)
	table := catalog.TableName{Schema: "public", Name: "Odd.Name"}
	columns := []string{"a", "b c", "m", "n"}
	before := l.end()
	sent, err := s.Read(t.Context(), "lakeweir-read-1", table, columns, [][]string{
		{"1", "it's", "o'k", "1.50"},
		{"2", `back\slash`, "o'k", "1.50"},
		{"2", `ä "q" {}`, "o'k", "1.50"},
		{"3", "?", "o'k", "1.50"},
		{"3", "two\nlines", "o'k", "1.50"},
		{"9", "x", "o'k", "1.50"},
		{"1", "x", "gone", "1.50"},
		{"no number", "x", "o'k", "1.50"},
		{"1", "x", "o'k", "NaN"},
	})
	require.NoError(t, err)
	require.Equal(t, 9, sent.Keys)
	require.Equal(t, []int{6, 7}, sent.Refused)
	require.GreaterOrEqual(t, sent.Before, before)
	require.Less(t, sent.Before, l.end(), "the signal is behind it")
	require.NotZero(t, sent.At)
	name, got, found := l.signalled(`"Odd.Name"`, `(a, "b c")`)
	require.Equal(t, "lakeweir-read-1", name)
	require.Equal(t, "incremental", got.Type)
	require.Equal(t, []string{`public\.Odd\.Name`}, got.Tables)
	require.Equal(t, got.Tables[0], got.Conditions[0].Table)
	require.Len(t, found, 5, "%v", found)

	_, err = s.Read(t.Context(), "lakeweir-read-2", table, columns, [][]string{{"1", "x", "o'k", "1.50"}})
	require.NoError(t, err)
	name, _, found = l.signalled(`"Odd.Name"`, "a")
	require.Equal(t, "lakeweir-read-2", name, "the one before is cleared away")
	require.Equal(t, []string{"1"}, found)
}

// TestASignalHasAsManyKeysAsFit, at least one; what fits nowhere is said.
func TestASignalHasAsManyKeysAsFit(t *testing.T) {
	t.Parallel()
	l, s := newSignalLab(t, "create table k (id text primary key); insert into k select repeat('ä', 90) || g from generate_series(1, 100) g;")
	table := catalog.ParseTableName("public.k")
	var keys [][]string
	for i := 1; i <= 100; i++ {
		keys = append(keys, []string{strings.Repeat("ä", 90) + strconv.Itoa(i)})
	}
	asked := 0
	for asked < len(keys) {
		sent, err := s.Read(t.Context(), fmt.Sprintf("lakeweir-read-%d", asked), table, []string{"id"}, keys[asked:])
		require.NoError(t, err)
		require.Positive(t, sent.Keys)
		_, _, found := l.signalled("k", "id")
		require.Len(t, found, sent.Keys)
		asked += sent.Keys
	}
	_, err := s.Read(t.Context(), "lakeweir-read-x", table, []string{"id"}, [][]string{{strings.Repeat("x", 5000)}})
	require.ErrorContains(t, err, "too large for the signal table")
}

// TestASignalThatCannotBeWrittenIsAnError of the source.
func TestASignalThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	l, s := newSignalLab(t, "create table k (id int primary key);")
	l.exec("drop table lakeweir.signals")
	_, err := s.Read(t.Context(), "lakeweir-read-1", catalog.ParseTableName("public.k"), []string{"id"}, [][]string{{"1"}})
	require.Error(t, err)
	l.cfg.DSN = "postgres://nobody@127.0.0.1:1/none"
	_, err = NewSignals(l.cfg).Read(t.Context(), "lakeweir-read-1", catalog.ParseTableName("public.k"), []string{"id"}, [][]string{{"1"}})
	require.Equal(t, catalog.Unavailable, catalog.KindOf(err))
}

// TestWhatTheSourceHasNotIsKnownByKey, whatever its text is.
func TestWhatTheSourceHasNotIsKnownByKey(t *testing.T) {
	t.Parallel()
	l, s := newSignalLab(t, "create table k (a int, b text, primary key (a, b)); insert into k values (1, 'x'), (2, 'it''s');")
	missing, err := s.Missing(t.Context(), catalog.ParseTableName("public.k"), []string{"a", "b"}, [][]string{{"1", "x"}, {"1", "y"}, {"2", "it's"}, {"no number", "x"}, {"3", "x"}})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, false, true, true}, missing)
	l.exec("drop table k")
	_, err = s.Missing(t.Context(), catalog.ParseTableName("public.k"), []string{"a", "b"}, [][]string{{"1", "x"}})
	require.Error(t, err)
}
