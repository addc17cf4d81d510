package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

// another does what another writer does to a table just before our commit. A table
// that is not there yet is left alone.
func another(ctx context.Context, e *laketest.Engine, kind string, ident []string) error {
	silver := !strings.HasSuffix(ident[1], "_cdc")
	var err error
	switch kind {
	case rivalProperty:
		err = e.SetProperty(ctx, ident, "comment", strconv.FormatInt(time.Now().UnixNano(), 10))
	case rivalManifests:
		err = e.RewriteManifests(ctx, ident)
	case rivalCompacts:
		err = e.Compact(ctx, ident)
	case rivalColumn:
		err = e.AddColumn(ctx, ident, "remarks_of_others")
	case rivalExpires:
		err = e.Expire(ctx, ident, false)
	case rivalRollsBack:
		if silver {
			_, _, err = e.RollBack(ctx, ident, 2)
		}
	}
	if errors.Is(err, laketest.ErrNoTable) {
		return nil
	}
	return err
}

// layers lists the lake's tables of a run that exist.
func (f *faultRun) layers(silver bool) [][]string {
	var out [][]string
	for _, t := range f.tables {
		for _, layer := range []catalog.Layer{catalog.Bronze, catalog.Current, catalog.History} {
			ident := f.source.LakeName(t.Name, layer)
			if silver && layer == catalog.Bronze || layer == catalog.Current && !t.Current || layer == catalog.History && !t.History {
				continue
			}
			if _, err := f.engine.Load(f.t.Context(), ident); err == nil {
				out = append(out, ident)
			}
		}
	}
	return out
}

// happens does an event while no worker runs.
func (f *faultRun) happens(e event) {
	f.t.Helper()
	ctx := f.t.Context()
	silver := e.Kind == silverRolledBack || e.Kind == silverDropped
	var ident []string
	if all := f.layers(silver); len(all) > 0 {
		ident = all[e.N%len(all)]
	}
	var err error
	switch e.Kind {
	case clockJumped:
		f.fired(e.Kind) // the life that begins has it
		return
	case sourceJumped:
		f.sourceJumps(e.N)
		return
	case slotBusy:
		f.occupySlot(time.Duration(100+e.N%400) * time.Millisecond)
		return
	case bronzeRolledBack:
		f.bronzeGoesBack(e.N)
		return
	}
	if ident == nil {
		return
	}
	switch e.Kind {
	case silverRolledBack:
		var from, to int64
		if from, to, err = f.engine.RollBack(ctx, ident, 1+e.N%7); from == to {
			return
		}
	case silverDropped:
		err = f.engine.Drop(ctx, ident)
	case compacted:
		err = f.engine.Compact(ctx, ident)
	case expired, expiredUntagged:
		if err = f.engine.Compact(ctx, ident); err == nil {
			err = f.engine.RewriteManifests(ctx, ident)
		}
		if err == nil {
			err = f.engine.Expire(ctx, ident, e.Kind == expiredUntagged)
		}
	case orphansRemoved:
		err = f.engine.RemoveOrphans(ctx, ident, time.Hour)
	}
	if ahead(err) {
		return
	}
	require.NoError(f.t, err, "%s %v", e.Kind, ident)
	f.fired(e.Kind)
}

// ahead reports that another engine refuses to commit to a table whose snapshots are of
// the future, since a worker's clock was hours ahead.
func ahead(err error) bool {
	return err != nil && strings.Contains(err.Error(), "invalid update timestamp")
}

