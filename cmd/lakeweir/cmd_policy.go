package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/policies"
	"github.com/lakeweir/lakeweir/policies/policytest"
)

func newPolicyCommand(app *App) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "policy",
		Short: "Test, check and explain the policies that judge schema changes",
	}, newPolicyTestCommand(app), newPolicyCheckCommand(app), newPolicyExplainCommand(app), newPolicySchemaCommand(app))
}

func newPolicyTestCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the tests of Lakeweir's policies and of the organisation's",
		Long: `Run Lakeweir's cases against its own policies, then the cases (*_cases.yaml) and
Rego tests (*_test.rego) of the organisation's folder DIR against both together.
docs/policies.md describes how to write them.

The exit status is 2 when one fails.`,
		Example: "  lakeweir policy test\n  lakeweir policy test policies",
		Args:    wantArgs("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPolicyTest(cmd.Context(), app, firstOf(args))
		},
	}
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func runPolicyTest(ctx context.Context, app *App, dir string) error {
	var org fs.FS
	if dir != "" {
		if err := isFolder(dir); err != nil {
			return err
		}
		org = os.DirFS(dir)
	}
	results, err := policytest.Run(ctx, org, filepath.ToSlash(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	failed, ours := 0, 0
	for _, r := range results {
		if !r.OK {
			failed++
		}
		if r.Ours {
			ours++
		}
	}
	if app.Output == "json" {
		err = printJSON(app.Stdout, policyTestAnswer{OK: failed == 0, Ours: ours, Theirs: len(results) - ours, Failed: failed, Results: results})
	} else {
		err = printResults(app, results, ours, failed, dir)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if failed > 0 {
		return reported(catalog.Invalidf(catalog.CodePolicyTest, "", "", "%d of %d fail", failed, len(results)))
	}
	return nil
}

// policyTestAnswer is the JSON form of the answer.
type policyTestAnswer struct {
	OK      bool                `json:"ok"`
	Ours    int                 `json:"ours"`
	Theirs  int                 `json:"theirs"`
	Failed  int                 `json:"failed"`
	Results []policytest.Result `json:"results"`
}

func printResults(app *App, results []policytest.Result, ours, failed int, dir string) error {
	for _, r := range results {
		if r.OK {
			fmt.Fprintf(app.Stdout, "ok    %s  %s → %s\n", r.At, r.Name, r.Got)
			continue
		}
		fmt.Fprintf(app.Stdout, "FAIL  %s  %s\n      %s\n", r.At, r.Name, indent(r.Want))
	}
	theirs := ""
	if dir != "" {
		theirs = fmt.Sprintf(", %d of %s", len(results)-ours, filepath.ToSlash(filepath.Clean(dir)))
	}
	outcome := "all pass"
	if failed > 0 {
		outcome = fmt.Sprintf("%d fail", failed)
	}
	_, err := fmt.Fprintf(app.Stdout, "\n%s: %d of Lakeweir%s: %s\n", count(len(results), "case"), ours, theirs, outcome)
	return err
}

func newPolicyCheckCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Compile the organisation's policies and show every error",
		Long: `Compile the policies of the folder DIR together with Lakeweir's, their tests too, and
show every error with its place: what is not Rego, what does not compile, a field
that the input does not have, and a package or rule that nobody reads.

The exit status is 2 when there is one.`,
		Example: "  lakeweir policy check policies\n  lakeweir policy check policies -o github",
		Args:    wantArgs("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			return runPolicyCheck(app, args[0])
		},
	}
	app.outputFlag(cmd, "text", "json", "github")
	return cmd
}

func runPolicyCheck(app *App, dir string) error {
	if err := isFolder(dir); err != nil {
		return err
	}
	p := policies.LoadDir(dir)
	problems := policyProblems(p.Check())
	if len(p.Files()) == 0 && len(problems) == 0 {
		return catalog.Invalidf(catalog.CodePolicyFile, dir, "name the folder of the organisation's policies: files that end in .rego", "the folder has no policies")
	}
	summary := fmt.Sprintf("%s in %s: ", files(len(p.Files())), filepath.ToSlash(filepath.Clean(dir)))
	if len(problems) == 0 {
		summary += "no problems"
	} else {
		summary += count(len(problems), "problem")
	}
	err := printProblems(app, problems, summary, policyCheckAnswer{OK: len(problems) == 0, Files: p.Files(), Errors: jsonProblems(problems.Err())})
	return errors.Join(err, reported(problems.Err()))
}

// policyCheckAnswer is the JSON form of the answer.
type policyCheckAnswer struct {
	OK     bool          `json:"ok"`
	Files  []string      `json:"files"`
	Errors []jsonProblem `json:"errors"`
}

func newPolicySchemaCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of what a policy sees as input",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := app.Stdout.Write(policies.InputSchema())
			return err
		},
	}
}
