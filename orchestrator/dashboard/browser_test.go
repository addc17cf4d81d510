package dashboard_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/dashboard"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

// changing tells another fleet each time it is asked: time passes, and a table that
// comes late moves up.
type changing struct {
	views
	asked atomic.Int64
}

func (c *changing) Fleet(context.Context) (*monitor.Report, error) {
	f := sampleFleet()
	if n := c.asked.Add(1); n > 1 {
		f.Now = f.Now.Add(time.Minute)
		for i := range f.Tables {
			f.Tables[i].HeardAt = f.Now
			if f.Tables[i].Name.Name == "orders" {
				f.Tables[i].FreshAt = f.Now.Add(-777 * time.Minute)
			}
			if f.Tables[i].Name.Name == "payments" {
				f.Tables[i].State, f.Tables[i].FreshAt = catalog.Streaming, f.Now.Add(-3*time.Second)
			}
		}
		for i := range f.Sources {
			if f.Sources[i].Worker != nil {
				f.Sources[i].Worker.SeenAt = f.Now
			}
		}
	}
	return monitor.Judge(f), nil
}

func TestThePageIsLiveInARealBrowser(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on the PATH")
	}
	v := &changing{}
	server := httptest.NewServer(dashboard.New(v))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=3500", "--dump-dom", server.URL+"/?q=shop")
	var dom, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &dom, &log
	require.NoError(t, cmd.Run(), log.String())
	page := dom.String()
	require.Greater(t, v.asked.Load(), int64(1), "the script asked again")
	require.Contains(t, page, `id="clock">14:03:13 UTC`)
	require.Contains(t, page, `data-key="shop/public.orders" class="late"`)
	require.Contains(t, page, `data-key="shop/public.payments" class="fresh"`)
	require.NotContains(t, page, `crm/public.contacts`, "the search still holds")
	require.Contains(t, page, `value="shop"`)
	require.Less(t, bytes.Index(dom.Bytes(), []byte(`data-key="shop/public.orders"`)), bytes.Index(dom.Bytes(), []byte(`data-key="shop/public.payments"`)), "what is late comes first")
	require.NotContains(t, log.String(), "Content Security Policy")
}
