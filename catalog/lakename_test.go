package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestLakeNamesAreReadableAndSayWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	s := &catalog.Source{Namespaces: catalog.Namespaces{Bronze: []string{"b"}, Silver: []string{"s"}}}
	for _, c := range []struct{ schema, name, want string }{
		{"public", "orders", "orders"},
		{"public", "Events", "Events"},
		{"public", "_prisma_migrations", "_prisma_migrations"},
		{"public", "__EFMigrationsHistory", "__EFMigrationsHistory"},
		{"public", "2fa", "2fa"},
		{"public", "Ünïcode-1", "Ünïcode-1"},
		{"audit", "log", "audit__log"},
		{"a", "b_c", "a__b_c"},
		{"a_b", "c", "a_b__c"},
		{"public", "a__b", "a_x5f__b"},
		{"a_", "b", "a_x5f___b"},
		{"a", "_b", "a___b"},
		{"a", "b__c", "a__b__c"},
		{"public", "a.b", "a_x2e_b"},
		{"public", "with space", "with_x20_space"},
		{"public", "a_x2e_b", "a_x5f_x2e_b"},
		{"public", " ", "_x20_"},
		{"public", "../etc\n", "_x2e__x2e__x2f_etc_xa_"},
		{"public", "🚀", "_x1f680_"},
		{"public", "a\xff", "a_x1100ff_"},
		{"a_x5", "b", "a_x5f_x5__b"},
	} {
		n := catalog.TableName{Schema: c.schema, Name: c.name}
		require.Equal(t, []string{"s", c.want}, s.LakeName(n, catalog.Current), "%v", n)
		require.Equal(t, []string{"b", c.want + "_cdc"}, s.LakeName(n, catalog.Bronze))
		back, ok := catalog.SourceName(c.want+"_history", catalog.History)
		require.True(t, ok)
		require.Equal(t, n, back)
	}
	_, ok := catalog.SourceName("a.b", catalog.Current)
	require.False(t, ok)
}

func TestALakeNameIsOfOneTableOnly(t *testing.T) {
	t.Parallel()
	s := &catalog.Source{}
	name := rapid.StringOfN(rapid.OneOf(rapid.RuneFrom([]rune("_x25fab-. /")), rapid.Rune()), 1, 12, 63)
	rapid.Check(t, func(t *rapid.T) {
		n := catalog.TableName{Schema: rapid.OneOf(rapid.Just("public"), name).Draw(t, "schema"), Name: name.Draw(t, "name")}
		lake := s.LakeName(n, catalog.Current)[0]
		back, ok := catalog.SourceName(lake, catalog.Current)
		require.True(t, ok, lake)
		require.Equal(t, n, back)
		require.False(t, strings.ContainsAny(lake, "./ \n\"`"), lake)
	})
}
