package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/kafkaclient"
)

// Signals reach the connector through the source's signal table. Safe for concurrent use.
type Signals interface {
	// Read has the connector read the rows of a table whose key columns are as some of
	// the keys say, the first ones, and tell of it under a name that nobody else uses.
	Read(ctx context.Context, name string, table catalog.TableName, columns []string, keys [][]string) (Signalled, error)
	// Missing says which of the keys the source does not have now.
	Missing(ctx context.Context, table catalog.TableName, columns []string, keys [][]string) ([]bool, error)
}

// Signalled is a signal that was sent.
type Signalled struct {
	// Before is where the source's log stood just before the signal, and At when, by the
	// source's clock in microseconds since 1970 UTC.
	Before catalog.LSN
	At     int64
	// Keys is how many of the keys are asked for, and Refused which of them (by index)
	// no row can have, since the source does not take their texts for values.
	Keys    int
	Refused []int
}

// notifications is the topic of a connector's notifications.
func notifications(c *catalog.Connector) string {
	if topic := c.Properties["notification.sink.topic.name"]; topic != "" {
		return topic
	}
	return c.TopicPrefix + "-notifications"
}

// errNotRead is a connector that has not read what it was asked for.
var errNotRead = errors.New("the connector did not read the rows")

// haveRead sends a signal for a reading and waits until the connector tells that it is
// through. Then the answers are before the ends of the table's topic. What the connector
// does not find is looked for by the worker itself, too: only what neither has is gone.
func (s *Source) haveRead(ctx context.Context, r *reading) (out scan, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.SignalWait)
	defer cancel()
	client, err := s.listen(ctx)
	if err != nil {
		return out, err
	}
	defer client.Close()
	out.Signalled, err = s.cfg.Signals.Read(ctx, r.name, r.table.cfg.Name, r.columns, r.asked)
	if err != nil || out.Keys == len(out.Refused) {
		return out, err
	}
	if err := scanned(ctx, client, r.name, r.table.name); err != nil {
		return out, err
	}
	if out.missing, err = s.cfg.Signals.Missing(ctx, r.table.cfg.Name, r.columns, r.asked[:out.Keys]); err != nil {
		return out, err
	}
	// Topics are written beside each other: what was sent before the notification may come
	// a moment after it.
	select {
	case <-ctx.Done():
		return out, ctx.Err()
	case <-time.After(s.cfg.Limits.Settle):
	}
	out.ends, err = s.ends(ctx)
	return out, err
}

// listen makes a client that reads notifications from now on.
func (s *Source) listen(ctx context.Context) (*kgo.Client, error) {
	topic := notifications(s.cfg.Source.Connector)
	listed, err := s.admin.ListEndOffsets(ctx, topic)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for n, o := range listed[topic] {
		if o.Err == nil {
			from[n] = kgo.NewOffset().At(o.Offset)
		}
	}
	consume := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	if len(from) == 0 { // the topic is made with the first notification
		consume = kgo.ConsumeTopics(topic)
	}
	return kafkaclient.New(s.cfg.Source, s.cfg.Password, consume,
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(s.cfg.Limits.NextWait), kgo.MetadataMinAge(250*time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.DisableClientMetrics())
}

// scanned waits until the connector tells that a table was read for a signal. It begins
// with a signal at once when no other reading is under way, and tells that; then the next
// scan of the table that it completes is the signal's, even when it names a newer one. A
// reading that was under way could be told of under the name of ours, and says nothing.
func scanned(ctx context.Context, client *kgo.Client, name, table string) error {
	started := false
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%w within the time that it has: is it running, and does it tell of what it reads (notification.enabled.channels)?", errNotRead)
		}
		for _, rec := range fetches.Records() {
			n, ok := readNotification(rec.Value, name, table)
			switch {
			case !ok:
			case n.Type == scanStarted && n.ID == name:
				started = true
			case !started && n.Type == scanAllDone && n.ID == name:
				return fmt.Errorf("%w at once: it was reading something else", errNotRead)
			case !started:
			case n.Type == scanAborted:
				return fmt.Errorf("%w: somebody stopped it", errNotRead)
			case n.Type == scanCompleted && n.Data.Table == table:
				if n.Data.Status != scanSucceeded && n.Data.Status != scanEmpty {
					return fmt.Errorf("%w: it says %s", errNotRead, n.Data.Status)
				}
				return nil
			}
		}
	}
}
