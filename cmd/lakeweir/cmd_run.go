package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/kafka"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

// RunOptions are what run needs.
type RunOptions struct {
	Dir      string // the folder of one source
	Registry string
	Lake     LakeFlags
	Memory   string
	Batch    int  // changes of a table in a commit; 0: as Memory allows
	Check    bool // only look for what would stand in the way
}

func newRunCommand(app *App) *cobra.Command {
	var opts RunOptions
	cmd := &cobra.Command{
		Use:   "run DIR",
		Short: "Replicate one source from its configuration files",
		Long: `Replicate the tables of one source, from the files in DIR, until interrupted.

It reads the rows that are there in chunks, follows every change, and keeps bronze,
current and history in the lake. A table that cannot go on stops alone, with a
reason; the others are not touched. Interrupted, it saves what it has read; killed,
it goes on exactly where it was.

With --check it only tells what would stand in the way, and what to do about it.`,
		Example: `  lakeweir run tableconfigs/shop --registry postgres://lakeweir@db/lakeweir \
      --catalog sqlite:///var/lib/lakeweir/catalog.db --warehouse file:///var/lib/lakeweir/lake`,
		Args: wantArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			err := runRun(cmd.Context(), app, opts)
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) && !opts.Check {
				return nil // being interrupted is how it ends
			}
			return err
		},
	}
	app.registryFlag(cmd, &opts.Registry)
	app.lakeFlags(cmd, &opts.Lake)
	cmd.Flags().StringVar(&opts.Memory, "memory", app.env("LAKEWEIR_MEMORY", "512MiB"), "about how much memory to take, besides a large key index; at least 256MiB (or LAKEWEIR_MEMORY)")
	cmd.Flags().IntVar(&opts.Batch, "batch-rows", 0, "how many changes of a table are saved before their time, and about the most that one commit takes; 0: what --memory allows, at most 250000")
	cmd.Flags().BoolVar(&opts.Check, "check", false, "only check the source, and run nothing")
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func runRun(ctx context.Context, app *App, opts RunOptions) error {
	source, tables, err := loadSource(opts.Dir)
	if err != nil {
		return err
	}
	dsn, err := resolveConnection(source.File+": connection", string(source.Connection))
	if err != nil {
		return err
	}
	if opts.Check {
		return runCheck(ctx, app, source, tables, dsn)
	}
	memory, err := parseMemory(opts.Memory)
	if err != nil {
		return err
	}
	if opts.Batch < 0 {
		return catalog.Invalidf(catalog.CodeUsage, "--batch-rows", "write a number of changes such as 50000, or 0", "%d is not a number of changes", opts.Batch)
	}
	tokenKey, err := resolveSecret(source.File+": token_key", string(source.TokenKey))
	if err != nil {
		return err
	}
	kafkaPassword, err := resolveKafkaPassword(source)
	if err != nil {
		return err
	}
	lakeConfig, err := opts.Lake.config(app)
	if err != nil {
		return err
	}
	registryDSN, err := resolveRegistry(opts.Registry)
	if err != nil {
		return err
	}
	reg, err := registry.Open(ctx, registryDSN)
	if err != nil {
		return err
	}
	defer reg.Close()
	if err := syncConfig(ctx, reg, source, tables); err != nil {
		return err
	}
	app.Log.InfoContext(ctx, "running", "source", source.Name, "tables", len(tables))
	run := worker.Config{
		Source: source, Tables: tables, DSN: dsn, TokenKey: tokenKey, KafkaPassword: kafkaPassword, Lake: lakeConfig,
		Registry: reg, Version: readBuildVersion().Version, Logger: app.Log,
		Memory: memory, OwnProcess: app.env("GOMEMLIMIT", "") == "",
	}
	if slice := min(opts.Batch, mostSlice); slice > 0 { // a batch is made of whole slices
		run.Limits, run.Reader, run.Kafka = pipeline.Limits{BatchRows: opts.Batch}, postgres.Limits{SliceRows: slice}, kafka.Limits{BatchRows: slice}
	}
	if source.Capture == catalog.Debezium {
		return runWithConnector(ctx, app, run)
	}
	return worker.Run(ctx, run)
}

