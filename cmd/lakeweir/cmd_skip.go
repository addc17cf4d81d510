package main

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// SkipOptions say which record is passed by, and why.
type SkipOptions struct {
	Registry  string
	Table     string
	Partition int32
	Offset    int64
	Reason    string
	By        string
}

func newSkipCommand(app *App) *cobra.Command {
	var opts SkipOptions
	cmd := &cobra.Command{
		Use:   "skip TABLE",
		Short: "Pass by one record of a table's topic that cannot be read",
		Long: `Have the worker pass by one record of a table's topic that it cannot read: the table
has stopped there, and lakeweir describe table says at which partition and offset.

What the record said is not in the lake, then: compare the table afterwards (lakeweir
reconcile), and have the connector read its rows again where they differ. A record that
can be read is never passed by. The worker looks when it starts. Who asked for it, when
and why stands in the table's life, and so does the record's passing.`,
		Example: `  lakeweir skip public.orders --partition 0 --offset 4711 --reason "broken by hand, ticket 88"`,
		Args:    wantArgs("TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Table = args[0]
			return runSkip(cmd.Context(), app, opts)
		},
	}
	app.registryFlag(cmd, &opts.Registry)
	cmd.Flags().Int32Var(&opts.Partition, "partition", 0, "the record's partition")
	cmd.Flags().Int64Var(&opts.Offset, "offset", -1, "the record's offset")
	cmd.Flags().StringVar(&opts.Reason, "reason", "", "why, for those who ask later")
	cmd.Flags().StringVar(&opts.By, "by", "", "who asks for it (default: who runs the command)")
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func runSkip(ctx context.Context, app *App, opts SkipOptions) error {
	switch {
	case opts.Offset < 0:
		return catalog.Invalidf(catalog.CodeUsage, "--offset", "lakeweir describe table names it", "which record is to be passed by is not said")
	case opts.Partition < 0:
		return catalog.Invalidf(catalog.CodeUsage, "--partition", "lakeweir describe table names it", "there is no partition %d", opts.Partition)
	case strings.TrimSpace(opts.Reason) == "":
		return catalog.Invalidf(catalog.CodeUsage, "--reason", "say in a few words why what the record holds may be left out", "a record is not passed by without a reason")
	}
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
	for _, s := range fleet.Sources {
		if s.Name == t.Source && s.Capture != catalog.Debezium {
			return catalog.Invalidf(catalog.CodeUsage, t.ID(), "see lakeweir describe table "+t.ID(), "source %s is not read from topics", s.Name)
		}
	}
	skip := registry.Skip{Table: t.Name.String(), Partition: opts.Partition, Offset: opts.Offset, Reason: opts.Reason, By: cmp.Or(opts.By, whoami())}
	if err := r.AddSkip(ctx, t.Source, skip); err != nil {
		return err
	}
	if app.Output == "json" {
		return printJSON(app.Stdout, map[string]any{"table": t.ID(), "partition": skip.Partition, "offset": skip.Offset, "reason": skip.Reason, "by": skip.By})
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: offset %d of partition %d is passed by when the worker starts next, if it cannot be read\n", t.ID(), skip.Offset, skip.Partition)
	return err
}

// whoami names who runs the command.
func whoami() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "unknown"
	}
	return u.Username
}
