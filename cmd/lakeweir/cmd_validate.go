package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog/tableconfig"
)

// ValidateOptions are what validate looks at.
type ValidateOptions struct {
	Dir string // a folder of sources, or the folder of one source
}

func newValidateCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate DIR",
		Short: "Check table configurations, without any network",
		Long: `Check the files of a folder of sources (tableconfigs) or of one source
(tableconfigs/shop): keys, types, values, and what they mean together.

Every problem of every file is shown at once, with its place and what to do. The
exit status is 2 when there is one. With -o github each is an annotation of the
pull request.`,
		Example: "  lakeweir validate tableconfigs\n  lakeweir validate tableconfigs -o github",
		Args:    wantArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runValidate(cmd.Context(), app, ValidateOptions{Dir: args[0]})
		},
	}
	app.outputFlag(cmd, "text", "json", "github")
	return cmd
}

func runValidate(_ context.Context, app *App, opts ValidateOptions) error {
	config, problems := tableconfig.LoadDir(opts.Dir)
	summary := validateSummary(config, problems)
	var err error
	switch app.Output {
	case "json":
		err = printJSON(app.Stdout, validateAnswer{
			OK: len(problems) == 0, Sources: config.SourceFiles, Tables: config.TableFiles,
			Errors: jsonProblems(problems.Err()),
		})
	case "github":
		for _, p := range problems {
			fmt.Fprintln(app.Stdout, p.GitHub())
		}
		_, err = fmt.Fprintln(app.Stdout, summary)
	default:
		if len(problems) > 0 {
			fmt.Fprintln(app.Stdout, problems.Text())
		}
		_, err = fmt.Fprintln(app.Stdout, summary)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return reported(problems.Err())
}

// validateAnswer is the JSON form of the answer.
type validateAnswer struct {
	OK      bool          `json:"ok"`
	Sources int           `json:"sources"`
	Tables  int           `json:"tables"`
	Errors  []jsonProblem `json:"errors"`
}

// validateSummary is the last line: "7 tables in 1 source: no problems".
func validateSummary(config *tableconfig.Config, problems tableconfig.Problems) string {
	what := count(config.TableFiles, "table") + " in " + count(config.SourceFiles, "source") + ": "
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
