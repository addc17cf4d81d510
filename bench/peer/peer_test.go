package peer_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/bench/peer"
	"github.com/lakeweir/lakeweir/bench/topics"
	"github.com/lakeweir/lakeweir/bench/verify"
	"github.com/lakeweir/lakeweir/bench/workload"
	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/stack"
)

// The peer folds right, or comparing with it would mean nothing.
func TestThePeerFoldsWhatItMust(t *testing.T) {
	if os.Getenv("LAKEWEIR_BENCH") == "" {
		t.Skip("installs Spark and Kafka; LAKEWEIR_BENCH is not set")
	}
	on, err := stack.Start(t.Context(), stack.Config{Dir: t.TempDir(), Kafka: true, Told: t.Logf})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, on.Close()) })
	outcome, err := topics.Load(t.Context(), on.Kafka.Address, workload.Config{Scale: 0.02, Seed: 42})
	require.NoError(t, err)
	p, err := peer.New(t.Context(), peer.Config{Dir: t.TempDir(), Broker: on.Kafka.Address, Prefix: topics.Prefix, BatchRows: 20_000, History: true})
	require.NoError(t, err)
	figures, err := p.Fold(t.Context())
	require.NoError(t, err)
	t.Log(figures)
	python, err := readers.NewPyIceberg(t.Context())
	require.NoError(t, err)
	v, err := verify.New(python, t.TempDir(), outcome)
	require.NoError(t, err)
	lake, err := p.Lake()
	require.NoError(t, err)
	found, err := v.Look(t.Context(), lake)
	require.NoError(t, err)
	require.Zero(t, found.Differing(), "%+v", found)
}
