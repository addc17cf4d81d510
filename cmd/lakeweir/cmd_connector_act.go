package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/worker"
)

// action makes a command that tells Kafka Connect one thing about a connector.
func (app *App) action(cmd *cobra.Command, do func(ctx context.Context, c *connect.Client, name string) (said string, err error)) *cobra.Command {
	var opts ConnectorOptions
	cmd.Args = wantArgs("SOURCE")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts.Dir = args[0]
		d, err := opts.open()
		if err != nil {
			return err
		}
		said, err := do(cmd.Context(), d.client, d.name())
		if err != nil {
			return err
		}
		return app.printDone(d.name(), []string{said})
	}
	app.connectorFlags(cmd, &opts)
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

// caution says what the end of a connector's task may cost.
func (app *App) caution(ctx context.Context, name string) {
	app.Log.WarnContext(ctx, "a connector's task that ends may be under way", "connector", name, "caution", connect.Caution)
}

// printDone says what was done.
func (app *App) printDone(name string, steps []string) error {
	return printDocument(app, map[string]any{"name": name, "done": steps}, func(w io.Writer) error {
		for _, s := range steps {
			if _, err := fmt.Fprintln(w, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func newConnectorPauseCommand(app *App) *cobra.Command {
	var stop bool
	cmd := &cobra.Command{
		Use:   "pause SOURCE",
		Short: "Let a connector pause",
		Long: `Let the connector of a source pause: it captures nothing, and its slot retains the
source's log meanwhile. With --stop its task ends, so that it holds no connection either;
do that while nothing loads the source.
lakeweir connector resume ends both.`,
	}
	app.action(cmd, func(ctx context.Context, c *connect.Client, name string) (string, error) {
		if stop {
			app.caution(ctx, name)
			return "stopped connector " + name, c.Stop(ctx, name)
		}
		return "paused connector " + name, c.Pause(ctx, name)
	})
	cmd.Flags().BoolVar(&stop, "stop", false, "end its task")
	return cmd
}

func newConnectorResumeCommand(app *App) *cobra.Command {
	return app.action(&cobra.Command{
		Use:   "resume SOURCE",
		Short: "Let a paused or stopped connector go on",
		Long:  "Let a paused or stopped connector go on from where it was.",
	}, func(ctx context.Context, c *connect.Client, name string) (string, error) {
		return "resumed connector " + name, c.Resume(ctx, name)
	})
}

func newConnectorRestartCommand(app *App) *cobra.Command {
	return app.action(&cobra.Command{
		Use:   "restart SOURCE",
		Short: "Restart what of a connector has failed",
		Long: `Restart what of the connector has failed, itself or its task, and nothing that runs: a
restart reads again from the last offset. Events that are sent again change nothing in the
lake. What Debezium may have lost where the task ended, in the midst of a COPY or of key
moves, lakeweir describe table shows.`,
	}, func(ctx context.Context, c *connect.Client, name string) (string, error) {
		s, err := c.Status(ctx, name)
		if err != nil {
			return "", err
		}
		if !s.Failed() {
			return "connector " + name + " has not failed: " + connect.Sentence(s), nil
		}
		app.caution(ctx, name)
		return "restarted what of connector " + name + " had failed: " + connect.Sentence(s), c.RestartFailed(ctx, name)
	})
}

// ConnectorResetOptions are what connector reset needs.
type ConnectorResetOptions struct {
	ConnectorOptions

	DropSlot bool
	Yes      bool
}

func newConnectorResetCommand(app *App) *cobra.Command {
	var opts ConnectorResetOptions
	cmd := &cobra.Command{
		Use:   "reset SOURCE",
		Short: "Delete a connector and its offsets, so that the next one starts anew",
		Long: `Stop the connector of a source, delete its offsets, then the connector. (One that is
only deleted goes on from its old offsets when it is made again.) The next
lakeweir connector apply, or start of lakeweir run, makes a connector that reads every
table from the beginning, which the lake takes as a new generation.

The slot stays, and retains the source's log until a connector reads it again, unless
--drop-slot says otherwise. Topics stay in any case. End lakeweir run first.`,
		Args: wantArgs("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			if !opts.Yes {
				return catalog.Invalidf(catalog.CodeUsage, "", "say --yes if that is meant", "reset makes the next connector of %s read every table from the beginning", args[0])
			}
			return runConnectorReset(cmd.Context(), app, opts)
		},
	}
	app.connectorFlags(cmd, &opts.ConnectorOptions)
	cmd.Flags().BoolVar(&opts.DropSlot, "drop-slot", false, "also drop the replication slot at the source")
	cmd.Flags().BoolVar(&opts.Yes, "yes", false, "do it")
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

func runConnectorReset(ctx context.Context, app *App, opts ConnectorResetOptions) error {
	d, err := opts.open()
	if err != nil {
		return err
	}
	var dsn catalog.Secret
	if opts.DropSlot { // before anything is done
		if dsn, err = resolveConnection(d.source.File+": connection", string(d.source.Connection)); err != nil {
			return err
		}
	}
	steps := []string{}
	if err := d.client.Reset(ctx, d.name(), func(step string) { steps = append(steps, step) }); err != nil {
		return err
	}
	if opts.DropSlot {
		if err := worker.DropSlot(ctx, d.source, dsn); err != nil {
			return err
		}
		steps = append(steps, "dropped slot "+d.source.Slot)
	}
	return app.printDone(d.name(), steps)
}
