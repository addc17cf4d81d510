package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker"
)

func newSourceCommand(app *App) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "source",
		Short: "Prepare a source database",
		Long:  "Prepare a source database. SOURCE is the folder of the source, such as tableconfigs/shop.",
	}, newSourcePrepareCommand(app))
}

// SourcePrepareOptions are what source prepare needs.
type SourcePrepareOptions struct {
	Dir    string
	Print  bool
	Remove bool
}

func newSourcePrepareCommand(app *App) *cobra.Command {
	var opts SourcePrepareOptions
	cmd := &cobra.Command{
		Use:   "prepare SOURCE",
		Short: "Have a source log its schema changes",
		Long: `Install the DDL log in the database of a source with capture: direct: event triggers
that write the definition of each altered, published table into the WAL, in the
transaction that altered it. With it a schema change is seen at its own place in the
log, with what rows do not show: defaults, NOT NULL, enum labels, keys, renames. Without
it most is seen with the table's next row, and some later; see docs/schema-changes.md.

It takes a superuser, or a role that may make event triggers (Amazon RDS: rds_superuser).
Where the role of the connection may not, --print prints the SQL for somebody who may;
it may be run again, which brings an older log up to date. With --remove the log is
removed; sources in one database share it.`,
		Example: "  lakeweir source prepare tableconfigs/shop\n  lakeweir source prepare tableconfigs/shop --print | psql -d shop",
		Args:    wantArgs("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Dir = args[0]
			return runSourcePrepare(cmd.Context(), app, opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Print, "print", false, "only print the SQL; connect to nothing")
	cmd.Flags().BoolVar(&opts.Remove, "remove", false, "remove the log instead")
	app.outputFlag(cmd, "text", "json", "yaml")
	return cmd
}

// sourcePrepareAnswer is the JSON of source prepare.
type sourcePrepareAnswer struct {
	Source string `json:"source"`
	Done   string `json:"done"`          // installed, removed, or printed
	SQL    string `json:"sql,omitempty"` // when printed
}

func runSourcePrepare(ctx context.Context, app *App, opts SourcePrepareOptions) error {
	source, _, err := loadSource(opts.Dir)
	if err != nil {
		return err
	}
	if source.Capture != catalog.Direct {
		return catalog.Invalidf(catalog.CodeUsage, source.File, "a connector's source needs none: what its topics say of their schemas is used instead",
			"source %s has capture %s, which reads no DDL log", source.Name, source.Capture)
	}
	sql, do, done := worker.DDLLogSQL(), worker.PrepareDDLLog, "installed"
	if opts.Remove {
		sql, do, done = worker.DDLLogRemovalSQL(), worker.RemoveDDLLog, "removed"
	}
	if opts.Print {
		return printDocument(app, sourcePrepareAnswer{Source: source.Name, Done: "printed", SQL: sql}, func(w io.Writer) error {
			_, err := io.WriteString(w, sql)
			return err
		})
	}
	dsn, err := resolveConnection(source.File+": connection", string(source.Connection))
	if err != nil {
		return err
	}
	if err := do(ctx, source, dsn); err != nil {
		return err
	}
	return printDocument(app, sourcePrepareAnswer{Source: source.Name, Done: done}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "the DDL log of source %s is %s\n", source.Name, done)
		return err
	})
}
