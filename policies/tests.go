package policies

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

// TestResult is what came of one test in Rego: a rule whose name begins with test_.
type TestResult struct {
	Name    string // package and rule: organisation.schema.test_phone
	At      string // file, line and column
	Failure string // why it failed; "" when it passed
}

// RunTests runs the tests in Rego: Lakeweir's of BuiltIn, else the organisation's. A
// test passes when its rule is true. A file that cannot be compiled is one failure.
func (p *Policies) RunTests(ctx context.Context) ([]TestResult, error) {
	var tested []*module
	modules := map[string]*ast.Module{}
	theirs := false
	for _, m := range append(p.modules[:len(p.modules):len(p.modules)], p.tests...) {
		theirs = theirs || !m.ours
	}
	for _, m := range append(p.modules[:len(p.modules):len(p.modules)], p.tests...) {
		if m.parsed != nil && (!m.broken || isTest(m.file)) {
			modules[m.file] = m.parsed.Copy()
		}
		if m.ours != theirs {
			tested = append(tested, m)
		}
	}
	var out []TestResult
	compiler := newCompiler()
	if compiler.Compile(modules); compiler.Failed() {
		for _, e := range regoProblems(compiler.Errors, "") {
			out = append(out, TestResult{Name: "compile", At: e.At, Failure: e.Message})
		}
		return out, nil
	}
	e := newEngine(compiler)
	for _, m := range tested {
		if m.parsed == nil {
			continue
		}
		seen := map[string]bool{}
		for _, rule := range m.parsed.Rules {
			name := ruleName(rule)
			if !strings.HasPrefix(name, "test_") || seen[name] {
				continue
			}
			seen[name] = true
			t := TestResult{Name: m.pkg + "." + name, At: placeOf(rule.Location)}
			v, err := e.value(ctx, m.pkg, name, nil, p.limit)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				t.Failure = evaluationFailure(err, p.limit).Error()
			case v == nil:
				t.Failure = "undefined: a condition of the test does not hold"
			case v.Compare(ast.Boolean(true)) != 0:
				t.Failure = fmt.Sprintf("%v, not true", v)
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// Files returns Lakeweir's own rules, their tests and cases.
func Files() fs.FS { return files }

// IsOurs reports whether a file is a copy of one of Lakeweir's, which is left alone in an
// organisation's folder.
func IsOurs(fsys fs.FS, file string) bool {
	text, err := fs.ReadFile(fsys, file)
	return err == nil && isCopyOfOurs(file, text)
}

// ReadInput reads the input of a policy from JSON, strictly.
func ReadInput(text []byte) (*Input, error) {
	var in Input
	if e := (placedAnswer{value: text}).decode(&in); e != nil {
		return nil, badInput("%s", strings.Replace(e.Message, "an answer", "the input", 1))
	}
	switch {
	case in.Kind == SchemaChange && in.Change == nil:
		return nil, badInput("the input has no change")
	case in.Kind != SchemaChange && in.Kind != TableConfig:
		return nil, badInput("the input's kind is %q, not schema_change or config", in.Kind)
	}
	return &in, nil
}

func badInput(format string, args ...any) error {
	return catalog.Invalidf(catalog.CodePolicyInput, "", "lakeweir policy schema prints its form", format, args...)
}
