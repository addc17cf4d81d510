package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

func newDescribeSourceCommand(app *App) *cobra.Command {
	var dsn string
	cmd := &cobra.Command{
		Use:   "source NAME",
		Short: "Show one source: worker, slot, connector and its life",
		Long: `Show everything the registry knows of one source: its worker, its slot against the
WAL budget, its connector with the whole trace of what has failed, and what happened.

docs/reference/cli-json.md describes the JSON.`,
		Args: wantArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDescribeSource(cmd.Context(), app, dsn, args[0])
		},
	}
	app.registryFlag(cmd, &dsn)
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

func runDescribeSource(ctx context.Context, app *App, dsn, name string) error {
	r, err := openRegistry(ctx, dsn)
	if err != nil {
		return err
	}
	defer r.Close()
	report, err := judge(ctx, r, name)
	if err != nil {
		return err
	}
	events, err := r.SourceEvents(ctx, name)
	if err != nil {
		return err
	}
	source := &report.Sources[0]
	doc := monitor.SourceDetailDocument{At: report.Now, Source: source.Document(), Events: []monitor.EventDocument{}}
	for _, e := range events {
		doc.Events = append(doc.Events, monitor.EventDocument(e))
	}
	return printDocument(app, doc, func(w io.Writer) error { return describeSource(w, report, source, events) })
}

// describeSource writes a source for a person.
func describeSource(w io.Writer, r *monitor.Report, s *monitor.Source, events []registry.Event) error {
	facts := [][]string{
		{"Source", s.Name},
		{"Kind", fmt.Sprintf("%s, capture %s", s.Kind, s.Capture)},
		{"File", s.File},
		{"Tables", human.Exact(int64(s.Tables))},
		{"Worker", workerOf(s, r.Now)},
		{"Slot", "unknown"},
	}
	if s.Log != nil {
		facts[5][1] = fmt.Sprintf("%s, holds %s of WAL, budget %s: %s", slotOf(s), human.Bytes(s.WAL.Retained), budgetOf(s), walOf(s))
		facts = append(facts, []string{"Log", fmt.Sprintf("ends at %s, confirmed through %s", lsnText(s.Log.End), lsnText(s.Log.Confirmed))})
	}
	if s.Connector != nil {
		facts = append(facts, []string{"Connector", connectorOf(s, r.Now)})
	}
	if err := printRows(w, facts); err != nil {
		return err
	}
	if c := s.Connector; c != nil {
		if err := printTraces(w, &c.ConnectorStatus); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	rows := [][]string{{"AT", "WHAT", "DETAIL"}}
	for _, e := range events[:min(describedEvents, len(events))] {
		rows = append(rows, []string{human.Clock(e.At, r.Now), string(e.Kind), string(e.Detail)})
	}
	if _, err := fmt.Fprint(w, "\nLife\n"); err != nil {
		return err
	}
	return printRows(w, rows)
}

// printTraces writes why a connector and its tasks have failed, whole.
func printTraces(w io.Writer, s *catalog.ConnectorStatus) error {
	if s.Trace != "" {
		if _, err := fmt.Fprintf(w, "\nWhy the connector is %s\n    %s\n", s.State, indent(s.Trace)); err != nil {
			return err
		}
	}
	for _, t := range s.Tasks {
		if t.Trace == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\nWhy task %d is %s\n    %s\n", t.ID, t.State, indent(t.Trace)); err != nil {
			return err
		}
	}
	return nil
}
