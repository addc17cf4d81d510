package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

// Decide judges changes that take effect at one place of the log. See Judge.
func (p *Policies) Decide(ctx context.Context, source *catalog.Source, table *catalog.Table, changes []catalog.SchemaChange) (catalog.Decision, error) {
	judgements := make([]catalog.Judgement, len(changes))
	for i, input := range ForChanges(source, table, changes) {
		j, err := p.Judge(ctx, input)
		if err != nil {
			return catalog.Decision{}, err
		}
		j.Change = changes[i]
		judgements[i] = j
	}
	return catalog.Decide(judgements), nil
}

// Judge says what becomes of one change: an organisation's overrides count where there
// are any, else the verdicts of all; of several the strictest. A policy that cannot
// answer is an answer too: quarantine, with the failure. The error is ctx's alone.
func (p *Policies) Judge(ctx context.Context, input *Input) (catalog.Judgement, error) {
	packages := []string{ourSchema, theirSchema, ofSource(input.Source.Name, "schema")}
	if e := p.failure(packages); e != nil {
		return failed(e), nil
	}
	v, err := input.value()
	if err != nil {
		return failed(unusable("", "%s", err)), nil
	}
	var said, overrides []catalog.Ruling
	for _, pkg := range packages {
		verdicts, err := p.rulings(ctx, pkg, "verdicts", v)
		if err == nil {
			said = append(said, verdicts...)
			verdicts, err = p.rulings(ctx, pkg, "overrides", v)
			overrides = append(overrides, verdicts...)
		}
		if ctx.Err() != nil {
			return catalog.Judgement{}, ctx.Err()
		}
		if e, ok := errors.AsType[*catalog.Error](err); ok {
			return failed(e), nil
		}
	}
	return judgement(said, overrides), nil
}

// judgement weighs what the rules say.
func judgement(said, overrides []catalog.Ruling) catalog.Judgement {
	strictest := func(a, b catalog.Ruling) int {
		return cmp.Or(b.Verdict.Compare(a.Verdict), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.At, b.At))
	}
	slices.SortFunc(said, strictest)
	slices.SortFunc(overrides, strictest)
	counting := said
	if len(overrides) > 0 {
		counting = overrides
	}
	if len(counting) == 0 {
		return failed(unusable("", "no rule says anything of this change"))
	}
	j := catalog.Judgement{Ruling: counting[0], Rulings: append(slices.Clone(overrides), said...)}
	j.Warnings = nil
	for _, r := range counting {
		j.Reread = j.Reread || r.Reread
		if j.Mapping == "" {
			j.Mapping = r.Mapping
		}
		for _, w := range r.Warnings {
			if !slices.Contains(j.Warnings, w) {
				j.Warnings = append(j.Warnings, w)
			}
		}
	}
	return j
}

// failed is the judgement where a policy could not answer: the table stops.
func failed(e *catalog.Error) catalog.Judgement {
	return catalog.Judgement{
		Ruling:  catalog.Ruling{Verdict: catalog.Quarantine, Rule: "policy_failed", Reason: "a policy could not judge: " + e.Error(), At: e.At},
		Failure: asFailure(e),
	}
}

// ruling is the form of an answer.
type ruling struct {
	Verdict  catalog.Verdict `json:"verdict"`
	Rule     string          `json:"rule"`
	Reason   string          `json:"reason"`
	Reread   bool            `json:"reread"`
	Mapping  catalog.Mapping `json:"mapping"`
	Warnings []string        `json:"warnings"`
}

func (p *Policies) rulings(ctx context.Context, pkg, rule string, input ast.Value) ([]catalog.Ruling, error) {
	list, err := p.answers(ctx, pkg, rule, input)
	if err != nil {
		return nil, err
	}
	var out []catalog.Ruling
	for _, a := range list {
		var r ruling
		if e := a.decode(&r); e != nil {
			return nil, e
		}
		switch {
		case !slices.Contains(catalog.Verdicts(), r.Verdict):
			return nil, unusable(a.at, "an answer's verdict is %s, not one of %v", orMissing(string(r.Verdict)), catalog.Verdicts())
		case r.Rule == "" || r.Reason == "":
			return nil, unusable(a.at, "an answer names no rule, or no reason")
		case r.Mapping != "" && !slices.Contains(catalog.Mappings(), r.Mapping):
			return nil, unusable(a.at, "an answer's mapping is %q, not one of %v", r.Mapping, catalog.Mappings())
		}
		out = append(out, catalog.Ruling{
			Verdict: r.Verdict, Rule: r.Rule, Reason: r.Reason, At: a.at, Override: rule == "overrides", Reread: r.Reread, Mapping: r.Mapping, Warnings: r.Warnings,
		})
	}
	return out, nil
}

func orMissing(s string) string {
	if s == "" {
		return "missing"
	}
	return fmt.Sprintf("%q", s)
}
