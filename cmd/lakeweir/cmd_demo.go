package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
	"github.com/lakeweir/lakeweir/orchestrator/preflight"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// DemoOptions are what demo can be told.
type DemoOptions struct {
	DSN       string // an existing database to use; empty: a private Postgres
	Dir       string // where everything is kept
	Duration  time.Duration
	Rate      int // row changes a second
	Orders    int // at the start
	Verify    bool
	KillEvery time.Duration
	Listen    string
	Brokers   []string // of Kafka, through which Debezium captures; empty: captured directly
	Connect   string   // the URL of Kafka Connect; with Brokers
}

func newDemoCommand(app *App) *cobra.Command {
	var opts DemoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Replicate a live example shop into a local lake, with a page to watch",
		Long: `Start a private Postgres with the example shop and a live workload, replicate it
into a local Iceberg lake, and show a page with every table's state and freshness.

Everything is kept in --dir. Ctrl-C stops cleanly; the next start goes on exactly
where this one stopped. The worker is a process of its own: --kill-every kills it
at random with SIGKILL. --verify compares source and lake twice while writing goes
on and once at the end, and the lake's history with one that triggers recorded at
the source and plain SQL folded; the exit status is 4 when anything differs.

With --kafka and --connect, Debezium captures the shop instead: the worker makes its
connector on that Kafka Connect and reads its topics from that Kafka. Connect has to
reach the shop's database, and no other demo may have used the two. In Lakeweir's
own repository, make demo-debezium starts both.`,
		Example: "  lakeweir demo\n  lakeweir demo --duration 60s --rate 2000 --kill-every 7s --verify",
		Args:    noArgs,
		// The demo tells its own story; its log is for when something goes wrong.
		Annotations: map[string]string{quietLog: "warn"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			return runDemo(cmd.Context(), app, opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.DSN, "dsn", "", "an empty database to use instead of a private Postgres (wal_level=logical; a role with REPLICATION)")
	f.StringVar(&opts.Dir, "dir", "lakeweir-demo", "folder for the database, the lake and the logs")
	f.DurationVar(&opts.Duration, "duration", 0, "stop after this long; 0: until Ctrl-C")
	f.IntVar(&opts.Rate, "rate", 200, "row changes a second")
	f.IntVar(&opts.Orders, "orders", 5000, "orders in the shop at the first start")
	f.BoolVar(&opts.Verify, "verify", false, "prove that source and lake are equal")
	f.DurationVar(&opts.KillEvery, "kill-every", 0, "kill the worker with SIGKILL about this often")
	f.StringSliceVar(&opts.Brokers, "kafka", nil, "brokers, as host:port, through which Debezium captures the shop; with --connect")
	f.StringVar(&opts.Connect, "connect", "", "Kafka Connect's REST interface, such as http://127.0.0.1:8083; it needs Debezium's connector for Postgres")
	f.StringVar(&opts.Listen, "listen", "127.0.0.1:7788", "address of the page; when the port is taken, a free one is used")
	return cmd
}

// check finds values that no demo can run with.
func (o *DemoOptions) check() error {
	wrong := func(flag, hint, format string, args ...any) error {
		return catalog.Invalidf(catalog.CodeUsage, flag, hint, format, args...)
	}
	switch {
	case o.Rate < 1:
		return wrong("--rate", "give 1 or more row changes a second", "%d is too few", o.Rate)
	case o.Orders < 1:
		return wrong("--orders", "give 1 or more", "%d is too few", o.Orders)
	case o.Duration < 0:
		return wrong("--duration", "give a time such as 60s, or 0 to run until Ctrl-C", "%s is less than nothing", o.Duration)
	case o.KillEvery < 0:
		return wrong("--kill-every", "give a time such as 7s, or 0 to kill nothing", "%s is less than nothing", o.KillEvery)
	case o.Verify && o.Duration == 0:
		return wrong("--verify", "give --duration as well, for example --duration 60s", "it needs to know when the end is")
	case len(o.Brokers) > 0 && o.Connect == "":
		return wrong("--kafka", "give --connect as well, for example --connect http://127.0.0.1:8083", "it needs to know where Debezium runs")
	case len(o.Brokers) == 0 && o.Connect != "":
		return wrong("--connect", "give --kafka as well, for example --kafka 127.0.0.1:9092", "it needs to know where the topics are")
	}
	return nil
}

// shop is a running demo's parts.
type shop struct {
	app      *App
	opts     DemoOptions
	dir      string
	source   *catalog.Source
	tables   []*catalog.Table
	dsn      catalog.Secret // of the shop's database
	tokenKey catalog.Secret
	registry *registry.Registry
	regDSN   string
	lake     lake.Config
	worker   *childWorker
	connect  *connect.Client // where a connector captures the shop
	started  time.Time
}

func runDemo(ctx context.Context, app *App, opts DemoOptions) (err error) {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", opts.Dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Postgres runs as another user and must pass through
		return catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "give another folder with --dir", "the folder for the demo cannot be made: %w", err)
	}
	release, err := lockDemo(dir)
	if err != nil {
		return err
	}
	defer release()
	s := &shop{app: app, opts: opts, dir: dir, started: time.Now()}
	page, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer page.Close()
	s.say("demo      in %s", dir)
	stopPostgres, err := s.openDatabases(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopPostgres()) }()
	if err := s.openShop(ctx); err != nil {
		return err
	}
	defer s.registry.Close()
	defer func() { err = errors.Join(err, s.restConnector(ctx)) }()
	return s.run(ctx, page)
}

