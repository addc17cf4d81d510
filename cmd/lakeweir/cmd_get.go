package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// GetOptions say what get lists.
type GetOptions struct {
	Registry string
	Source   string // only this one; empty for all
}

func newGetCommand(app *App) *cobra.Command {
	var opts GetOptions
	get := func(use, short, long string, run func(context.Context, *App, GetOptions) error) *cobra.Command {
		cmd := &cobra.Command{
			Use: use, Short: short, Long: long, Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), app, opts) },
		}
		app.registryFlag(cmd, &opts.Registry)
		cmd.Flags().StringVar(&opts.Source, "source", "", "only this source")
		app.outputFlag(cmd, "table", "wide", "json", "yaml")
		return cmd
	}
	return parent(&cobra.Command{Use: "get", Short: "List what the registry knows"},
		get("tables", "List all tables with their state and freshness",
			`List every table that the registry knows, also those that no file names any more.

Freshness is an upper bound: everything that committed at the source before then can
be queried. docs/reference/cli-json.md describes the JSON.`, runGetTables),
		get("sources", "List all sources with their worker, slot and WAL",
			`List every source that the registry knows. docs/reference/cli-json.md describes the
JSON.`, runGetSources))
}

func runGetTables(ctx context.Context, app *App, opts GetOptions) error {
	report, err := judgeRegistry(ctx, opts.Registry, opts.Source)
	if err != nil {
		return err
	}
	return printDocument(app, report.Document(), func(w io.Writer) error {
		return printTables(w, report, app.Output == "wide")
	})
}

func runGetSources(ctx context.Context, app *App, opts GetOptions) error {
	report, err := judgeRegistry(ctx, opts.Registry, opts.Source)
	if err != nil {
		return err
	}
	return printDocument(app, report.SourcesDocument(), func(w io.Writer) error {
		return printSources(w, report, app.Output == "wide")
	})
}

// openRegistry opens the registry that a flag names.
func openRegistry(ctx context.Context, flag string) (*registry.Registry, error) {
	dsn, err := resolveRegistry(flag)
	if err != nil {
		return nil, err
	}
	return registry.Open(ctx, dsn)
}

// judgeRegistry reads the registry once and judges it; source may be empty.
func judgeRegistry(ctx context.Context, flag, source string) (*monitor.Report, error) {
	r, err := openRegistry(ctx, flag)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return judge(ctx, r, source)
}

func judge(ctx context.Context, r *registry.Registry, source string) (*monitor.Report, error) {
	fleet, err := r.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	if source != "" && !only(fleet, source) {
		return nil, noSuchSource(source)
	}
	return monitor.Judge(fleet), nil
}

// printDocument writes the answer in the form that -o asks for: text writes it for a
// person.
func printDocument(app *App, document any, text func(io.Writer) error) error {
	switch app.Output {
	case "json":
		return printJSON(app.Stdout, document)
	case "yaml":
		return printYAML(app.Stdout, document)
	default:
		return text(app.Stdout)
	}
}

// printYAML writes the same names and values as the JSON.
func printYAML(w io.Writer, document any) error {
	var b strings.Builder
	if err := printJSON(&b, document); err != nil {
		return err
	}
	y, err := yaml.JSONToYAML([]byte(b.String()))
	if err != nil {
		return err
	}
	_, err = w.Write(y)
	return err
}

func printTables(w io.Writer, report *monitor.Report, wide bool) error {
	if len(report.Tables) == 0 {
		_, err := fmt.Fprintln(w, "no tables yet: lakeweir run DIR registers those of a folder")
		return err
	}
	head := []string{"SOURCE", "TABLE", "STATE", "FRESHNESS", "TIER", "ROWS", "CHANGES", "LAST COMMIT", "VERIFIED THROUGH", "OWNER"}
	if wide {
		head = append(head, "SCHEMA", "BRONZE THROUGH", "FILE", "REASON")
	}
	rows := [][]string{head}
	for i := range report.Tables {
		t := &report.Tables[i]
		row := []string{
			t.Source, t.Name.String(), string(t.Health), ageOf(t), string(t.Config.Tier), rowsOf(t), human.Rate(t.Rate),
			human.Ago(t.Totals.LastBatchAt, report.Now), human.Clock(t.VerifiedThrough, report.Now), cmp.Or(t.Config.Owner, "–"),
		}
		if wide {
			row = append(row, schemaOf(t), lsnText(t.BronzeThrough), fileText(t), reasonOf(t))
		}
		rows = append(rows, row)
	}
	return printRows(w, rows)
}

