package kafka

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// kept are gaps by table, as the registry would keep them.
type kept struct {
	mu   sync.Mutex
	gaps map[string]*catalog.Error
}

func (k *kept) ReadGap(_ context.Context, table string) (*catalog.Error, uint32, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gaps[table], 1, nil
}

func (k *kept) NoteGap(_ context.Context, table string, generation uint32, gap *catalog.Error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if generation == 1 {
		k.gaps[table] = gap
	}
	return nil
}

func (k *kept) ForgetGap(_ context.Context, table string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.gaps, table)
	return nil
}

// TestAGapIsRememberedUntilTheTableIsReadAnew, also when the topic proves it no more.
func TestAGapIsRememberedUntilTheTableIsReadAnew(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.notes = &kept{gaps: map[string]*catalog.Error{}}
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 3)...)
	r := s.reader()
	require.Empty(t, r.start())
	orders := r.saved["public.orders"]
	r.until("all", r.has("orders", 3))
	r.stop()
	was := orders.resume.Offsets
	beyond := *was
	beyond.Partitions = []catalog.PartitionOffset{{Partition: 0, Next: 9}}
	orders.resume.Offsets = &beyond
	r.start()
	r.requireGap("orders", "has lost records that were read: partition 0 ends at offset 3, read up to 9")
	r.stop()
	s.write(creates("orders", 4, 10)...) // now the topic is as long as it was
	r.start()
	r.requireGap("orders", "has lost records")
	r.stop()
	require.Len(t, orders.changes, 3)
	orders.resume, orders.changes = pipeline.Resume{}, nil // its tables in the lake were dropped
	require.Empty(t, r.start())
	r.until("all of it", r.has("orders", 13))
	r.stop()
	require.Empty(t, s.notes.gaps)
}
