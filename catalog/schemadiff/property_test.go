package schemadiff

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
)

var someTypes = []string{
	"integer", "bigint", "smallint", "real", "double precision", "numeric", "numeric(12,2)", "numeric(14,2)", "numeric(14,4)", "numeric(40,2)",
	"text", "varchar(10)", "varchar(20)", "char(5)", "date", "timestamp", "timestamptz(3)", "uuid", "json", "enum(new, paid)", "enum(new, paid, gone)",
	"integer[]", "bigint[]", "text[]", "bytea", "boolean", "interval", "bit varying(8)",
}

// tables draws a definition with numbered columns.
func tables(numbered bool) *rapid.Generator[*catalog.Definition] {
	return rapid.Custom(func(t *rapid.T) *catalog.Definition {
		d := &catalog.Definition{Name: catalog.TableName{Schema: "public", Name: "t"}, OID: 1, Identity: catalog.Identity{Mode: catalog.IdentityDefault}}
		names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "names")
		numbers := rapid.Permutation([]int{1, 2, 3, 4, 5, 6}).Draw(t, "numbers")
		for i := range rapid.IntRange(0, len(names)).Draw(t, "columns") {
			c, err := Declare(names[i] + " " + rapid.SampledFrom(someTypes).Draw(t, "type"))
			if err != nil {
				t.Fatal(err)
			}
			c.Nullable = rapid.Bool().Draw(t, "nullable")
			if rapid.Bool().Draw(t, "default") {
				c.Default = &catalog.Default{Expression: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "expression"), Volatility: catalog.Constant}
			}
			if numbered {
				c.Number = numbers[i]
			}
			d.Columns = append(d.Columns, c)
		}
		if len(d.Columns) > 0 {
			d.Key = []string{d.Columns[0].Name}
		}
		return d
	})
}

func TestDiffOfATableWithItselfIsEmpty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := tables(rapid.Bool().Draw(t, "numbered")).Draw(t, "table")
		require.Empty(t, Diff(orders, d, d, Commands{}))
	})
}

// TestNoDifferenceVanishes: whatever differs between two tables, some change tells of
// the column. Following the changes gives the names and the presence of all columns.
func TestNoDifferenceVanishes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbered := rapid.Bool().Draw(t, "numbered")
		before, after := tables(numbered).Draw(t, "before"), tables(numbered).Draw(t, "after")
		id := func(c *catalog.ColumnDefinition) string {
			if numbered {
				return strconv.Itoa(c.Number)
			}
			return c.Name
		}
		names := map[string]string{}
		for i := range before.Columns {
			names[id(&before.Columns[i])] = before.Columns[i].Name
		}
		told := map[string][]catalog.SchemaChangeKind{}
		for _, c := range Diff(orders, before, after, Commands{}) {
			switch c.Kind { //nolint:exhaustive // the others move no name
			case catalog.ColumnAdded:
				names[id(c.After)] = c.After.Name
			case catalog.ColumnDropped:
				delete(names, id(c.Before))
			case catalog.ColumnRenamed:
				names[id(c.Before)] = c.After.Name
			}
			if c.Before != nil && c.After != nil {
				told[id(c.After)] = append(told[id(c.After)], c.Kind)
			}
		}
		want := map[string]string{}
		for i := range after.Columns {
			now := &after.Columns[i]
			want[id(now)] = now.Name
			j := slices.IndexFunc(before.Columns, func(was catalog.ColumnDefinition) bool { return id(&was) == id(now) })
			if j < 0 {
				continue
			}
			was := &before.Columns[j]
			kinds := told[id(now)]
			has := func(kinds []catalog.SchemaChangeKind, wanted ...catalog.SchemaChangeKind) bool {
				return slices.ContainsFunc(kinds, func(k catalog.SchemaChangeKind) bool { return slices.Contains(wanted, k) })
			}
			require.Equal(t, was.Name != now.Name, has(kinds, catalog.ColumnRenamed))
			require.Equal(t, was.Type.Name != now.Type.Name, has(kinds, catalog.ColumnRetyped, catalog.ColumnWidened, catalog.ColumnNarrowed))
			require.Equal(t, was.Nullable != now.Nullable, has(kinds, catalog.NullabilityRelaxed, catalog.NullabilityTightened))
			require.Equal(t, was.Default.String() != now.Default.String(), has(kinds, catalog.DefaultChanged))
		}
		require.Equal(t, want, names)
	})
}

// TestWideningAndNarrowingAreOpposites: what widens one way and is not the same type
// never widens the other way to another lake type, and a widening never needs another
// column in the lake.
func TestWideningAndNarrowingAreOpposites(t *testing.T) {
	t.Parallel()
	for _, was := range someTypes {
		for _, now := range someTypes {
			change := func(a, b string) *catalog.SchemaChange {
				before, after := column(t, 1, "c "+a), column(t, 1, "c "+b)
				changes := Diff(orders, &catalog.Definition{Columns: []catalog.ColumnDefinition{before}}, &catalog.Definition{Columns: []catalog.ColumnDefinition{after}}, Commands{})
				for i, c := range changes {
					if c.Lake != "" {
						return &changes[i]
					}
				}
				return nil
			}
			there, back := change(was, now), change(now, was)
			require.Equal(t, there == nil, back == nil, "%s and %s", was, now)
			if there == nil {
				continue
			}
			if there.Kind == catalog.ColumnWidened {
				require.Contains(t, []catalog.LakeEffect{catalog.LakeSame, catalog.LakePromotes}, there.Lake, "%s → %s", was, now)
				if there.Lake == catalog.LakePromotes {
					require.Equal(t, catalog.ColumnNarrowed, back.Kind, "%s → %s", now, was)
					require.Equal(t, catalog.LakeHolds, back.Lake)
				}
			}
			if there.Lake == catalog.LakeReplaces {
				require.NotEqual(t, catalog.ColumnWidened, there.Kind, "%s → %s", was, now)
			}
		}
	}
}

// FuzzDeclare: whatever is proposed, it is read or refused.
func FuzzDeclare(f *testing.F) {
	for _, s := range []string{"phone text", "a numeric(12,2) not null default 0", `"odd name" varchar(3)[]`, "s enum(a,b)", "x int generated always as (y+1) stored", "n bigint generated always as identity"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Declare(s)
		if err == nil && (c.Name == "" || c.Type.Base == "") {
			t.Errorf("%q gives %+v", s, c)
		}
	})
}
