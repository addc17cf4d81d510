package lake_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/lake"
)

func TestConditionsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	got, err := lake.ParseWhere(`status='paid' and "odd ""name""" <> 'it''s' AND after.amount>=-10.5 And note Is Not Null and at < 2026-01-31T10:00:00+02`)
	require.NoError(t, err)
	type triple struct {
		column  string
		compare lake.Comparison
		value   string
	}
	var have []triple
	for _, c := range got {
		have = append(have, triple{c.Column, c.Compare, c.Value})
	}
	require.Equal(t, []triple{
		{"status", lake.Equal, "paid"},
		{`odd "name"`, lake.NotEqual, "it's"},
		{"after.amount", lake.GreaterOrEqual, "-10.5"},
		{"note", lake.IsNotNull, ""},
		{"at", lake.Less, "2026-01-31T10:00:00+02"},
	}, have)
}

func FuzzParseWhere(f *testing.F) {
	for _, s := range []string{"", "a = 'b' and c is null", `"x`, "a<>1 and", "\xff = \xff", "ä != 'ö'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := lake.ParseWhere(text)
		if err == nil {
			return
		}
		if e := catalog.Public(err); e.Code != catalog.CodeUsage || !strings.HasPrefix(e.At, "where:") || e.Hint == "" {
			t.Fatalf("%q: %+v", text, e)
		}
	})
}
