package demo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// TestTheOracleFoldsTheAudit runs the scripts in testdata/oracle on a real shop.
// Commit times are chosen by the script, in seconds, as a replication origin may.
//
//	tx at=10              runs the statements in one transaction
//	step in=a             runs them in transaction a, which stays open
//	commit in=a at=10     ends it
//	history table=refunds columns=(refund_id,reason) tracked=(reason)
//	                      prints each version as: values [from, to)
func TestTheOracleFoldsTheAudit(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/oracle", func(t *testing.T, path string) {
		t.Helper()
		dsn := localpgtest.Database(t)
		require.NoError(t, demo.Setup(t.Context(), dsn, 0))
		shop := &scripted{t: t, dsn: dsn, sessions: map[string]*pgx.Conn{}}
		datadriven.RunTest(t, path, shop.command)
	})
}

type scripted struct {
	t        *testing.T
	dsn      string
	sessions map[string]*pgx.Conn
}

func (s *scripted) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.t = t
	name := "main"
	if d.HasArg("in") {
		d.ScanArgs(t, "in", &name)
	}
	switch d.Cmd {
	case "tx":
		s.exec(name, "begin")
		s.exec(name, d.Input)
		s.commit(name, d)
	case "step":
		if _, open := s.sessions[name]; !open {
			s.exec(name, "begin")
		}
		s.exec(name, d.Input)
	case "commit":
		s.commit(name, d)
	case "history":
		return s.history(d)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

func (s *scripted) exec(name, sql string) {
	s.t.Helper()
	conn := s.sessions[name]
	if conn == nil {
		conn = connect(s.t, s.dsn)
		s.sessions[name] = conn
		if name != "main" && sql != "begin" {
			s.exec(name, "begin")
		}
	}
	_, err := conn.Exec(s.t.Context(), sql)
	require.NoError(s.t, err, sql)
}

// commit commits with the given time, as what applies another server's changes
// does: a session that has a replication origin says when a transaction was
// committed there.
func (s *scripted) commit(name string, d *datadriven.TestData) {
	s.t.Helper()
	var at int64
	d.ScanArgs(s.t, "at", &at)
	var origin string
	conn := s.sessions[name]
	require.NoError(s.t, conn.QueryRow(s.t.Context(), "select 'oracle_' || pg_backend_pid()").Scan(&origin))
	s.exec(name, "select pg_replication_origin_create('"+origin+"'); select pg_replication_origin_session_setup('"+origin+"')")
	s.exec(name, fmt.Sprintf("select pg_replication_origin_xact_setup('0/1', '%s')", epoch.Add(time.Duration(at)*time.Second).Format(time.RFC3339)))
	s.exec(name, "commit")
	s.exec(name, "select pg_replication_origin_session_reset(); select pg_replication_origin_drop('"+origin+"')")
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *scripted) history(d *datadriven.TestData) string {
	s.t.Helper()
	var table string
	d.ScanArgs(s.t, "table", &table)
	columns, tracked := list(d, "columns"), list(d, "tracked")
	if tracked == nil {
		tracked = columns
	}
	var b strings.Builder
	conn := connect(s.t, s.dsn)
	for v, err := range demo.History(s.t.Context(), conn, table, keys()[table], tracked, columns) {
		require.NoError(s.t, err)
		for i, k := range keys()[table] {
			if c := slices.Index(columns, k); c >= 0 {
				require.Equal(s.t, v.Values[c], v.Key[i])
			}
		}
		for _, value := range v.Values {
			if value.Null {
				b.WriteString("NULL ")
			} else {
				b.WriteString(value.Text + " ")
			}
		}
		from := time.UnixMicro(v.From).Sub(epoch).Seconds()
		if v.Current {
			require.Equal(s.t, demo.Open, v.To)
			fmt.Fprintf(&b, "[%v, now)\n", from)
		} else {
			fmt.Fprintf(&b, "[%v, %v)\n", from, time.UnixMicro(v.To).Sub(epoch).Seconds())
		}
	}
	return b.String()
}

func list(d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

func TestOpenIsTheEndOfTime(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.UnixMicro(demo.Open).UTC())
}

func TestTheOracleNeedsCommitTimes(t *testing.T) {
	t.Parallel()
	server := localpgtest.Server(t, map[string]string{"track_commit_timestamp": "off"})
	dsn := localpgtest.DatabaseOn(t, server)
	require.NoError(t, demo.Setup(t.Context(), dsn, 10))
	for _, err := range demo.History(t.Context(), connect(t, dsn), "orders", []string{"order_id"}, nil, []string{"order_id"}) {
		require.ErrorContains(t, err, "fold the audit of orders")
		require.ErrorContains(t, err, "commit timestamp")
		return
	}
	t.Fatal("no error")
}

func TestSetupIsDoneOnce(t *testing.T) {
	t.Parallel()
	dsn := localpgtest.Database(t)
	count := func() (n int64) {
		require.NoError(t, connect(t, dsn).QueryRow(t.Context(), "select count(*) from demo_audit.changes").Scan(&n))
		return n
	}
	require.NoError(t, demo.Setup(t.Context(), dsn, 200))
	before := count()
	require.Greater(t, before, int64(1000))
	require.NoError(t, demo.Setup(t.Context(), dsn, 200))
	require.Equal(t, before, count())

	// One that was cut off goes on where it was.
	conn := connect(t, dsn)
	_, err := conn.Exec(t.Context(), "delete from documents; delete from demo_audit.setup where step = 'seed documents'")
	require.NoError(t, err)
	require.NoError(t, demo.Setup(t.Context(), dsn, 200))
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from documents").Scan(&n))
	require.Equal(t, 20, n)
}

func TestSetupLeavesOthersTablesAlone(t *testing.T) {
	t.Parallel()
	dsn := localpgtest.Database(t)
	_, err := connect(t, dsn).Exec(t.Context(), "create table orders (mine int)")
	require.NoError(t, err)
	require.ErrorContains(t, demo.Setup(context.Background(), dsn, 10), "tables named like the example shop's")
}
