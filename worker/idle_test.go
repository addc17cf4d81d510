package worker_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

const quietFile = "table: public.quiet\nprimary_key: [id]\nscd: [1, 2]\nfreshness_tier: realtime\n"

// behind is how much log the slot has not confirmed.
func (r *rig) behind() int64 {
	r.t.Helper()
	return int64(r.endOfLog()) - int64(r.confirmed())
}

const megabyte = 1 << 20

// noise writes about 15 MB of log that is nothing to us.
func noise(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, sql := range []string{
		"CREATE TABLE IF NOT EXISTS noisy (x text)",
		"INSERT INTO noisy SELECT repeat(md5(g::text), 30) FROM generate_series(1, 15000) g",
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// The published table is quiet while other tables, then other databases of the server,
// are busy.
func TestC40AnIdleSlotMovesWithTheRestOfTheServer(t *testing.T) {
	t.Parallel()
	server := localpgtest.Server(t, map[string]string{"max_wal_size": "512MB", "wal_keep_size": "0"})
	elsewhere := localpgtest.DatabaseOn(t, server)
	for _, beats := range []time.Duration{200 * time.Millisecond, 0} {
		t.Run(fmt.Sprintf("heartbeat every %s", beats), func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, localpgtest.DatabaseOn(t, server), "", map[string]string{"public.quiet.yaml": quietFile})
			r.source.Heartbeat.Interval = beats
			r.exec("CREATE TABLE quiet (id int PRIMARY KEY, v text)")
			r.exec("INSERT INTO quiet VALUES (1, 'a')")
			r.start()
			r.landed()
			other, err := pgx.Connect(t.Context(), elsewhere)
			require.NoError(t, err)
			defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
			for _, conn := range []*pgx.Conn{r.conn, other} {
				before := r.confirmed()
				noise(t, conn)
				require.Greater(t, int64(r.endOfLog()-before), int64(10*megabyte))
				began := time.Now()
				require.Eventually(t, func() bool { return r.behind() < megabyte || int64(r.confirmed()-before) > 10*megabyte }, 30*time.Second, 50*time.Millisecond,
					"the slot is %d bytes behind", r.behind())
				t.Logf("the slot caught up in %s", time.Since(began).Round(time.Millisecond))
			}
			r.exec("INSERT INTO quiet VALUES (2, 'b')")
			r.landed()
			r.requireCurrentEqualsSource("quiet")
		})
	}
}

// What was committed and cannot be delivered keeps its place, however far the log has
// gone: the slot does not move past it, and another start finds it.
func TestC40ACommittedChangeThatIsNotDeliveredIsNeverPassed(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_wal_size": "513MB"})), "", map[string]string{"public.quiet.yaml": quietFile})
	r.exec("CREATE TABLE quiet (id int PRIMARY KEY, v text)")
	r.exec("INSERT INTO quiet VALUES (1, 'a')")
	log := &lines{}
	r.logger = log.logger()
	r.limits.DrainWithin = time.Second
	r.start()
	r.landed()
	back := r.loseWarehouse()
	at := r.endOfLog()
	r.exec("INSERT INTO quiet VALUES (2, 'b')")
	require.Eventually(t, func() bool { return log.count("saving will be tried again") > 0 }, 30*time.Second, 20*time.Millisecond)
	noise(t, r.conn)
	require.LessOrEqual(t, r.confirmed(), at+4096)
	r.stop()
	require.LessOrEqual(t, r.confirmed(), at+4096, "also not by the last word of a worker that ends")
	back()
	r.start()
	r.landed()
	r.requireCurrentEqualsSource("quiet")
	require.Eventually(t, func() bool { return r.behind() < megabyte }, 30*time.Second, 50*time.Millisecond)
}

// A stopped table needs the log from where it stopped; status says so.
func TestC40AStoppedTableHoldsTheSlotAndStatusSaysWhich(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, localpgtest.DatabaseOn(t, localpgtest.Server(t, map[string]string{"max_wal_size": "514MB"})), "", map[string]string{
		"public.quiet.yaml": quietFile, "public.broken.yaml": strings.ReplaceAll(quietFile, "quiet", "broken"),
	})
	r.exec("CREATE TABLE quiet (id int PRIMARY KEY, v text); CREATE TABLE broken (id int PRIMARY KEY, v text)")
	r.start()
	r.landed()
	at := r.endOfLog()
	r.exec("ALTER TABLE broken ADD COLUMN w text")
	r.exec("INSERT INTO broken VALUES (1, 'x', 'y')")
	r.wait(func(v *registry.TableView) bool { return v.Name.Name != "broken" || v.State == catalog.Quarantined })
	noise(t, r.conn)
	r.exec("INSERT INTO quiet VALUES (1, 'b')")
	r.landed()
	require.Eventually(t, func() bool {
		l := r.log()
		return l.HeldBy == "stopped table public.broken" && l.Retained > 10*megabyte
	}, 30*time.Second, 50*time.Millisecond)
	require.Less(t, int64(r.confirmed()-at), int64(megabyte))
	r.requireCurrentEqualsSource("quiet")
}

// Where the heartbeat's table cannot be written, a logical message is; and the slot
// moves.
func TestC40WithoutAGrantOnTheHeartbeatTableTheSlotMovesAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.quiet.yaml": quietFile})
	role := "poor_" + r.source.Slot
	for _, sql := range []string{
		"CREATE TABLE quiet (id int PRIMARY KEY, v text)",
		"CREATE PUBLICATION " + r.source.Publication + " FOR TABLE quiet WITH (publish_via_partition_root = true)",
		"CREATE ROLE " + role + " LOGIN REPLICATION",
		"GRANT SELECT ON quiet TO " + role,
		"CREATE SCHEMA IF NOT EXISTS lakeweir", "CREATE TABLE lakeweir.heartbeat (source text PRIMARY KEY, beat_at timestamptz NOT NULL, beats bigint NOT NULL)",
	} {
		r.exec(sql)
	}
	t.Cleanup(func() {
		_, err := r.conn.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		require.NoError(t, err)
	})
	owner := r.dsn
	u, err := url.Parse(r.dsn)
	require.NoError(t, err)
	u.User = url.User(role)
	log := &lines{}
	r.logger = log.logger()
	r.dsn = u.String()
	r.start()
	r.dsn = owner
	r.landed()
	noise(t, r.conn)
	require.Eventually(t, func() bool { return r.behind() < megabyte }, 30*time.Second, 50*time.Millisecond)
	require.Contains(t, log.String(), "the heartbeat table cannot be written")
	r.exec("INSERT INTO quiet VALUES (1, 'a')")
	r.landed()
	r.requireCurrentEqualsSource("quiet")
	r.stop()
}