func (s *shop) say(format string, args ...any) {
	fmt.Fprintf(s.app.Stdout, format+"\n", args...)
}

// openDatabases finds or starts the source's and the registry's Postgres.
func (s *shop) openDatabases(ctx context.Context) (stop func() error, err error) {
	if s.opts.DSN != "" {
		dsn, err := resolveConnection("--dsn", s.opts.DSN)
		if err != nil {
			return nil, err
		}
		s.dsn, s.regDSN = dsn, dsn.Reveal()
		return func() error { return nil }, nil
	}
	s.say("          starting a private Postgres …")
	server, err := localpg.Start(ctx, localpg.Config{
		Dir: filepath.Join(s.dir, "postgres"), Logger: s.app.Log,
		Settings: map[string]string{"synchronous_commit": "off", "shared_buffers": "128MB"},
	})
	if err != nil {
		return nil, err
	}
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return server.Stop(ctx)
	}
	for _, name := range []string{"shop", "lakeweir"} {
		if err := createDatabase(ctx, server.DSN("postgres"), name); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	s.dsn, s.regDSN = catalog.Secret(server.DSN("shop")), server.DSN("lakeweir")
	return stop, nil
}

func createDatabase(ctx context.Context, dsn, name string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to the demo's Postgres: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	return err
}

// openShop makes the shop, its configuration, its registry and the place of its
// lake.
func (s *shop) openShop(ctx context.Context) error {
	s.say("          opening the shop …")
	if err := demo.Setup(ctx, s.dsn.Reveal(), s.opts.Orders); err != nil {
		return err
	}
	key, err := s.readTokenKey()
	if err != nil {
		return err
	}
	s.tokenKey = key
	config := filepath.Join(s.dir, "tableconfigs", "shop")
	if s.opts.throughKafka() {
		if err := writeKafkaSource(config, &s.opts); err != nil {
			return err
		}
	}
	if err := copyConfigs(config); err != nil {
		return err
	}
	if s.source, s.tables, err = loadSource(config); err != nil {
		return err
	}
	s.lake = lake.Config{
		Catalog:   "sqlite://" + filepath.Join(s.dir, "catalog.db"),
		Warehouse: "file://" + filepath.Join(s.dir, "lake"),
	}
	if s.registry, err = registry.Open(ctx, catalog.Secret(s.regDSN)); err != nil {
		return err
	}
	if err := errors.Join(s.preflight(ctx), s.wakeConnector(ctx), syncConfig(ctx, s.registry, s.source, s.tables)); err != nil {
		s.registry.Close()
		return err
	}
	s.worker = &childWorker{
		args: []string{
			"run", config, "--registry", "${env:LAKEWEIR_DEMO_REGISTRY}",
			"--catalog", s.lake.Catalog, "--warehouse", s.lake.Warehouse, "--log-level", "info",
		},
		env: []string{
			"LAKEWEIR_SHOP_DSN=" + s.dsn.Reveal(), "LAKEWEIR_TOKEN_KEY=" + s.tokenKey.Reveal(),
			"LAKEWEIR_DEMO_REGISTRY=" + s.regDSN,
		},
		logFile: filepath.Join(s.dir, "worker.log"), killEvery: s.opts.KillEvery, log: s.app.Log,
	}
	return nil
}

