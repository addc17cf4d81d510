package worker_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/tableconfigs"
)

// lines keeps what a worker logs.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) count(part string) int { return strings.Count(l.String(), part) }

// loseWarehouse takes the lake's files away, until back is called.
func (r *rig) loseWarehouse() (back func()) {
	r.t.Helper()
	dir := strings.TrimPrefix(r.lakeCfg.Warehouse, "file://")
	require.NoError(r.t, os.Rename(dir, dir+".away"))
	require.NoError(r.t, os.WriteFile(dir, nil, 0o600)) // what is no directory takes no file
	return func() {
		require.NoError(r.t, os.Remove(dir))
		require.NoError(r.t, os.Rename(dir+".away", dir))
	}
}

// gate passes TCP connections on while it is open.
type gate struct {
	t      testing.TB
	to     string
	at     string
	mu     sync.Mutex
	ln     net.Listener
	conns  map[net.Conn]bool
	closed sync.WaitGroup
}

func newGate(t testing.TB, to string) *gate {
	t.Helper()
	g := &gate{t: t, to: to, at: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	g.open()
	t.Cleanup(g.shut)
	return g
}

func (g *gate) open() {
	g.t.Helper()
	ln, err := net.Listen("tcp", g.at)
	require.NoError(g.t, err)
	g.mu.Lock()
	g.ln, g.at = ln, ln.Addr().String()
	g.mu.Unlock()
	g.closed.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", g.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			g.pass(in, out)
			g.pass(out, in)
		}
	})
}

func (g *gate) pass(from, to net.Conn) {
	g.mu.Lock()
	g.conns[from] = true
	g.mu.Unlock()
	g.closed.Go(func() {
		_, _ = io.Copy(to, from)
		_, _ = from.Close(), to.Close()
		g.mu.Lock()
		delete(g.conns, from)
		g.mu.Unlock()
	})
}

// shut refuses connections and breaks those that are open.
func (g *gate) shut() {
	g.mu.Lock()
	_ = g.ln.Close()
	for c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.closed.Wait()
}

// The lake is away for long while the shop lives; LAKEWEIR_OUTAGE says how long, such
// as 1h (default 12s).
func TestALakeThatIsAwayForLongCostsNothing(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"catalog", "warehouse"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			outageRun(t, what)
		})
	}
}

func outageRun(t *testing.T, what string) {
	t.Helper()
	long := 12 * time.Second
	if s := os.Getenv("LAKEWEIR_OUTAGE"); s != "" {
		var err error
		long, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	r := newRig(t, "", shopFiles(t))
	store := localpgtest.Database(t)
	u, err := url.Parse(store)
	require.NoError(t, err)
	catalogGate := newGate(t, u.Host)
	u.Host = catalogGate.at
	r.lakeCfg.Catalog = u.String()
	r.limits.MemoryBytes, r.limits.BatchRows = megabyte, 2_000 // reading soon waits
	log := &lines{}
	r.logger = log.logger()
	require.NoError(t, demo.Setup(t.Context(), r.dsn, 60))
	r.start()
	r.landed()

	living, stop := context.WithCancel(t.Context())
	defer stop()
	var shop sync.WaitGroup
	shop.Go(func() {
		w := demo.NewWorkload(demo.WorkloadConfig{DSN: r.dsn, Rate: 400, Seed: 7, Connections: 2, MaxHold: 500 * time.Millisecond})
		if _, err := w.Run(living); err != nil {
			t.Errorf("workload: %v", err)
		}
	})
	back := func() { catalogGate.open() }
	if what == "catalog" {
		catalogGate.shut()
	} else {
		back = r.loseWarehouse()
	}
	before, began := log.count("\n"), time.Now()
	var peak uint64
	var end catalog.LSN // of the log, some seconds into the outage: the shop has changed every table since
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < long {
		<-tick.C
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		if end == 0 && time.Since(began) > 4*time.Second {
			end = r.endOfLog()
		}
	}
	// One clear status: it lags, and why the slot holds.
	r.wait(func(v *registry.TableView) bool {
		return v.State == catalog.Lagging && v.Fault == nil || v.Totals.Changes == 0 || v.State == catalog.Streaming
	})
	orders := r.state("public.orders")
	require.Equal(t, catalog.Lagging, orders.State)
	require.Greater(t, time.Since(orders.FreshAt), long-5*time.Second, "it is as old as the outage is long")
	require.Regexp(t, "^tables? public.* cannot be saved: ", r.log().HeldBy)
	logged := log.count("\n") - before
	// Each table waits twice as long each time, 30 s at most: that bounds the log.
	require.Less(t, logged, len(r.tables)*(6+int(long/(15*time.Second)))+5, "%s", log)
	require.NotContains(t, log.String(), "table stopped")
	t.Logf("%s away for %s: %d lines logged, the heap's peak was %d MB, the slot retained %d MB", what, long, logged, peak>>20, r.log().Retained>>20)
	require.Less(t, r.confirmed(), end, "the slot keeps what is not in the lake")

	back()
	stop()
	shop.Wait()
	r.landed()
	r.requireAllEqual()
	require.Equal(t, catalog.Streaming, r.state("public.orders").State)
}

// shopFiles are the tables of the example shop.
func shopFiles(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(tableconfigs.Files, "shop", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, "source.yaml") {
			var b []byte
			b, err = tableconfigs.Files.ReadFile(path)
			files[strings.TrimPrefix(path, "shop/")] = string(b)
		}
		return err
	}))
	require.NotEmpty(t, files)
	return files
}
