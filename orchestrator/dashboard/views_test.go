package dashboard_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/dashboard"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
)

func TestPagesShowARealRegistry(t *testing.T) {
	t.Parallel()
	r, err := registry.Open(t.Context(), catalog.Secret(localpgtest.Database(t)))
	require.NoError(t, err)
	t.Cleanup(r.Close)
	source := catalog.Source{Name: "shop", Namespaces: catalog.Namespaces{Bronze: []string{"bronze"}, Silver: []string{"silver"}}}
	table := catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "orders"}, Tier: catalog.Tier1m, PrimaryKey: []string{"id"}, Current: true}
	require.NoError(t, r.SyncConfig(t.Context(), []catalog.Source{source}, []catalog.Table{table}))

	var mu sync.Mutex
	clock := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	v := dashboard.FromRegistry(r, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return clock
	})
	response, body := get(t, v, "/")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, `data-key="shop/public.orders" class="pending"`)
	response, _ = get(t, v, "/tables/shop/public.orders")
	require.Equal(t, http.StatusOK, response.StatusCode)
	response, _ = get(t, v, "/tables/shop/public.nothing")
	require.Equal(t, http.StatusNotFound, response.StatusCode)

	// Many who look at once, at one moment, share one reading.
	require.NoError(t, r.SetTableStatuses(t.Context(), "shop", []registry.TableStatus{{Table: "public.orders", State: catalog.Paused}}))
	g, _ := errgroup.WithContext(t.Context())
	for range 20 {
		g.Go(func() error {
			report, err := v.Fleet(t.Context())
			if err == nil && report.Tables[0].State != catalog.Pending {
				t.Error("read again within the same moment")
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	mu.Lock()
	clock = clock.Add(time.Second)
	mu.Unlock()
	_, body = get(t, v, "/")
	require.Contains(t, body, `data-key="shop/public.orders" class="paused"`)
}
