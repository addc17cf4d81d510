package connect_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/connectorconfig"
	"github.com/lakeweir/lakeweir/orchestrator/connect"
	"github.com/lakeweir/lakeweir/orchestrator/connect/connecttest"
)

const name = "lakeweir-shop"

// source is a source whose password is the environment's CONNECT_TEST_PASSWORD.
func source(t *testing.T) (*catalog.Source, []*catalog.Table) {
	t.Helper()
	t.Setenv("CONNECT_TEST_PASSWORD", "hunter2")
	s := &catalog.Source{
		Name: "shop", Kind: catalog.Postgres, Capture: catalog.Debezium, Connection: "postgres://cdc:${env:CONNECT_TEST_PASSWORD}@db/shop",
		Slot: "lakeweir_shop", Publication: "lakeweir_shop", Heartbeat: catalog.Heartbeat{Interval: time.Second, Table: catalog.TableName{Schema: "lakeweir", Name: "heartbeat"}},
		Connector: &catalog.Connector{Name: name, TopicPrefix: "shop", Format: catalog.FormatJSONSchema}, File: "shop/source.yaml",
	}
	return s, []*catalog.Table{{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}}}
}

func render(t *testing.T) *connectorconfig.Config {
	t.Helper()
	s, tables := source(t)
	c, err := connectorconfig.Render(s, tables)
	require.NoError(t, err)
	return c
}

var quick = connect.Limits{Answer: 10 * time.Second, Retry: 10 * time.Second, First: time.Millisecond, Settle: 10 * time.Second}

func client(t *testing.T, at string, limits connect.Limits) *connect.Client {
	t.Helper()
	c, err := connect.NewClient(catalog.Secret(at), limits)
	require.NoError(t, err)
	return c
}

func TestApplyMakesThenChangesNothing(t *testing.T) {
	server := connecttest.New(t)
	c, want := client(t, server.URL, quick), render(t)
	plan, err := c.Plan(t.Context(), want)
	require.NoError(t, err)
	require.True(t, plan.Create)
	require.Equal(t, "create connector lakeweir-shop", plan.Text())
	require.Empty(t, server.Requests(), "a plan sends questions alone")
	require.NoError(t, c.Apply(t.Context(), plan))
	require.Equal(t, "hunter2", server.Config(name)["database.password"])

	plan, err = c.Plan(t.Context(), want)
	require.NoError(t, err)
	require.True(t, plan.Nothing())
	require.NoError(t, c.Apply(t.Context(), plan))
	require.Len(t, server.Requests(), 1)
}

func TestApplySaysWhatChangesAndShowsNoSecret(t *testing.T) {
	server := connecttest.New(t)
	c, want := client(t, server.URL, quick), render(t)
	old, err := want.Resolve()
	require.NoError(t, err)
	old["database.password"], old["max.batch.size"], old["custom.metric.tags"] = "old secret", "1", "a=b"
	delete(old, "skipped.operations")
	server.Set(name, old)

	plan, err := c.Plan(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, []connect.Change{
		{Property: "custom.metric.tags", From: "a=b"},
		{Property: "database.password", From: "***", To: "${env:CONNECT_TEST_PASSWORD}"},
		{Property: "max.batch.size", From: "1", To: "8192"},
		{Property: "skipped.operations", To: "none"},
	}, plan.Changes)
	require.NoError(t, c.Apply(t.Context(), plan))
	got := server.Config(name)
	require.Equal(t, "hunter2", got["database.password"])
	require.NotContains(t, got, "custom.metric.tags")
}

func TestAReferenceThatConnectResolvesItselfStays(t *testing.T) {
	server := connecttest.New(t)
	c, want := client(t, server.URL, quick), render(t)
	server.Set(name, want.Properties)
	plan, err := c.Plan(t.Context(), want)
	require.NoError(t, err)
	require.True(t, plan.Nothing())

	changed := maps.Clone(want.Properties)
	changed["max.batch.size"] = "1"
	server.Set(name, changed)
	plan, err = c.Plan(t.Context(), want)
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), plan))
	require.Equal(t, "${env:CONNECT_TEST_PASSWORD}", server.Config(name)["database.password"])
}

func TestAChangeThatWouldBeAnotherStreamIsRefused(t *testing.T) {
	server := connecttest.New(t)
	c, want := client(t, server.URL, quick), render(t)
	for _, property := range []string{"topic.prefix", "slot.name", "database.dbname", "connector.class"} {
		old, err := want.Resolve()
		require.NoError(t, err)
		old[property] = "other"
		server.Set(name, old)
		_, err = c.Plan(t.Context(), want)
		require.ErrorContains(t, err, property+" other")
		require.Equal(t, catalog.Denied, catalog.KindOf(err))
	}
	require.Empty(t, server.Requests())
}

