package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
)

func newConfigCommand(app *App) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "config",
		Short: "Describe the format of table configurations",
	}, newConfigSchemaCommand(app), newConfigExplainCommand(app))
}

func newConfigSchemaCommand(app *App) *cobra.Command {
	formats := []string{string(tableconfig.TableFormat), string(tableconfig.SourceFormat)}
	return &cobra.Command{
		Use:   "schema [table|source]",
		Short: "Print the JSON Schema of a configuration file",
		Long: `Print the JSON Schema of a table's file (the default) or of source.yaml, so that
an editor completes and checks them while they are written.`,
		Example:   "  lakeweir config schema table > .vscode/lakeweir-table.schema.json",
		Args:      wantArgs("[table|source]"),
		ValidArgs: formats,
		RunE: func(_ *cobra.Command, args []string) error {
			format := formats[0]
			if len(args) == 1 {
				format = args[0]
			}
			return runConfigSchema(app.Stdout, format)
		},
	}
}

func runConfigSchema(w io.Writer, format string) error {
	for _, known := range tableconfig.Formats() {
		if string(known) != format {
			continue
		}
		schema, err := tableconfig.Schema(known)
		if err != nil {
			return err
		}
		_, err = w.Write(schema)
		return err
	}
	return catalog.Invalidf(catalog.CodeUsage, "", "use table or source", "no configuration file is called %q", format)
}

// ExplainOptions are what config explain looks up.
type ExplainOptions struct {
	Field string // a path such as heartbeat.interval; empty for a list of all
}

func newConfigExplainCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [FIELD]",
		Short: "Say what a key of a configuration means",
		Long: `Say what a key of source.yaml or of a table's file means, what it may be and what
it is when left out. Without FIELD, list all keys.`,
		Example: "  lakeweir config explain freshness_tier\n  lakeweir config explain heartbeat.interval",
		Args:    wantArgs("[FIELD]"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var paths []string
			for _, f := range tableconfig.Formats() {
				fields, _ := tableconfig.Fields(f)
				for _, field := range fields {
					paths = append(paths, field.Path)
				}
			}
			return paths, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConfigExplain(cmd.Context(), app, ExplainOptions{Field: strings.Join(args, "")})
		},
	}
	app.outputFlag(cmd, "text", "json")
	return cmd
}

func runConfigExplain(_ context.Context, app *App, opts ExplainOptions) error {
	if opts.Field == "" {
		return listFields(app)
	}
	fields, meant, err := tableconfig.Explain(opts.Field)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		hint := `"lakeweir config explain" lists all fields`
		if meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		return &catalog.Error{Kind: catalog.NotFound, Code: catalog.CodeUsage, Message: fmt.Sprintf("no configuration has a field %q", opts.Field), Hint: hint}
	}
	if app.Output == "json" {
		return printJSON(app.Stdout, fields)
	}
	for i, f := range fields {
		if i > 0 {
			fmt.Fprintln(app.Stdout)
		}
		printField(app.Stdout, f)
	}
	return nil
}

// printField writes one field for a person:
//
//	freshness_tier   in a table's file
//	  text: realtime, 1min, 5min, 15min, 1h or 1d
//	  default: …
//
//	  How fresh …
func printField(w io.Writer, f tableconfig.Field) {
	fmt.Fprintf(w, "%s   in %s\n", f.Path, fileOf(f.Format))
	kind := f.Type
	if len(f.Values) > 0 {
		kind += ": " + strings.Join(f.Values, ", ")
	}
	fmt.Fprintf(w, "  %s\n", kind)
	switch {
	case f.Required:
		fmt.Fprintln(w, "  required")
	case f.Default != "":
		fmt.Fprintf(w, "  default: %s\n", f.Default)
	}
	if f.Example != "" {
		fmt.Fprintf(w, "  example: %s: %s\n", f.Path[strings.LastIndexByte(f.Path, '.')+1:], f.Example)
	}
	fmt.Fprintf(w, "\n%s", wrap(f.Description, 78, "  "))
}

func listFields(app *App) error {
	var all []tableconfig.Field
	for _, format := range tableconfig.Formats() {
		fields, err := tableconfig.Fields(format)
		if err != nil {
			return err
		}
		all = append(all, fields...)
		if app.Output == "json" {
			continue
		}
		fmt.Fprintf(app.Stdout, "%s:\n", fileOf(format))
		for _, f := range fields {
			indent := strings.Repeat("  ", strings.Count(f.Path, "."))
			name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
			first, _, _ := strings.Cut(f.Description, ". ")
			if f.Unavailable != "" {
				first = "(not available yet) " + first
			}
			fmt.Fprintf(app.Stdout, "  %-30s %s\n", indent+name, strings.TrimSuffix(first, "."))
		}
		fmt.Fprintln(app.Stdout)
	}
	if app.Output == "json" {
		return printJSON(app.Stdout, all)
	}
	_, err := fmt.Fprintln(app.Stdout, `"lakeweir config explain FIELD" says more, such as FIELD heartbeat.interval.`)
	return err
}

func fileOf(f tableconfig.Format) string {
	if f == tableconfig.SourceFormat {
		return "source.yaml"
	}
	return "a table's file"
}

// wrap breaks text into lines of at most width characters after an indent.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > width && line != indent {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}
