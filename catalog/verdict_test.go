package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestVerdictsAreOrderedByStrictness(t *testing.T) {
	t.Parallel()
	all := append(catalog.Verdicts(), "unheard of")
	for i, v := range all {
		for j, w := range all {
			require.Equal(t, i-j < 0, v.Compare(w) < 0, "%s and %s", v, w)
			require.Equal(t, i == j, v.Compare(w) == 0, "%s and %s", v, w)
		}
	}
}

func TestDecideTakesTheStrictestAndEveryReread(t *testing.T) {
	t.Parallel()
	j := func(v catalog.Verdict, reread bool) catalog.Judgement {
		return catalog.Judgement{Ruling: catalog.Ruling{Verdict: v, Reread: reread}}
	}
	require.Equal(t, catalog.Evolve, catalog.Decide(nil).Verdict)
	d := catalog.Decide([]catalog.Judgement{j(catalog.Evolve, true), j(catalog.Quarantine, false), j(catalog.Hold, false)})
	require.Equal(t, catalog.Quarantine, d.Verdict)
	require.True(t, d.Reread)
}

// A decision is recorded as JSON and read back.
func TestDecisionsSurviveJSON(t *testing.T) {
	t.Parallel()
	missing := "5"
	d := catalog.Decide([]catalog.Judgement{{
		Change: catalog.SchemaChange{Kind: catalog.ColumnAdded, Column: "n", Rewrite: catalog.RewriteNone, After: &catalog.ColumnDefinition{
			Name: "n", Number: 4, Type: catalog.SourceType{Name: "integer", Base: "int4", OID: 23, Modifier: -1}, Default: &catalog.Default{Expression: "5", Volatility: catalog.Constant, Missing: &missing},
		}},
		Ruling:  catalog.Ruling{Verdict: catalog.Evolve, Rule: "column_added", Reason: "r", At: "lakeweir/schema.rego:1:1", Warnings: []string{"w"}},
		Rulings: []catalog.Ruling{{Verdict: catalog.Evolve, Rule: "column_added", Reason: "r", At: "lakeweir/schema.rego:1:1"}},
		Failure: &catalog.Failure{Code: catalog.CodePolicyFailed, Message: "m"},
	}})
	b, err := json.Marshal(d)
	require.NoError(t, err)
	var back catalog.Decision
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, d, back)
}

func TestClashesAreThoseOfSomeReader(t *testing.T) {
	t.Parallel()
	text := catalog.Type{Kind: catalog.Text}
	columns := []catalog.Column{{Name: "id", Type: text}, {Name: "ID", Type: text}, {Name: "Valid_To", Type: text}, {Name: "tags", Type: catalog.Type{Kind: catalog.List, Elem: &text}}, {Name: "tags.element", Type: text}, {Name: "id.element", Type: text}}
	require.Equal(t, []catalog.Clash{
		{Column: "ID", With: "id", Kind: catalog.ClashCase},
		{Column: "Valid_To", With: "valid_to", Kind: catalog.ClashReserved},
		{Column: "tags.element", With: "tags", Kind: catalog.ClashElement},
	}, catalog.Clashes(columns))
	require.Empty(t, catalog.Clashes(columns[:1]))
}