// bronzeGoesBack has somebody set a table's bronze back. The worker must say gap and
// append nothing; when bronze is set forward again nothing is missing. Where the source
// still has what went, since its reception had not been confirmed, the worker reads it
// again instead, and the audit tells whether that was all.
func (f *faultRun) bronzeGoesBack(n int) {
	f.t.Helper()
	t := f.tables[n%len(f.tables)]
	ident := f.source.LakeName(t.Name, catalog.Bronze)
	if _, err := f.engine.Load(f.t.Context(), ident); err != nil {
		return
	}
	from, to, err := f.engine.RollBack(f.t.Context(), ident, 1+n%5)
	if ahead(err) {
		return
	}
	require.NoError(f.t, err)
	if from == to {
		return
	}
	rolled, err := f.engine.Load(f.t.Context(), ident)
	require.NoError(f.t, err)
	if laketest.Rows(rolled, from) == laketest.Rows(rolled, to) { // only another engine's rewriting went: nothing is missing
		require.NoError(f.t, f.engine.SetMain(f.t.Context(), ident, from))
		return
	}
	f.fired(bronzeRolledBack)
	began := time.Now()
	f.startTroubled(trouble{})
	again := false
	f.wait(func(v *registry.TableView) bool { // a gap of before is not this worker's word
		if v.Name != t.Name || v.State == catalog.Gap {
			return v.Name != t.Name || v.HeardAt.After(began)
		}
		now, err := f.engine.Load(f.t.Context(), ident)
		again = err == nil && laketest.Rows(now, now.CurrentSnapshot().SnapshotID) >= laketest.Rows(rolled, from)
		return again
	})
	require.NoError(f.t, f.end())
	if again {
		return
	}
	after, err := f.engine.Load(f.t.Context(), ident)
	require.NoError(f.t, err)
	require.Equal(f.t, to, after.CurrentSnapshot().SnapshotID, "nothing is appended to a bronze that was rolled back")
	require.NoError(f.t, f.engine.SetMain(f.t.Context(), ident, from))
}

// sourceJumps has transactions commit at times that are hours ahead, as those of a
// server do whose clock is set: what commits next is hours back. Commit times come
// from the server; an origin may say them.
func (f *faultRun) sourceJumps(n int) {
	f.t.Helper()
	if !f.plan.Clean {
		return // the audit is compared from the first read on, which such times would blur
	}
	ctx := f.t.Context()
	conn, err := pgx.Connect(ctx, f.dsn)
	require.NoError(f.t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	exec := func(sql string) {
		_, err := conn.Exec(ctx, sql)
		require.NoError(f.t, err, sql)
	}
	origin := fmt.Sprintf("jump_%s_%d", f.source.Slot, n)
	exec("SELECT pg_replication_origin_create('" + origin + "'); SELECT pg_replication_origin_session_setup('" + origin + "')")
	for i, sql := range []string{
		"UPDATE orders SET amount = amount + 1 WHERE order_id IN (SELECT order_id FROM orders ORDER BY order_id DESC LIMIT 3 FOR UPDATE SKIP LOCKED)",
		"UPDATE payments SET captured = NOT captured WHERE payment_id IN (SELECT payment_id FROM payments ORDER BY payment_id LIMIT 3 FOR UPDATE SKIP LOCKED)",
	} {
		exec("BEGIN")
		exec(sql)
		exec(fmt.Sprintf("SELECT pg_replication_origin_xact_setup('0/%d', now() + interval '%d hours')", i+1, 1+n%5-i))
		exec("COMMIT")
	}
	exec("SELECT pg_replication_origin_session_reset(); SELECT pg_replication_origin_drop('" + origin + "')")
	f.fired(sourceJumped)
}

// occupySlot has somebody else read the slot for a while, confirming nothing.
func (f *faultRun) occupySlot(d time.Duration) {
	f.t.Helper()
	ctx := f.t.Context()
	c, err := pgconn.ParseConfig(f.dsn)
	require.NoError(f.t, err)
	c.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, c)
	require.NoError(f.t, err)
	conn.Frontend().SendQuery(&pgproto3.Query{String: "START_REPLICATION SLOT " + f.source.Slot + " LOGICAL 0/0 (proto_version '1', publication_names '" + f.source.Publication + "')"})
	require.NoError(f.t, conn.Frontend().Flush())
	until := time.Now().Add(2 * time.Second)
	for {
		var active bool
		err := f.conn.QueryRow(ctx, "SELECT coalesce(bool_or(active_pid = $1), false) FROM pg_replication_slots WHERE slot_name = $2", conn.PID(), f.source.Slot).Scan(&active)
		if err == nil && active {
			f.fired(slotBusy)
			break
		}
		if time.Now().After(until) {
			break // there is no slot yet
		}
	}
	time.AfterFunc(d, func() { _ = conn.Conn().Close() })
}

// tryAsSecond starts a second worker of the source, which must be refused.
func (f *faultRun) tryAsSecond() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	err := worker.Run(ctx, worker.Config{
		Source: f.source, Tables: f.tables, DSN: catalog.Secret(f.dsn), TokenKey: tokenKey,
		Lake: f.lakeCfg, Registry: f.registry, Limits: f.limits,
	})
	if err != nil && catalog.Public(err).Code == catalog.CodeSourceSlot {
		f.fired(secondWorker)
	}
}
