package worker_test

import (
	"context"
	"fmt"
	"io/fs"
	"log" //nolint:depguard // what http.Server takes
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/orchestrator/localpg"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/tableconfigs"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

// The shop lives while everything fails that a worker meets: its process is killed at
// any write and any commit, the catalog, the warehouse and the source are away, slow
// or full, answers get lost, and others work on the same tables. Whatever happens is
// made of a seed. In the end every layer equals the source, and history equals what
// the shop's own record says.
//
// LAKEWEIR_FAULT_RUNS says how many runs there are, LAKEWEIR_SEED repeats one.
func TestFaultsLoseDoubleAndReviveNothing(t *testing.T) {
	t.Parallel()
	runs, seed := 8, uint64(time.Now().Unix()%1_000_000*1000)
	if testing.Short() {
		runs = 2
	}
	if s := os.Getenv("LAKEWEIR_FAULT_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		runs = n
	}
	if s := os.Getenv("LAKEWEIR_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
		if os.Getenv("LAKEWEIR_FAULT_RUNS") == "" {
			runs = 1
		}
	}
	all := &tally{kinds: map[string]int{}}
	own := &ownServer{t: t}
	t.Cleanup(own.stop)
	next := make(chan uint64)
	var workers sync.WaitGroup
	for range min(runs, 6) { // most of a run is waiting
		workers.Go(func() {
			for s := range next {
				t.Run(fmt.Sprintf("LAKEWEIR_SEED=%d", s), func(t *testing.T) { faulty(t, s, all, own) })
			}
		})
	}
	for i := range runs {
		next <- seed + uint64(i)
	}
	close(next)
	workers.Wait()
	t.Log(all.summary(seed))
	if runs >= 200 {
		for _, kind := range allKinds() {
			require.NotZero(t, all.kinds[kind], "%s never came", kind)
		}
	}
}

// tally sums up the runs.
type tally struct {
	mu    sync.Mutex
	runs  int
	kinds map[string]int
	wrongs
}

func (a *tally) summary(seed uint64) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var kinds []string
	total := 0
	for _, k := range allKinds() {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, a.kinds[k]))
		total += a.kinds[k]
	}
	return fmt.Sprintf("%d fault runs, seeds %d to %d, %d faults (%s): %d lost, %d doubled, %d revived, %d history violations",
		a.runs, seed, seed+uint64(max(a.runs, 1))-1, total, strings.Join(kinds, ", "), a.Lost, a.Doubled, a.Revived, a.History)
}

// faultRun is one run.
type faultRun struct {
	*rig
	plan   schedule
	engine *laketest.Engine
	front  *front

	mu    sync.Mutex
	kinds map[string]int
}

func (f *faultRun) fired(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds[kind]++
}

func faulty(t *testing.T, seed uint64, all *tally, own *ownServer) {
	t.Helper()
	f := &faultRun{plan: newSchedule(seed), kinds: map[string]int{}}
	t.Cleanup(func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.runs++
		for k, n := range f.kinds {
			all.kinds[k] += n
		}
		if t.Failed() {
			t.Logf("repeat it: LAKEWEIR_SEED=%d go test ./worker -count=1 -v -run TestFaultsLoseDoubleAndReviveNothing\n%scame: %v", seed, f.plan, f.kinds)
		}
	})
	f.open(t, own)
	living, stop := context.WithCancel(t.Context())
	defer stop()
	var shop sync.WaitGroup
	shop.Go(func() { f.shop(living, seed) })
	if f.plan.Clean {
		f.start()
		f.landed()
		f.stop()
	}
	for i, l := range f.plan.Lives {
		for _, e := range l.Before {
			f.happens(e)
		}
		restart := func() {}
		if f.plan.Own != "" && i == 1 {
			restart = func() {
				own.restart(f.plan.Own == pgCrashed)
				f.fired(f.plan.Own)
				f.connect()
			}
		}
		f.lives(l, restart)
	}
	stop()
	shop.Wait()
	f.start()
	f.landed()
	w := f.audit()
	f.stop()
	if w.Lost+w.Doubled+w.Revived+w.History > 0 {
		for _, ident := range f.layers(false) {
			t.Log(f.engine.Describe(t.Context(), ident))
		}
	}
	all.mu.Lock()
	all.add(w)
	all.mu.Unlock()
	require.Zero(t, w.Lost+w.Doubled+w.Revived+w.History, "%s", strings.Join(w.Said, "\n"))
}

