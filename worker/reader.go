package worker

import (
	"context"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/kafka"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

// newReader makes what reads the source, as its capture says.
func newReader(ctx context.Context, cfg Config, masks *masks, observer *observer) (pipeline.Source, error) {
	notes := tableNotes{registry: cfg.Registry, source: cfg.Source.Name}
	if cfg.Source.Capture == catalog.Debezium {
		skips, err := skipsOf(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return kafka.New(kafka.Config{
			Signals: signalsOf(cfg),
			Source:  cfg.Source, Password: cfg.KafkaPassword, Logger: cfg.Logger, Limits: cfg.Kafka, Notes: notes,
			Describe: describer(cfg), Slot: postgres.NewSlotWatch(postgres.Config{Source: cfg.Source, DSN: cfg.DSN}), Skips: skips, Skipped: recordSkipped(cfg), Suspected: observer.suspected,
		}), nil
	}
	return postgres.New(postgres.Config{
		Source: cfg.Source, DSN: cfg.DSN, Logger: cfg.Logger, Limits: cfg.Reader,
		Notes: slotNotes{registry: cfg.Registry, source: cfg.Source}, TableNotes: notes,
		Partitions: partitions{cfg},
		Seal:       masks.seal,
		Unseal:     masks.unseal, MaskText: masks.maskText,
	}), nil
}

// signalsOf has the connector read rows again; nil where it has no signal table.
func signalsOf(cfg Config) kafka.Signals {
	if cfg.Source.Connector.SignalTable.Name == "" {
		return nil
	}
	return signals{postgres.NewSignals(postgres.Config{Source: cfg.Source, DSN: cfg.DSN})}
}

type signals struct{ *postgres.Signals }

// Read implements kafka.Signals.
func (s signals) Read(ctx context.Context, name string, table catalog.TableName, columns []string, keys [][]string) (kafka.Signalled, error) {
	sent, err := s.Signals.Read(ctx, name, table, columns, keys)
	return kafka.Signalled(sent), err
}

// rereadsRows reports whether rows of the source can be read again by key.
func rereadsRows(source *catalog.Source) bool {
	return source.Capture != catalog.Debezium || source.Connector.SignalTable.Name != ""
}

// describer asks the source's database for what its topics do not tell.
func describer(cfg Config) func(context.Context, []*catalog.Table) (kafka.Description, error) {
	return func(ctx context.Context, tables []*catalog.Table) (kafka.Description, error) {
		d, err := postgres.Describe(ctx, postgres.Config{Source: cfg.Source, DSN: cfg.DSN}, tables)
		if err != nil {
			return kafka.Description{}, err
		}
		out := kafka.Description{Epoch: d.Epoch, Monetary: d.Monetary, Tables: map[string]kafka.TableDescription{}}
		for name, t := range d.Tables {
			out.Tables[name] = kafka.TableDescription{Schema: t.Schema, Generated: t.Generated, FullIdentity: t.FullIdentity, Err: t.Err}
		}
		return out, nil
	}
}

// skipsOf are the records that people have passed by, as the registry keeps them.
func skipsOf(ctx context.Context, cfg Config) (map[kafka.Record]kafka.Skip, error) {
	kept, err := cfg.Registry.Skips(ctx, cfg.Source.Name)
	if err != nil {
		return nil, err
	}
	out := map[kafka.Record]kafka.Skip{}
	for _, s := range kept {
		for _, t := range cfg.Tables {
			if t.Name.String() == s.Table && s.Position.IsZero() {
				out[kafka.Record{Topic: cfg.Source.Connector.Topic(t.Name), Partition: s.Partition, Offset: s.Offset}] = kafka.Skip{By: s.By, Reason: s.Reason}
			}
		}
	}
	return out, nil
}

// recordSkipped tells the registry of a record that was passed by; what cannot be told
// stands in the log.
func recordSkipped(cfg Config) func(string, kafka.Record, kafka.Skip, *catalog.Error) {
	return func(table string, rec kafka.Record, skip kafka.Skip, why *catalog.Error) {
		s := registry.Skip{Table: table, Partition: rec.Partition, Offset: rec.Offset, Reason: skip.Reason, By: skip.By}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) //nolint:forbidigo // outlives the record's reading
			defer cancel()
			if err := cfg.Registry.PassedBy(ctx, cfg.Source.Name, s, registry.Fault{Code: why.Code, Message: why.Error()}); err != nil {
				cfg.Logger.WarnContext(ctx, "a record that was passed by is not told to the registry", "table", cfg.Source.Name+"/"+table, "error", err)
			}
		}()
	}
}
