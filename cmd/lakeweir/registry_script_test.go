package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

// TestRegistryScripts runs testdata/registry: the commands that read a registry, each
// script on a database of its own. The command "registry" names it in
// LAKEWEIR_REGISTRY; "registry shop" fills it with a shop first.
func TestRegistryScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/registry",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status,
			"registry": func(ts *testscript.TestScript, _ bool, args []string) {
				dsn := localpgtest.Database(t)
				ts.Setenv("LAKEWEIR_REGISTRY", dsn)
				if len(args) > 0 {
					ts.Check(fillShop(t.Context(), dsn))
				}
			},
		},
	})
}

// fillShop makes a registry that knows a fresh, a stopped and an unread table of one
// source, and a table of that name in another.
func fillShop(ctx context.Context, dsn string) error {
	r, err := registry.Open(ctx, catalog.Secret(dsn))
	if err != nil {
		return err
	}
	defer r.Close()
	source := func(name string) catalog.Source {
		return catalog.Source{
			Name: name, Kind: catalog.Postgres, Capture: catalog.Direct, WALBudget: 10 << 30, File: name + "/source.yaml",
			Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}},
		}
	}
	table := func(source, name string) catalog.Table {
		return catalog.Table{
			Source: source, Name: catalog.TableName{Schema: "public", Name: name}, Owner: "team-" + source, PrimaryKey: []string{"id"}, Current: true, History: true,
			Tier: catalog.Tier1m, PII: map[string]catalog.Protection{"email": catalog.Tokenize}, File: source + "/public." + name + ".yaml",
		}
	}
	crm := source("crm")
	crm.Capture = catalog.Debezium
	log := table("shop", "log")
	log.PrimaryKey, log.Current, log.History = nil, false, false
	steps := []func() error{
		func() error {
			return r.SyncConfig(ctx, []catalog.Source{source("shop"), crm}, []catalog.Table{
				table("shop", "orders"), table("shop", "payments"), log, table("crm", "orders"), table("crm", "old"),
			})
		},
		func() error { // a file is gone
			return r.SyncConfig(ctx, []catalog.Source{crm}, []catalog.Table{table("crm", "orders")})
		},
		func() error {
			_, err := r.RecordSchema(ctx, "shop", "public.orders", &catalog.Schema{Key: []int{0}, Columns: []catalog.Column{
				{Name: "id", Number: 1, Source: catalog.SourceType{Name: "bigint", Base: "int8", Modifier: -1}, Type: catalog.Type{Kind: catalog.Int64}},
				{Name: "email", Number: 2, Source: catalog.SourceType{Name: "text", Base: "text", Modifier: -1}, Type: catalog.Type{Kind: catalog.Text}, Nullable: true},
			}})
			return err
		},
		func() error {
			return r.SetTableStatuses(ctx, "shop", []registry.TableStatus{
				{Table: "public.orders", State: catalog.Streaming, BronzeThrough: 0x16B374D848, CurrentThrough: 0x16B374D848, HistoryThrough: 0x16B374D848, FreshAt: time.Now()},
				{
					Table: "public.payments", State: catalog.Quarantined, FreshAt: time.Now().Add(-31*time.Minute - 30*time.Second),
					Fault: &catalog.Error{Code: catalog.CodeSchemaChanged, Message: "column total is gone", Hint: "re-snapshot the table"},
				},
			})
		},
		func() error {
			epoch := catalog.Epoch{System: "7312345678901234567", Timeline: 1}
			return r.RecordBatches(ctx, "shop", []registry.BatchRecord{{
				Table: "public.orders", ID: "b1", At: time.Now(), Creates: 1200, Updates: 34, Bytes: 4096,
				To:     catalog.Cursor{Epoch: epoch, Position: catalog.Position{Generation: 1, Commit: 0x16B374D848, Ordinal: 4}},
				Bronze: registry.Commit{Rows: 1234, Total: 1234, Took: 12 * time.Millisecond}, Current: registry.Commit{Rows: 1234, Removed: 34, Total: 1200, Took: 34 * time.Millisecond},
			}})
		},
		func() error {
			return r.SetSourceStatus(ctx, "shop", registry.SourceStatus{End: 0x16B374D900, Confirmed: 0x16B374D848, Retained: 8 << 30, SlotState: "reserved", Active: true}, 0x16B374D848)
		},
		func() error {
			return r.SetConnector(ctx, "crm", catalog.ConnectorStatus{Name: "lakeweir-crm", State: catalog.ConnectorRunning, Tasks: []catalog.ConnectorTask{
				{ID: 0, State: catalog.ConnectorFailed, Worker: "connect:8083", Trace: "org.apache.kafka.connect.errors.ConnectException: it is over\n\tat io.debezium.Some.where(Some.java:1)\nCaused by: org.postgresql.util.PSQLException: FATAL: no slot"},
			}})
		},
		func() error {
			return r.Heartbeat(ctx, registry.Worker{ID: "w", Source: "shop", PID: 4242, Version: "v0.1.0", StartedAt: time.Now().Add(-3*time.Hour - time.Minute)})
		},
		func() error {
			return r.RecordReconciliation(ctx, registry.Reconciliation{ID: "r1", Source: "shop", Table: "public.orders", At: time.Now(), Cursor: "16/B374D848", SourceRows: 1200, LakeRows: 1200, Took: time.Second})
		},
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func TestWatchSaysItAgainUntilInterrupted(t *testing.T) {
	t.Parallel()
	dsn := localpgtest.Database(t)
	require.NoError(t, fillShop(t.Context(), dsn))
	for _, form := range []string{"text", "json", "yaml"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
			defer interrupt()
			read, write := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				err := runStatus(ctx, &App{Stdout: write, Stderr: io.Discard, Output: form}, StatusOptions{Registry: dsn, Watch: true, Interval: 10 * time.Millisecond})
				ended <- errors.Join(err, write.Close())
			}()
			lines := bufio.NewScanner(read)
			for said := 0; said < 3 && lines.Scan(); {
				if strings.Contains(lines.Text(), "tables within their tier") || strings.Contains(lines.Text(), `"withinTier":1`) || strings.Contains(lines.Text(), "withinTier: 1") {
					said++
				}
			}
			interrupt()
			_, err := io.Copy(io.Discard, read)
			require.NoError(t, err)
			require.NoError(t, <-ended)
		})
	}
}

func TestATableIsNamedByAsMuchAsItTakes(t *testing.T) {
	t.Parallel()
	view := func(source, schema, name string) registry.TableView {
		return registry.TableView{Source: source, Name: catalog.TableName{Schema: schema, Name: name}}
	}
	fleet := &registry.Fleet{Tables: []registry.TableView{view("shop", "public", "orders"), view("crm", "public", "orders"), view("shop", "audit", "log")}}
	for name, want := range map[string]string{
		"shop/public.orders": "shop/public.orders", "crm/public.orders": "crm/public.orders",
		"log": "shop/audit.log", "audit.log": "shop/audit.log",
	} {
		got, err := findTable(fleet, name)
		require.NoError(t, err)
		require.Equal(t, want, got.ID())
	}
	_, err := findTable(fleet, "orders")
	require.EqualError(t, err, `"orders" is the name of 2 tables`)
	require.Equal(t, catalog.Invalid, catalog.KindOf(err))
	_, err = findTable(fleet, "nothing")
	require.Equal(t, catalog.NotFound, catalog.KindOf(err))
}
