package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// shopKeys are the shop's tables that have a key.
var shopKeys = map[string][]string{
	"customers":   {"customer_id"},
	"orders":      {"order_id"},
	"order_items": {"order_id", "line_no"},
	"payments":    {"payment_id"},
	"refunds":     {"refund_id"},
	"documents":   {"document_id"},
}

// shopFiles replicates all of the shop with nothing left out or masked, so that
// others can compare every column of every layer.
func shopFiles() map[string]string {
	files := map[string]string{}
	for _, table := range demo.Tables() {
		text := "table: public." + table + "\n"
		if key, ok := shopKeys[table]; ok {
			text += fmt.Sprintf("primary_key: [%s]\nscd: [1, 2]\nsoft_delete: false\n", strings.Join(key, ", "))
		} else {
			text += "scd: []\n"
		}
		files["public."+table+".yaml"] = text
	}
	return files
}

// shop keeps a shop busy until it is closed.
type shop struct {
	t      *testing.T
	done   chan struct{}
	cancel context.CancelFunc
	stats  demo.Stats
	err    error
}

func openShop(t *testing.T, dsn string, rate float64, seed uint64) *shop {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &shop{t: t, done: make(chan struct{}), cancel: cancel}
	w := demo.NewWorkload(demo.WorkloadConfig{DSN: dsn, Rate: rate, Seed: seed, MaxHold: 2 * time.Second})
	go func() {
		defer close(s.done)
		s.stats, s.err = w.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-s.done })
	return s
}

// close ends the shop's life and tells what it has committed.
func (s *shop) close() demo.Stats {
	s.t.Helper()
	s.cancel()
	<-s.done
	require.NoError(s.t, s.err)
	return s.stats
}

// moved waits until bronze of the table has changes that were committed after now.
func (s *stand) moved(table string) {
	s.t.Helper()
	want := s.now()
	s.await("bronze of "+table+" does not move", func(views []registry.TableView) bool {
		i := slices.IndexFunc(views, func(v registry.TableView) bool { return v.Name.Name == table })
		return i >= 0 && views[i].BronzeThrough >= want
	})
}

// killed starts the program times times and ends it with SIGKILL at a moment that
// chance takes, once it has saved something.
func (s *stand) killed(random *rand.Rand, times int) {
	s.t.Helper()
	for range times {
		s.start()
		s.moved("orders")
		s.killSoon(random)
	}
}

// killSoon ends the program with SIGKILL at a moment within its next saves.
func (s *stand) killSoon(random *rand.Rand) {
	s.t.Helper()
	select { // nothing tells of it
	case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
	case <-s.t.Context().Done():
	}
	s.kill()
}
