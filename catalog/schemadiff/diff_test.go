package schemadiff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// definition declares a table; columns are numbered in order, from 1.
func definition(t *testing.T, columns ...string) *catalog.Definition {
	t.Helper()
	d := &catalog.Definition{Name: catalog.TableName{Schema: "public", Name: "orders"}, OID: 16384, Identity: catalog.Identity{Mode: catalog.IdentityDefault}}
	for i, sql := range columns {
		c, err := Declare(sql)
		require.NoError(t, err)
		c.Number = i + 1
		d.Columns = append(d.Columns, c)
	}
	return d
}

// said are the changes in words, with what they ask of the lake and of rows.
func said(changes []catalog.SchemaChange) []string {
	var out []string
	for _, c := range changes {
		s := []string{string(c.Kind) + ": " + c.String()}
		for _, fact := range []struct {
			is   bool
			text string
		}{
			{c.Lake != "", string(c.Lake)},
			{c.Rewrite != catalog.RewriteNone, "rewrite " + string(c.Rewrite)},
			{c.Key, "key"},
			{c.Tracked, "tracked"},
			{c.PII != "", string(c.PII)},
			{c.RenameOf != "", "perhaps " + c.RenameOf},
		} {
			if fact.is {
				s = append(s, fact.text)
			}
		}
		out = append(out, strings.Join(s, "; "))
	}
	return out
}

var orders = &catalog.Table{
	Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"id"},
	TrackColumns: []string{"status"}, PII: map[string]catalog.Protection{"email": catalog.Tokenize},
}