// mostSlice is how many changes are read at once at most.
const mostSlice = 50_000

// resolveKafkaPassword returns the secret of kafka.sasl; empty where there is none.
func resolveKafkaPassword(source *catalog.Source) (catalog.Secret, error) {
	if source.Kafka == nil || source.Kafka.SASL == nil {
		return "", nil
	}
	return resolveSecret(source.File+": kafka.sasl.password", string(source.Kafka.SASL.Password))
}

// parseMemory reads an amount of memory such as 512MiB or 2GiB.
func parseMemory(text string) (int64, error) {
	number, unit := strings.TrimSuffix(text, "MiB"), int64(1<<20)
	if number == text {
		number, unit = strings.TrimSuffix(text, "GiB"), 1<<30
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
	if err != nil || number == text || n*unit < worker.LeastMemory {
		return 0, catalog.Invalidf(catalog.CodeUsage, "--memory", "write 256MiB or more, such as 512MiB or 2GiB", "%q is not an amount of memory that a worker can do with", text)
	}
	return n * unit, nil
}

// loadSource reads the folder of one source.
func loadSource(dir string) (*catalog.Source, []*catalog.Table, error) {
	config, problems := tableconfig.LoadDir(dir)
	if err := problems.Err(); err != nil {
		return nil, nil, err
	}
	if len(config.Sources) != 1 {
		return nil, nil, catalog.Invalidf(catalog.CodeUsage, dir, "name the folder of one source, which holds its source.yaml", "%d sources where one is wanted", len(config.Sources))
	}
	return config.Sources[0], config.Tables, nil
}

func syncConfig(ctx context.Context, reg *registry.Registry, source *catalog.Source, tables []*catalog.Table) error {
	values := make([]catalog.Table, 0, len(tables))
	for _, t := range tables {
		values = append(values, *t)
	}
	return reg.SyncConfig(ctx, []catalog.Source{*source}, values)
}

// runCheck prints what stands in the way of a source, all at once.
func runCheck(ctx context.Context, app *App, source *catalog.Source, tables []*catalog.Table, dsn catalog.Secret) error {
	findings, err := worker.Preflight(ctx, source, tables, dsn)
	if err != nil {
		return err
	}
	if source.Capture == catalog.Debezium {
		between, err := checkBetween(ctx, source, tables)
		if err != nil {
			return err
		}
		findings = append(findings, between...)
	}
	blocking := 0
	for _, f := range findings {
		if f.Severity == catalog.Blocks {
			blocking++
		}
	}
	if app.Output == "json" {
		if err := printJSON(app.Stdout, map[string]any{"ok": blocking == 0, "findings": findings}); err != nil {
			return err
		}
	} else {
		printFindings(app, source, tables, findings)
	}
	if blocking > 0 {
		return reported(catalog.Errorf(catalog.Denied, findings[slices.IndexFunc(findings, func(f catalog.Finding) bool { return f.Severity == catalog.Blocks })].Code, "mend what the findings say", "%s of source %s prevent capture", count(blocking, "finding"), source.Name))
	}
	return nil
}

var severityMarks = map[catalog.Severity]string{catalog.Blocks: "✗", catalog.Limits: "!", catalog.Notes: "·"}

func printFindings(app *App, source *catalog.Source, tables []*catalog.Table, findings []catalog.Finding) {
	for _, f := range findings {
		where := f.Source
		if f.Table != "" {
			where += "/" + f.Table
		}
		fmt.Fprintf(app.Stdout, "%s %s   %s\n    %s\n", severityMarks[f.Severity], f.Code, where, indent(f.Message))
		if f.Fix != "" {
			fmt.Fprintf(app.Stdout, "    → %s\n", indent(f.Fix))
		}
	}
	fmt.Fprintf(app.Stdout, "%s of source %s: %s\n", count(len(tables), "table"), source.Name, count(len(findings), "finding"))
}