// open makes the shop, its lake and the trouble before it.
func (f *faultRun) open(t *testing.T, own *ownServer) {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(tableconfigs.Files, "shop", func(path string, _ fs.DirEntry, err error) error {
		table := strings.TrimSuffix(strings.TrimPrefix(path, "shop/public."), ".yaml")
		if err == nil && slices.Contains(f.plan.Tables, table) {
			var b []byte
			b, err = tableconfigs.Files.ReadFile(path)
			files[strings.TrimPrefix(path, "shop/")] = string(b)
		}
		return err
	}))
	// What is not to be restarted with the source lies elsewhere: a server that is
	// shut down waits for the worker to have noted what it was sent.
	kept := localpgtest.Database(t)
	dsn := kept
	if f.plan.Own != "" {
		dsn = own.database(t)
	}
	f.rig = newRigApart(t, dsn, kept, fmt.Sprintf("snapshot: {chunk_rows: %d}\nformat_version: %d\n", f.plan.Chunk, f.plan.Format), files)
	f.limits.SaveEvery = 60 * time.Millisecond
	require.NoError(t, demo.Setup(t.Context(), dsn, 30))
	wh, err := lake.Open(t.Context(), f.lakeCfg, nil) // makes the warehouse
	require.NoError(t, err)
	require.NoError(t, wh.Close())
	dir := filepath.Dir(strings.TrimPrefix(f.lakeCfg.Warehouse, "file://"))
	if f.plan.Catalog == "postgres" {
		f.engine, err = laketest.Postgres(kept)
	} else {
		f.engine, err = laketest.SQLite(filepath.Join(dir, "catalog.db"), f.lakeCfg.Warehouse)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.engine.Close() })
	f.front = &front{engine: f.engine, fired: f.fired, others: func(kind string, ident []string) {
		if err := another(t.Context(), f.engine, kind, ident); err != nil {
			t.Logf("%s, %v: %v", kind, ident, err) // it lost the race, or found the files gone
		}
	}}
	switch f.plan.Catalog {
	case "rest":
		s := httptest.NewServer(f.front.rest())
		s.Config.ErrorLog = quiet()
		t.Cleanup(s.Close)
		f.lakeCfg.Catalog = s.URL
	case "postgres":
		var stop func()
		f.lakeCfg.Catalog, stop, err = f.front.proxy(t.Context(), kept)
		require.NoError(t, err)
		t.Cleanup(stop)
	}
}

// quiet is what a server logs to that aborts connections on purpose.
func quiet() *log.Logger { return slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) }

// shop keeps the shop busy, also through a restart of its server.
func (f *faultRun) shop(ctx context.Context, seed uint64) {
	for n := uint64(0); ctx.Err() == nil; n++ {
		w := demo.NewWorkload(demo.WorkloadConfig{DSN: f.dsn, Rate: 150, Seed: seed + n<<32, Connections: 1, MaxHold: 300 * time.Millisecond})
		_, err := w.Run(ctx)
		switch {
		case err != nil && f.plan.Own == "":
			f.t.Errorf("workload: %v", err)
			return
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// lives runs the worker's process for a life; restart is called in the middle of it.
func (f *faultRun) lives(l life, restart func()) {
	f.t.Helper()
	f.startTroubled(l.Trouble)
	f.front.live(f.child.Process.Pid, l.Catalog)
	defer f.front.live(0, nil)
	staged := 0
	tooLong := time.After(4 * time.Second) // trouble that makes all wait, or nothing to do
	for {
		select {
		case line, running := <-f.said:
			if !running {
				f.kill() // it is dead already
				return
			}
			if kind, ok := strings.CutPrefix(line, prefixFault); ok {
				f.fired(kind)
				continue
			}
			if staged++; staged == 1 && l.Second {
				f.tryAsSecond()
			}
			if staged == 1+l.Ends/5 {
				restart()
			}
			if staged == l.CutAt {
				f.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND slot_name = '" + f.source.Slot + "'")
				f.fired(slotCut)
			}
			if staged < l.Ends {
				continue
			}
		case <-tooLong:
		}
		break
	}
	if l.Kill {
		f.fired(killed)
		f.kill()
		return
	}
	f.fired(ended)
	if err := f.end(); err != nil {
		f.t.Logf("the worker ended: %v", err)
	}
}

// connect connects the test itself again.
func (f *faultRun) connect() {
	f.t.Helper()
	_ = f.conn.Close(f.t.Context())
	var err error
	f.conn, err = pgx.Connect(f.t.Context(), f.dsn)
	require.NoError(f.t, err)
}

// ownServer is a Postgres that a run may restart. One run at a time has it.
type ownServer struct {
	t      *testing.T
	turn   sync.Mutex
	server *localpg.Server
	cfg    localpg.Config
}

// database makes a database for a run that has the server until it ends.
func (o *ownServer) database(t *testing.T) string {
	t.Helper()
	o.turn.Lock()
	t.Cleanup(o.turn.Unlock)
	if o.server == nil {
		dir, err := os.MkdirTemp("", "lakeweir-restarted-") //nolint:usetesting // it outlives the run that asked first
		require.NoError(t, err)
		o.cfg = localpg.Config{Dir: dir, Settings: map[string]string{"fsync": "off", "full_page_writes": "off", "max_connections": "100"}}
		o.server, err = localpg.Start(t.Context(), o.cfg)
		require.NoError(t, err)
		u, err := pgx.ParseConfig(o.server.DSN("postgres"))
		require.NoError(t, err)
		o.cfg.Port = int(u.Port) // the same one at each start
	}
	return localpgtest.DatabaseOnNewest(t, func() *localpg.Server { return o.server })
}

func (o *ownServer) restart(crash bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if crash {
		require.NoError(o.t, o.server.Kill())
	} else {
		require.NoError(o.t, o.server.Stop(ctx))
	}
	var err error
	o.server, err = localpg.Start(ctx, o.cfg)
	require.NoError(o.t, err)
}

func (o *ownServer) stop() {
	if o.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = o.server.Stop(ctx)
	_ = os.RemoveAll(o.cfg.Dir)
}
