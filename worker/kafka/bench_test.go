package kafka

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// BenchmarkReading reads a topic of inserts of about 700 bytes from brokers in this
// process, which take their part of the time.
func BenchmarkReading(b *testing.B) {
	s := newShop(b)
	s.table("orders", true, 1)
	const n = 50_000
	p := s.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	for i, e := range creates("orders", 1, n) {
		e.run = fmt.Sprintf(runs, 1)
		p.Produce(context.Background(), e.record(), nil)
		if i%10_000 == 0 {
			require.NoError(b, p.Flush(context.Background()))
		}
	}
	require.NoError(b, p.Flush(context.Background()))
	p.Close()
	b.ReportAllocs()
	for b.Loop() {
		source := New(s.config())
		_, err := source.Start(context.Background(), []pipeline.Resume{{Table: s.tables[0]}})
		require.NoError(b, err)
		for got := 0; got < n; {
			slice, err := source.Next(context.Background())
			require.NoError(b, err)
			for _, batch := range slice.Batches {
				got += len(batch.Changes)
			}
		}
		require.NoError(b, source.Close(context.Background()))
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}
