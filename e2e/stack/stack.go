package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/e2e/install"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
)

// Config says what to run, and where.
type Config struct {
	// Dir holds the data and, in "log", the logs. It is made when it is absent, and
	// stays: what it has of Kafka and Connect is gone on with.
	Dir string
	// Debezium runs Kafka, and Connect on it.
	Debezium bool
	// Kafka runs Kafka alone.
	Kafka bool
	// Lake runs the S3 gateway, and the REST catalog on it.
	Lake bool
	// Postgres runs a Postgres of its own, without fsync.
	Postgres bool
	// Told is given a line for each thing done, with how long it took; nil for none.
	Told func(format string, args ...any)
}

// Stack is what runs. What was not asked for is nil.
type Stack struct {
	Kafka    *Kafka
	Connect  *Connect
	S3       *S3
	Catalog  *Catalog
	Postgres *localpg.Server

	dir  string
	told func(string, ...any)
}

// Start installs what is missing and runs the services, those that do not need each
// other at the same time. When one does not start, none stays.
func Start(ctx context.Context, cfg Config) (*Stack, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if cfg.Told == nil {
		cfg.Told = func(string, ...any) {}
	}
	s := &Stack{dir: dir, told: cfg.Told}
	began := time.Now()
	if err := install.RequireJava(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o755); err != nil { //nolint:gosec // Postgres runs as another user
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	if cfg.Kafka || cfg.Debezium {
		group.Go(func() error { return s.startKafka(ctx, cfg.Debezium) })
	}
	if cfg.Lake {
		group.Go(func() error { return s.startLake(ctx) })
	}
	if cfg.Postgres {
		group.Go(func() error { return s.StartPostgres(ctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.told("the stack runs after %.1f s", time.Since(began).Seconds())
	return s, nil
}

func (s *Stack) startKafka(ctx context.Context, connect bool) (err error) {
	if connect { // while Kafka starts, nobody waits for a download
		for _, list := range []string{connectJars, debeziumJars, avroJars} {
			if _, err := install.Jars(ctx, list); err != nil {
				return err
			}
		}
	}
	if s.Kafka, err = newKafka(ctx, s.dir, s.told); err != nil {
		return fmt.Errorf("prepare Kafka: %w", err)
	}
	if err := s.Kafka.Start(ctx); err != nil || !connect {
		return err
	}
	if s.Connect, err = newConnect(ctx, s.dir, s.Kafka, s.told); err != nil {
		return fmt.Errorf("prepare Connect: %w", err)
	}
	return s.Connect.Start(ctx)
}

func (s *Stack) startLake(ctx context.Context) (err error) {
	if s.S3, err = newS3(ctx, s.dir, s.told); err != nil {
		return fmt.Errorf("prepare the S3 gateway: %w", err)
	}
	if err := s.S3.Start(ctx); err != nil {
		return err
	}
	if s.Catalog, err = newCatalog(ctx, s.dir, s.S3, s.told); err != nil {
		return fmt.Errorf("prepare the catalog: %w", err)
	}
	return s.Catalog.Start(ctx)
}

// StartPostgres starts Postgres, also again after it was killed or stopped: then on
// the same data and port.
func (s *Stack) StartPostgres(ctx context.Context) error {
	began := time.Now()
	// SIGKILL loses nothing that was written, synced or not.
	cfg := localpg.Config{Dir: filepath.Join(s.dir, "postgres"), Settings: map[string]string{"fsync": "off", "full_page_writes": "off"}}
	if s.Postgres != nil {
		cfg.Port = s.Postgres.Port()
	}
	server, err := localpg.Start(ctx, cfg)
	if err != nil {
		return err
	}
	s.Postgres = server
	s.told("postgres answers after %.1f s", time.Since(began).Seconds())
	return nil
}

// Close ends what runs, by SIGKILL: nobody needs its data any more.
func (s *Stack) Close() error {
	var errs []error
	var all []*Process
	if s.Connect != nil {
		all = append(all, s.Connect.Process)
	}
	if s.Kafka != nil {
		all = append(all, s.Kafka.Process)
	}
	if s.Catalog != nil {
		all = append(all, s.Catalog.Process)
	}
	if s.S3 != nil {
		all = append(all, s.S3.Process)
	}
	for _, p := range all {
		errs = append(errs, p.Kill())
	}
	if s.Postgres != nil {
		errs = append(errs, s.Postgres.Kill())
	}
	return errors.Join(errs...)
}

// Logs are the files with what the services printed.
func (s *Stack) Logs() []string {
	logs, _ := filepath.Glob(filepath.Join(s.dir, "log", "*.log")) // the pattern is right
	return slices.Concat(logs, []string{filepath.Join(s.dir, "postgres", "postgres.log")})
}
