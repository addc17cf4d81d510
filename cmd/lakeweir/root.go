package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
)

// App is what the commands share: where they read and write, and the log. The
// root command fills it in before any command runs.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer // answers: text, or JSON with -o json
	Stderr io.Writer // the log, and errors in text
	// Env looks an environment variable up, as os.LookupEnv does.
	Env func(string) (string, bool)
	Log *slog.Logger
	// Output is the value of the command's -o flag, "" when it has none.
	Output string
	// started says that flags and arguments were right and the command ran.
	started bool
}

// The groups that help shows commands in.
const (
	groupConfigure = "configure"
	groupRun       = "run"
	groupInspect   = "inspect"
	groupOther     = "other"
)

// command is one entry of the command line and the group that help shows it in.
type command struct {
	group string
	build func(*App) *cobra.Command
}

// commands lists every command. To add one: write cmd_<name>.go beside the others
// and name its constructor here.
func commands() []command {
	return []command{
		{groupConfigure, newValidateCommand},
		{groupConfigure, newConfigCommand},
		{groupConfigure, newPolicyCommand},
		{groupConfigure, newConnectorCommand},
		{groupConfigure, newSourceCommand},
		{groupRun, newDemoCommand},
		{groupRun, newRunCommand},
		{groupRun, newSkipCommand},
		{groupInspect, newStatusCommand},
		{groupInspect, newGetCommand},
		{groupInspect, newDescribeCommand},
		{groupInspect, newScanCommand},
		{groupInspect, newReconcileCommand},
		{groupOther, newVersionCommand},
	}
}

// NewRoot builds the whole command tree. It does no I/O.
func NewRoot(app *App) *cobra.Command {
	var logLevel, logFormat string
	root := &cobra.Command{
		Use:   "lakeweir",
		Short: "Replicate database tables into Apache Iceberg, and prove them equal",
		Long: `Lakeweir replicates tables of Postgres databases into an Apache Iceberg lakehouse:
every change (bronze), what is true now (silver), and what was true when (history).

Start with "lakeweir demo", which needs nothing but this program.

Exit status: 0 done; 1 a bug; 2 your files, flags or arguments; 3 something it
depends on is down; 4 a person must look (source and lake differ, or an owner
must allow it); 130 interrupted.`,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if quiet, ok := cmd.Annotations[quietLog]; ok && !cmd.Flags().Changed("log-level") {
				logLevel = app.env("LAKEWEIR_LOG_LEVEL", quiet)
			}
			log, err := newLogger(app.Stderr, logLevel, logFormat)
			if err != nil {
				return err
			}
			app.Log = log
			app.started = true
			if f := cmd.Flags().Lookup("output"); f != nil {
				app.Output = f.Value.String()
			}
			return nil
		},
	}
	root.SetIn(app.Stdin)
	root.SetOut(app.Stdout)
	root.SetErr(app.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, "%s", err.Error())
	})
	root.PersistentFlags().StringVar(&logLevel, "log-level", app.env("LAKEWEIR_LOG_LEVEL", "info"), "least severe log line to write: debug, info, warn or error")
	root.PersistentFlags().StringVar(&logFormat, "log-format", app.env("LAKEWEIR_LOG_FORMAT", "text"), "form of the log on standard error: text or json")

	root.AddGroup(
		&cobra.Group{ID: groupConfigure, Title: "Configure:"},
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupInspect, Title: "Inspect and prove:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	for _, c := range commands() {
		cmd := c.build(app)
		cmd.GroupID = c.group
		root.AddCommand(cmd)
	}
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	return root
}

// run executes one command line and returns its exit status. SIGINT and SIGTERM
// cancel the command's context; a second one ends the process at once, unless it
// comes with the first: some programs signal a process and then its whole group.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM) //nolint:forbidigo // the process's own context starts here
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second/2, stop) })

	app := &App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Env: env, Log: slog.New(slog.DiscardHandler)}
	root := NewRoot(app)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if _, coded := errors.AsType[*catalog.Error](err); !coded && !app.started {
		err = usageError(cmd, "%s", err.Error())
	}
	report(app, args, err)
	return exitCode(err)
}

// quietLog annotates a command with the log level it has when none is asked for.
const quietLog = "log-level"

// report prints err where its reader looks for it: JSON on standard output, text
// on standard error.
func report(app *App, args []string, err error) {
	if _, done := errors.AsType[*reportedError](err); done {
		return
	}
	if exitCode(err) == exitInternal { // the text of an error without a code is for the log only
		app.Log.Error("command ended with an internal error", slog.Any("error", err))
	} else {
		app.Log.Debug("command ended with an error", slog.Any("error", err))
	}
	if app.Output == "json" || (!app.started && asksForJSON(args)) {
		_ = printJSON(app.Stdout, envelope{Errors: jsonProblems(err)})
		return
	}
	if exitCode(err) == exitInterrupted {
		fmt.Fprintln(app.Stderr, "interrupted")
		return
	}
	printError(app.Stderr, err)
}

// asksForJSON reports whether -o json stands in a command line that could not be
// parsed.
func asksForJSON(args []string) bool {
	for i, a := range args {
		if a == "-ojson" || a == "-o=json" || a == "--output=json" || ((a == "-o" || a == "--output") && i+1 < len(args) && args[i+1] == "json") {
			return true
		}
	}
	return false
}

// outputFlag gives cmd an -o flag; the first of forms is the default. Its value is
// App.Output when the command runs.
func (app *App) outputFlag(cmd *cobra.Command, forms ...string) {
	cmd.Flags().VarP(&choice{value: forms[0], allowed: forms}, "output", "o", "form of the answer: "+strings.Join(forms, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// env returns an environment variable, or fallback when it is unset or empty.
func (app *App) env(name, fallback string) string {
	if v, ok := app.Env(name); ok && v != "" {
		return v
	}
	return fallback
}

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "form" }
func (c *choice) Set(v string) error {
	if !slices.Contains(c.allowed, v) {
		return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = v
	return nil
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, catalog.Invalidf(catalog.CodeUsage, "", "use --log-level debug, info, warn or error", "unknown log level %q", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, catalog.Invalidf(catalog.CodeUsage, "", "use --log-format text or json", "unknown log format %q", format)
	}
}
