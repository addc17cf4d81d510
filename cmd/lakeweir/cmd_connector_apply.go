package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/worker"
)

// ConnectorApplyOptions are what connector apply needs.
type ConnectorApplyOptions struct {
	ConnectorOptions

	DryRun bool
}

func newConnectorApplyCommand(app *App) *cobra.Command {
	var opts ConnectorApplyOptions
	cmd := &cobra.Command{
		Use:   "apply SOURCE",
		Short: "Make a connector what the files say",
		Long: `Make the connector of a source, or change it where it differs from the files, and say
what changed. With create: true the publication, the heartbeat table and the signal
table are made first, as far as the role may.

A change that would make it another stream (of the topic prefix, the slot, the database)
is refused: see lakeweir connector reset. With --dry-run nothing is done.

Any change has Connect start the connector's task anew. Debezium can lose rows of a COPY,
and of key moves, that it is in the midst of then: apply a change while nothing loads the
source.`,
		Example: "  lakeweir connector apply tableconfigs/shop --dry-run",
		Args:    wantArgs("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			return runConnectorApply(cmd.Context(), app, opts)
		},
	}
	app.connectorFlags(cmd, &opts.ConnectorOptions)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be done")
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

// applyAnswer is the JSON of connector apply.
type applyAnswer struct {
	*connect.Plan

	Applied bool `json:"applied"` // false: it was a dry run, or nothing was to be done
}

func runConnectorApply(ctx context.Context, app *App, opts ConnectorApplyOptions) error {
	d, err := opts.open()
	if err != nil {
		return err
	}
	want, err := connectorconfig.Render(d.source, d.tables)
	if err != nil {
		return err
	}
	plan, err := d.client.Plan(ctx, want)
	if err != nil {
		return err
	}
	if plan.EndsTask() {
		app.caution(ctx, plan.Name)
	}
	if !opts.DryRun {
		if err := prepareSource(ctx, app, d.source, d.tables); err != nil {
			return err
		}
		if err := d.client.Apply(ctx, plan); err != nil {
			return err
		}
	}
	answer := applyAnswer{Plan: plan, Applied: !opts.DryRun && !plan.Nothing()}
	return printDocument(app, answer, func(w io.Writer) error { return printPlan(w, plan, opts.DryRun) })
}

func printPlan(w io.Writer, p *connect.Plan, dry bool) error {
	text := p.Text()
	if dry && !p.Nothing() {
		text = "would " + text
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return err
	}
	var rows [][]string
	for _, c := range p.Changes {
		from, to := c.From, c.To
		if from == "" {
			from = "(not set)"
		}
		if to == "" {
			to = "(removed)"
		}
		rows = append(rows, []string{"  " + c.Property, from, "→ " + to})
	}
	return printRows(w, rows)
}

// prepareSource makes what a connector needs at its source, where the files allow it.
// What the role may not do is said, with the SQL for somebody who may.
func prepareSource(ctx context.Context, app *App, source *catalog.Source, tables []*catalog.Table) error {
	if !source.CreateSlot {
		return nil
	}
	dsn, err := resolveConnection(source.File+": connection", string(source.Connection))
	if err != nil {
		return err
	}
	findings, err := worker.PrepareConnector(ctx, source, tables, dsn)
	for _, f := range findings {
		app.Log.WarnContext(ctx, "the connector lacks something at the source", "source", f.Source, "table", f.Table, "finding", f.Message, "fix", f.Fix)
	}
	return err
}

func newConnectorStatusCommand(app *App) *cobra.Command {
	var opts ConnectorOptions
	cmd := &cobra.Command{
		Use:   "status SOURCE",
		Short: "Ask Kafka Connect how a connector is",
		Long: `Ask Kafka Connect how the connector of a source and its tasks are, with the trace of
what has failed. The exit status is 3 when it does not run.`,
		Args: wantArgs("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			return runConnectorStatus(cmd.Context(), app, opts)
		},
	}
	app.connectorFlags(cmd, &opts)
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

// connectorStatus is the JSON of connector status.
type connectorStatus struct {
	Name   string                  `json:"name"`
	State  catalog.ConnectorState  `json:"state"`
	Reason string                  `json:"reason,omitempty"`
	Trace  string                  `json:"trace,omitempty"`
	Tasks  []catalog.ConnectorTask `json:"tasks"`
}

func runConnectorStatus(ctx context.Context, app *App, opts ConnectorOptions) error {
	d, err := opts.open()
	if err != nil {
		return err
	}
	s, err := d.client.Status(ctx, d.name())
	if err != nil {
		return err
	}
	answer := connectorStatus{Name: s.Name, State: s.State, Reason: s.Reason(), Trace: s.Trace, Tasks: s.Tasks}
	err = printDocument(app, answer, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "%s %s\n", s.Name, connect.Sentence(s)); err != nil {
			return err
		}
		return printTraces(w, s)
	})
	if s.Failed() {
		err = errors.Join(err, reported(catalog.Errorf(catalog.Unavailable, catalog.CodeConnectorFailed, "see docs/runbooks/connector-failed.md", "connector %s has failed: %s", s.Name, s.Reason())))
	}
	return err
}
