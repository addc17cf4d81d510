package pipeline

import (
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// cadence is how often a table's changes are saved to bronze and folded into its
// layers so that its tier is kept with room to spare. Bronze never waits for a
// slow tier: the source's log is not the place to store changes.
func cadence(t catalog.Tier) (bronze, layers time.Duration) {
	switch t {
	case catalog.Realtime:
		return time.Second, time.Second
	case catalog.Tier1m:
		return 5 * time.Second, 5 * time.Second
	case catalog.Tier5m:
		return 10 * time.Second, 30 * time.Second
	case catalog.Tier15m:
		return 10 * time.Second, 2 * time.Minute
	case catalog.Tier1h:
		return 10 * time.Second, 10 * time.Minute
	case catalog.Tier1d:
		return 10 * time.Second, time.Hour
	}
	return 5 * time.Second, 5 * time.Second
}
