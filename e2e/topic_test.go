package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/e2e/stack"
)

// place is what orders streamed events: the commit before their transaction, and
// their own place in the log.
type place struct{ sequence, lsn uint64 }

func (p place) less(q place) bool {
	return p.sequence < q.sequence || p.sequence == q.sequence && p.lsn < q.lsn
}

// event is a record of a table's topic.
type event struct {
	offset        int64
	tombstone     bool
	op            string
	before, after map[string]any
	snapshot      string
	tx            uint64
	place         place
	known         [2]bool // sequence[0] and lsn are there
	headers       map[string]string
	run           string // of the task that sent it; it changes with each start of the task
}

// streamed reports a change that came from the log.
func (e event) streamed() bool {
	return !e.tombstone && (e.snapshot == "" || e.snapshot == "false")
}

func (e event) String() string {
	return fmt.Sprintf("%d: %s %v→%v snapshot=%s tx=%d sequence=%d lsn=%d", e.offset, e.op, e.before["id"], e.after["id"], e.snapshot, e.tx, e.place.sequence, e.place.lsn)
}

func parseEvent(rec *kgo.Record) (event, error) {
	e := event{offset: rec.Offset, headers: map[string]string{}}
	for _, h := range rec.Headers {
		e.headers[h.Key] = string(h.Value)
	}
	e.run = e.headers["__debezium.context.runId"]
	if rec.Value == nil {
		e.tombstone = true
		return e, nil
	}
	var envelope struct {
		Op            string
		Before, After map[string]any
		Source        struct {
			Snapshot string
			LSN      *uint64
			TxID     uint64 `json:"txId"`
			Sequence string
		}
	}
	text := rec.Value
	var schemed struct{ Payload json.RawMessage }
	if err := json.Unmarshal(text, &schemed); err == nil && schemed.Payload != nil {
		text = schemed.Payload
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return e, fmt.Errorf("offset %d: %w: %s", rec.Offset, err, rec.Value)
	}
	e.op, e.before, e.after = envelope.Op, envelope.Before, envelope.After
	e.snapshot, e.tx = envelope.Source.Snapshot, envelope.Source.TxID
	if lsn := envelope.Source.LSN; lsn != nil {
		e.place.lsn, e.known[1] = *lsn, true
	}
	var sequence [2]*string
	if err := json.Unmarshal([]byte(envelope.Source.Sequence), &sequence); err != nil {
		return e, fmt.Errorf("offset %d: %w: %s", rec.Offset, err, rec.Value)
	}
	if sequence[0] != nil {
		n, err := strconv.ParseUint(*sequence[0], 10, 64)
		if err != nil {
			return e, err
		}
		e.place.sequence, e.known[0] = n, true
	}
	return e, nil
}

// topic reads a topic of one partition from its start, and keeps what it has read.
type topic struct {
	t      *testing.T
	name   string
	client *kgo.Client
	broken int64 // the offset of a record that is no event; -1 for none
	events []event
}

func openTopic(t *testing.T, on *stack.Stack, name string) *topic {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(on.Kafka.Address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().AtStart()}}),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.FetchMaxWait(200*time.Millisecond), kgo.UnknownTopicRetries(-1))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &topic{t: t, name: name, client: client, broken: -1}
}

// until reads on until done is satisfied with all events so far.
func (o *topic) until(done func([]event) bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	for !done(o.events) {
		fetches := o.client.PollFetches(ctx)
		require.NoError(o.t, ctx.Err(), "%d events have come", len(o.events))
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				o.t.Logf("reading the topic: %v", err)
			}
		})
		var failed error
		fetches.EachRecord(func(rec *kgo.Record) {
			if rec.Offset == o.broken {
				return
			}
			e, err := parseEvent(rec)
			failed = errors.Join(failed, err)
			o.events = append(o.events, e)
		})
		require.NoError(o.t, failed)
	}
}

// atLeast waits for so many events.
func (o *topic) atLeast(n int) {
	o.t.Helper()
	o.until(func(e []event) bool { return len(e) >= n })
}

// whole reads on up to the topic's end as it is now, and returns all events.
func (o *topic) whole() []event {
	o.t.Helper()
	ends, err := kadm.NewClient(o.client).ListEndOffsets(o.t.Context(), o.name)
	require.NoError(o.t, errors.Join(err, ends.Error()))
	end, _ := ends.Lookup(o.name, 0)
	last := end.Offset - 1
	if last == o.broken {
		last--
	}
	o.until(func(e []event) bool { return last < 0 || len(e) > 0 && e[len(e)-1].offset >= last })
	return o.events
}

// distinct are the operations of a topic's events by offset, without those that were
// sent again: a streamed event is the same as another when its place is, and how many
// events that the same run sent there came before it. An initial read is never sent
// again here.
func distinct(events []event) map[int64]string {
	type name struct {
		place place
		nth   int
	}
	out := map[int64]string{}
	seen := map[name]bool{}
	var before event
	nth := 0
	for _, e := range events {
		switch {
		case e.tombstone:
			continue
		case !e.streamed():
			out[e.offset] = e.op
			continue
		case before.op != "" && e.place == before.place && e.run == before.run:
			nth++
		default:
			nth = 0
		}
		before = e
		if n := (name{e.place, nth}); !seen[n] {
			seen[n] = true
			out[e.offset] = e.op
		}
	}
	return out
}
