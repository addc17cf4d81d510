package main

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/orchestrator/preflight"
	"github.com/lakeweir/lakeweir/worker"
)

// runWithConnector runs the worker of a source with capture debezium, and keeps its
// connector beside it. The connector's trouble never ends the worker: what the topics
// hold is read on. Where somebody else keeps the connector, only what it needs at the
// source is made, if the files say so.
func runWithConnector(ctx context.Context, app *App, cfg worker.Config) error {
	source, tables := cfg.Source, cfg.Tables
	prepare := func(ctx context.Context) error { return prepareSource(ctx, app, source, tables) }
	if source.Connector.URL == "" {
		if err := prepare(ctx); err != nil {
			app.Log.WarnContext(ctx, "what the connector needs at the source could not be made", "source", source.Name, "error", catalog.Public(err).Message, "fix", catalog.Public(err).Hint)
		}
		return worker.Run(ctx, cfg)
	}
	client, err := connectClient(source, source.Connector.URL)
	if err != nil {
		return err
	}
	g, both := errgroup.WithContext(ctx)
	both, stop := context.WithCancel(both)
	defer stop()
	g.Go(func() error {
		return connect.Keep(both, connect.Upkeep{Client: client, Source: source, Tables: tables, Notes: cfg.Registry, Log: app.Log, Prepare: prepare})
	})
	g.Go(func() error {
		defer stop() // a worker that has ended needs no upkeep
		return worker.Run(both, cfg)
	})
	return g.Wait()
}

// checkBetween looks at what lies between the source and its worker: the connector,
// where source.yaml says where it is, and the topics.
func checkBetween(ctx context.Context, source *catalog.Source, tables []*catalog.Table) ([]catalog.Finding, error) {
	want, err := connectorconfig.Render(source, tables)
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(want.Notes, func(f catalog.Finding) bool { return f.Severity == catalog.Notes }) // which are for those who copy it
	if source.Connector.URL != "" {
		client, err := connectClient(source, source.Connector.URL)
		if err != nil {
			return nil, err
		}
		out = append(out, preflight.Connector(ctx, client, source, tables, true)...)
	}
	password, err := resolveKafkaPassword(source)
	if err != nil {
		return nil, err
	}
	client, err := preflight.NewClient(source, password)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return append(out, preflight.Topics(ctx, client, source, tables)...), nil
}