// preflight says what would keep the worker from reading the shop, before it is
// started again and again.
func (s *shop) preflight(ctx context.Context) error {
	findings, err := worker.Preflight(ctx, s.source, s.tables, s.dsn)
	if err != nil {
		return err
	}
	if s.source.Capture == catalog.Debezium {
		client, err := preflight.NewClient(s.source, "") // --kafka takes no password
		if err != nil {
			return err
		}
		defer client.Close()
		findings = append(findings, preflight.Topics(ctx, client, s.source, s.tables)...)
	}
	var errs []error
	for _, f := range findings {
		if f.Severity == catalog.Blocks {
			errs = append(errs, &catalog.Error{Kind: catalog.Invalid, Code: f.Code, Message: f.Message, Hint: f.Fix, At: f.Table})
		}
	}
	return errors.Join(errs...)
}

// run runs workload, worker and page until the time is over or ctx ends, then
// stops them in the order in which nothing is lost.
func (s *shop) run(ctx context.Context, page net.Listener) error {
	s.say("page      http://%s", page.Addr())

	workerCtx, stopWorker := context.WithCancel(ctx)
	defer stopWorker()
	writing, stopWriting := context.WithCancel(ctx)
	if s.opts.Duration > 0 {
		writing, stopWriting = context.WithTimeout(ctx, s.opts.Duration)
	}
	defer stopWriting()

	group, groupCtx := errgroup.WithContext(workerCtx)
	group.Go(func() error { return s.worker.run(groupCtx) })
	group.Go(func() error { return s.serve(groupCtx, page) })

	work := make(chan workResult, 1)
	go func() {
		stats, err := s.workload(writing)
		work <- workResult{stats, err}
	}()
	proof := newProof(s)
	go s.narrate(groupCtx)

	var checks error
	if s.opts.Verify && s.opts.Duration > 0 {
		checks = proof.during(groupCtx, s.opts.Duration)
	}
	var done workResult
	select {
	case done = <-work:
	case <-groupCtx.Done():
		if ctx.Err() != nil {
			s.say("stopping  what was read is saved; Ctrl-C again ends at once")
		}
		stopWriting()
		done = <-work
	}
	if ctx.Err() == nil && groupCtx.Err() == nil && s.opts.Verify {
		checks = errors.Join(checks, proof.final(groupCtx))
	}
	stopWorker()
	err := errors.Join(group.Wait(), done.err, checks, proof.verdict())
	s.summary(done.stats)
	return err
}

type workResult struct {
	stats demo.Stats
	err   error
}

func (s *shop) workload(ctx context.Context) (demo.Stats, error) {
	w := demo.NewWorkload(demo.WorkloadConfig{
		DSN: s.dsn.Reveal(), Rate: float64(s.opts.Rate), Seed: uint64(s.started.UnixNano()), Logger: s.app.Log,
	})
	return w.Run(ctx)
}

func (s *shop) summary(stats demo.Stats) {
	s.say("stopped   the shop committed %d row changes in %d transactions, and rolled back %d transactions",
		stats.Changes(), stats.Transactions, stats.RolledBack)
	if s.opts.KillEvery > 0 {
		s.say("          the worker was killed %d times", s.worker.kills.Load())
	}
	s.say("          start again to go on exactly here; remove %s to start afresh", s.opts.Dir)
}
