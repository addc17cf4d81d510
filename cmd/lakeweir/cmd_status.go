package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// StatusOptions say what status shows and how often.
type StatusOptions struct {
	Registry string
	Source   string
	Watch    bool
	Interval time.Duration // default 1 s; only with Watch
}

func newStatusCommand(app *App) *cobra.Command {
	var opts StatusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say in a few lines whether everything is well",
		Long: `Say whether tables are within their freshness tier, which are not and why, and how
much WAL each source holds back.

With --watch it says so again every interval, until it is interrupted; with -o json
each time on one line.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Watch && opts.Interval < 100*time.Millisecond {
				return usageError(cmd, "--interval must be at least 100ms, got %s", opts.Interval)
			}
			return runStatus(cmd.Context(), app, opts)
		},
	}
	app.registryFlag(cmd, &opts.Registry)
	cmd.Flags().StringVar(&opts.Source, "source", "", "only this source")
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "say it again until interrupted")
	cmd.Flags().DurationVar(&opts.Interval, "interval", time.Second, "how often, with --watch")
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

func runStatus(ctx context.Context, app *App, opts StatusOptions) error {
	r, err := openRegistry(ctx, opts.Registry)
	if err != nil {
		return err
	}
	defer r.Close()
	if opts.Watch {
		return watchStatus(ctx, app, r, opts)
	}
	report, err := judge(ctx, r, opts.Source)
	if err != nil {
		return err
	}
	return printDocument(app, statusDocument(report), func(w io.Writer) error { return printStatus(w, report) })
}

// watchStatus ends without an error when it is interrupted: that is how it is meant to
// end. A registry that does not answer is said, and asked again.
func watchStatus(ctx context.Context, app *App, r *registry.Registry, opts StatusOptions) error {
	tick := time.NewTicker(opts.Interval)
	defer tick.Stop()
	wipe := "\n"
	if isTerminal(app.Stdout) {
		wipe = "\x1b[H\x1b[2J\x1b[3J"
	}
	for first := true; ; first = false {
		report, err := judge(ctx, r, opts.Source)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !catalog.KindOf(err).Retryable():
			return err
		case err != nil && app.Output == "json":
			err = json.NewEncoder(app.Stdout).Encode(envelope{Errors: jsonProblems(err)})
		case err != nil:
			printError(app.Stderr, err)
			err = nil
		case app.Output == "json":
			err = json.NewEncoder(app.Stdout).Encode(statusDocument(report))
		case app.Output == "yaml":
			if _, err = fmt.Fprintln(app.Stdout, "---"); err == nil {
				err = printYAML(app.Stdout, statusDocument(report))
			}
		default:
			var b strings.Builder // one write, so that a screen does not flicker
			if wipe != "\n" || !first {
				b.WriteString(wipe)
			}
			if err = printStatus(&b, report); err == nil {
				_, err = io.WriteString(app.Stdout, b.String())
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// statusAnswer is the JSON of status: the fleet and its sources in one document.
type statusAnswer struct {
	monitor.FleetDocument

	Sources []monitor.SourceDocument `json:"sources"`
}

func statusDocument(r *monitor.Report) statusAnswer {
	return statusAnswer{r.Document(), r.SourcesDocument().Sources}
}

// statusLine is the whole in one line.
func statusLine(r *monitor.Report) string {
	s := &r.Summary
	line := fmt.Sprintf("%s  %d of %d tables within their tier, %s changes", r.Now.UTC().Format("15:04:05"), s.Within, s.Tables, human.Rate(s.Rate))
	if s.Worst != nil {
		line += fmt.Sprintf(", oldest for its tier %s of %s (%s)", human.Span(s.Worst.Freshness.Age), s.Worst.Config.Tier, s.Worst.ID())
	}
	switch {
	case s.Tables > 0 && s.Unverified == s.Tables:
		line += ", none verified yet"
	case !s.Verified.IsZero():
		line += ", verified through " + human.Clock(s.Verified, r.Now)
		if s.Unverified > 0 {
			line += fmt.Sprintf(" (%d not yet)", s.Unverified)
		}
	}
	return line
}

func printStatus(w io.Writer, r *monitor.Report) error {
	if _, err := fmt.Fprintln(w, statusLine(r)); err != nil {
		return err
	}
	var rows [][]string
	for i := range r.Sources {
		source := &r.Sources[i]
		wal := "WAL unknown"
		if source.Log != nil {
			wal = fmt.Sprintf("slot %s, holds %s of WAL, budget %s: %s", slotOf(source), human.Bytes(source.WAL.Retained), budgetOf(source), walOf(source))
		}
		rows = append(rows, []string{"source " + source.Name, "worker " + workerOf(source, r.Now), wal})
		if source.Connector != nil {
			rows = append(rows, []string{"", "connector", connectorOf(source, r.Now)})
		}
	}
	if err := printRows(w, rows); err != nil {
		return err
	}
	rows = nil
	for _, h := range monitor.Healths() {
		for i := range r.Tables {
			if t := &r.Tables[i]; t.Health == h && h != monitor.Fresh && h != monitor.Retired {
				rows = append(rows, []string{string(h), t.ID(), ageOf(t) + " of " + string(t.Config.Tier), whyText(t, r.Now)})
			}
		}
	}
	return printRows(w, rows)
}

// connectorOf is how a source's connector is, and what to do where that is not well.
func connectorOf(s *monitor.Source, now time.Time) string {
	c := s.Connector
	out := c.Name + " " + connect.Sentence(&c.ConnectorStatus)
	if age := now.Sub(c.SeenAt); age > monitor.SilentAfter {
		out += ", seen " + human.Ago(c.SeenAt, now)
	}
	if !c.Running() {
		out += ", since " + human.Clock(c.Since, now) + " → see docs/runbooks/connector-failed.md"
	}
	return out
}

// walOf is the level, and where that is not well, who holds the slot and what follows.
func walOf(s *monitor.Source) string {
	out := string(s.WAL.Level)
	if s.WAL.Danger {
		out += "; the server may take the log away at any moment"
	}
	if s.WAL.HeldBy != "" {
		out += "; held by " + s.WAL.HeldBy
	}
	if s.WAL.Then != "" {
		out += "; " + s.WAL.Then
	}
	return out
}

// whyText says why a table is not as it should be, and what to do.
func whyText(t *monitor.Table, now time.Time) string {
	why, hint := t.Note(now)
	switch {
	case t.Fault != nil:
		why, hint = reasonOf(t), t.Fault.Hint
	case t.Progress != nil:
		why = snapshotText(t.Progress)
	}
	if hint != "" {
		why += " → " + hint
	}
	return why
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
