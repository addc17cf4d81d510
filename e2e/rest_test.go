package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// The shop is replicated by direct capture into a REST catalog whose files are on
// S3, while the program, the catalog and the gateway are killed; then all is equal,
// and others read it.
func TestShopIntoRESTCatalogOnS3SurvivesSIGKILL(t *testing.T) {
	stacktest.Require(t)
	bin := program(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	on := stacktest.Start(t, stack.Config{Lake: true, Postgres: true})
	s := newStandOn(t, bin, on, "", shopFiles())
	require.NoError(t, demo.Setup(t.Context(), s.dsn, 300))

	s.start()
	s.landed(len(demo.Tables()))
	s.stop()
	shop := openShop(t, s.dsn, 100, seed)
	s.killed(random, 4)
	s.start()
	for _, p := range []*stack.Process{on.Catalog.Process, on.S3.Process} {
		s.moved("orders")
		require.NoError(t, p.Restart(t.Context()))
	}
	s.moved("orders")
	changes := shop.close()
	t.Logf("%d changes in %d transactions", changes.Changes(), changes.Transactions)
	s.landed(len(demo.Tables()))
	s.reconciled()
	s.stop()
	requireShopAgrees(t, s, changes)
}