func TestARebalanceIsWaitedFor(t *testing.T) {
	server := connecttest.New(t)
	c := client(t, server.URL, quick)
	server.Set(name, render(t).Properties)
	server.Busy(4)
	require.NoError(t, c.Pause(t.Context(), name))
	require.Len(t, server.Requests(), 5)

	impatient := quick
	impatient.Retry = 20 * time.Millisecond
	server.Busy(1 << 30)
	err := client(t, server.URL, impatient).Resume(t.Context(), name)
	require.Equal(t, catalog.Conflict, catalog.KindOf(err))
	require.ErrorContains(t, err, "likely because a rebalance was underway")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Resume(ctx, name), context.Canceled)
}

func TestWhatConnectRefusesIsAnErrorWithACode(t *testing.T) {
	server := connecttest.New(t)
	c, want := client(t, server.URL, quick), render(t)
	_, err := c.Status(t.Context(), name)
	require.Equal(t, catalog.CodeConnectorNotFound, catalog.Public(err).Code)

	server.Refuse("Error while validating connector config: password hunter2 is refused")
	plan, err := c.Plan(t.Context(), want)
	require.NoError(t, err)
	err = c.Apply(t.Context(), plan)
	require.Equal(t, catalog.CodeConnectorConfig, catalog.Public(err).Code)
	require.ErrorContains(t, err, "database.hostname: Error while validating connector config: password *** is refused")
	require.Equal(t, catalog.Invalid, catalog.KindOf(err))
	require.NotContains(t, fmt.Sprintf("%v %+v", err, catalog.Public(err)), "hunter2")

	server.Down(true)
	_, err = c.Status(t.Context(), name)
	require.Equal(t, catalog.Unavailable, catalog.KindOf(err))
}

func TestWhatIsNoKafkaConnectIsSaid(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]catalog.Kind{"200 <html>": catalog.Unavailable, "404 <html>": catalog.Unavailable, "401 ": catalog.Denied, "502 ": catalog.Unavailable} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if user != "ops" || password != "p@ss" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			var status int
			_, _ = fmt.Sscan(body, &status)
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body[4:])
		}))
		_, err := client(t, strings.Replace(server.URL, "//", "//ops:p%40ss@", 1), quick).Status(t.Context(), name)
		require.Equal(t, want, catalog.KindOf(err), "%s: %v", body, err)
		require.NotContains(t, err.Error(), "p@ss")
		server.Close()
		_, err = client(t, strings.Replace(server.URL, "//", "//ops:p%40ss@", 1), quick).Status(t.Context(), name)
		require.Equal(t, catalog.CodeConnectorUnreachable, catalog.Public(err).Code)
		require.NotContains(t, fmt.Sprintf("%+v", catalog.Public(err)), "p%40ss")
	}
	for _, at := range []string{"", "connect:8083", "ftp://connect", "http://", "http://u:hunter2@%zz"} {
		_, err := connect.NewClient(catalog.Secret(at), quick)
		require.Equal(t, catalog.Invalid, catalog.KindOf(err), at)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestOnlyWhatHasFailedIsRestarted(t *testing.T) {
	server := connecttest.New(t)
	c := client(t, server.URL, quick)
	server.Set(name, render(t).Properties)
	server.FailTask(name, "org.example.X: Key (email)=(ann@example.com) already exists\n\tat a.b")
	s, err := c.Status(t.Context(), name)
	require.NoError(t, err)
	require.True(t, s.Failed())
	require.Equal(t, "RUNNING, task 0 FAILED: X: Key (email)=(***) already exists", connect.Sentence(s))
	require.NoError(t, c.RestartFailed(t.Context(), name))
	require.Equal(t, []string{"POST /connectors/lakeweir-shop/restart?includeTasks=true&onlyFailed=true"}, server.Requests())
	s, err = c.Status(t.Context(), name)
	require.NoError(t, err)
	require.True(t, s.Running())
}

func TestResetForgetsTheOffsets(t *testing.T) {
	server := connecttest.New(t)
	c := client(t, server.URL, quick)
	server.Set(name, render(t).Properties)
	var steps []string
	require.NoError(t, c.Reset(t.Context(), name, func(s string) { steps = append(steps, s) }))
	require.Equal(t, []string{"stopped connector lakeweir-shop", "deleted the offsets of connector lakeweir-shop", "deleted connector lakeweir-shop"}, steps)
	require.Equal(t, []string{"PUT /connectors/lakeweir-shop/stop", "DELETE /connectors/lakeweir-shop/offsets", "DELETE /connectors/lakeweir-shop"}, server.Requests())
	require.Nil(t, server.Config(name))
	require.False(t, server.HasOffsets(name))
	require.NoError(t, c.Reset(t.Context(), name, func(s string) { steps = append(steps, s) }), "again")
	require.Equal(t, "there is no connector lakeweir-shop", steps[3])
}

// notes is a registry in memory.
type notes struct {
	mu   sync.Mutex
	seen []catalog.ConnectorStatus
	from int // of those not awaited yet
	told chan struct{}
}

func (n *notes) SetConnector(_ context.Context, source string, s catalog.ConnectorStatus) error {
	if source != "shop" {
		return fmt.Errorf("source %s", source)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, s)
	close(n.told)
	n.told = make(chan struct{})
	return nil
}

// await waits for a status that was told after the last one awaited.
func (n *notes) await(t *testing.T, want func(catalog.ConnectorStatus) bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		n.mu.Lock()
		told, seen := n.told, n.seen[n.from:]
		i := slices.IndexFunc(seen, want)
		if i >= 0 {
			n.from += i + 1
		}
		n.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-told:
		case <-late:
			t.Fatalf("never seen among %d; last: %+v", len(seen), seen[max(0, len(seen)-1):])
		}
	}
}

