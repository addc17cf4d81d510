package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
)

// captured is a database that Debezium captures with the recommended settings.
type captured struct {
	t    *testing.T
	on   *stack.Stack
	name string
	conn *pgx.Conn
}

func newCaptured(t *testing.T, on *stack.Stack, name string, setup ...string) *captured {
	t.Helper()
	c := &captured{t: t, on: on, name: name}
	admin, err := pgx.Connect(t.Context(), on.Postgres.DSN("postgres"))
	require.NoError(t, err)
	defer admin.Close(t.Context())
	_, err = admin.Exec(t.Context(), "create database "+name)
	require.NoError(t, err)
	c.conn, err = pgx.Connect(t.Context(), on.Postgres.DSN(name))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.conn.Close(context.WithoutCancel(t.Context())) })
	c.exec("create schema dbz; create table dbz.signal(id varchar(64) primary key, type varchar(32) not null, data varchar(4096)); create table dbz.heartbeat(id int primary key, ts timestamptz not null)")
	for _, sql := range setup {
		c.exec(sql)
	}
	c.exec("create publication dbz for all tables")
	require.NoError(t, on.Connect.Put(t.Context(), name, c.config()))
	return c
}

func (c *captured) exec(sql string) {
	c.t.Helper()
	_, err := c.conn.PgConn().Exec(c.t.Context(), sql).ReadAll()
	require.NoError(c.t, err)
}

