package kafka

import (
	"context"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog/kafkaclient"
)

// newClient makes the client; nothing is sent before its first use. It consumes what it
// is told to, from exact offsets, and never decides on its own where to go on.
func newClient(cfg Config) (*kgo.Client, error) {
	return kafkaclient.New(cfg.Source, cfg.Password,
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// A connector may write in transactions; what it took back is not read.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // they have offsets, too
		kgo.FetchMaxBytes(int32(min(cfg.Limits.FetchBytes, math.MaxInt32))),
		kgo.FetchMaxPartitionBytes(int32(min(max(cfg.Limits.FetchBytes/4, 1<<16), math.MaxInt32))),
		kgo.BrokerMaxReadBytes(1<<30),
		kgo.FetchMaxWait(cfg.Limits.NextWait),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.MetadataMaxAge(30*time.Second),
		kgo.DisableClientMetrics(),
	)
}

// within bounds a request to the brokers.
func (s *Source) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Limits.Request)
}