// upkeep keeps the shop's connector on the server until the test ends. The clock moves
// an hour a look, so that nothing waits for a back-off.
func upkeep(t *testing.T, server *connecttest.Server, prepare func(context.Context) error) *notes {
	t.Helper()
	s, tables := source(t)
	n := &notes{told: make(chan struct{})}
	now := time.Unix(0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	c := client(t, server.URL, quick)
	go func() {
		ended <- connect.Keep(ctx, connect.Upkeep{
			Client: c, Source: s, Tables: tables, Notes: n, Log: slog.New(slog.DiscardHandler), Every: time.Millisecond, Prepare: prepare,
			Clock: func() time.Time { now = now.Add(time.Hour); return now },
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return n
}

func is(state catalog.ConnectorState) func(catalog.ConnectorStatus) bool {
	return func(s catalog.ConnectorStatus) bool { return s.State == state }
}

func TestKeepAppliesWatchesAndRestarts(t *testing.T) {
	server := connecttest.New(t)
	n := upkeep(t, server, nil)
	n.await(t, func(s catalog.ConnectorStatus) bool { return s.Running() })
	require.Equal(t, "hunter2", server.Config(name)["database.password"])
	server.FailTask(name, "org.example.Trouble: no more")
	n.await(t, func(s catalog.ConnectorStatus) bool { return s.Failed() && s.Reason() == "Trouble: no more" })
	n.await(t, func(s catalog.ConnectorStatus) bool { return s.Running() })
	server.Fail(name, "org.example.Trouble: itself")
	n.await(t, is(catalog.ConnectorFailed))
	require.NoError(t, server.Await(t.Context(), func() bool {
		r := server.Requests()
		return strings.Contains(r[len(r)-1], "restart")
	}))
}

// Connect has no status of a connector in the moment after it was made.
func TestKeepMissesNoConnectorThatItHasJustMade(t *testing.T) {
	server := connecttest.New(t)
	server.Slow(1)
	n := upkeep(t, server, nil)
	var first catalog.ConnectorStatus
	n.await(t, func(s catalog.ConnectorStatus) bool { first = s; return true })
	require.True(t, first.Running(), "%+v", first)
}

func TestKeepLeavesWhatSomebodyPausedOrDeleted(t *testing.T) {
	server := connecttest.New(t)
	n := upkeep(t, server, nil)
	n.await(t, func(s catalog.ConnectorStatus) bool { return s.Running() })
	require.NoError(t, client(t, server.URL, quick).Pause(t.Context(), name))
	n.await(t, is(catalog.ConnectorPaused))
	server.Delete(name)
	n.await(t, is(catalog.ConnectorMissing))
	n.await(t, is(catalog.ConnectorMissing))
	require.Equal(t, []string{"PUT /connectors/lakeweir-shop/config", "PUT /connectors/lakeweir-shop/pause"}, server.Requests())
}

func TestKeepTriesAgainUntilTheConnectorIsApplied(t *testing.T) {
	server := connecttest.New(t)
	server.Refuse("Unable to connect: Connection to db:5432 refused.")
	failures := 2
	n := upkeep(t, server, func(context.Context) error {
		if failures--; failures >= 0 {
			return catalog.Errorf(catalog.Denied, catalog.CodeSourcePublication, "let an owner run: CREATE PUBLICATION", "publication lakeweir_shop does not exist")
		}
		return nil
	})
	n.await(t, func(s catalog.ConnectorStatus) bool {
		return s.State == catalog.ConnectorRefused && s.Trace == "publication lakeweir_shop does not exist → let an owner run: CREATE PUBLICATION"
	})
	n.await(t, func(s catalog.ConnectorStatus) bool {
		return s.State == catalog.ConnectorRefused && strings.Contains(s.Trace, "Connection to db:5432 refused")
	})
	server.Down(true)
	n.await(t, is(catalog.ConnectorUnreachable))
	server.Down(false)
	server.Refuse("")
	n.await(t, func(s catalog.ConnectorStatus) bool { return s.Running() })
}

func TestKeepRefusesFilesThatCannotBeSent(t *testing.T) {
	s, tables := source(t)
	s.Connection = "postgres://cdc:${env:CONNECT_TEST_NOT_SET}@db/shop"
	err := connect.Keep(t.Context(), connect.Upkeep{Source: s, Tables: tables})
	require.ErrorContains(t, err, "CONNECT_TEST_NOT_SET is not set")
}