func (c *captured) config() map[string]string {
	u, err := url.Parse(c.on.Postgres.DSN(c.name))
	require.NoError(c.t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(c.t, err)
	return map[string]string{
		"connector.class":                           "io.debezium.connector.postgresql.PostgresConnector",
		"tasks.max":                                 "1",
		"database.hostname":                         "127.0.0.1",
		"database.port":                             port,
		"database.user":                             u.User.Username(),
		"database.password":                         "unused",
		"database.dbname":                           c.name,
		"topic.prefix":                              c.name,
		"plugin.name":                               "pgoutput",
		"slot.name":                                 "dbz_" + c.name,
		"slot.max.retries":                          "60",
		"slot.retry.delay.ms":                       "500",
		"publication.name":                          "dbz",
		"publication.autocreate.mode":               "disabled",
		"table.include.list":                        "public\\..*",
		"snapshot.mode":                             "initial",
		"signal.data.collection":                    "dbz.signal",
		"signal.enabled.channels":                   "source",
		"skipped.operations":                        "none",
		"tombstones.on.delete":                      "true",
		"decimal.handling.mode":                     "string",
		"time.precision.mode":                       "microseconds",
		"binary.handling.mode":                      "base64",
		"interval.handling.mode":                    "string",
		"hstore.handling.mode":                      "json",
		"include.unknown.datatypes":                 "true",
		"value.converter":                           "org.apache.kafka.connect.json.JsonConverter",
		"value.converter.schemas.enable":            "false",
		"value.converter.replace.null.with.default": "false",
		"signal.poll.interval.ms":                   "500",
		"poll.interval.ms":                          "100",
		"incremental.snapshot.chunk.size":           "1000",
		"max.batch.size":                            "2048",
		"max.queue.size":                            "8192",
		"producer.override.linger.ms":               "20",
		"producer.override.batch.size":              "524288",
		"producer.override.compression.type":        "lz4",
	}
}

// visit is a stretch of a topic whose events share one place.
type visit struct {
	place  place
	first  int64 // offset
	rows   []string
	resent bool
}

func visits(events []event) []visit {
	var out []visit
	for _, e := range events {
		if e.tombstone || e.snapshot != "" && e.snapshot != "false" {
			continue
		}
		row := e.op + fmt.Sprint(e.before["id"], "→", e.after["id"])
		if n := len(out); n > 0 && out[n-1].place == e.place {
			out[n-1].rows = append(out[n-1].rows, row)
			continue
		}
		out = append(out, visit{place: e.place, first: e.offset, rows: []string{row}})
	}
	return out
}

// What a kill of Connect in the midst of a large COPY does to rows that share one
// place in the log.
func TestCopyResent(t *testing.T) {
	stacktest.Require(t)
	on := stacktest.Start(t, stack.Config{Debezium: true, Postgres: true})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCaptured(t, on, "copied", "create table wide (id int primary key, v text)", "create table nokey (id int, v text); alter table nokey replica identity full", "insert into wide values (0, 'first'); insert into nokey values (0, 'first')")
	for _, table := range []string{"nokey", "wide"} {
		o := openTopic(t, on, "copied.public."+table)
		require.NoError(t, o.until(time.Minute, func(e []event) bool { return len(e) == 1 }))
		t.Logf("snapshot: %v", o.events[0])
		want := 1
		const rows = 20_000
		for round := range 8 {
			from := want
			var lines strings.Builder
			for i := range rows {
				fmt.Fprintf(&lines, "%d\t%s\n", from+i, strings.Repeat("x", 20))
			}
			before := len(o.events)
			_, err := c.conn.PgConn().CopyFrom(t.Context(), strings.NewReader(lines.String()), "copy "+table+" from stdin")
			require.NoError(t, err)
			want += rows
			mark := before + 1 + random.IntN(rows*3/4)
			require.NoError(t, o.until(time.Minute, func(e []event) bool { return len(e) > mark }))
			require.NoError(t, on.Connect.Kill())
			require.NoError(t, on.Connect.Start(t.Context()))
			require.NoError(t, on.Connect.Running(t.Context(), "copied"))
			last := fmt.Sprint(want - 1)
			err = o.until(2*time.Minute, func(e []event) bool { return len(e) > 0 && fmt.Sprint(e[len(e)-1].after["id"]) == last })
			require.NoError(t, err)
			ids := distinctIDs(o.events)
			missing := []int{}
			for i := range want {
				if !ids[fmt.Sprint(i)] {
					missing = append(missing, i)
				}
			}
			t.Logf("round %d of %s: killed after about %d of %d; missing %d: %v", round, table, mark-before, rows, len(missing), missing)
		}
		report(t, table, o.events)
	}
	log, _ := os.ReadFile(on.Connect.Log)
	for _, line := range strings.Split(string(log), "\n") {
		if strings.Contains(line, "WalPositionLocator") || strings.Contains(line, "offset") && strings.Contains(line, "lsn") {
			t.Log(line[:min(len(line), 400)])
		}
	}
}

func distinctIDs(events []event) map[string]bool {
	out := map[string]bool{}
	for _, e := range events {
		out[fmt.Sprint(e.after["id"])] = true
	}
	return out
}

func report(t *testing.T, table string, events []event) {
	all := visits(events)
	by := map[place][]visit{}
	var order []place
	falls := 0
	for i, v := range all {
		if by[v.place] == nil {
			order = append(order, v.place)
		}
		by[v.place] = append(by[v.place], v)
		if i > 0 && v.place.less(all[i-1].place) {
			falls++
			t.Logf("%s: the place falls at offset %d: %v after %v", table, v.first, v.place, all[i-1].place)
		}
	}
	seen := map[string]place{}
	for _, v := range all {
		for _, r := range v.rows {
			if p, ok := seen[r]; ok && p != v.place {
				t.Errorf("%s: %s came with %v and with %v", table, r, p, v.place)
			}
			seen[r] = v.place
		}
	}
	multi, whole, prefix, suffix, other := 0, 0, 0, 0, 0
	for _, p := range order {
		vs := by[p]
		if len(vs) < 2 {
			continue
		}
		multi++
		longest := vs[0]
		for _, v := range vs {
			if len(v.rows) > len(longest.rows) {
				longest = v
			}
		}
		for _, v := range vs {
			switch {
			case slices.Equal(v.rows, longest.rows):
				whole++
			case slices.Equal(v.rows, longest.rows[:len(v.rows)]):
				prefix++
				t.Logf("%s: place %v: visit at offset %d has only the first %d of %d", table, p, v.first, len(v.rows), len(longest.rows))
			case slices.Equal(v.rows, longest.rows[len(longest.rows)-len(v.rows):]):
				suffix++
				t.Logf("%s: place %v: visit at offset %d has only the last %d of %d", table, p, v.first, len(v.rows), len(longest.rows))
			default:
				other++
				t.Logf("%s: place %v: visit at offset %d has %d of %d: %v", table, p, v.first, len(v.rows), len(longest.rows), v.rows)
			}
		}
	}
	t.Logf("%s: %d events, %d distinct places, %d visited more than once; falls %d; visits of those: whole %d, prefix %d, suffix %d, other %d", table, len(events), len(order), multi, falls, whole, prefix, suffix, other)
}
