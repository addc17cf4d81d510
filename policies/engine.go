package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/lakeweir/lakeweir/catalog"
)

// engine evaluates compiled policies. Safe for concurrent use.
type engine struct {
	compiler *ast.Compiler
	store    storage.Store // empty: a policy's data are rules
	// queries are compiled once, by the path of the rule that they ask for.
	queries map[string]ast.Body
}

// newEngine prepares to ask for rules, by their paths.
func newEngine(c *ast.Compiler, paths ...string) (*engine, error) {
	e := &engine{compiler: c, store: inmem.New(), queries: map[string]ast.Body{}}
	for _, path := range paths {
		if len(c.GetRulesExact(refTo(path))) == 0 {
			continue
		}
		query, err := c.QueryCompiler().Compile(ast.NewBody(ast.Equality.Expr(ast.VarTerm("answer"), ast.NewTerm(refTo(path)))))
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", path, err)
		}
		e.queries[path] = query
	}
	return e, nil
}

// has reports whether there is such a rule.
func (e *engine) has(path string) bool { return e.queries[path] != nil }

// value evaluates a rule; nil when it is undefined.
func (e *engine) value(ctx context.Context, path string, input ast.Value, limit time.Duration) (answer ast.Value, err error) {
	defer recovered(&err)
	limited, done := context.WithTimeout(ctx, limit)
	defer done()
	cancel := topdown.NewCancel()
	defer context.AfterFunc(limited, cancel.Cancel)()
	err = storage.Txn(limited, e.store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		q := topdown.NewQuery(e.queries[path]).WithCompiler(e.compiler).WithStore(e.store).WithTransaction(txn).WithCancel(cancel).WithStrictBuiltinErrors(true)
		if input != nil {
			q = q.WithInput(ast.NewTerm(input))
		}
		results, err := q.Run(limited)
		if err != nil {
			return err
		}
		if len(results) == 1 {
			answer = results[0]["answer"].Value
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err() // the caller has gone: that says nothing of the policy
	}
	return answer, err
}

// recovered turns a panic of the library into an error: a policy that makes one must not
// take the process with it.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the policy engine failed: %v", r)
	}
}

// refTo is data.organisation.schema.verdicts for organisation.schema.verdicts. A source's
// name in it may have any character but a dot.
func refTo(path string) ast.Ref {
	ref := ast.Ref{ast.DefaultRootDocument}
	for part := range strings.SplitSeq(path, ".") {
		ref = append(ref, ast.StringTerm(part))
	}
	return ref
}

// placedAnswer is one value of a set that answers, and where its rule stands.
type placedAnswer struct {
	value json.RawMessage
	at    string
}

// answers evaluates the set of a package that answers; none when the package does not
// have it.
func (p *Policies) answers(ctx context.Context, pkg, rule string, input ast.Value) ([]placedAnswer, error) {
	path := pkg + "." + placesOf(rule)
	if !p.engine.has(path) {
		return nil, nil
	}
	v, err := p.engine.value(ctx, path, input, p.limit)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		failure := evaluationFailure(err, p.limit)
		if failure.At == "" { // one that ran out of time may have been anywhere
			failure.At = p.placeOfPackage(pkg)
		}
		return nil, failure
	}
	set, ok := v.(ast.Set)
	if !ok {
		return nil, unusable("", "%s of %s is no set", rule, pkg)
	}
	var out []placedAnswer
	var failure *catalog.Error
	set.Foreach(func(t *ast.Term) {
		pair, ok := t.Value.(*ast.Array)
		if !ok || pair.Len() != 2 {
			return
		}
		at, _ := pair.Elem(1).Value.(ast.String)
		text, err := asJSON(pair.Elem(0).Value)
		if err != nil && failure == nil {
			failure = unusable(string(at), "an answer cannot be read: %s", err)
		}
		out = append(out, placedAnswer{text, string(at)})
	})
	if failure != nil {
		return nil, failure
	}
	return out, nil
}

// placeOfPackage is where a package begins, in the first of its files.
func (p *Policies) placeOfPackage(pkg string) string {
	for _, m := range p.modules {
		if m.pkg == pkg && m.parsed != nil {
			return placeOf(m.parsed.Package.Location)
		}
	}
	return ""
}

func asJSON(v ast.Value) (json.RawMessage, error) {
	x, err := ast.JSON(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

// decode reads an answer strictly: a key that nobody knows would be ignored.
func (a placedAnswer) decode(into any) *catalog.Error {
	dec := json.NewDecoder(bytes.NewReader(a.value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return unusable(a.at, "an answer's %q cannot be %s", wrong.Field, wrong.Value)
		}
		return unusable(a.at, "an answer cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if dec.More() {
		return unusable(a.at, "an answer is more than one")
	}
	return nil
}

// value returns the input as the engine has it.
func (in *Input) value() (ast.Value, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the input of a policy: %w", err)
	}
	return ast.ValueFromReader(bytes.NewReader(b))
}
