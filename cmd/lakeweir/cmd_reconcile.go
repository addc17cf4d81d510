package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// ReconcileOptions are what reconcile compares, and how.
type ReconcileOptions struct {
	Tables   []string // empty: all
	Config   string   // a folder of sources or of one source
	Registry string   // may be empty
	Lake     LakeFlags
	Wait     time.Duration
	Rounds   int
	Details  int
	Parallel int
	Quick    bool
	Repair   bool
}

func newReconcileCommand(app *App) *cobra.Command {
	var opts ReconcileOptions
	cmd := &cobra.Command{
		Use:   "reconcile [TABLE…]",
		Short: "Prove that the lake shows what the source holds",
		Long: `Compare tables row by row, every column, at one moment of the source, while writes go
on; without a name, all tables.

The source is read in one transaction, as the text the server prints; the lake is read
once it has come as far. Keys that were changed meanwhile are left out and looked at
again, for some rounds; what still changed in each is "unsettled". Values that have no
place in the lake's type are NULL there and counted as "unfit". Columns that are
tokenized or redacted are compared as they are masked, and never shown in clear.

Then the layers are held against each other: no event stands twice in bronze, the
intervals of history are right, and bronze folded anew gives current and history.

With --repair, the worker of the source reads the rows again that differ, just those and
at most 10,000 a table: rows that are missing or changed come again, rows that only the
lake has go, and what was written meanwhile stays. What current and history show of a key
against what bronze tells is made anew from bronze. When the lake has all that, the table
is compared once more, and that counts. The source must be running, and --registry is
needed.

The exit status is 0 when all is equal in the end and 4 when something differs.`,
		Example: `  lakeweir reconcile
  lakeweir reconcile public.orders shop/public.payments -o json
  lakeweir reconcile --quick
  lakeweir reconcile public.orders --repair`,
		Args: wantArgs("[TABLE…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Tables = args
			return runReconcile(cmd.Context(), app, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Config, "config", app.env("LAKEWEIR_CONFIG", "tableconfigs"), "folder of sources, or of one source (or LAKEWEIR_CONFIG)")
	app.registryFlag(cmd, &opts.Registry)
	app.lakeFlags(cmd, &opts.Lake)
	cmd.Flags().DurationVar(&opts.Wait, "wait", 2*time.Minute, "how long a table may take to come up with the source, in each round")
	cmd.Flags().IntVar(&opts.Rounds, "rounds", 5, "how often keys that changed meanwhile are looked at")
	cmd.Flags().IntVar(&opts.Details, "details", 20, "how many differing keys of a table are shown with their values")
	cmd.Flags().IntVar(&opts.Parallel, "parallel", 8, "how many tables are compared at once")
	cmd.Flags().BoolVar(&opts.Quick, "quick", false, "compare with the source only, not the layers with each other")
	cmd.Flags().BoolVar(&opts.Repair, "repair", false, "have what is wrong read again and made anew from bronze, then compare once more")
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func runReconcile(ctx context.Context, app *App, opts ReconcileOptions) error {
	for flag, n := range map[string]int{"--rounds": opts.Rounds, "--details": opts.Details, "--parallel": opts.Parallel} {
		if n < 1 {
			return catalog.Invalidf(catalog.CodeUsage, flag, "give 1 or more", "%d is too few", n)
		}
	}
	if opts.Repair && opts.Registry == "" {
		return catalog.Invalidf(catalog.CodeUsage, "--repair", "give --registry or set LAKEWEIR_REGISTRY", "the worker is asked through the registry, and none is given")
	}
	config, problems := tableconfig.LoadDir(opts.Config)
	if err := problems.Err(); err != nil {
		return err
	}
	tables, err := pickTables(config, opts.Tables)
	if err != nil {
		return err
	}
	lakeConfig, err := opts.Lake.config(app)
	if err != nil {
		return err
	}
	var reg *registry.Registry
	if opts.Registry != "" {
		if reg, err = openRegistry(ctx, opts.Registry); err != nil {
			return err
		}
		defer reg.Close()
	}
	var all []worker.Comparison
	for _, source := range config.Sources {
		cfg := worker.CompareConfig{
			Source: source, Lake: lakeConfig, Registry: reg, Parallel: opts.Parallel, Logger: app.Log, Repair: opts.Repair,
			Options: reconcile.Config{Wait: opts.Wait, Rounds: opts.Rounds, Details: opts.Details, Quick: opts.Quick},
		}
		for _, t := range tables {
			if t.Source == source.Name {
				cfg.Tables = append(cfg.Tables, t)
			}
		}
		if len(cfg.Tables) == 0 {
			continue
		}
		if cfg.DSN, err = resolveConnection(source.File+": connection", string(source.Connection)); err != nil {
			return err
		}
		if cfg.TokenKey, err = resolveSecret(source.File+": token_key", string(source.TokenKey)); err != nil {
			return err
		}
		some, err := worker.Compare(ctx, cfg)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return printComparisons(app, all)
}

// pickTables returns the named tables, in order of the configuration; all when none
// is named.
func pickTables(config *tableconfig.Config, names []string) ([]*catalog.Table, error) {
	if len(names) == 0 {
		return config.Tables, nil
	}
	wanted := map[*catalog.Table]bool{}
	for _, name := range names {
		var found []*catalog.Table
		for _, t := range config.Tables {
			if name == t.ID() || name == t.Name.String() || name == t.Name.Name {
				found = append(found, t)
			}
		}
		switch len(found) {
		case 0:
			var have []catalog.TableName
			var list []string
			for _, t := range config.Tables {
				have = append(have, t.Name)
				list = append(list, t.Name.String())
			}
			return nil, catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, meant(name, have, "there are "+strings.Join(list, ", ")), "no table %q is configured", name)
		case 1:
			wanted[found[0]] = true
		default:
			return nil, catalog.Invalidf(catalog.CodeUsage, "", "write it as "+found[0].ID()+" or "+found[1].ID(), "%q names %d tables", name, len(found))
		}
	}
	return slices.DeleteFunc(slices.Clone(config.Tables), func(t *catalog.Table) bool { return !wanted[t] }), nil
}

// reconcileAnswer is the JSON form of the answer.
type reconcileAnswer struct {
	OK     bool                `json:"ok"`
	Tables []*reconcile.Result `json:"tables"`
	Errors []jsonProblem       `json:"errors"` // of the tables that could not be compared
}

func printComparisons(app *App, all []worker.Comparison) error {
	answer := reconcileAnswer{Tables: []*reconcile.Result{}}
	var failed []error
	unequal := 0
	for _, c := range all {
		if c.Err != nil {
			e := *catalog.Public(c.Err)
			if e.At == "" {
				e.At = c.Table.ID()
			}
			failed = append(failed, &e)
		}
		if c.Result == nil {
			continue
		}
		answer.Tables = append(answer.Tables, c.Result)
		if !c.Result.Equal() {
			unequal++
		}
	}
	answer.OK = unequal == 0 && len(failed) == 0
	answer.Errors = jsonProblems(errors.Join(failed...))
	if app.Output == "json" {
		if err := printJSON(app.Stdout, answer); err != nil {
			return err
		}
	} else {
		for _, r := range answer.Tables {
			fmt.Fprint(app.Stdout, r.Text())
		}
		if len(failed) > 0 {
			printError(app.Stderr, errors.Join(failed...))
		}
	}
	switch {
	case unequal > 0:
		return reported(catalog.Errorf(catalog.Denied, catalog.CodeUnequal, "", "source and lake differ in %s", count(unequal, "table")))
	case len(failed) > 0:
		return reported(failed[0])
	}
	return nil
}
