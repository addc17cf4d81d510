package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/lakeweir/lakeweir/bench/topics"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/lake/icetest"
)

// A small part of the workload is folded right, also by a program that was killed, and
// the comparison would notice if it were not.
func TestASmallReferenceIsFoldedRight(t *testing.T) {
	t.Parallel()
	icetest.Python(t)
	python, err := readers.NewPyIceberg(t.Context())
	require.NoError(t, err)
	bin := filepath.Join(t.TempDir(), "lakeweir")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../cmd/lakeweir").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)

	cfg := workload.Config{Scale: 0.004, Seed: 3}
	b := bench{
		place: place{dir: t.TempDir(), broker: cluster.ListenAddrs()[0], dsn: localpgtest.Server(t).DSN},
		o:     options{binary: bin, scale: cfg.Scale, seed: cfg.Seed, history: true, crash: true, memory: 256},
	}
	b.outcome, err = topics.Load(t.Context(), b.broker, cfg)
	require.NoError(t, err)
	b.verify, err = verify.New(python, b.dir, b.outcome)
	require.NoError(t, err)
	r, wrong, err := b.run(t.Context())
	require.NoError(t, err)
	require.Empty(t, wrong)
	require.Zero(t, r.RowsDiffering)
	require.Zero(t, r.Crash.RowsDiffering)
	require.GreaterOrEqual(t, r.Crash.BatchesAtKill[workload.Payments], int64(killBehind))
	require.Equal(t, r.Rows, r.Crash.Rows)
	require.Equal(t, b.outcome.DeletedWorth, r.Crash.DeletedWorth)
	require.LessOrEqual(t, r.Saves[workload.Payments].Largest, int64(2*b.o.batchRows()))
	r.print(t.Output())

	// Another workload has other rows.
	other, err := workload.Make(workload.Config{Scale: cfg.Scale, Seed: cfg.Seed + 1}, func(workload.Record) error { return nil })
	require.NoError(t, err)
	v, err := verify.New(python, t.TempDir(), other)
	require.NoError(t, err)
	s := &stand{place: b.place, o: b.o, dir: filepath.Join(b.dir, "whole")}
	l, err := s.lake(t.Context())
	require.NoError(t, err)
	found, err := v.Look(t.Context(), l)
	require.NoError(t, err)
	for name, table := range found.Tables {
		require.Positive(t, table.Differing, name)
		require.NotEmpty(t, table.Examples, name)
	}
}
