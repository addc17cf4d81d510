package tableconfig

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden and generated files")

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run: go test ./catalog/tableconfig -update")
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not up to date; run: go test ./catalog/tableconfig -update\n%s", file, diff)
	}
}

// TestSchemasAreGeneratedFromTheStructs also is the generator, with -update.
func TestSchemasAreGeneratedFromTheStructs(t *testing.T) {
	reflector := &jsonschema.Reflector{FieldNameTag: "yaml", ExpandedStruct: true, DoNotReference: true, RequiredFromJSONSchemaTags: true}
	require.NoError(t, reflector.AddGoComments("github.com/lakeweir/lakeweir", ".", jsonschema.WithFullComment()))
	comments := map[string]string{}
	for k, v := range reflector.CommentMap { // the module path of a package in "." has a dot in it
		comments[k[strings.LastIndexByte(k, '/')+1:]] = v
	}
	for format, typ := range map[Format]reflect.Type{TableFormat: reflect.TypeFor[TableFile](), SourceFormat: reflect.TypeFor[SourceFile]()} {
		schema := reflector.ReflectFromType(typ)
		schema.ID = jsonschema.ID("https://github.com/lakeweir/lakeweir/catalog/tableconfig/schema/" + string(format) + ".schema.json")
		schema.Title = "Lakeweir " + string(format)
		schema.Description = comment(t, comments, typ.Name())
		complete(t, comments, schema, typ)
		b, err := json.MarshalIndent(schema, "", "  ")
		require.NoError(t, err)
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		require.NoError(t, enc.Encode(json.RawMessage(b)))
		golden(t, "schema/"+string(format)+".schema.json", plain.Bytes())
	}
}

// complete adds to a generated schema what only our own tags say.
func complete(t *testing.T, comments map[string]string, schema *jsonschema.Schema, typ reflect.Type) {
	t.Helper()
	s := specOf(typ)
	for _, f := range s.fields {
		sf := typ.Field(f.index)
		p, ok := schema.Properties.Get(f.key)
		require.True(t, ok, "%s.%s", typ.Name(), f.key)
		description := comment(t, comments, typ.Name()+"."+sf.Name)
		if f.required {
			schema.Required = append(schema.Required, f.key)
		}
		p.Extras = map[string]any{}
		for _, tag := range []string{"default", "example", "unavailable"} {
			if v := sf.Tag.Get(tag); v != "" {
				p.Extras["x-"+tag] = v
			}
		}
		values := &jsonschema.Schema{Type: "string", Pattern: pattern(f.form)}
		for _, v := range f.enum {
			values.Pattern = ""
			if f.kind == numberField || f.kind == numberListField {
				values.Type = "integer"
				values.Enum = append(values.Enum, json.Number(v))
			} else {
				values.Enum = append(values.Enum, v)
			}
		}
		switch f.kind {
		case textField, numberField:
			p.Enum, p.Pattern = values.Enum, values.Pattern
			if f.min != f.max {
				p.Minimum, p.Maximum = json.Number(strconv.Itoa(f.min)), json.Number(strconv.Itoa(f.max))
			}
		case textListField, numberListField:
			p.Items, p.UniqueItems = values, true
		case piiField:
			column := &jsonschema.Schema{Type: "string", Pattern: pattern("column")}
			*p = jsonschema.Schema{Extras: p.Extras, OneOf: []*jsonschema.Schema{
				{Type: "object", PropertyNames: column, AdditionalProperties: values},
				{Type: "array", Items: column, UniqueItems: true},
			}}
		case propertiesField:
			*p = jsonschema.Schema{Type: "object", Extras: p.Extras, AdditionalProperties: &jsonschema.Schema{
				OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}},
			}}
		case mappingField:
			complete(t, comments, p, sf.Type)
		case unavailableField:
			*p = jsonschema.Schema{Extras: p.Extras}
			if f.emptyIsFine {
				zero := uint64(0)
				p.Type, p.MaxItems = "array", &zero
			} else {
				p.Not = &jsonschema.Schema{}
			}
			description += " Not available yet: " + f.unavailable + "."
		case boolField:
		}
		p.Description = description
	}
}

func pattern(name string) string {
	if f, ok := forms[name]; ok && f.pattern != nil {
		return f.pattern.String()
	}
	return ""
}

func comment(t *testing.T, comments map[string]string, name string) string {
	t.Helper()
	for k, v := range comments {
		if strings.HasSuffix(k, "."+name) {
			return strings.Join(strings.Fields(v), " ")
		}
	}
	t.Errorf("%s has no comment, which is its description", name)
	return ""
}
