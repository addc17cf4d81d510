package policytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
	"github.com/lakeweir/lakeweir/policies"
)

// caseFile is a file of cases.
type caseFile struct {
	Source sourceCase `yaml:"source"`
	Table  tableCase  `yaml:"table"` // of every case that has none of its own
	Cases  []aCase    `yaml:"cases"`
}

type sourceCase struct {
	Name    string `yaml:"name"`
	Capture string `yaml:"capture"`
}

// tableCase is a table's file, as far as policies look at it.
type tableCase struct {
	Table                     string            `yaml:"table"`
	Owner                     string            `yaml:"owner"`
	PrimaryKey                []string          `yaml:"primary_key"`
	SCD                       []int             `yaml:"scd"`
	FreshnessTier             string            `yaml:"freshness_tier"`
	TrackHistoryColumns       []string          `yaml:"track_history_columns"`
	TrackHistoryExceptColumns []string          `yaml:"track_history_except_columns"`
	PII                       map[string]string `yaml:"pii"`
	SoftDelete                bool              `yaml:"soft_delete"`
	ApplyTruncates            bool              `yaml:"apply_truncates"`
}

// aCase is one case: what is done, and what has to become of it. A case without a
// change asks about the configuration.
type aCase struct {
	Case                string      `yaml:"case"`
	Source              *sourceCase `yaml:"source"`
	Table               *tableCase  `yaml:"table"`
	schemadiff.Proposal `yaml:",inline"`

	Want     string   `yaml:"want"`     // the verdict
	Rule     string   `yaml:"rule"`     // that decides
	Mapping  string   `yaml:"mapping"`  // that is proposed
	Reread   bool     `yaml:"reread"`   // whether the table is read again
	Warns    bool     `yaml:"warns"`    // whether there is a warning
	Findings []string `yaml:"findings"` // field: rule of what is found in the configuration
	Clean    bool     `yaml:"clean"`    // nothing is found in the configuration

	line int
}

// readCases reads a file of cases.
func readCases(file string, text []byte) (*caseFile, error) {
	var f caseFile
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		at, message := file, err.Error()
		if e, ok := errors.AsType[yaml.Error](err); ok {
			message = e.GetMessage()
			if p := e.GetToken(); p != nil {
				at = fmt.Sprintf("%s:%d:%d", file, p.Position.Line, p.Position.Column)
			}
		}
		return nil, catalog.Invalidf(catalog.CodePolicyTest, at, "docs/policies.md describes the form of cases", "%s", message)
	}
	lines := caseLines(text)
	for i := range f.Cases {
		if i < len(lines) {
			f.Cases[i].line = lines[i]
		}
		if c := &f.Cases[i]; c.Case == "" || (c.Want == "") == (len(c.Findings) == 0 && !c.Clean) {
			return nil, catalog.Invalidf(catalog.CodePolicyTest, fmt.Sprintf("%s:%d:1", file, c.line), "name it with case:, and say want: for a change, or findings: or clean: true for a configuration",
				"a case without a name, or that wants nothing or both")
		}
	}
	return &f, nil
}

// caseLines are the lines at which the cases begin.
func caseLines(text []byte) []int {
	f, err := parser.ParseBytes(text, 0)
	if err != nil || len(f.Docs) == 0 {
		return nil
	}
	path, err := yaml.PathString("$.cases")
	if err != nil {
		return nil
	}
	node, err := path.FilterNode(f.Docs[0].Body)
	if err != nil {
		return nil
	}
	var out []int
	if list, ok := node.(*ast.SequenceNode); ok {
		for _, v := range list.Values {
			out = append(out, v.GetToken().Position.Line)
		}
	}
	return out
}

// ask puts a case to the policies, and returns what came out and what is wrong with it.
func (c *aCase) ask(ctx context.Context, p *policies.Policies, f *caseFile) (got, wrong string, err error) {
	source, table := c.catalog(f)
	if c.Want == "" {
		return c.askConfig(ctx, p, source, table)
	}
	changes, err := c.Changes(table)
	if err != nil {
		return "", err.Error(), nil //nolint:nilerr // it is what is wrong with the case
	}
	if len(changes) == 0 {
		return "no change", "the case changes nothing", nil
	}
	d, err := p.Decide(ctx, source, table, changes)
	if err != nil {
		return "", "", err
	}
	return c.compare(&d)
}

