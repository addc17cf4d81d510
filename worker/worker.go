package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/kafka"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/postgres"
)

// Config is what a worker needs to run one source.
type Config struct {
	Source *catalog.Source
	Tables []*catalog.Table
	// DSN and TokenKey are the source's references, resolved. TokenKey may be empty
	// when no column is tokenized.
	DSN      catalog.Secret
	TokenKey catalog.Secret
	// KafkaPassword is that of the source's kafka.sasl, resolved; empty where there is none.
	KafkaPassword catalog.Secret
	Lake          lake.Config
	Registry      *registry.Registry
	Version       string // of the program, for the registry
	Logger        *slog.Logger
	// Memory is about how many bytes the worker takes, without a key index larger
	// than a quarter of it; default DefaultMemory, at least LeastMemory. Limits, Reader
	// and Lake get their parts of it where they leave a bound open.
	Memory int64
	// OwnProcess says that the process does nothing else, so that the worker may set
	// the Go runtime's memory limit.
	OwnProcess bool
	Limits     pipeline.Limits
	// Reader and Kafka bound what reading the source takes, or its topics; zero means
	// defaults.
	Reader postgres.Limits
	Kafka  kafka.Limits
}

// Run runs the source until the context ends, then saves what it has read and
// returns nil, also when it had not yet begun to read. It blocks, and retries what
// may pass; it returns an error when the source, the lake or the configuration make
// running impossible. Only one worker runs a source at a time: another one is
// refused with source.slot, and disturbs nothing.
func Run(ctx context.Context, cfg Config) error {
	cfg.share()
	masks, err := newMasks(cfg.Tables, cfg.TokenKey)
	if err != nil {
		return err
	}
	lock, err := cfg.Registry.LockSource(ctx, cfg.Source.Name)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer holdLock(ctx, lock, cfg)()
	l, err := lake.Open(ctx, cfg.Lake, cfg.Logger)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer l.Close()
	if cfg.OwnProcess {
		limited := make(chan struct{})
		limitCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		go func() { defer close(limited); limitMemory(limitCtx, cfg.Memory, l) }()
		defer func() { stop(); <-limited }()
	}
	id := uuid.NewString()
	observer := newObserver(cfg.Registry, cfg.Source.Name, id, cfg.Logger)
	observed := make(chan struct{})
	observerCtx, stopObserver := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(observed)
		observer.run(observerCtx, registry.Worker{
			ID: id, Source: cfg.Source.Name, PID: os.Getpid(), Version: cfg.Version, StartedAt: time.Now(), //nolint:forbidigo // the process's own start
		})
	}()
	defer func() { stopObserver(); <-observed }()

	run := func() error {
		p := pipeline.Config{
			Source: cfg.Source, Tables: cfg.Tables, Lake: l.ForSource(cfg.Source),
			Mask: masks.mask, Observer: observer, Logger: cfg.Logger, Limits: cfg.Limits,
		}
		var err error
		if p.Reader, err = newReader(ctx, cfg, masks, observer); err != nil {
			return err
		}
		if _, ok := p.Reader.(pipeline.Rereader); ok && rereadsRows(cfg.Source) {
			p.Rereads = &rereads{registry: cfg.Registry, source: cfg.Source.Name, masks: masks, unmasks: cfg.Source.Capture == catalog.Direct}
		}
		return pipeline.New(p).Run(ctx)
	}
	if err := again(ctx, cfg, run); err != nil {
		return fmt.Errorf("run source %s: %w", cfg.Source.Name, err)
	}
	return nil
}

// Preflight checks a source and returns all findings at once.
func Preflight(ctx context.Context, source *catalog.Source, tables []*catalog.Table, dsn catalog.Secret) ([]catalog.Finding, error) {
	out, err := postgres.Preflight(ctx, postgres.Config{Source: source, DSN: dsn}, tables)
	if err != nil || source.Capture != catalog.Debezium {
		return out, err
	}
	described, err := describer(Config{Source: source, DSN: dsn})(ctx, tables)
	for _, t := range tables {
		out = append(out, kafka.Foresee(source, t, described)...)
	}
	return out, err
}

// PrepareConnector makes what the connector of a source with capture debezium needs and
// does not make itself; see postgres.PrepareConnector.
func PrepareConnector(ctx context.Context, source *catalog.Source, tables []*catalog.Table, dsn catalog.Secret) ([]catalog.Finding, error) {
	return postgres.PrepareConnector(ctx, postgres.Config{Source: source, DSN: dsn}, tables)
}

// PrepareDDLLog installs the DDL log at a source, RemoveDDLLog removes it; DDLLogSQL and
// DDLLogRemovalSQL are what they run.
func PrepareDDLLog(ctx context.Context, source *catalog.Source, dsn catalog.Secret) error {
	return postgres.PrepareDDLLog(ctx, postgres.Config{Source: source, DSN: dsn})
}

// RemoveDDLLog undoes PrepareDDLLog.
func RemoveDDLLog(ctx context.Context, source *catalog.Source, dsn catalog.Secret) error {
	return postgres.RemoveDDLLog(ctx, postgres.Config{Source: source, DSN: dsn})
}

// DDLLogSQL is the SQL of PrepareDDLLog.
func DDLLogSQL() string { return postgres.DDLLogSQL() }

// DDLLogRemovalSQL is the SQL of RemoveDDLLog.
func DDLLogRemovalSQL() string { return postgres.DDLLogRemovalSQL() }

// DropSlot drops the slot of a source whose connector was deleted; see postgres.DropSlot.
func DropSlot(ctx context.Context, source *catalog.Source, dsn catalog.Secret) error {
	return postgres.DropSlot(ctx, postgres.Config{Source: source, DSN: dsn})
}
