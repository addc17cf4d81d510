package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

// Views is what pages show. Both methods may be called concurrently; what they return
// is shared and must not be changed. Errors are coded.
type Views interface {
	Fleet(ctx context.Context) (*monitor.Report, error)
	// Table fails with table.not_found for one that nobody knows.
	Table(ctx context.Context, source, table string) (*monitor.Detail, error)
}

// FromRegistry shows what the registry knows. However many look at the fleet, the
// registry is asked for it at most twice a second.
func FromRegistry(r *registry.Registry, clock func() time.Time) Views {
	return &cached{Views: registryViews{r}, clock: clock}
}

type registryViews struct{ registry *registry.Registry }

func (v registryViews) Fleet(ctx context.Context) (*monitor.Report, error) {
	f, err := v.registry.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return monitor.Judge(f), nil
}

func (v registryViews) Table(ctx context.Context, source, table string) (*monitor.Detail, error) {
	d, err := v.registry.Table(ctx, source, table)
	if err != nil {
		return nil, err
	}
	return monitor.JudgeTable(d), nil
}

const cacheFor = 500 * time.Millisecond

// cached keeps the newest answer for a moment, an error too. Whoever finds it too old
// reads it again, while the others wait for that one reading.
type cached struct {
	Views
	clock func() time.Time

	mu   sync.Mutex
	last *monitor.Report
	err  error
	at   time.Time
}

func (c *cached) Fleet(ctx context.Context) (*monitor.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || c.clock().Sub(c.at) >= cacheFor {
		// The reading is for all who wait, so it outlives the one who asked first; the
		// registry bounds how long it takes.
		c.last, c.err = c.Views.Fleet(context.WithoutCancel(ctx))
		c.at = c.clock()
	}
	return c.last, c.err
}
