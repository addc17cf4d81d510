package worker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// repairKeys is how many keys one request to read rows again has at most.
const repairKeys = 1000

// shownRepairs bounds how many repaired violations are told by key; all are counted.
const shownRepairs = 20

// workerSilent is for how long a worker may say nothing and still count as running.
const workerSilent = 15 * time.Second

// requireWorker fails when no worker of the source runs: nobody would read rows again.
func requireWorker(ctx context.Context, cfg CompareConfig) error {
	ago, ever, err := cfg.Registry.WorkerSeen(ctx, cfg.Source.Name)
	if err != nil || ever && ago <= workerSilent {
		return err
	}
	since := "has ever run it"
	if ever {
		since = "has said anything for " + ago.Round(time.Second).String()
	}
	return catalog.Errorf(catalog.Unavailable, catalog.CodeReconcile, "start it with lakeweir run, then repair again",
		"source %s is not running, so that no row of it can be read again: no worker %s", cfg.Source.Name, since)
}

// repairTable compares a table, has the worker read the keys again that differ or that
// something within the lake is wrong with, and make their rows of current and history
// anew from bronze, and compares once more.
func repairTable(ctx context.Context, cfg CompareConfig, l *lake.Lake, t *catalog.Table) (*reconcile.Result, error) {
	before, err := compareTable(ctx, cfg, l, t)
	if err != nil {
		return nil, err
	}
	before.Repaired = new(int64)
	if !t.HasKey() {
		if before.Differing > 0 {
			before.Notes = append(before.Notes, "a table without a key is not repaired: which of its rows differ is not known")
		}
		return before, nil
	}
	if len(before.Keys) == 0 {
		return unrepaired(before), nil
	}
	ids, err := requestRepair(ctx, cfg, t, before.Keys)
	if err != nil {
		return before, err
	}
	if err := waitForRepair(ctx, cfg, t, ids); err != nil {
		return before, err
	}
	after, err := compareTable(ctx, cfg, l, t)
	if err != nil {
		return before, err
	}
	sumUpRepair(t, before, after)
	return unrepaired(after), nil
}

// unrepaired says of what is still wrong why it is.
func unrepaired(r *reconcile.Result) *reconcile.Result {
	if r.Violations > 0 {
		r.Notes = append(r.Notes, "what is wrong with bronze itself, or with the table as a whole, is not repaired")
	}
	return r
}

// requestRepair asks for the keys to be read again and returns the requests' numbers.
// A key with personal parts is sealed; where only the lake's token is known, the
// worker finds out what it stands for. Just the keys are made anew of which bronze is
// known to tell something else than the layers.
func requestRepair(ctx context.Context, cfg CompareConfig, t *catalog.Table, differing []reconcile.DifferingKey) ([]int64, error) {
	masks, err := newMasks(cfg.Tables, cfg.TokenKey)
	if err != nil {
		return nil, err
	}
	r := rereads{registry: cfg.Registry, source: cfg.Source.Name, masks: masks}
	masked := keyIsMasked(t)
	type kind struct {
		reason registry.RereadReason
		form   registry.RereadForm
	}
	keys := map[kind][][]string{}
	for _, k := range differing {
		of := kind{registry.RereadRepair, registry.RereadPlain}
		if k.Violated {
			of.reason = registry.RereadRemake
		}
		texts := k.Source
		switch {
		case texts == nil:
			if texts = k.Lake; masked {
				of.form = registry.RereadMasked
			}
			if masked && cfg.Source.Capture == catalog.Debezium {
				return nil, catalog.Errorf(catalog.Invalid, catalog.CodeReconcile, "read the table anew, or have its rows compared where nobody masks them",
					"rows that the lake has and source %s has not cannot be looked for: the key of table %s is masked, and its connector is asked by key", cfg.Source.Name, t.Name)
			}
		case masked:
			of.form = registry.RereadSealed
		}
		if texts != nil {
			keys[of] = append(keys[of], texts)
		}
	}
	var ids []int64
	for of, all := range keys {
		for some := range slices.Chunk(all, repairKeys) {
			id, err := r.request(ctx, t, of.reason, of.form, some)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// waitForRepair waits until bronze holds what was asked for.
func waitForRepair(ctx context.Context, cfg CompareConfig, t *catalog.Table, ids []int64) error {
	within, cancel := context.WithTimeout(ctx, cfg.Options.Wait)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := cfg.Registry.CountRereads(within, ids)
		if err == nil && left == 0 {
			return nil
		}
		if err == nil {
			_, err = said(within, cfg.Registry, t)
		}
		if err != nil && within.Err() == nil {
			return err
		}
		select {
		case <-tick.C:
			continue
		case <-within.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := requireWorker(ctx, cfg); err != nil {
			return err
		}
		return catalog.Errorf(catalog.Unavailable, catalog.CodeReconcile, "see lakeweir status and the worker's log; the request stays, and --wait gives it more time",
			"the rows of table %s were not read again within %s", t.ID(), cfg.Options.Wait)
	}
}

// sumUpRepair counts what differed before and does not any more.
func sumUpRepair(t *catalog.Table, before, after *reconcile.Result) {
	after.Repaired = new(int64)
	still := map[string]bool{}
	for _, k := range after.Keys {
		still[strings.Join(k.Lake, "\x00")] = true
	}
	left := map[string]bool{}
	for _, k := range before.Keys {
		if still[strings.Join(k.Lake, "\x00")] {
			left[k.Text(t)] = true
			continue
		}
		*after.Repaired++
		if k.Kind == reconcile.Violation && len(after.Repairs) < shownRepairs {
			after.Repairs = append(after.Repairs, reconcile.Difference{Kind: k.Kind, Key: k.Text(t)})
		}
	}
	for _, d := range before.Differences {
		if !left[d.Key] {
			after.Repairs = append(after.Repairs, d)
		}
	}
	if len(before.Keys) == reconcile.MaxKeys && !after.Equal() {
		after.Notes = append(after.Notes, "more keys were wrong than are repaired at once; repair again")
	}
}
