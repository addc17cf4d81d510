package policies

import (
	"context"
	"fmt"
	"slices"
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
// test passes when its rule is true. A file that cannot be compiled is a failure.
func (p *Policies) RunTests(ctx context.Context) ([]TestResult, error) {
	e, problems := p.testEngine()
	var out []TestResult
	for _, problem := range problems {
		out = append(out, TestResult{Name: "compile", At: problem.At, Failure: problem.Message})
	}
	if e == nil {
		return out, nil
	}
	for _, m := range p.tested() {
		seen := map[string]bool{}
		for _, rule := range m.parsed.Rules {
			name := ruleName(rule)
			if !strings.HasPrefix(name, "test_") || seen[name] {
				continue
			}
			seen[name] = true
			t := TestResult{Name: m.pkg + "." + name, At: placeOf(rule.Location)}
			v, err := e.value(ctx, t.Name, nil, p.limit)
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

// Check returns Problems and what else is wrong, in the organisation's files of tests
// and in files that Load left out for another reason.
func (p *Policies) Check() []*catalog.Error {
	_, all := p.testEngine()
	out := slices.Clone(p.problems)
	for _, e := range all {
		if !told(out, e) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *catalog.Error) int { return comparePlaces(a.At, b.At) })
	return out
}

// testEngine compiles the policies as they are written, with the files of tests; nil
// when they cannot be compiled together.
func (p *Policies) testEngine() (*engine, []*catalog.Error) {
	modules := map[string]*ast.Module{}
	var problems []*catalog.Error
	for _, m := range slices.Concat(p.modules, p.tests) {
		if m.parsed != nil {
			modules[m.file] = m.parsed.Copy()
		}
	}
	for _, problem := range p.problems {
		if problem.Code != catalog.CodePolicyCompile { // which comes again below
			problems = append(problems, problem)
		}
	}
	compiler := newCompiler()
	err := compileAll(compiler, modules)
	if err == nil && compiler.Failed() {
		err = compiler.Errors
	}
	var e *engine
	if err == nil {
		e, err = newEngine(compiler, testsIn(p.tested())...)
	}
	if err != nil {
		return nil, append(problems, regoProblems(err, "")...)
	}
	return e, problems
}

// testsIn are the paths of the tests in files.
func testsIn(modules []*module) []string {
	var out []string
	for _, m := range modules {
		for _, rule := range m.parsed.Rules {
			if name := ruleName(rule); strings.HasPrefix(name, "test_") {
				out = append(out, m.pkg+"."+name)
			}
		}
	}
	return out
}

// tested are the files whose tests run.
func (p *Policies) tested() []*module {
	all := slices.Concat(p.modules, p.tests)
	theirs := slices.ContainsFunc(all, func(m *module) bool { return !m.ours })
	return slices.DeleteFunc(all, func(m *module) bool { return m.parsed == nil || m.ours == theirs })
}