// compare holds the decision against what is wanted.
func (c *aCase) compare(d *catalog.Decision) (got, wrong string, err error) {
	j := deciding(d)
	got = fmt.Sprintf("%s (%s)", d.Verdict, j.Rule)
	var all []string
	warned, rules := false, []string{}
	for _, x := range d.Judgements {
		warned = warned || len(x.Warnings) > 0
		for _, r := range x.Rulings {
			rules = append(rules, r.Rule)
		}
		if x.Failure != nil {
			all = append(all, fmt.Sprintf("%s: %s", x.Failure.At, x.Failure.Message))
		}
	}
	check := func(is, want any, what string) {
		if is != want {
			all = append(all, fmt.Sprintf("%s is %v, not %v", what, orNone(is), orNone(want)))
		}
	}
	check(string(d.Verdict), c.Want, "the verdict")
	if c.Rule != "" {
		check(j.Rule, c.Rule, "the rule that decides")
	}
	if c.Mapping != "" {
		check(string(j.Mapping), c.Mapping, "the mapping")
	}
	check(d.Reread, c.Reread, "reread")
	check(warned, c.Warns, "warns")
	if len(all) > 0 {
		all = append(all, "rules that spoke: "+strings.Join(rules, ", "))
	}
	return got, strings.Join(all, "; "), nil
}

func orNone(v any) any {
	if v == "" {
		return "none"
	}
	return v
}

// deciding is the judgement that made the decision what it is.
func deciding(d *catalog.Decision) *catalog.Judgement {
	i := slices.IndexFunc(d.Judgements, func(j catalog.Judgement) bool { return j.Verdict == d.Verdict })
	return &d.Judgements[max(0, i)]
}

func (c *aCase) askConfig(ctx context.Context, p *policies.Policies, source *catalog.Source, table *catalog.Table) (got, wrong string, err error) {
	findings, err := p.CheckConfig(ctx, source, table)
	if err != nil {
		if e, ok := errors.AsType[*catalog.Error](err); ok {
			return "failed", e.Error(), nil
		}
		return "", "", err
	}
	found := []string{}
	for _, f := range findings {
		found = append(found, f.Field+": "+f.Rule)
	}
	want := slices.Sorted(slices.Values(c.Findings))
	got = "clean"
	if len(found) > 0 {
		got = strings.Join(found, ", ")
	}
	if slices.Sort(found); !slices.Equal(found, want) {
		return got, fmt.Sprintf("found %v, not %v", found, want), nil
	}
	return got, "", nil
}

// catalog turns the case's source and table into what policies are asked with, with the
// defaults of their files.
func (c *aCase) catalog(f *caseFile) (*catalog.Source, *catalog.Table) {
	s, t := f.Source, f.Table
	if c.Source != nil {
		s = *c.Source
	}
	if c.Table != nil {
		t = *c.Table
	}
	if s.Name == "" {
		s.Name = "shop"
	}
	if s.Capture == "" {
		s.Capture = string(catalog.Direct)
	}
	if t.FreshnessTier == "" {
		t.FreshnessTier = string(catalog.Tier1m)
	}
	if t.SCD == nil && len(t.PrimaryKey) > 0 {
		t.SCD = []int{1, 2}
	}
	source := &catalog.Source{Name: s.Name, Kind: catalog.Postgres, Capture: catalog.Capture(s.Capture)}
	table := &catalog.Table{
		Source: s.Name, Name: catalog.ParseTableName(t.Table), Owner: t.Owner, PrimaryKey: t.PrimaryKey, Tier: catalog.Tier(t.FreshnessTier),
		Current: slices.Contains(t.SCD, 1), History: slices.Contains(t.SCD, 2), TrackColumns: t.TrackHistoryColumns, TrackExcept: t.TrackHistoryExceptColumns,
		PII: map[string]catalog.Protection{}, SoftDelete: t.SoftDelete, ApplyTruncates: t.ApplyTruncates,
	}
	for _, column := range slices.Sorted(maps.Keys(t.PII)) {
		table.PII[column] = catalog.Protection(t.PII[column])
	}
	return source, table
}
