// Package localpgtest gives tests a real Postgres: one server for a test binary,
// a fresh database for each test.
//
// The server is started when the first test asks for it and ends with the
// process, however that ends; nothing is left behind. Tests share it, so a test
// that kills or fills a server starts its own with localpg.Start.
package localpgtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/orchestrator/localpg"
)

// A test binary has no place of its own to keep its server in: its tests know
// nothing of each other.
var shared = struct {
	sync.Mutex
	servers map[string]*started // by settings
	names   int                 // databases made so far
}{servers: map[string]*started{}}

type started struct {
	once   sync.Once
	server *localpg.Server
	err    error
}

// Server returns the test binary's server, with logical replication and commit
// timestamps on and without fsync. Tests that ask for the same extra settings
// share one; other settings start another. The test fails when there is no
// Postgres to run.
func Server(t testing.TB, settings ...map[string]string) *localpg.Server {
	t.Helper()
	all := map[string]string{
		"fsync":              "off",
		"synchronous_commit": "off",
		"full_page_writes":   "off",
		"max_connections":    "300",
	}
	for _, s := range settings {
		maps.Copy(all, s)
	}
	s := entry(all)
	s.once.Do(func() { s.server, s.err = start(all) })
	if s.err != nil {
		t.Fatalf("this test needs a Postgres server: %v", s.err)
	}
	return s.server
}

func entry(settings map[string]string) *started {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&key, "%s=%s\n", name, settings[name])
	}
	shared.Lock()
	defer shared.Unlock()
	s := shared.servers[key.String()]
	if s == nil {
		s = &started{}
		shared.servers[key.String()] = s
	}
	return s
}

// start runs a server that outlives the test that asked first.
func start(settings map[string]string) (*localpg.Server, error) {
	dir, err := os.MkdirTemp("", "lakeweir-postgres-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for Postgres: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := localpg.Start(ctx, localpg.Config{Dir: dir, Settings: settings, RemoveDir: true})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// Database makes an empty database on the shared server and returns its
// connection string. It is dropped when the test ends, with the replication slots
// in it, whoever is still connected.
func Database(t testing.TB) string {
	t.Helper()
	return DatabaseOn(t, Server(t))
}

// DatabaseOn is Database on a given server.
func DatabaseOn(t testing.TB, s *localpg.Server) string {
	t.Helper()
	return DatabaseOnNewest(t, func() *localpg.Server { return s })
}

// DatabaseOnNewest is DatabaseOn for a server that the test starts anew: what newest
// returns in the end is asked to drop the database.
func DatabaseOnNewest(t testing.TB, newest func() *localpg.Server) string {
	t.Helper()
	s := newest()
	shared.Lock()
	shared.names++
	name := fmt.Sprintf("test_%d", shared.names)
	shared.Unlock()
	execute(t, t.Context(), s, "create database "+name)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		drop(t, ctx, newest(), name)
	})
	return s.DSN(name)
}

func execute(t testing.TB, ctx context.Context, s *localpg.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		t.Fatalf("connect to the test server: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// drop ends the walsenders of the database's slots, drops the slots, then the
// database; a slot can be dropped only when its walsender is gone, so it asks
// again until then.
func drop(t testing.TB, ctx context.Context, s *localpg.Server, name string) {
	t.Helper()
	select {
	case <-s.Ended():
		return // a test stopped it
	default:
	}
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		t.Errorf("connect to the test server: %v", err)
		return
	}
	defer conn.Close(ctx)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := conn.Exec(ctx, `select pg_terminate_backend(active_pid) from pg_replication_slots where database = '`+name+`' and active`)
		if err == nil {
			_, err = conn.Exec(ctx, `select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = '`+name+`'`)
		}
		if err == nil {
			_, err = conn.Exec(ctx, "drop database if exists "+name+" with (force)")
		}
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Errorf("drop database %s: %v", name, err)
			return
		}
	}
}
