package policies

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

//go:embed input.schema.json
var inputSchema []byte

// InputSchema returns the JSON Schema of what a rule sees as input.
func InputSchema() []byte { return slices.Clone(inputSchema) }

// compile builds the engine from all files that can be compiled together. A file with an
// error is left out, and what is left is tried again, until nothing is wrong: one broken
// file must not take the others with it.
func (p *Policies) compile() {
	for {
		compiler := newCompiler()
		modules := map[string]*ast.Module{}
		for _, m := range p.modules {
			if m.parsed != nil && !m.broken {
				modules[m.file] = withPlaces(m)
			}
		}
		if err := compileAll(compiler, modules); err != nil {
			p.fail("", catalog.Invalidf(catalog.CodePolicyCompile, "", "take the newest policies back", "%w", err))
			return // nothing can judge: every question fails
		}
		if !compiler.Failed() {
			var err error
			if p.engine, err = newEngine(compiler, p.questions()...); err != nil {
				p.fail("", catalog.Invalidf(catalog.CodePolicyCompile, "", "take the newest policies back", "%w", err))
			}
			return
		}
		if !p.leaveOut(compiler.Errors) {
			return
		}
	}
}

func compileAll(c *ast.Compiler, modules map[string]*ast.Module) (err error) {
	defer recovered(&err)
	c.Compile(modules)
	return nil
}

// questions are the paths of all rules that answer.
func (p *Policies) questions() []string {
	var out []string
	for _, m := range p.modules {
		for _, rule := range answers[role(m.pkg)] {
			if path := m.pkg + "." + placesOf(rule); !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// leaveOut marks the files that errors are in; false when none of them is.
func (p *Policies) leaveOut(errs ast.Errors) bool {
	found := false
	for _, e := range errs {
		problems := regoProblems(e, "")
		i := -1
		if e.Location != nil {
			i = slices.IndexFunc(p.modules, func(m *module) bool { return m.file == e.Location.File && m.parsed != nil })
		}
		if i < 0 {
			p.fail("", problems...)
			continue
		}
		p.modules[i].broken, found = true, true
		p.fail(p.modules[i].pkg, problems...)
	}
	return found
}

func newCompiler() *ast.Compiler {
	var schema any
	if err := json.Unmarshal(inputSchema, &schema); err != nil {
		panic("policies: input.schema.json: " + err.Error()) // a test reads it
	}
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	return ast.NewCompiler().WithCapabilities(capabilities()).WithSchemas(schemas).WithDefaultRegoVersion(ast.RegoV1).SetErrorLimit(0)
}

// placesOf is the name of the set that answers a rule's values with their places.
func placesOf(rule string) string { return "lakeweir_places_of_" + rule }

// withPlaces returns the module with a copy of each rule that answers, whose values are
// pairs of the answer and where the rule stands: an evaluation does not tell otherwise
// which of several rules of one name has spoken.
func withPlaces(m *module) *ast.Module {
	out := m.parsed.Copy()
	for _, rule := range m.parsed.Rules {
		name := ruleName(rule)
		if !slices.Contains(answers[role(m.pkg)], name) || rule.Head.Key == nil {
			continue
		}
		twin := rule.Copy()
		twin.Head.Name = ast.Var(placesOf(name))
		twin.Head.Reference = ast.Ref{ast.VarTerm(placesOf(name))}
		twin.Head.Key = ast.ArrayTerm(rule.Head.Key.Copy(), ast.StringTerm(placeOf(rule.Location)))
		twin.Module = out
		out.Rules = append(out.Rules, twin)
	}
	return out
}

// failure returns why the packages, or those that they look into, cannot judge; nil when
// they can.
func (p *Policies) failure(packages []string) *catalog.Error {
	if e := p.broken[""]; len(e) > 0 {
		return e[0]
	}
	for _, pkg := range p.closure(packages) {
		if e := p.broken[pkg]; len(e) > 0 {
			return e[0]
		}
	}
	return nil
}

// closure returns the packages and all that they refer to, in order.
func (p *Policies) closure(packages []string) []string {
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, m := range p.modules {
			if m.pkg == pkg && m.parsed != nil {
				for _, ref := range refsOf(m.parsed) {
					for _, other := range p.modules {
						if other.pkg != "" && (within(other.pkg, ref) || within(ref, other.pkg)) {
							visit(other.pkg)
						}
					}
				}
			}
		}
	}
	for _, pkg := range packages {
		visit(pkg)
	}
	return slices.Sorted(maps.Keys(seen))
}

// refsOf lists what a module looks at below data.
func refsOf(m *ast.Module) []string {
	var out []string
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		if len(ref) > 0 && ref[0].Equal(ast.DefaultRootDocument) && !ref.Equal(m.Package.Path) {
			out = append(out, nameOf(ref))
		}
		return false
	})
	return out
}

// within reports whether a path is prefix or lies below it; everything lies below "".
func within(path, prefix string) bool {
	return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+".")
}
