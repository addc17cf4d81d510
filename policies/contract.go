package policies

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/lakeweir/lakeweir/catalog"
)

// The packages that rules are read from.
const (
	ourSchema      = "lakeweir.schema"
	ourConfig      = "lakeweir.config"
	theirSchema    = "organisation.schema"
	theirConfig    = "organisation.config"
	theirSettings  = "organisation.settings"
	theirLibraries = "organisation.lib"
)

// ofSource is the package whose rules judge the tables of one source alone.
func ofSource(source, kind string) string { return "organisation.source." + source + "." + kind }

var sourcePackage = regexp.MustCompile(`^organisation\.source\.(.+)\.(schema|config)$`)

// answers are the rules that a package answers with.
var answers = map[string][]string{"schema": {"verdicts", "overrides"}, "config": {"findings", "waivers"}}

// settings are what organisation.settings may define.
var settings = []string{"tiers", "owner_pattern", "table_pattern", "pii_names", "pii_exempt"}

// role is what a package is for: schema, config, settings, lib; "" for none.
func role(pkg string) string {
	switch pkg {
	case ourSchema, theirSchema:
		return "schema"
	case ourConfig, theirConfig:
		return "config"
	case theirSettings:
		return "settings"
	}
	if m := sourcePackage.FindStringSubmatch(pkg); m != nil {
		return m[2]
	}
	if pkg == theirLibraries || strings.HasPrefix(pkg, theirLibraries+".") {
		return "lib"
	}
	return ""
}

// check holds the organisation's files to the contract of docs/policies.md. A rule that
// would never be heard is an error: an override that does nothing is found out too late.
func (p *Policies) check() {
	answered := map[string]bool{}
	first := map[string]*module{}
	for _, m := range p.modules {
		if m.parsed == nil || m.ours {
			continue
		}
		r := role(m.pkg)
		if r == "" || isOurs(m.pkg) {
			p.refuse(m, "", m.parsed.Package.Location, wrongPackage(m.pkg), "use organisation.schema, organisation.config, organisation.settings, organisation.lib, or organisation.source.NAME.schema for one source's tables")
			continue
		}
		for _, rule := range m.parsed.Rules {
			p.checkRule(m, r, rule)
			if slices.Contains(answers[r], ruleName(rule)) {
				answered[m.pkg] = true
			}
		}
		if first[m.pkg] == nil {
			first[m.pkg] = m
		}
	}
	for _, m := range p.modules {
		r := role(m.pkg)
		if names := answers[r]; first[m.pkg] == m && names != nil && !answered[m.pkg] {
			p.refuse(m, m.pkg, m.parsed.Package.Location, fmt.Sprintf("the package answers nothing: it defines neither %s nor %s", names[0], names[1]), fmt.Sprintf("write a rule such as %s contains {…} if …", names[0]))
		}
	}
}

// isOurs reports whether a package is Lakeweir's.
func isOurs(pkg string) bool { return pkg == "lakeweir" || strings.HasPrefix(pkg, "lakeweir.") }

func wrongPackage(pkg string) string {
	if isOurs(pkg) {
		return fmt.Sprintf("the package %s is Lakeweir's own, and is not replaced", pkg)
	}
	return "nobody reads the package " + pkg
}

func (p *Policies) checkRule(m *module, role string, rule *ast.Rule) {
	name := ruleName(rule)
	names := answers[role]
	switch {
	case role == "settings" && !slices.Contains(settings, name) && !strings.HasPrefix(name, "test_"):
		p.refuse(m, m.pkg, rule.Location, fmt.Sprintf("there is no setting %q", name), "the settings are "+strings.Join(settings, ", ")+"; put what they need into organisation.lib")
	case slices.Contains(names, name) && rule.Head.RuleKind() != ast.MultiValue:
		p.refuse(m, m.pkg, rule.Location, name+" is a set of answers", fmt.Sprintf("write %s contains {…} if …", name))
	case slices.ContainsFunc(names, func(n string) bool { return n != name && strings.TrimSuffix(n, "s") == strings.TrimSuffix(name, "s") }):
		p.refuse(m, m.pkg, rule.Location, "nobody reads "+name, fmt.Sprintf("it is called %ss", strings.TrimSuffix(name, "s")))
	}
}

func ruleName(rule *ast.Rule) string {
	if v, ok := rule.Head.Ref()[0].Value.(ast.Var); ok {
		return string(v)
	}
	return ""
}

func (p *Policies) refuse(m *module, pkg string, at *ast.Location, message, hint string) {
	m.broken = true
	p.fail(pkg, catalog.Invalidf(catalog.CodePolicyContract, placeOf(at), hint, "%s", message))
}
