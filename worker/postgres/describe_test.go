package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// What the stream brings of a table is described just so, by a role that may only
// connect.
func TestATableIsDescribedAsTheStreamShowsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table a (id int primary key, n numeric(8,2), twice int generated always as (id * 2) stored, tags text[]);
alter table a replica identity full;
create table b (id int primary key);`)
	a := l.table("a", "id")
	b := l.table("b", "nothing")
	gone := l.table("gone", "id")
	d, err := Describe(t.Context(), l.cfg, []*catalog.Table{a, b, gone})
	require.NoError(t, err)
	require.NotEmpty(t, d.Epoch.System)
	require.Positive(t, d.Epoch.Timeline)
	require.Len(t, d.Tables, 2)
	require.Equal(t, catalog.CodeSourceColumn, catalog.Public(d.Tables["public.b"].Err).Code)
	require.True(t, d.Tables["public.a"].FullIdentity)
	require.Equal(t, []string{"twice"}, d.Tables["public.a"].Generated)
	l.tables = []*catalog.Table{a}
	l.begin()
	l.exec("insert into a values (1, 2.5, default, '{x}')")
	l.drain()
	for _, batch := range l.store["public.a"].pending {
		require.True(t, batch.Rows.Schema().SameShape(d.Tables["public.a"].Schema))
	}
	l.cfg.DSN = "postgres://nobody@127.0.0.1:1/none"
	_, err = Describe(t.Context(), l.cfg, []*catalog.Table{a})
	require.Equal(t, catalog.Unavailable, catalog.KindOf(err))
}

// A column that the publication leaves out comes with what a connector reads and not with
// its stream, as a generated one does: the lake has neither.
func TestWhatThePublicationLeavesOutIsNotDescribedAsAColumn(t *testing.T) {
	t.Parallel()
	l := newLab(t, `create table a (id int primary key, v text, spans interval[]);
create publication lakeweir_shop for table a (id, v);`)
	d, err := Describe(t.Context(), l.cfg, []*catalog.Table{l.table("a", "id")})
	require.NoError(t, err)
	a := d.Tables["public.a"]
	require.Equal(t, []string{"spans"}, a.Generated)
	require.Len(t, a.Schema.Columns, 2)
	require.Negative(t, a.Schema.Index("spans"))
}
