package policies

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

var update = flag.Bool("update", false, "rewrite generated files")

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run: go test ./policies -update")
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not up to date; run: go test ./policies -update\n%s", file, diff)
	}
}

// generated is the schema of Input, made of the structs and their comments.
func generated(t *testing.T) *jsonschema.Schema {
	t.Helper()
	r := &jsonschema.Reflector{ExpandedStruct: true, DoNotReference: true}
	require.NoError(t, r.AddGoComments("github.com/lakeweir/lakeweir", ".", jsonschema.WithFullComment()))
	comments := map[string]string{}
	for k, v := range r.CommentMap { // the module path of a package in "." has a dot in it
		comments[k[strings.LastIndexByte(k, '/')+1:]] = v
	}
	s := r.Reflect(&Input{})
	s.Version = "http://json-schema.org/draft-07/schema#"
	s.ID = "https://github.com/lakeweir/lakeweir/policies/input.schema.json"
	s.Title = "The input of a policy"
	describe(t, comments, s, reflect.TypeFor[Input]())
	return s
}

func describe(t *testing.T, comments map[string]string, s *jsonschema.Schema, typ reflect.Type) {
	t.Helper()
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, ok := s.Properties.Get(name)
		require.True(t, ok, name)
		for k, v := range comments {
			if strings.HasSuffix(k, "."+typ.Name()+"."+f.Name) {
				p.Description = strings.Join(strings.Fields(v), " ")
			}
		}
		require.NotEmpty(t, p.Description, "%s.%s has no comment, which is its description", typ.Name(), f.Name)
		switch inner := f.Type; {
		case inner.Kind() == reflect.Pointer:
			describe(t, comments, p, inner.Elem())
		case inner.Kind() == reflect.Struct:
			describe(t, comments, p, inner)
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
			describe(t, comments, p.Items, inner.Elem())
		}
	}
	if typ == reflect.TypeFor[Change]() {
		p, _ := s.Properties.Get("kind")
		for _, k := range catalog.SchemaChangeKinds() {
			p.Enum = append(p.Enum, string(k))
		}
	}
}

// TestInputSchemaIsGenerated also is the generator, with -update.
func TestInputSchemaIsGenerated(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(generated(t)))
	golden(t, "input.schema.json", b.Bytes())
}

// schemaOfInput is the schema as a validator.
func schemaOfInput(t *testing.T) *validator.Schema {
	t.Helper()
	doc, err := validator.UnmarshalJSON(bytes.NewReader(InputSchema()))
	require.NoError(t, err)
	c := validator.NewCompiler()
	require.NoError(t, c.AddResource("input.json", doc))
	s, err := c.Compile("input.json")
	require.NoError(t, err)
	return s
}

func requireValid(t *testing.T, s *validator.Schema, in *Input) {
	t.Helper()
	b, err := json.Marshal(in)
	require.NoError(t, err)
	doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	require.NoError(t, s.Validate(doc), string(b))
}

// TestReferenceOfInputIsGenerated keeps the part of docs/policies.md between its marks.
func TestReferenceOfInputIsGenerated(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	var write func(s *jsonschema.Schema, path string)
	write = func(s *jsonschema.Schema, path string) {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			inner, name, kind := p.Value, path+p.Key, p.Value.Type
			switch {
			case inner.Type == "array" && inner.Items.Type == "object":
				kind = "list, each as `change`"
			case inner.Type == "array":
				kind = "list of " + inner.Items.Type + "s"
			case inner.Type == "object" && inner.AdditionalProperties != nil && inner.Properties == nil:
				kind = "object of texts"
			}
			if !slices.Contains(s.Required, p.Key) {
				kind += ", may be absent"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.ReplaceAll(kind, "string", "text"), strings.ReplaceAll(inner.Description, "|", "\\|"))
			if inner.Type == "object" && inner.Properties != nil && inner.Properties.Len() > 0 && !strings.HasSuffix(name, ".after") {
				write(inner, name+".")
			}
		}
	}
	write(generated(t), "")
	const file, from, to = "../docs/policies.md", "<!-- generated: input -->\n", "<!-- end -->"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), from)
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, to)
	require.True(t, ok)
	golden(t, file, []byte(head+from+"\n| field | type | meaning |\n| --- | --- | --- |\n"+b.String()+"\n"+to+tail))
}
