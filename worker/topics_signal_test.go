package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// answering makes the desk read what signals ask for, of tables of (id, v), as a connector
// does, until the test ends. It returns how many signals it has read.
func (d *desk) answering() (signals func() int) {
	d.t.Helper()
	d.source.Connector.SignalTable = catalog.ParseTableName("lakeweir.signals")
	d.exec("CREATE TABLE lakeweir.signals (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(4096))")
	conn, err := pgx.Connect(d.t.Context(), d.dsn)
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.t.Context()))
	var mu sync.Mutex
	seen := map[string]bool{}
	var done sync.WaitGroup
	done.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var id, data string
			if err := conn.QueryRow(ctx, "SELECT id, data FROM lakeweir.signals WHERE type = 'execute-snapshot'").Scan(&id, &data); err != nil || seen[id] {
				continue
			}
			if err := d.answer(ctx, conn, id, data); err != nil {
				d.t.Errorf("signal %s: %v", data, err)
				return
			}
			mu.Lock()
			seen[id] = true
			mu.Unlock()
		}
	})
	d.t.Cleanup(func() { cancel(); done.Wait() })
	return func() int { mu.Lock(); defer mu.Unlock(); return len(seen) }
}

// answer reads what one signal asks for.
func (d *desk) answer(ctx context.Context, conn *pgx.Conn, id, data string) error {
	var signal struct {
		Conditions []struct {
			Table  string `json:"data-collection"`
			Filter string `json:"filter"`
		} `json:"additional-conditions"`
	}
	if err := json.Unmarshal([]byte(data), &signal); err != nil {
		return err
	}
	table := strings.ReplaceAll(signal.Conditions[0].Table, `\.`, ".")
	var text string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
		return err
	}
	at, err := catalog.ParseLSN(text)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx, "SELECT id, v FROM "+table+" WHERE "+signal.Conditions[0].Filter)
	if err != nil {
		return err
	}
	var row struct {
		ID int     `json:"id"`
		V  *string `json:"v"`
	}
	schema, name, _ := strings.Cut(table, ".")
	sequence, n := strconv.FormatUint(uint64(at), 10), 0
	_, err = pgx.ForEachRow(rows, []any{&row.ID, &row.V}, func() error {
		n++
		value, err := json.Marshal(map[string]any{"before": nil, "after": row, "op": "r", "source": map[string]any{
			"lsn": nil, "txId": nil, "sequence": fmt.Sprintf(`["%s","%s"]`, sequence, sequence), "ts_us": 1, "ts_ms": 1, "snapshot": "incremental", "schema": schema, "table": name,
		}})
		if err != nil {
			return err
		}
		return d.client.ProduceSync(ctx, &kgo.Record{Topic: "shop." + table, Key: fmt.Appendf(nil, `{"id":%d}`, row.ID), Value: value}).FirstErr()
	})
	if err != nil {
		return err
	}
	status := "SUCCEEDED"
	if n == 0 {
		status = "EMPTY"
	}
	notify := func(kind, data string) error {
		value := fmt.Appendf(nil, `{"id":"%s","type":"%s","aggregate_type":"Incremental Snapshot","additional_data":%s}`, id, kind, data)
		return d.client.ProduceSync(ctx, &kgo.Record{Topic: "shop-notifications", Value: value}).FirstErr()
	}
	if err := notify("STARTED", `{"data_collections":"`+table+`"}`); err != nil {
		return err
	}
	return notify("TABLE_SCAN_COMPLETED", `{"scanned_collection":"`+table+`","status":"`+status+`"}`)
}

// TestRowsThatDifferAreReadAgainThroughTheConnector: changed, missing and extra ones, until
// source and lake are equal; and values that were never sent, by themselves.
func TestRowsThatDifferAreReadAgainThroughTheConnector(t *testing.T) {
	t.Parallel()
	d := newCase(t, "rr")
	signals := d.answering()
	for id, which := range []string{"first", "true", "true", "last"} {
		d.say("public.rr", told{op: "r", after: row(id+1, "as it was"), lsn: 90, snapshot: which})
	}
	d.exec("INSERT INTO rr VALUES (1, 'as it was'), (2, 'changed unseen'), (4, 'as it was'), (5, 'came unseen')") // 3 went unseen
	d.start()
	d.settled()
	require.Zero(t, signals())
	before := whileBeating(d, func() *reconcile.Result { return d.compare(reconcile.Config{})["public.rr"] })
	require.ElementsMatch(t, []string{"changed id=2 v", "missing id=5", "extra id=3"}, findings(before.Differences))

	repaired := whileBeating(d, func() *reconcile.Result { return d.repair(reconcile.Config{})["public.rr"] })
	require.True(t, repaired.Equal(), repaired.Text())
	require.Equal(t, int64(3), *repaired.Repaired)
	require.Equal(t, 1, signals())
	d.shows("public.rr", "1 as it was", "2 changed unseen", "4 as it was", "5 came unseen")
	d.past("public.rr", "1 as it was +", "2 as it was", "2 changed unseen +", "3 as it was", "4 as it was +", "5 came unseen +")
	d.requireBronzeSound("public.rr")

	// A row that the lake has never seen comes without its large value: nobody has to ask.
	d.exec("INSERT INTO rr VALUES (6, repeat('x', 9000))")
	at := uint64(d.end())
	d.say("public.rr", told{op: "u", after: row(6, placeholder), sequence: at, lsn: at + 8})
	require.Eventually(t, func() bool {
		d.settled()
		_, rows := d.rows("public.rr", catalog.Current)
		for _, r := range rows {
			if r["id"] == "6" {
				return short(r["v"]) == "x*9000" && r["_unavailable_columns"] == ""
			}
		}
		return false
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, 2, signals())
	d.proved()
	d.stop()
	d.start() // what was answered is not asked for again
	d.proved()
	require.Equal(t, 2, signals())
	d.stop()
}

// TestWithoutASignalTableNothingIsReadAgain, and that is said before anything is compared.
func TestWithoutASignalTableNothingIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newCase(t, "rr")
	_, err := worker.Compare(t.Context(), worker.CompareConfig{Source: d.source, Tables: d.tables, Repair: true, Registry: d.registry, Lake: d.lakeCfg, Logger: testLogger(t)})
	require.Equal(t, catalog.CodeUsage, catalog.Public(err).Code)
	require.Contains(t, catalog.Public(err).Hint, "signal_table")
}