func printSources(w io.Writer, report *monitor.Report, wide bool) error {
	if len(report.Sources) == 0 {
		_, err := fmt.Fprintln(w, "no sources yet: lakeweir run DIR registers that of a folder")
		return err
	}
	head := []string{"SOURCE", "KIND", "CAPTURE", "TABLES", "WORKER", "SLOT", "WAL HELD", "BUDGET", "WAL"}
	if wide {
		head = append(head, "END OF LOG", "CONFIRMED", "AS OF", "HELD BY", "AT BUDGET", "FILE")
	}
	rows := [][]string{head}
	for i := range report.Sources {
		s := &report.Sources[i]
		row := []string{s.Name, string(s.Kind), string(s.Capture), human.Exact(int64(s.Tables)), workerOf(s, report.Now)}
		if s.Log == nil {
			row = append(row, "unknown", "–", budgetOf(s), "–")
		} else {
			row = append(row, slotOf(s), human.Bytes(s.WAL.Retained), budgetOf(s), string(s.WAL.Level))
		}
		if wide && s.Log != nil {
			row = append(row, s.Log.End.String(), s.Log.Confirmed.String(), human.Ago(s.Log.UpdatedAt, report.Now), cmp.Or(s.Log.HeldBy, "–"), cmp.Or(string(s.OnBudget), "–"), s.File)
		} else if wide {
			row = append(row, "–", "–", "–", "–", cmp.Or(string(s.OnBudget), "–"), s.File)
		}
		rows = append(rows, row)
	}
	return printRows(w, rows)
}

// printRows aligns rows of cells; line ends in a cell would break it and become blanks.
func printRows(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	flat := strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")
	for _, r := range rows {
		for i, cell := range r {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, flat.Replace(cell))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func ageOf(t *monitor.Table) string {
	if !t.Freshness.Known {
		return "unknown"
	}
	return human.Span(t.Freshness.Age)
}

func rowsOf(t *monitor.Table) string {
	if !t.Config.Current {
		return human.Exact(t.Totals.BronzeRows) + " changes"
	}
	return human.Exact(t.Totals.CurrentRows)
}

func schemaOf(t *monitor.Table) string {
	if t.SchemaVersion == 0 {
		return "–"
	}
	return fmt.Sprint("v", t.SchemaVersion)
}

func fileText(t *monitor.Table) string {
	if !t.InFiles {
		return "(no file names it any more)"
	}
	return cmp.Or(t.File, "–")
}

func reasonOf(t *monitor.Table) string {
	if t.Fault == nil {
		return "–"
	}
	return string(t.Fault.Code) + ": " + t.Fault.Message
}

func workerOf(s *monitor.Source, now time.Time) string {
	switch {
	case s.Worker == nil:
		return "none yet"
	case !s.Alive:
		return fmt.Sprintf("%d, silent since %s", s.Worker.PID, human.Clock(s.Worker.SeenAt, now))
	default:
		return fmt.Sprintf("%d, up %s", s.Worker.PID, human.Span(now.Sub(s.Worker.StartedAt)))
	}
}

func slotOf(s *monitor.Source) string {
	state := cmp.Or(s.Log.SlotState, "unknown")
	if !s.Log.Active {
		state += ", not in use"
	}
	return state
}

func budgetOf(s *monitor.Source) string {
	if s.WALBudget == 0 {
		return "none"
	}
	return human.Bytes(s.WALBudget)
}
