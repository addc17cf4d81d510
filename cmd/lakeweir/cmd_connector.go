package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
)

func newConnectorCommand(app *App) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "connector",
		Short: "Keep the Debezium connector of a source",
		Long: `Keep the Debezium connector of a source with capture: debezium. SOURCE is the folder
of the source, such as tableconfigs/shop.

lakeweir run does what apply does when it starts, and restarts what fails; these
commands are for those who deploy connectors themselves, and for the one on call.`,
	}, newConnectorRenderCommand(app), newConnectorApplyCommand(app), newConnectorStatusCommand(app),
		newConnectorPauseCommand(app), newConnectorResumeCommand(app), newConnectorRestartCommand(app), newConnectorResetCommand(app))
}

// ConnectorOptions say which connector is meant, and where it is.
type ConnectorOptions struct {
	Dir string // the folder of one source
	URL string // of Kafka Connect, instead of the one in source.yaml
}

// connectorFlags gives cmd what every command that speaks to Kafka Connect has.
func (app *App) connectorFlags(cmd *cobra.Command, opts *ConnectorOptions) {
	cmd.Flags().StringVar(&opts.URL, "connect-url", "", "Kafka Connect's REST interface; default: connector.connect_url of source.yaml")
}

// deployed is a connector, its files and the Kafka Connect that it is on.
type deployed struct {
	source *catalog.Source
	tables []*catalog.Table
	client *connect.Client
}

// open reads the files and makes a client; it sends nothing.
func (opts ConnectorOptions) open() (*deployed, error) {
	source, tables, err := loadDebezium(opts.Dir)
	if err != nil {
		return nil, err
	}
	at := source.Connector.URL
	if opts.URL != "" {
		at = opts.URL
	}
	client, err := connectClient(source, at)
	if err != nil {
		return nil, err
	}
	return &deployed{source, tables, client}, nil
}

func (d *deployed) name() string { return d.source.Connector.Name }

// connectClient makes a client for a URL that may hold references.
func connectClient(source *catalog.Source, at string) (*connect.Client, error) {
	if at == "" {
		return nil, catalog.Invalidf(catalog.CodeConnectorUnmanaged, source.File, "set connector.connect_url, or give --connect-url; lakeweir connector render prints what to deploy yourself", "source %s names no Kafka Connect", source.Name)
	}
	url, err := resolveSecret(source.File+": connector.connect_url", at)
	if err != nil {
		return nil, err
	}
	return connect.NewClient(url, connect.Limits{})
}

// loadDebezium reads the folder of one source that has a connector.
func loadDebezium(dir string) (*catalog.Source, []*catalog.Table, error) {
	source, tables, err := loadSource(dir)
	if err != nil {
		return nil, nil, err
	}
	if source.Capture != catalog.Debezium {
		return nil, nil, catalog.Invalidf(catalog.CodeConnectorUnmanaged, source.File, "set capture: debezium, or leave the source as it is: it needs no connector", "source %s has capture %s, and no connector", source.Name, source.Capture)
	}
	return source, tables, nil
}

func newConnectorRenderCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "render SOURCE",
		Short: "Print the configuration of a connector, for those who deploy it themselves",
		Long: `Print what the connector of a source is told, from source.yaml and the tables' files,
without any network. The JSON can be posted to Kafka Connect as it is; secrets in it are
references, which a config provider of Connect may resolve. -o text says why each
property is set.`,
		Example: "  lakeweir connector render tableconfigs/shop > shop-connector.json",
		Args:    wantArgs("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConnectorRender(cmd.Context(), app, args[0])
		},
	}
	app.outputFlag(cmd, "json", "yaml", "text")
	return cmd
}

func runConnectorRender(_ context.Context, app *App, dir string) error {
	source, tables, err := loadDebezium(dir)
	if err != nil {
		return err
	}
	c, err := connectorconfig.Render(source, tables)
	if err != nil {
		return err
	}
	for _, f := range c.Notes {
		fmt.Fprintf(app.Stderr, "%s %s   %s\n    %s\n    → %s\n", severityMarks[f.Severity], f.Code, f.Source, indent(f.Message), indent(f.Fix))
	}
	switch app.Output {
	case "json":
		_, err = app.Stdout.Write(c.JSON())
	case "yaml":
		err = printYAML(app.Stdout, map[string]any{"name": c.Name, "config": c.Properties})
	default:
		err = printRendered(app.Stdout, c)
	}
	return err
}

// printRendered writes each property with its reason.
func printRendered(w io.Writer, c *connectorconfig.Config) error {
	reasons := map[string]string{}
	for _, s := range connectorconfig.Settings() {
		reasons[s.Name] = s.Reason
	}
	if _, err := fmt.Fprintf(w, "connector %s\n", c.Name); err != nil {
		return err
	}
	for _, name := range c.Names() {
		reason := reasons[name]
		if reason == "" {
			reason = "From connector.properties."
		}
		if _, err := fmt.Fprintf(w, "\n%s = %s\n%s", name, connectorconfig.Show(name, c.Properties[name]), wrap(reason, 90, "    ")); err != nil {
			return err
		}
	}
	return nil
}