func TestDiffTellsEachKindOfChange(t *testing.T) {
	t.Parallel()
	const id, status, email = "id bigint not null", "status text", "email text"
	base := func(t *testing.T) *catalog.Definition {
		t.Helper()
		d := definition(t, id, status, email)
		d.Key = []string{"id"}
		d.Identity.Columns = d.Key
		return d
	}
	for name, c := range map[string]struct {
		change func(d *catalog.Definition)
		want   []string
	}{
		"nothing": {func(*catalog.Definition) {}, nil},
		"column added": {
			func(d *catalog.Definition) { d.Columns = append(d.Columns, column(t, 4, "note text")) },
			[]string{"column_added: column note is new: text"},
		},
		"added with a constant default": {
			func(d *catalog.Definition) { d.Columns = append(d.Columns, column(t, 4, "n int not null default 5")) },
			[]string{"column_added: column n is new: integer not null default 5"},
		},
		"added with a volatile default": {func(d *catalog.Definition) {
			d.Columns = append(d.Columns, column(t, 4, "u uuid default gen_random_uuid()"))
		}, []string{"column_added: column u is new: uuid default gen_random_uuid(); rewrite values"}},
		"added with now(), whose value is not known": {func(d *catalog.Definition) {
			d.Columns = append(d.Columns, column(t, 4, "at timestamptz default now()"))
		}, []string{"column_added: column at is new: timestamp with time zone default now(); rewrite values"}},
		"added with now(), whose value is known": {func(d *catalog.Definition) {
			c := column(t, 4, "at timestamptz default now()")
			c.Default.Missing = new("2026-11-30 00:00:00+00")
			d.Columns = append(d.Columns, c)
		}, []string{"column_added: column at is new: timestamp with time zone default now()"}},
		"added and not sent": {func(d *catalog.Definition) {
			c := column(t, 4, "twice int generated always as (id * 2) stored")
			c.Unsent = true
			d.Columns = append(d.Columns, c)
		}, nil},
		"column dropped":         {func(d *catalog.Definition) { d.Columns = d.Columns[:2] }, []string{"column_dropped: column email is gone; tokenize"}},
		"tracked column dropped": {func(d *catalog.Definition) { d.Columns = append(d.Columns[:1:1], d.Columns[2]) }, []string{"column_dropped: column status is gone; tracked"}},
		"column renamed":         {func(d *catalog.Definition) { d.Columns[1].Name = "state" }, []string{"column_renamed: column status is now called state; tracked"}},
		"dropped and added again": {
			func(d *catalog.Definition) { d.Columns[1].Number = 4 },
			[]string{"column_dropped: column status is gone; tracked", "column_added: column status is new: text; tracked"},
		},
		"two columns swap names": {func(d *catalog.Definition) {
			d.Columns[1].Name, d.Columns[2].Name = d.Columns[2].Name, d.Columns[1].Name
		}, []string{"column_renamed: column status is now called email; tracked; tokenize", "column_renamed: column email is now called status; tracked; tokenize"}},
		"renamed and widened at once": {
			func(d *catalog.Definition) { d.Columns[1] = column(t, 2, "state varchar") },
			[]string{"column_renamed: column status is now called state; tracked", "column_widened: column status: text → character varying (lake: string as before); same; rewrite unknown; tracked"},
		},
		"NULL allowed": {func(d *catalog.Definition) { d.Columns[0].Nullable = true }, []string{"nullability_relaxed: column id: NULL is allowed now; key"}},
		"NULL refused": {func(d *catalog.Definition) { d.Columns[1].Nullable = false }, []string{"nullability_tightened: column status: NULL is refused now; tracked"}},
		"default set": {func(d *catalog.Definition) {
			d.Columns[1].Default = &catalog.Default{Expression: "'new'", Volatility: catalog.Constant}
		}, []string{"default_changed: column status: default NULL → 'new'; tracked"}},
		"order of columns": {func(d *catalog.Definition) { d.Columns[1], d.Columns[2] = d.Columns[2], d.Columns[1] }, nil},
		"key moved":        {func(d *catalog.Definition) { d.Key = []string{"id", "status"} }, []string{"key_changed: primary key: (id) → (id, status); key"}},
		"key column renamed": {func(d *catalog.Definition) {
			d.Columns[0].Name, d.Key, d.Identity.Columns = "order_id", []string{"order_id"}, []string{"order_id"}
		}, []string{"column_renamed: column id is now called order_id; key"}},
		"identity": {func(d *catalog.Definition) { d.Identity = catalog.Identity{Mode: catalog.IdentityFull} }, []string{"identity_changed: replica identity: default → full"}},
		"identity index": {func(d *catalog.Definition) {
			d.Identity = catalog.Identity{Mode: catalog.IdentityIndex, Columns: []string{"email"}}
		}, []string{"identity_changed: replica identity: default → index on (email)"}},
		"table renamed":  {func(d *catalog.Definition) { d.Name.Name = "orders_old" }, []string{"table_renamed: table public.orders is now called public.orders_old"}},
		"table replaced": {func(d *catalog.Definition) { d.OID++ }, []string{"table_replaced: table public.orders was dropped and made anew; rewrite values"}},
		"partitions":     {func(d *catalog.Definition) { d.Partitions = []catalog.Relation{{OID: 2, Name: "orders_2026"}} }, []string{"partition_attached: partition orders_2026 was attached"}},
		"became generated, and is not sent": {
			func(d *catalog.Definition) { d.Columns[1].Generated, d.Columns[1].Unsent = "stored", true },
			[]string{"generated_changed: column status: generated none → stored; tracked"},
		},
		"left out of the publication": {func(d *catalog.Definition) { d.Columns[1].Unsent = true }, []string{"column_dropped: column status is gone; tracked"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := base(t), base(t)
			c.change(after)
			if diff := cmp.Diff(c.want, said(Diff(orders, before, after, Commands{}))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []string{"table_dropped: table public.orders is gone"}, said(Diff(orders, base(t), nil, Commands{})))
	})
	t.Run("first sight", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, Diff(orders, nil, base(t), Commands{}))
	})
}

func column(t *testing.T, number int, sql string) catalog.ColumnDefinition {
	t.Helper()
	c, err := Declare(sql)
	require.NoError(t, err)
	c.Number = number
	return c
}

