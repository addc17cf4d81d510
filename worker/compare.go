package worker

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/privacy"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// CompareConfig is what comparing tables of one source with the lake needs.
type CompareConfig struct {
	Source *catalog.Source
	Tables []*catalog.Table
	// DSN and TokenKey are as in Config.
	DSN      catalog.Secret
	TokenKey catalog.Secret
	Lake     lake.Config
	Registry *registry.Registry // keeps the results; may be nil
	// Options hold how to compare; what is of the source and the lake is filled in.
	Options  reconcile.Config
	Parallel int // tables at once; default 8
	// Repair has the worker read the keys again that differ, up to reconcile.MaxKeys a
	// table, waits until bronze holds them, and compares once more. It needs Registry.
	Repair bool
	Logger *slog.Logger
}

// refolds is for how many tables bronze is folded anew at once, and refoldBytes the
// memory of each.
const (
	refolds     = 2
	refoldBytes = 512 << 20
)

// Comparison is the outcome for one table: a result, or why there is none.
type Comparison struct {
	Table  *catalog.Table
	Result *reconcile.Result
	Err    error
}

// Compare compares each table and returns the outcomes in the order of the
// tables. The error is one that concerns them all.
func Compare(ctx context.Context, cfg CompareConfig) ([]Comparison, error) {
	compare := compareTable
	if cfg.Repair && !rereadsRows(cfg.Source) {
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "name a signal_table in source.yaml, through which the connector is asked, and start the worker anew",
			"rows of source %s cannot be read again: its connector has no signal table", cfg.Source.Name)
	}
	if cfg.Repair {
		if err := requireWorker(ctx, cfg); err != nil {
			return nil, err
		}
		if cfg.Options.Wait == 0 {
			cfg.Options.Wait = 2 * time.Minute
		}
		cfg.Options.Keys = true
		compare = repairTable
	}
	l, err := lake.Open(ctx, cfg.Lake, cfg.Logger)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	out := make([]Comparison, len(cfg.Tables))
	if cfg.Parallel <= 0 {
		cfg.Parallel = 8
	}
	if cfg.Options.RefoldBytes == 0 {
		cfg.Options.RefoldBytes = refoldBytes
	}
	cfg.Options.Turns = make(chan struct{}, refolds)
	var g errgroup.Group
	g.SetLimit(cfg.Parallel)
	for i, t := range cfg.Tables {
		g.Go(func() error {
			out[i] = Comparison{Table: t}
			out[i].Result, out[i].Err = compare(ctx, cfg, l, t)
			return nil
		})
	}
	return out, g.Wait()
}

func compareTable(ctx context.Context, cfg CompareConfig, l *lake.Lake, t *catalog.Table) (*reconcile.Result, error) {
	opts := cfg.Options
	opts.Source, opts.DSN, opts.Logger = cfg.Source, cfg.DSN, cfg.Logger
	opts.Lake = comparedLake{lake: l, source: cfg.Source}
	if cfg.Registry != nil {
		opts.Through = func(ctx context.Context, t *catalog.Table) (catalog.LSN, error) { return said(ctx, cfg.Registry, t) }
	}
	if len(t.PII) > 0 {
		masking, err := privacy.NewText([]byte(cfg.TokenKey.Reveal()))
		if err != nil {
			return nil, err
		}
		opts.Masking = masking
	}
	result, err := reconcile.New(opts).Table(ctx, t)
	if err != nil || cfg.Registry == nil {
		return result, err
	}
	report := *result
	report.Differences = withoutValues(result.Differences)
	doc, err := json.Marshal(report)
	if err != nil {
		return result, err
	}
	return result, cfg.Registry.RecordReconciliation(ctx, registry.Reconciliation{
		ID: uuid.NewString(), Source: cfg.Source.Name, Table: t.Name.String(), At: result.At, Cursor: result.Cursor,
		SourceRows: result.SourceRows, LakeRows: result.LakeRows, Differing: result.Differing + result.Violations,
		Report: doc, Took: result.Took.Round(time.Millisecond),
	})
}

// withoutValues leaves out the values of rows that differ: the registry is no place
// for them.
func withoutValues(differences []reconcile.Difference) []reconcile.Difference {
	out := slices.Clone(differences)
	for i := range out {
		out[i].Values = slices.Clone(out[i].Values)
		for j := range out[i].Values {
			out[i].Values[j] = reconcile.ValuePairs{Column: out[i].Values[j].Column}
		}
	}
	return out
}

// said is up to where the worker has said that a table's bronze is complete; an
// error when it has said that the table has stopped.
func said(ctx context.Context, r *registry.Registry, t *catalog.Table) (catalog.LSN, error) {
	through, fault, err := r.BronzeThrough(ctx, t.Source, t.Name.String())
	if err != nil || fault == nil {
		return through, err
	}
	return 0, catalog.Errorf(catalog.Unavailable, catalog.CodeReconcile, "lakeweir describe table "+t.ID()+" says what to do; compare it when it goes on",
		"table %s has stopped: %s", t.ID(), fault.Code)
}

// comparedLake is the lake as a comparison reads it.
type comparedLake struct {
	lake   *lake.Lake
	source *catalog.Source
}

var _ reconcile.Lake = comparedLake{}

func (c comparedLake) View(ctx context.Context, table *catalog.Table, layer catalog.Layer) (reconcile.View, error) {
	v, err := c.lake.View(ctx, c.source.LakeName(table.Name, layer), 0)
	if err != nil {
		return nil, err
	}
	return comparedView{v}, nil
}

func (c comparedLake) Open(ctx context.Context, table *catalog.Table, schema *catalog.Schema) (pipeline.Layers, error) {
	return c.lake.ForSource(c.source).Open(ctx, table, schema)
}

type comparedView struct{ *lake.View }

func (v comparedView) Rows(ctx context.Context, columns []string) iter.Seq2[*change.Rows, error] {
	_, rows, err := v.Scan(ctx, lake.ScanOptions{Columns: columns})
	if err != nil {
		return func(yield func(*change.Rows, error) bool) { yield(nil, err) }
	}
	return rows
}
