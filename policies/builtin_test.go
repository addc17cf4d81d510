package policies

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
)

// TestBuiltinsAreChosen lists every function of this Rego, so that a later version's new
// ones are seen and judged by a person.
func TestBuiltinsAreChosen(t *testing.T) {
	t.Parallel()
	var have []string
	for _, b := range capabilities().Builtins {
		require.False(t, b.IsNondeterministic(), b.Name)
		have = append(have, b.Name)
	}
	var b strings.Builder
	for _, f := range ast.CapabilitiesForThisVersion().Builtins {
		word := "refused"
		if slices.Contains(have, f.Name) {
			word = "allowed"
		}
		fmt.Fprintf(&b, "%s %s\n", word, f.Name)
	}
	golden(t, "testdata/builtins.golden", []byte(b.String()))
}

func TestPoliciesCannotLookOutside(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		`http.send({"method": "get", "url": "http://127.0.0.1"})`, `net.lookup_ip_addr("localhost")`, "time.now_ns()", "opa.runtime()",
		`rand.intn("x", 5)`, `uuid.rfc4122("x")`, `json.match_schema("x", {})`, `rego.parse_module("x", "package x")`, "numbers.range(1, 1000000000)", `crypto.md5("x")`,
	} {
		p := load(t, map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {\"verdict\": \"hold\", \"rule\": \"r\", \"reason\": \"r\"} if {\n\t" + call + "\n}\n"})
		require.Len(t, p.Problems(), 1, call)
		name, _, _ := strings.Cut(call, "(")
		requireError(t, p.Problems()[0], "org/a.rego:4:2", catalog.CodePolicyCompile, "undefined function "+name)
	}
}

func TestOurRulesCompileStrictly(t *testing.T) {
	t.Parallel()
	p := BuiltIn()
	require.Empty(t, p.Check())
	modules := map[string]*ast.Module{}
	for _, m := range slices.Concat(p.modules, p.tests) {
		modules[m.file] = m.parsed.Copy()
	}
	c := newCompiler().WithStrict(true)
	c.Compile(modules)
	require.Empty(t, c.Errors)
}

// ourProposals are what our own cases do.
func ourProposals(t *testing.T) []schemadiff.Proposal {
	t.Helper()
	var out []schemadiff.Proposal
	require.NoError(t, fs.WalkDir(files, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_cases.yaml") {
			return err
		}
		text, err := files.ReadFile(file)
		require.NoError(t, err)
		var f struct {
			Cases []struct {
				schemadiff.Proposal `yaml:",inline"`
			} `yaml:"cases"`
		}
		require.NoError(t, yaml.Unmarshal(text, &f))
		for _, c := range f.Cases {
			out = append(out, c.Proposal)
		}
		return nil
	}))
	require.Greater(t, len(out), 60)
	return out
}

// TestInputsAreAsTheSchemaSays holds every input that our cases make against the schema,
// and reads it back as explain --input does.
func TestInputsAreAsTheSchemaSays(t *testing.T) {
	t.Parallel()
	schema := schemaOfInput(t)
	source := &catalog.Source{Name: "shop", Kind: catalog.Postgres, Capture: catalog.Direct}
	seen := map[string]bool{}
	for _, table := range []*catalog.Table{
		{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"order_id"}, Current: true, History: true, TrackColumns: []string{"status"}, PII: map[string]catalog.Protection{"customer_email": catalog.Tokenize}},
		{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "events"}},
	} {
		requireValid(t, schema, ForConfig(source, table))
		for _, p := range ourProposals(t) {
			changes, err := p.Changes(table)
			require.NoError(t, err)
			inputs := ForChanges(source, table, changes)
			for _, in := range inputs {
				requireValid(t, schema, in)
				seen[in.Change.Kind] = true
				b, err := json.Marshal(in)
				require.NoError(t, err)
				back, err := ReadInputs(b)
				require.NoError(t, err)
				require.Equal(t, []*Input{in}, back)
			}
			if len(inputs) > 0 {
				b, err := json.Marshal(inputs)
				require.NoError(t, err)
				back, err := ReadInputs(b)
				require.NoError(t, err)
				require.Equal(t, inputs, back)
			}
		}
	}
	for _, k := range catalog.SchemaChangeKinds() {
		require.True(t, seen[string(k)], "no case of ours is a %s", k)
	}
}

func TestInputsOfAnotherFormAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                         "EOF",
		"[]":                       "is empty",
		"[null]":                   "no kind",
		"[1]":                      "cannot be number",
		"5":                        "cannot be number",
		"{}":                       "no kind",
		`{"kind":"schema_change"}`: "no change",
		`{"kind":"config"}`:        `kind is "config"`,
		`{"kind":"config","x":1}`:  `unknown field "x"`,
		`{"kind":"config"} {}`:     "more than one",
	} {
		_, err := ReadInputs([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}

// TestOurRulesAnswerEverything: whatever changes, each change is answered by a rule of
// ours, nothing that looks personal and is not classified evolves, and nothing that the
// key stands on.
func TestOurRulesAnswerEverything(t *testing.T) {
	t.Parallel()
	p := BuiltIn()
	names := rapid.SampledFrom([]string{"note", "amount", "status", "email", "code"})
	types := rapid.SampledFrom([]string{"integer", "bigint", "numeric(12,2)", "numeric(14,2)", "text", "varchar(5)", "uuid", "timestamp", "date", "integer[]", "bigint[]"})
	some := func(t *rapid.T, label string) []string {
		return rapid.SliceOfNDistinct(names, 0, 2, rapid.ID[string]).Draw(t, label)
	}
	rapid.Check(t, func(t *rapid.T) {
		table := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"id"}, TrackColumns: some(t, "tracked"), PII: map[string]catalog.Protection{}}
		for _, c := range some(t, "pii") {
			table.PII[c] = catalog.Tokenize
		}
		proposal := schemadiff.Proposal{Drop: some(t, "drop"), Nullable: some(t, "nullable"), Unsend: some(t, "unsend"), Unnumbered: rapid.Bool().Draw(t, "unnumbered"), Retype: map[string]string{}, Rename: map[string]string{}}
		for _, c := range some(t, "retype") {
			proposal.Retype[c] = types.Draw(t, "from") + "->" + types.Draw(t, "to")
		}
		for _, c := range some(t, "rename") {
			proposal.Rename[c] = rapid.SampledFrom([]string{"phone", "remark", "new_" + c}).Draw(t, "name")
		}
		for _, c := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"phone2", "iban", "weight", "height"}), 0, 2, rapid.ID[string]).Draw(t, "add") {
			proposal.Add = append(proposal.Add, c+" "+types.Draw(t, "type"))
		}
		if rapid.Bool().Draw(t, "key") {
			proposal.Key = []string{"id", "code"}
		}
		changes, err := proposal.Changes(table)
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Decide(t.Context(), &catalog.Source{Name: "shop", Kind: catalog.Postgres, Capture: catalog.Direct}, table, changes)
		require.NoError(t, err)
		require.Len(t, d.Judgements, len(changes))
		for i, j := range d.Judgements {
			require.Nil(t, j.Failure, "%s", &changes[i])
			require.LessOrEqual(t, j.Verdict.Compare(d.Verdict), 0)
			c := &changes[i]
			if c.After != nil && (c.Kind == catalog.ColumnAdded || c.Kind == catalog.ColumnRenamed) && slices.Contains([]string{"phone", "phone2", "iban"}, c.After.Name) && table.PII[c.After.Name] == "" {
				require.Equal(t, catalog.Quarantine, j.Verdict, "%s", c)
			}
			if c.Kind == catalog.KeyChanged || c.Kind == catalog.ColumnNarrowed {
				require.Equal(t, catalog.Quarantine, j.Verdict, "%s", c)
			}
			if c.Lake == catalog.LakeReplaces {
				require.NotEqual(t, catalog.Evolve, j.Verdict, "%s", c)
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	p := BuiltIn()
	source := &catalog.Source{Name: "shop", Kind: catalog.Postgres, Capture: catalog.Direct}
	table := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, PrimaryKey: []string{"id"}}
	changes, err := phone.Changes(table)
	require.NoError(b, err)
	for b.Loop() {
		d, err := p.Decide(b.Context(), source, table, changes)
		if err != nil || d.Verdict != catalog.Quarantine {
			b.Fatal(d.Verdict, err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		BuiltIn()
	}
}
