package registry

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestASchemaIsReadAsItWasStored(t *testing.T) {
	t.Parallel()
	missing := "7"
	s := &catalog.Schema{
		Version: 4,
		Columns: []catalog.Column{
			{Name: "id", Number: 1, Source: catalog.SourceType{Name: "integer", Base: "int4", OID: 23, Modifier: -1}, Type: catalog.Type{Kind: catalog.Int32}},
			{Name: "was", Number: 2, Source: catalog.SourceType{Name: "text", Base: "text", OID: 25, Modifier: -1}, Type: catalog.Type{Kind: catalog.Text}, Nullable: true, Dropped: true, Was: []string{"before"}},
		},
		Key: []int{0},
		Definition: &catalog.Definition{
			Name: catalog.TableName{Schema: "public", Name: "x"}, OID: 16384, Key: []string{"id"},
			Identity: catalog.Identity{Mode: catalog.IdentityDefault, Columns: []string{"id"}},
			Columns: []catalog.ColumnDefinition{{
				Name: "id", Number: 1, Type: catalog.SourceType{Name: "integer", Base: "int4", OID: 23, Modifier: -1},
				Default: &catalog.Default{Expression: "7", Volatility: catalog.Constant, Missing: &missing},
			}},
		},
		At: catalog.Place{Position: catalog.Position{Generation: 1, Commit: 0x16B374D848, Ordinal: 4}},
	}
	doc, err := json.Marshal(docOf(s))
	require.NoError(t, err)
	back, err := readSchema(4, string(doc))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(s, back))
}

// TestSchemasFromBeforeDefinitionsAreRead reads what an older version stored.
func TestSchemasFromBeforeDefinitionsAreRead(t *testing.T) {
	t.Parallel()
	s, err := readSchema(1, `{"columns":[{"name":"id","number":1,"source":{"name":"integer","base":"int4","oid":23,"modifier":-1},"type":{"kind":"int"},"nullable":false}],"key":[0]}`)
	require.NoError(t, err)
	require.Nil(t, s.Definition)
	require.True(t, s.At.IsZero())
	doc, err := json.Marshal(docOf(s))
	require.NoError(t, err)
	require.NotContains(t, string(doc), "definition")
	require.NotContains(t, string(doc), `"at"`)
}
