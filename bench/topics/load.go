// Package topics puts the reference workload onto Kafka topics, as Debezium would,
// without Debezium: it would take minutes, and is not what is measured.
package topics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/bench/workload"
)

// Prefix is what the topics' names begin with; a table's name follows.
const Prefix = "larkspur.shop."

// Load makes the three topics, of one partition each, and fills them.
func Load(ctx context.Context, broker string, cfg workload.Config) (*workload.Outcome, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerBatchCompression(kgo.ZstdCompression()),
		kgo.ProducerBatchMaxBytes(1<<20), kgo.MaxBufferedRecords(100_000), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	forever := "-1"
	for _, table := range workload.Tables() {
		if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, map[string]*string{"retention.ms": &forever}, Prefix+table); err != nil {
			return nil, fmt.Errorf("make the topic %s: %w", Prefix+table, err)
		}
	}
	var mu sync.Mutex
	var failed error
	acked := int64(0)
	sent := int64(0)
	outcome, err := workload.Make(cfg, func(r workload.Record) error {
		sent++
		// One allocation holds both: the client keeps them until they are sent.
		both := append(append(make([]byte, 0, len(r.Key)+len(r.Value)), r.Key...), r.Value...)
		rec := &kgo.Record{Topic: Prefix + r.Table, Key: both[:len(r.Key):len(r.Key)], Value: both[len(r.Key):]}
		client.Produce(ctx, rec, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if acked++; err != nil && failed == nil {
				failed = err
			}
		})
		mu.Lock()
		defer mu.Unlock()
		return failed
	})
	if err := errors.Join(err, client.Flush(ctx), failed); err != nil {
		return nil, fmt.Errorf("load the topics: %w", err)
	}
	if acked != sent {
		return nil, fmt.Errorf("load the topics: %d records were sent and %d acknowledged", sent, acked)
	}
	return outcome, nil
}
