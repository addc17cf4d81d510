package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/policies"
)

// ValidateOptions are what validate looks at.
type ValidateOptions struct {
	Dir      string // a folder of sources, or the folder of one source
	Policies string // a folder of policies; empty for that beside Dir
}

func newValidateCommand(app *App) *cobra.Command {
	var opts ValidateOptions
	cmd := &cobra.Command{
		Use:   "validate DIR",
		Short: "Check table configurations, without any network",
		Long: `Check the files of a folder of sources (tableconfigs) or of one source
(tableconfigs/shop): keys, types, values, what they mean together, and what the
policies object to: Lakeweir's own and the organisation's (docs/policies.md).

Every problem of every file is shown at once, with its place and what to do. The
exit status is 2 when there is one. With -o github each is an annotation of the
pull request.`,
		Example: "  lakeweir validate tableconfigs\n  lakeweir validate tableconfigs -o github",
		Args:    wantArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			return runValidate(cmd.Context(), app, opts)
		},
	}
	app.policiesFlag(cmd, &opts.Policies)
	app.outputFlag(cmd, "text", "json", "github")
	return cmd
}

func runValidate(ctx context.Context, app *App, opts ValidateOptions) error {
	config, problems := tableconfig.LoadDir(opts.Dir)
	rules, dir, err := loadPolicies(opts.Policies, opts.Dir)
	if err != nil {
		return err
	}
	found, err := judgeConfig(ctx, rules, config)
	if err != nil {
		return err
	}
	problems = append(problems, found...)
	problems.Sort()
	problems = append(problems, policyProblems(rules.Problems())...)
	summary := validateSummary(config, rulesIn(rules, dir), problems)
	err = printProblems(app, problems, summary, validateAnswer{
		OK: len(problems) == 0, Sources: config.SourceFiles, Tables: config.TableFiles, Policies: dir,
		Errors: jsonProblems(problems.Err()),
	})
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return reported(problems.Err())
}

// validateAnswer is the JSON form of the answer.
type validateAnswer struct {
	OK      bool `json:"ok"`
	Sources int  `json:"sources"`
	Tables  int  `json:"tables"`
	// Policies is the folder of the organisation's policies, when there is one.
	Policies string        `json:"policies,omitempty"`
	Errors   []jsonProblem `json:"errors"`
}

// judgeConfig asks the policies about every table whose files have no problem. A policy
// that fails on a table is a problem of that table alone.
func judgeConfig(ctx context.Context, rules *policies.Policies, config *tableconfig.Config) (tableconfig.Problems, error) {
	var out tableconfig.Problems
	add := func(p *tableconfig.Problem) {
		if !slices.ContainsFunc(out, func(o *tableconfig.Problem) bool { return o.At() == p.At() && o.Message == p.Message }) {
			out = append(out, p) // a default is wrong once, for however many tables
		}
	}
	for _, t := range config.Tables {
		findings, err := rules.CheckConfig(ctx, config.Source(t.Source), t)
		if e, ok := errors.AsType[*catalog.Error](err); ok {
			if e.Code == catalog.CodePolicyFailed { // others are problems of the policies, told once
				add(config.ProblemAt(t, "table", e.Code, "a policy could not judge the table: "+e.Error(), e.Hint))
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, f := range findings {
			add(config.ProblemAt(t, f.Field, catalog.CodePolicyFinding, f.Message, strings.TrimSpace(f.Hint+" ("+f.Rule+", "+f.At+")")))
		}
	}
	return out, nil
}

// rulesIn names the organisation's policies: ", by 2 policies in policies".
func rulesIn(rules *policies.Policies, dir string) string {
	if dir == "" {
		return ""
	}
	return fmt.Sprintf(", by %s in %s", files(len(rules.Files())), dir)
}

// files counts files of policies.
func files(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return strconv.Itoa(n) + " policies"
}

// validateSummary is the last line: "7 tables in 1 source: no problems".
func validateSummary(config *tableconfig.Config, rules string, problems tableconfig.Problems) string {
	what := count(config.TableFiles, "table") + " in " + count(config.SourceFiles, "source") + rules + ": "
	if len(problems) == 0 {
		return what + "no problems"
	}
	files := map[string]bool{}
	for _, p := range problems {
		files[p.File] = true
	}
	return what + count(len(problems), "problem") + " in " + count(len(files), "file")
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
