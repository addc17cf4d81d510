package policies

import (
	"cmp"
	"context"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// ConfigFinding is what a rule finds wrong with a table's configuration.
type ConfigFinding struct {
	Rule    string `json:"rule"`
	Field   string `json:"field"` // a path in the file: owner, pii.email, track_history_columns[1]
	Message string `json:"message"`
	Hint    string `json:"hint"`
	At      string `json:"-"` // the rule's file, line and column
}

// waiver takes back what a rule finds, for the tables that it speaks of.
type waiver struct {
	Rule   string `json:"rule"`
	Field  string `json:"field"` // "": wherever
	Reason string `json:"reason"`
}

// CheckConfig returns what is wrong with a table's configuration, by field and rule. The
// error is ctx's, or a *catalog.Error of a policy that could not judge.
func (p *Policies) CheckConfig(ctx context.Context, source *catalog.Source, table *catalog.Table) ([]ConfigFinding, error) {
	packages := []string{ourConfig, theirConfig, ofSource(source.Name, "config")}
	if e := p.failure(packages); e != nil {
		return nil, e
	}
	input, err := ForConfig(source, table).value()
	if err != nil {
		return nil, err
	}
	var findings []ConfigFinding
	var waivers []waiver
	for _, pkg := range packages {
		found, err := p.answers(ctx, pkg, "findings", input)
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			f := ConfigFinding{At: a.at}
			if e := a.decode(&f); e != nil {
				return nil, e
			}
			if f.Rule == "" || f.Field == "" || f.Message == "" {
				return nil, unusable(a.at, "a finding names no rule, field or message")
			}
			findings = append(findings, f)
		}
		waived, err := p.answers(ctx, pkg, "waivers", input)
		if err != nil {
			return nil, err
		}
		for _, a := range waived {
			var w waiver
			if e := a.decode(&w); e != nil {
				return nil, e
			}
			if w.Rule == "" || w.Reason == "" {
				return nil, unusable(a.at, "a waiver names no rule or no reason")
			}
			waivers = append(waivers, w)
		}
	}
	findings = slices.DeleteFunc(findings, func(f ConfigFinding) bool {
		return slices.ContainsFunc(waivers, func(w waiver) bool { return w.Rule == f.Rule && (w.Field == "" || w.Field == f.Field) })
	})
	slices.SortFunc(findings, func(a, b ConfigFinding) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return findings, nil
}
