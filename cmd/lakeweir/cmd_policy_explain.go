package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/policies"
)

// PolicyExplainOptions are what policy explain is asked.
type PolicyExplainOptions struct {
	File     string // a table's file
	Policies string // a folder of policies; empty for that beside the file
	Input    string // a file with the input of a policy; - for standard input
	Proposal schemadiff.Proposal
	// Pairs are the flags of the form name=value.
	Rename, Retype, Default, Labels []string
}

func newPolicyExplainCommand(app *App) *cobra.Command {
	var opts PolicyExplainOptions
	p := &opts.Proposal
	cmd := &cobra.Command{
		Use:   "explain [FILE]",
		Short: "Say what would become of a schema change, and which rule decides",
		Long: `Say what would become of a change of a table's schema: the verdict, the rule that
decides with its file and line, the reason, what else was said, and what an override
would look like. FILE is the table's file; the flags say what is changed. Nothing is
asked of the source: columns that the flags name and --column does not declare are
taken to be text.

With --input the policies are asked exactly what a recorded decision shows as its
input, one or a list, and FILE is left out.

The exit status is 0 when the change evolves, 4 when a person must look, and 2 when
a policy is broken.`,
		Example: `  lakeweir policy explain tableconfigs/shop/public.orders.yaml --add "phone text"
  lakeweir policy explain tableconfigs/shop/public.orders.yaml --retype "amount=numeric(12,2)->numeric(14,2)"
  lakeweir policy explain tableconfigs/shop/public.orders.yaml --rename note=remark --drop old
  lakeweir policy explain --input decision.json`,
		Args: wantArgs("[FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = firstOf(args)
			return runPolicyExplain(cmd.Context(), app, cmd, opts)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&p.Columns, "column", nil, `a column that is there, such as "amount integer not null"; may be repeated`)
	f.StringArrayVar(&p.Add, "add", nil, `add a column: "phone text", "n int not null default 0"; may be repeated`)
	f.StringArrayVar(&p.Drop, "drop", nil, "drop a column; may be repeated")
	f.StringArrayVar(&opts.Rename, "rename", nil, "rename a column: old=new; may be repeated")
	f.StringArrayVar(&opts.Retype, "retype", nil, `change a column's type: "amount=integer->bigint"; may be repeated`)
	f.StringArrayVar(&p.Using, "using", nil, "a retyped column whose values a USING expression changes; may be repeated")
	f.StringArrayVar(&p.Nullable, "nullable", nil, "let a column be NULL; may be repeated")
	f.StringArrayVar(&p.NotNull, "not-null", nil, "let a column not be NULL; may be repeated")
	f.StringArrayVar(&opts.Default, "default", nil, "change a column's default: name=expression; may be repeated")
	f.StringArrayVar(&opts.Labels, "labels", nil, `change an enum's labels: "status=new,paid->new,paid,refunded"; may be repeated`)
	f.StringSliceVar(&p.Key, "key", nil, "the new primary key's columns, in order")
	f.StringVar(&p.Identity, "identity", "", "the new replica identity: default, full, nothing or index")
	f.StringVar(&p.RenameTable, "rename-table", "", "rename the table: schema.name")
	f.BoolVar(&p.DropTable, "drop-table", false, "drop the table")
	f.BoolVar(&p.Unnumbered, "unnumbered", false, "as a capture sees it that does not tell columns' numbers, such as Debezium")
	f.StringVar(&opts.Input, "input", "", "a file with the input of a policy as JSON; - for standard input")
	app.policiesFlag(cmd, &opts.Policies)
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func runPolicyExplain(ctx context.Context, app *App, cmd *cobra.Command, opts PolicyExplainOptions) error {
	inputs, err := explainInputs(app, cmd, &opts)
	if err != nil {
		return err
	}
	beside := filepath.Dir(opts.File)
	if opts.File == "" {
		beside = "."
	}
	rules, _, err := loadPolicies(opts.Policies, beside)
	if err != nil {
		return err
	}
	answers := make([]explainAnswer, len(inputs))
	for i, in := range inputs {
		j, err := rules.Judge(ctx, in)
		if err != nil {
			return err
		}
		answers[i] = explainAnswer{Input: in, Ruling: j.Ruling, Rulings: j.Rulings, Failure: j.Failure}
	}
	if app.Output == "json" {
		err = printJSON(app.Stdout, answers)
	} else {
		err = printExplanation(app.Stdout, answers)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return reported(needsAPerson(answers))
}

// explainAnswer is what is said of one change.
type explainAnswer struct {
	Input *policies.Input `json:"input"`
	catalog.Ruling
	Rulings []catalog.Ruling `json:"rulings"`
	Failure *catalog.Failure `json:"failure,omitempty"`
}

func needsAPerson(answers []explainAnswer) error {
	var waits error
	for _, a := range answers {
		if a.Failure != nil {
			return catalog.Invalidf(a.Failure.Code, a.Failure.At, "correct the policy", "%s", a.Failure.Message)
		}
		if a.Verdict != catalog.Evolve {
			waits = catalog.Errorf(catalog.Denied, catalog.CodePolicyReview, "", "a person must look")
		}
	}
	return waits
}

// explainInputs are what the policies are asked.
func explainInputs(app *App, cmd *cobra.Command, opts *PolicyExplainOptions) ([]*policies.Input, error) {
	if opts.Input != "" {
		if opts.File != "" {
			return nil, usageError(cmd, "--input has the table in it: leave %s out", opts.File)
		}
		text, err := readInput(app, opts.Input)
		if err != nil {
			return nil, err
		}
		return policies.ReadInputs(text)
	}
	if opts.File == "" {
		return nil, usageError(cmd, "name a table's file, or give --input")
	}
	source, table, err := tableOfFile(opts.File)
	if err != nil {
		return nil, err
	}
	if err := readPairs(cmd, opts); err != nil {
		return nil, err
	}
	changes, err := opts.Proposal.Changes(table)
	if err != nil {
		return nil, usageError(cmd, "%s", err)
	}
	if len(changes) == 0 {
		return nil, usageError(cmd, "nothing would change: say what is changed, such as --add %q", "phone text")
	}
	return policies.ForChanges(source, table, changes), nil
}

func readInput(app *App, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(app.Stdin)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, catalog.Invalidf(catalog.CodePolicyInput, name, "name a readable file", "the file cannot be read: %w", err)
	}
	return text, nil
}

// tableOfFile reads the table that a file configures, and its source. Problems of the
// source's other files do not matter here.
func tableOfFile(file string) (*catalog.Source, *catalog.Table, error) {
	config, problems := tableconfig.LoadDir(filepath.Dir(file))
	shown := filepath.ToSlash(filepath.Clean(file))
	i := slices.IndexFunc(config.Tables, func(t *catalog.Table) bool { return filepath.ToSlash(filepath.Clean(t.File)) == shown })
	if i >= 0 {
		t := config.Tables[i]
		return config.Source(t.Source), t, nil
	}
	mine := slices.DeleteFunc(problems, func(p *tableconfig.Problem) bool {
		return filepath.Clean(p.File) != filepath.Clean(file) && filepath.Base(p.File) != "source.yaml"
	})
	if err := mine.Err(); err != nil {
		return nil, nil, err
	}
	return nil, nil, catalog.Invalidf(catalog.CodeConfigFile, file, "name a table's file, such as tableconfigs/shop/public.orders.yaml", "no table is configured there")
}

// readPairs reads the flags of the form name=value into the proposal.
func readPairs(cmd *cobra.Command, opts *PolicyExplainOptions) error {
	p := &opts.Proposal
	for _, pairs := range []struct {
		flag string
		from []string
		to   *map[string]string
	}{{"rename", opts.Rename, &p.Rename}, {"retype", opts.Retype, &p.Retype}, {"default", opts.Default, &p.Default}, {"labels", opts.Labels, &p.Labels}} {
		*pairs.to = map[string]string{}
		for _, pair := range pairs.from {
			name, value, ok := strings.Cut(pair, "=")
			if !ok || strings.TrimSpace(name) == "" || strings.TrimSpace(value) == "" {
				return usageError(cmd, "--%s wants name=value, got %q", pairs.flag, pair)
			}
			(*pairs.to)[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return nil
}

// printExplanation writes what is said of each change for a person.
func printExplanation(w io.Writer, answers []explainAnswer) error {
	var b strings.Builder
	for i := range answers {
		a := &answers[i]
		fmt.Fprintf(&b, "%s: %s\n\n", a.Input.Table.ID, a.Input.Change.Text)
		printRuling(&b, &a.Ruling)
		for _, line := range consequences(a) {
			fmt.Fprintf(&b, "  → %s\n", line)
		}
		if rest := others(a); len(rest) > 0 {
			b.WriteString("\n  Also said")
			if a.Override {
				b.WriteString(", and overridden")
			}
			b.WriteString(":\n")
			for _, r := range rest {
				fmt.Fprintf(&b, "    %-10s  %s  (%s)\n", r.Verdict, r.Rule, r.At)
			}
		}
		b.WriteString("\n")
	}
	if a := strictest(answers); a.Failure == nil {
		b.WriteString("To decide otherwise, put a rule like this into a file of your policies:\n\n")
		b.WriteString(overrideFor(a))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printRuling(b *strings.Builder, r *catalog.Ruling) {
	word := string(r.Verdict)
	if r.Override {
		word += " (override)"
	}
	fmt.Fprintf(b, "  %s  %s  (%s)\n", word, r.Rule, r.At)
	b.WriteString(wrap(r.Reason, 78, "    "))
}

// consequences say what a verdict comes to.
func consequences(a *explainAnswer) []string {
	var out []string
	switch a.Verdict {
	case catalog.Evolve:
		out = append(out, "the lake follows at once")
	case catalog.Hold:
		out = append(out, "the table waits until a person approves")
	case catalog.Quarantine:
		out = append(out, "the table stops alone, and nothing of it is lost")
	}
	switch a.Mapping {
	case catalog.MapRename:
		out = append(out, "proposed: rename the lake's column, which keeps its id")
	case catalog.MapNewColumn:
		out = append(out, "proposed: a new column in the lake; the old one stays")
	case catalog.MapKeep:
		out = append(out, "proposed: the lake's column stays as it is")
	}
	if a.Reread {
		out = append(out, "then the table is read again")
	}
	for _, warning := range a.Warnings {
		out = append(out, "warning: "+warning)
	}
	return out
}

// others are the rulings beside the one that decided.
func others(a *explainAnswer) []catalog.Ruling {
	return slices.DeleteFunc(slices.Clone(a.Rulings), func(r catalog.Ruling) bool { return r.Rule == a.Rule && r.At == a.At && r.Reason == a.Reason })
}

// strictest is the answer that decides for all changes together.
func strictest(answers []explainAnswer) *explainAnswer {
	out := &answers[0]
	for i := range answers {
		if answers[i].Verdict.Compare(out.Verdict) > 0 {
			out = &answers[i]
		}
	}
	return out
}

// overrideFor is a rule that would decide otherwise on this very change.
func overrideFor(a *explainAnswer) string {
	verdict := catalog.Evolve
	if a.Verdict == catalog.Evolve {
		verdict = catalog.Quarantine
	}
	conditions := []string{fmt.Sprintf("input.table.id == %q", a.Input.Table.ID), fmt.Sprintf("input.change.kind == %q", a.Input.Change.Kind)}
	if a.Input.Change.Column != "" {
		conditions = append(conditions, fmt.Sprintf("input.change.column == %q", a.Input.Change.Column))
	}
	how := ""
	if a.Mapping != "" {
		how = fmt.Sprintf("\n  \t\"mapping\": %q,", a.Mapping)
	}
	return fmt.Sprintf(`  package organisation.schema

  overrides contains {
  	"verdict": %q,
  	"rule": "our_%s",%s
  	"reason": "say here why, for those who read the decision",
  } if {
  	%s
  }
`, verdict, a.Input.Change.Kind, how, strings.Join(conditions, "\n  \t"))
}
