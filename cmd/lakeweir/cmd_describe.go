package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// DescribeOptions say what describe shows.
type DescribeOptions struct {
	Registry string
	Table    string
}

func newDescribeCommand(app *App) *cobra.Command {
	var opts DescribeOptions
	table := &cobra.Command{
		Use:   "table NAME",
		Short: "Show one table: state, layers, columns, batches and its life",
		Long: `Show everything the registry knows of one table. NAME is orders, public.orders or
shop/public.orders: as much as it takes to name one.

docs/reference/cli-json.md describes the JSON.`,
		Args: wantArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Table = args[0]
			return runDescribeTable(cmd.Context(), app, opts)
		},
	}
	app.registryFlag(table, &opts.Registry)
	app.outputFlag(table, "text", "json", "yaml")
	return parent(&cobra.Command{Use: "describe", Short: "Show one thing the registry knows, whole"}, table, newDescribeSourceCommand(app))
}

func runDescribeTable(ctx context.Context, app *App, opts DescribeOptions) error {
	r, err := openRegistry(ctx, opts.Registry)
	if err != nil {
		return err
	}
	defer r.Close()
	fleet, err := r.Fleet(ctx)
	if err != nil {
		return err
	}
	t, err := findTable(fleet, opts.Table)
	if err != nil {
		return err
	}
	detail, err := r.Table(ctx, t.Source, t.Name.String())
	if err != nil {
		return err
	}
	d := monitor.JudgeTable(detail)
	return printDocument(app, d.Document(), func(w io.Writer) error { return describeTable(w, d) })
}

// describeTable writes a table for a person.
func describeTable(w io.Writer, d *monitor.Detail) error {
	t := &d.Table
	facts := [][]string{
		{"Table", t.ID()},
		{"Owner", cmp.Or(t.Config.Owner, "–")},
		{"File", fileText(t)},
		{"State", fmt.Sprintf("%s since %s", t.Health, human.Clock(t.Since, d.Now))},
	}
	if t.Since.IsZero() {
		facts[3][1] = string(t.Health)
	}
	if t.Fault != nil {
		facts = append(facts, []string{"Reason", reasonOf(t)}, []string{"What to do", cmp.Or(t.Fault.Hint, "–")})
	}
	if p := t.Progress; p != nil {
		facts = append(facts, []string{"Snapshot", snapshotText(p)})
	}
	facts = append(facts,
		[]string{"Freshness", fmt.Sprintf("%s, of %s", ageOf(t), t.Config.Tier)},
		[]string{"Changes", fmt.Sprintf("%s now, %s recorded", human.Rate(t.Rate), human.Exact(t.Totals.Changes))},
		[]string{"Last commit", human.Ago(t.Totals.LastBatchAt, d.Now)},
		[]string{"Verified through", verifiedText(t, d.Now)},
		[]string{"Key", cmp.Or(strings.Join(t.Config.PrimaryKey, ", "), "none: bronze only")},
		[]string{"Versions", fmt.Sprintf("config v%d, schema %s", t.ConfigVersion, schemaOf(t))},
	)
	if err := printRows(w, facts); err != nil {
		return err
	}
	layers := [][]string{{"LAYER", "LAKE TABLE", "ROWS", "COMPLETE THROUGH"}}
	for _, l := range t.LayerList() {
		layers = append(layers, []string{string(l.Layer), l.Table, human.Exact(l.Rows), lsnText(l.Through)})
	}
	sections := []struct {
		title string
		rows  [][]string
	}{{"Layers", layers}, {"Columns", columnRows(d)}, {"Latest batches", batchRows(d)}, {"Life", eventRows(d)}}
	for _, s := range sections {
		if len(s.rows) < 2 {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", s.title); err != nil {
			return err
		}
		if err := printRows(w, s.rows); err != nil {
			return err
		}
	}
	return nil
}

func columnRows(d *monitor.Detail) [][]string {
	rows := [][]string{{"COLUMN", "AT THE SOURCE", "IN THE LAKE", ""}}
	for _, c := range d.Document().Columns {
		var notes []string
		if c.Key {
			notes = append(notes, "key")
		}
		if !c.Nullable {
			notes = append(notes, "not null")
		}
		if c.PII != "" {
			notes = append(notes, "PII: "+string(c.PII))
		}
		rows = append(rows, []string{c.Name, c.SourceType, c.LakeType, strings.Join(notes, ", ")})
	}
	return rows
}

const describedBatches, describedEvents = 10, 20

func batchRows(d *monitor.Detail) [][]string {
	rows := [][]string{{"AT", "CREATED", "UPDATED", "DELETED", "READ", "SIZE", "BRONZE", "CURRENT", "HISTORY", "CURSOR"}}
	for _, b := range d.Batches[:min(describedBatches, len(d.Batches))] {
		row := []string{human.Clock(b.At, d.Now)}
		for _, n := range []int{b.Creates, b.Updates, b.Deletes, b.Reads} {
			row = append(row, human.Exact(int64(n)))
		}
		row = append(row, human.Bytes(b.Bytes))
		for _, c := range []registry.Commit{b.Bronze, b.Current, b.History} {
			row = append(row, tookText(c))
		}
		rows = append(rows, append(row, b.To.Position.String()))
	}
	return rows
}

func tookText(c registry.Commit) string {
	if c == (registry.Commit{}) {
		return "–"
	}
	return human.Exact(c.Took.Milliseconds()) + " ms"
}

func eventRows(d *monitor.Detail) [][]string {
	rows := [][]string{{"AT", "WHAT", "DETAIL"}}
	for _, e := range d.Events[:min(describedEvents, len(d.Events))] {
		rows = append(rows, []string{human.Clock(e.At, d.Now), string(e.Kind), string(e.Detail)})
	}
	return rows
}

func snapshotText(p *monitor.Progress) string {
	s := human.Exact(p.Rows) + " rows"
	if p.Estimate > 0 {
		s = fmt.Sprintf("%.0f %%, %s of about %s rows", p.Share*100, human.Exact(p.Rows), human.Exact(max(p.Estimate, p.Rows)))
	}
	if p.Left > 0 {
		s += ", " + human.Span(p.Left) + " left"
	}
	return s
}

func verifiedText(t *monitor.Table, now time.Time) string {
	s := human.Clock(t.VerifiedThrough, now)
	if t.Verified != nil && t.Verified.Differing > 0 {
		s += fmt.Sprintf("; %s rows differed at %s", human.Exact(t.Verified.Differing), human.Clock(t.Verified.At, now))
	}
	return s
}
