package tableconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestTableNamesAreReadAsPostgresWritesThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]catalog.TableName{
		`public.orders`:            {Schema: "public", Name: "orders"},
		`public.Orders`:            {Schema: "public", Name: "Orders"},
		`public.orders.v2`:         {Schema: "public", Name: "orders.v2"},
		`"my.schema".orders`:       {Schema: "my.schema", Name: "orders"},
		`"a ""b""".c"d`:            {Schema: `a "b"`, Name: `c"d`},
		`public."Order ""Lines"""`: {Schema: "public", Name: `Order "Lines"`},
		`public.select`:            {Schema: "public", Name: "select"},
		`größe.日本`:                 {Schema: "größe", Name: "日本"},
		`a. b`:                     {Schema: "a", Name: " b"},
	} {
		got, err := parseTable(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Regexp(t, forms["table"].pattern, text)
	}
	for _, text := range []string{``, `.`, `orders`, `public.`, `.orders`, `"".x`, `"x`, `"x"`, `"x"y.z`, `x."y"z`, `x."y`, `x.""`} {
		_, err := parseTable(text)
		require.Error(t, err, text)
	}
}

// TestWhatIsWrittenQuotedIsReadBack holds for every pair of names.
func TestWhatIsWrittenQuotedIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z ."/é-]{1,12}`)
		want := catalog.TableName{Schema: name.Draw(t, "schema"), Name: name.Draw(t, "table")}
		got, err := parseTable(quoted(want.Schema) + "." + quoted(want.Name))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func quoted(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func TestSizesAreBinary(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0B": 0, "512KiB": 512 << 10, "10GiB": 10 << 30, "1.5 GiB": 3 << 29, "2TiB": 2 << 40} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Regexp(t, forms["size"].pattern, text)
	}
	for _, text := range []string{"10", "10GB", "GiB", "-1GiB", "10gib", "1e3MiB", "0x1MiB"} {
		require.NotRegexp(t, forms["size"].pattern, text)
	}
	_, err := parseSize("99999999TiB")
	require.Error(t, err)
}

func TestPasswordsInConnectionsAreFound(t *testing.T) {
	t.Parallel()
	for _, shown := range []string{
		"postgres://app:secret@db/shop",
		"postgresql://app:s@db",
		"postgres://app:p@ss:w/rd?x@db/shop",
		"postgres://app:a${env:B}@db/shop",
		"postgres://app:${env:B}a@db/shop",
		"postgres://db/shop?password=secret",
		"postgres://db/shop?user=a&sslpassword=secret",
		"host=db password=secret",
		"host=db password = 'se cret'",
		"PASSWORD=secret",
	} {
		require.True(t, hasPassword(shown), shown)
	}
	for _, fine := range []string{
		"${env:DSN}",
		"postgres://app@db/shop",
		"postgres://app:@db/shop",
		"postgres://app:${env:PASSWORD}@db:5432/shop?sslmode=disable",
		"postgres://${env:USER}:${env:PASSWORD}@db/shop",
		"postgres://db/shop?password=${env:PASSWORD}",
		"host=db password=${file:/run/secrets/p} user=a",
		"host=db password='${env:P}'",
		"host=db passfile=/etc/pgpass",
	} {
		require.False(t, hasPassword(fine), fine)
	}
}

// TestMaskHidesEveryPassword puts a password into each place that has one.
func TestMaskHidesEveryPassword(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := "hunter" + rapid.StringMatching(`[a-z0-9!#$%^*()_+.;:/?&,-]{0,8}`).Draw(t, "password") + "hunter"
		line := rapid.SampledFrom([]string{
			"connection: postgres://app:%s@db/shop",
			"connection: \"postgres://app:%s@db/shop\"",
			"{kind: postgres, connection: postgres://app:%s@db/shop, slot: a}",
			"{kind: postgres, token_key: '%s', slot: a}",
			"- token_key: %s # not told",
			"token_key: two %s words",
			"connection: host=db password='%s' user=a",
			"connection: host=db password=%s",
			"token_key: %s",
			"token_key: '%s'",
			"\"token_key\" : \"%s\"",
			"    password: %s",
			"PGPASSWORD=%s",
		}).Draw(t, "line")
		require.NotContains(t, mask(replaceOne(line, password)), "hunter")
	})
	for _, shown := range []string{
		"connection: ${env:SHOP_DSN}", "token_key: ${file:/run/secrets/key}", "connection: postgres://app:${env:PGPASSWORD}@db/shop",
		"pii: {auth_token: redact, email: tokenize}", "primary_key: [token_id]", "# the passwords are kept elsewhere",
	} {
		require.Equal(t, shown, mask(shown))
	}
}

func replaceOne(pattern, with string) string {
	for i := range len(pattern) - 1 {
		if pattern[i:i+2] == "%s" {
			return pattern[:i] + with + pattern[i+2:]
		}
	}
	return pattern
}

func TestTheNearestWordIsTheOneMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, want string }{
		{"primary_keys", "primary_key"},
		{"primarykey", "primary_key"},
		{"PRIMARY_KEY", "primary_key"},
		{"pk", "primary_key"},
		{"ownre", "owner"},
		{"tier", "freshness_tier"},
		{"soft-delete", "soft_delete"},
		{"scdd", "scd"},
		{"wrokers", ""},
		{"x", ""},
		{"", ""},
		{"track", ""},
		{"columns", ""},
	} {
		require.Equal(t, c.want, nearest(c.word, tableSpec.allKeys()), c.word)
	}
	require.Equal(t, 1, typos("wrokers", "workers"), "neighbours swapped are one typing error")
	require.Equal(t, 3, typos("", "abc"))
	require.Equal(t, 0, typos("日本", "日本"))
}
