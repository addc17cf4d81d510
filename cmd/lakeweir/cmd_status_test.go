package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

func TestStatusSaysOfASilentTableHowLongAndWhatToDo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	report := monitor.Judge(&registry.Fleet{Now: now, Tables: []registry.TableView{{
		Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, State: catalog.Streaming,
		HeardAt: now.Add(-5 * time.Minute), FreshAt: now.Add(-5 * time.Minute), Config: registry.TableConfig{Tier: catalog.Tier1m}, InFiles: true,
	}}})
	var out strings.Builder
	require.NoError(t, printStatus(&out, report))
	require.Regexp(t, `silent +shop/public\.orders .*no word of its worker for 5 min → start its worker: lakeweir run DIR`, out.String())
}
