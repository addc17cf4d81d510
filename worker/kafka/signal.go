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
// through. Then the answers are before the ends of the table's topic.
func (s *Source) haveRead(ctx context.Context, r *reading) (signalled Signalled, at ends, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.SignalWait)
	defer cancel()
	client, err := s.listen(ctx)
	if err != nil {
		return signalled, nil, err
	}
	defer client.Close()
	signalled, err = s.cfg.Signals.Read(ctx, r.name, r.table.cfg.Name, r.columns, r.asked)
	if err != nil || signalled.Keys == len(signalled.Refused) {
		return signalled, ends{}, err
	}
	if err := told(ctx, client, r.name); err != nil {
		return signalled, nil, err
	}
	// Topics are written beside each other: what was sent before the notification may come
	// a moment after it.
	select {
	case <-ctx.Done():
		return signalled, nil, ctx.Err()
	case <-time.After(s.cfg.Limits.Settle):
	}
	at, err = s.ends(ctx)
	return signalled, at, err
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

// told waits until the connector tells that a table was read under a name.
func told(ctx context.Context, client *kgo.Client, name string) error {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%w within the time that it has: is it running, and does it tell of what it reads (notification.enabled.channels)?", errNotRead)
		}
		for _, rec := range fetches.Records() {
			n, ok := readNotification(rec.Value, name)
			if !ok || n.Type != scanCompleted && n.Type != scanAborted {
				continue
			}
			if n.Type == scanAborted || n.Data.Status != scanSucceeded && n.Data.Status != scanEmpty {
				return fmt.Errorf("%w: it says %s %s", errNotRead, n.Type, n.Data.Status)
			}
			return nil
		}
	}
}