func TestDiffTellsWhatBecomesOfAGeneratedColumn(t *testing.T) {
	t.Parallel()
	before := definition(t, "id bigint", "twice int generated always as (id * 2) stored")
	before.Columns[1].Unsent = true
	plain := definition(t, "id bigint", "twice int")
	require.Equal(t, []string{"generated_changed: column twice: generated stored → none; rewrite values"}, said(Diff(orders, before, plain, Commands{}))[:1])
	sent := definition(t, "id bigint", "twice int generated always as (id * 2) stored")
	require.Equal(t, []string{"column_added: column twice is new: integer default (id * 2) generated stored; rewrite values"}, said(Diff(orders, before, sent, Commands{})))
	require.Empty(t, Diff(orders, before, before, Commands{}))
}

func TestDiffTellsLabelsOfAnEnum(t *testing.T) {
	t.Parallel()
	before, after := definition(t, "id bigint", "s enum(new, paid)"), definition(t, "id bigint", "s enum(new, paid, refunded)")
	require.Equal(t, []string{`enum_label_added: column s: label "refunded" is new`}, said(Diff(orders, before, after, Commands{})))
	require.Equal(t, []string{`enum_label_removed: column s: label "refunded" is gone`}, said(Diff(orders, after, before, Commands{})))
	number := func(d *catalog.Definition) {
		for i := range d.Columns[1].Labels {
			d.Columns[1].Labels[i].OID = uint32(i + 1)
		}
	}
	number(before)
	after = definition(t, "id bigint", "s enum(new, settled)")
	number(after)
	require.Equal(t, []string{`enum_label_renamed: column s: label "paid" is now "settled"; rewrite values`}, said(Diff(orders, before, after, Commands{})))
}

// Without attribute numbers a rename cannot be told from a drop and an add: both are
// told, with the suspicion.
func TestDiffWithoutNumbersNamesWhatMayBeARename(t *testing.T) {
	t.Parallel()
	unnumbered := func(d *catalog.Definition) *catalog.Definition {
		for i := range d.Columns {
			d.Columns[i].Number = 0
		}
		return d
	}
	before := unnumbered(definition(t, "id bigint", "total int", "n text"))
	after := unnumbered(definition(t, "id bigint", "n text", "amount int", "note text"))
	require.Equal(t, []string{"column_dropped: column total is gone", "column_added: column amount is new: integer; perhaps total", "column_added: column note is new: text"},
		said(Diff(orders, before, after, Commands{})))
}

