package preflight

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
)

// Connector looks at a source's connector as it is deployed. kept says that it will be
// made what the files say before anything is read, so that a difference is only a note.
func Connector(ctx context.Context, client *connect.Client, source *catalog.Source, tables []*catalog.Table, kept bool) []catalog.Finding {
	name := source.Connector.Name
	found := func(severity catalog.Severity, err error) []catalog.Finding {
		e := catalog.Public(err)
		return []catalog.Finding{{Severity: severity, Code: e.Code, Source: source.Name, Message: e.Message, Fix: e.Hint}}
	}
	config, err := client.Config(ctx, name)
	switch {
	case err != nil && catalog.KindOf(err) == catalog.NotFound && kept:
		return []catalog.Finding{{Severity: catalog.Notes, Code: catalog.CodeConnectorNotFound, Source: source.Name, Message: "connector " + name + " does not exist and will be made"}}
	case err != nil:
		return found(catalog.Limits, err) // what the topics hold can be read without it
	}
	out := connectorconfig.Review(source, tables, config)
	if kept {
		for i := range out {
			out[i].Severity, out[i].Fix = catalog.Notes, "nothing: lakeweir run makes the connector what the files say"
		}
	}
	status, err := client.Status(ctx, name)
	if err != nil {
		return append(out, found(catalog.Limits, err)...)
	}
	if !status.Running() {
		out = append(out, catalog.Finding{
			Severity: catalog.Limits, Code: catalog.CodeConnectorFailed, Source: source.Name, Fix: "see docs/runbooks/connector-failed.md",
			Message: "connector " + name + " is " + connect.Sentence(status),
		})
	}
	return out
}
