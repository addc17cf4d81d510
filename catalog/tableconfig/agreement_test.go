package tableconfig

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	checker "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/tableconfigs"
)

// TestSchemaAndParserAgree holds both against every file of testdata and of the
// example: an editor must not accept what validate refuses for its form, nor the
// other way round. Files that are no plain YAML have nothing for a schema to see.
func TestSchemaAndParserAgree(t *testing.T) {
	t.Parallel()
	schemas := map[Format]*checker.Schema{TableFormat: compiled(t, TableFormat), SourceFormat: compiled(t, SourceFormat)}
	files := append(samples(t, "*.yaml"), shopSamples(t)...)
	compared := 0
	for _, s := range files {
		_, problems := Load(s.folder(), "shop")
		structural, unreadable := []string{}, false
		for _, p := range problems {
			if p.structural {
				structural = append(structural, p.Error())
			}
			unreadable = unreadable || p.Code == catalog.CodeConfigSyntax || p.Code == catalog.CodeConfigDuplicateField
		}
		if unreadable {
			continue
		}
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(s.text, "\r\n", "\n")), &value), s.file)
		if value == nil {
			value = map[string]any{}
		}
		b, err := json.Marshal(value)
		require.NoError(t, err, s.file)
		instance, err := checker.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err, s.file)
		err = schemas[s.format].Validate(instance)
		require.Equal(t, len(structural) > 0, err != nil, "%s\nparser: %q\nschema: %v", s.file, structural, err)
		compared++
	}
	require.Greater(t, compared, 35)
}

// TestEachStructuralMistakeAloneIsRefusedByBoth keeps a file with many mistakes
// from hiding that the schema misses one of them.
func TestEachStructuralMistakeAloneIsRefusedByBoth(t *testing.T) {
	t.Parallel()
	good := map[Format]map[string]any{
		TableFormat:  {"table": "public.orders", "primary_key": []any{"order_id"}},
		SourceFormat: {"kind": "postgres", "connection": "${env:SHOP_DSN}", "token_key": "${env:KEY}"},
	}
	wrong := []any{nil, "", " ", "x", "9", 0, 1, 9, -1, 2000000, 1.5, true, false, []any{}, []any{1}, []any{3}, []any{"x"}, []any{"x", "x"}, []any{nil}, map[string]any{}, map[string]any{"x": "y"}, map[string]any{"x": "redact"}, map[string]any{"x": nil}, "10GB", "10GiB", "10s", "a.b", "a.", ".b", "${env:X}", "A-b", "binlog", "encrypt"}
	for _, format := range Formats() {
		schema := compiled(t, format)
		fields, err := Fields(format)
		require.NoError(t, err)
		for _, f := range fields {
			for _, v := range wrong {
				file := maps.Clone(good[format])
				keys := strings.Split(f.Path, ".")
				file[keys[0]] = nested(keys[1:], v)
				text, err := json.Marshal(file) // which is YAML
				require.NoError(t, err)
				s := sample{format: format, name: "source.yaml", text: string(text)}
				if format == TableFormat {
					s.name = "public.orders.yaml"
				}
				_, problems := Load(s.folder(), "shop")
				structural := false
				for _, p := range problems {
					require.NotEqual(t, catalog.CodeConfigSyntax, p.Code, "%s: %s", text, p)
					structural = structural || p.structural
				}
				instance, err := checker.UnmarshalJSON(bytes.NewReader(text))
				require.NoError(t, err)
				err = schema.Validate(instance)
				require.Equal(t, structural, err != nil, "%s: %s\nparser: %v\nschema: %v", format, text, problems, err)
			}
		}
	}
}

// nested is v under keys, the outermost first.
func nested(keys []string, v any) any {
	for _, k := range slices.Backward(keys) {
		v = map[string]any{k: v}
	}
	return v
}

// shopSamples are the files of the example shop.
func shopSamples(t *testing.T) []sample {
	t.Helper()
	names, err := fs.Glob(tableconfigs.Files, "shop/*.yaml")
	require.NoError(t, err)
	var out []sample
	for _, name := range names {
		text, err := fs.ReadFile(tableconfigs.Files, name)
		require.NoError(t, err)
		s := sample{file: name, format: TableFormat, name: strings.TrimPrefix(name, "shop/"), text: string(text)}
		if s.name == "source.yaml" {
			s.format = SourceFormat
		}
		out = append(out, s)
	}
	return out
}

func compiled(t *testing.T, f Format) *checker.Schema {
	t.Helper()
	b, err := Schema(f)
	require.NoError(t, err)
	doc, err := checker.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	c := checker.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	schema, err := c.Compile("schema.json")
	require.NoError(t, err)
	return schema
}