func TestDiffClassifiesTypes(t *testing.T) {
	t.Parallel()
	for line := range strings.SplitSeq(strings.TrimSpace(`
integer → bigint: widened promotes
smallint → integer: widened same
smallint → bigint: widened promotes
bigint → integer: narrowed holds
integer → smallint: narrowed same
real → double precision: widened promotes
double precision → real: narrowed holds
smallint → real: retyped replaces
integer → double precision: retyped replaces
bigint → double precision: retyped replaces
integer → numeric(12,0): retyped replaces
integer → numeric: retyped replaces
integer → text: retyped replaces
integer → uuid: retyped replaces
numeric(12,2) → numeric(14,2): widened promotes
numeric(14,2) → numeric(12,2): narrowed holds
numeric(12,2) → numeric(14,4): retyped replaces
numeric(12,2) → numeric(12,4): retyped replaces
numeric(12,4) → numeric(10,2): narrowed replaces
numeric(12,2) → numeric(38,2): widened promotes
numeric(12,2) → numeric(40,2): retyped replaces
numeric(12,2) → numeric: retyped replaces
numeric → numeric(12,2): narrowed replaces
numeric(40,2) → numeric(50,2): widened same
numeric(40,2) → numeric(50,4): widened same; rewrite values
numeric(40,2) → numeric: widened same
numeric(5,-2) → numeric(7,0): widened same
numeric(12,2) → bigint: retyped replaces
numeric(12,0) → bigint: retyped replaces
varchar(10) → varchar(20): widened same
varchar(20) → varchar(10): narrowed same
varchar(10) → text: widened same
text → varchar: widened same
text → varchar(10): narrowed same
char(5) → char(10): widened same; rewrite values
char(5) → text: widened same; rewrite values
char(5) → varchar(5): widened same; rewrite values
varchar(5) → char(5): narrowed same; rewrite values
name → text: widened same
text → json: retyped same; rewrite values
json → jsonb: retyped same; rewrite values
inet → text: retyped same; rewrite values
shop.status → text: widened same
text → shop.status: narrowed same
shop.status → varchar(10): retyped same
uuid → text: retyped replaces
timestamp(3) → timestamp(6): widened same
timestamp(6) → timestamp: widened same
timestamp → timestamp(3): narrowed same
timestamp → timestamptz: retyped replaces
timestamptz(0) → timestamptz: widened same
date → timestamp: retyped replaces
timestamp → date: narrowed replaces
time(0) → time: widened same
interval(3) → interval: widened same
bit(8) → bit(16): retyped same
bit(8) → bit varying(16): widened same
bit varying(8) → bit varying: widened same
bit varying → bit varying(8): narrowed same
integer[] → bigint[]: widened promotes
bigint[] → integer[]: narrowed holds
integer[] → integer[][]: retyped replaces
varchar(10)[] → text[]: widened same
integer → integer[]: retyped replaces
bytea → text: retyped replaces
money → numeric(12,2): retyped replaces
boolean → integer: retyped replaces
`), "\n") {
		types, want, _ := strings.Cut(line, ": ")
		was, now, _ := strings.Cut(types, " → ")
		t.Run(types, func(t *testing.T) {
			t.Parallel()
			changes := Diff(orders, definition(t, "id bigint", "c "+was), definition(t, "id bigint", "c "+now), Commands{Whole: true})
			require.Len(t, changes, 1)
			got := strings.TrimPrefix(string(changes[0].Kind), "column_") + " " + string(changes[0].Lake)
			if changes[0].Rewrite != catalog.RewriteNone {
				got += "; rewrite " + string(changes[0].Rewrite)
			}
			require.Equal(t, want, got)
		})
	}
}

// A masked column is text in the lake whatever it is at the source: no change of type
// moves it, but a token is of what the server prints.
func TestDiffKnowsThatMaskedColumnsAreText(t *testing.T) {
	t.Parallel()
	diff := func(was, now string) string {
		c := Diff(orders, definition(t, "email "+was), definition(t, "email "+now), Commands{Whole: true})
		require.Len(t, c, 1)
		return string(c[0].Kind) + " " + string(c[0].Lake) + " " + string(c[0].Rewrite)
	}
	require.Equal(t, "column_widened same none", diff("integer", "numeric(12,0)"))
	require.Equal(t, "column_widened same values", diff("integer", "numeric(12,2)"))
	require.Equal(t, "column_widened same values", diff("real", "double precision"))
	require.Equal(t, "column_retyped same values", diff("integer", "text"))
}

func TestDiffKnowsWhatTheCommandsSay(t *testing.T) {
	t.Parallel()
	before, after := definition(t, "id bigint", "n integer"), definition(t, "id bigint", "n bigint")
	rewrite := func(ddl Commands) catalog.Rewrite { return Diff(orders, before, after, ddl)[0].Rewrite }
	require.Equal(t, catalog.RewriteUnknown, rewrite(Commands{}))
	require.Equal(t, catalog.RewriteNone, rewrite(Commands{Whole: true}))
	require.Equal(t, catalog.RewriteValues, rewrite(Commands{Whole: true, Using: []string{"n"}}))
}

func TestDomainsAndRenamedTypesAreNoChange(t *testing.T) {
	t.Parallel()
	before, after := definition(t, "id bigint", "c text", "s shop.status"), definition(t, "id bigint", "c text", "s shop.state")
	after.Columns[1].Type.Name = "public.email"
	before.Columns[2].Type.OID, after.Columns[2].Type.OID = 7, 7
	require.Empty(t, Diff(orders, before, after, Commands{}))
	after.Columns[2].Type.OID = 8
	require.Equal(t, []string{"column_retyped: column s: shop.status → shop.state (lake: string as before); same; rewrite unknown"}, said(Diff(orders, before, after, Commands{})))
}
