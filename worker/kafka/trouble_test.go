package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// creates writes transactions of one insert each, with ids from first.
func creates(table string, first, n int) []event {
	var out []event
	for i := first; i < first+n; i++ {
		at := uint64(1000 + 10*i)
		out = append(out, event{table: table, op: "c", key: keyOf(i), after: row(i, fmt.Sprintf("v%d", i)), lsn: at + 5, sequence: at, tx: at, at: int64(at)})
	}
	return out
}

func (r *reader) faulted(table string) func() bool {
	return func() bool { _, ok := r.faults["public."+table]; return ok }
}

func (r *reader) requireGap(table, about string) {
	r.t.Helper()
	r.until("a gap", r.faulted(table))
	f := r.faults["public."+table]
	require.Equal(r.t, catalog.Gap, f.State)
	require.Equal(r.t, catalog.CodeGap, f.Err.Code)
	require.Contains(r.t, f.Err.Message, about)
	require.NotEmpty(r.t, f.Err.Hint)
	require.Equal(r.t, "shop/public."+table, f.Err.At)
}

// TestAPoisonRecordStopsItsTableAlone: C44.
func TestAPoisonRecordStopsItsTableAlone(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"cut-off JSON": `{"op":"c","after":{"id":2`, "an unknown schema": "\x00\x00\x0f\x42\x3f\x02\x04", "no change event": `{"hello":1}`,
		"an unknown op": `{"before":null,"after":{"id":6},"op":"x","source":{"lsn":102}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.table("ok", true, 1)
			s.table("bad", true, 1)
			s.write(creates("bad", 1, 2)...)
			s.produce(&kgo.Record{Topic: s.topic("bad"), Key: text(keyOf(9)), Value: []byte(value)})
			s.write(creates("bad", 10, 1)...)
			s.write(creates("ok", 1, 3)...)
			r := s.reader()
			require.Empty(t, r.start())
			r.until("the fault", r.faulted("bad"))
			r.until("the other table", r.has("ok", 3))
			f := r.faults["public.bad"]
			require.Equal(t, catalog.Quarantined, f.State)
			require.Contains(t, f.Err.Message, "topic shop.public.bad, partition 0, offset 2: ")
			require.Contains(t, f.Err.Hint, "lakeweir skip shop/public.bad --partition 0 --offset 2")
			require.Equal(t, catalog.LSN(1020), f.From)
			bad := r.saved["public.bad"]
			require.Len(t, bad.changes, 2)
			next, _ := bad.resume.Offsets.Next(0)
			require.Equal(t, int64(2), next, "the record's offset is not passed")
			s.write(creates("ok", 4, 1)...)
			r.until("the other table goes on", r.has("ok", 4))
			r.stop()

			require.Empty(t, r.start())
			r.until("the same fault again", r.faulted("bad"))
			require.Len(t, bad.changes, 2)
			r.stop()

			s.skips[Record{s.topic("bad"), 0, 2}] = Skip{By: "ann", Reason: "by hand"}
			require.Empty(t, r.start())
			r.until("what comes after it", r.has("bad", 3))
			require.Equal(t, "10,1,v10,<1>,", bad.changes[2].after)
			require.Empty(t, r.faults)
			r.stop()
		})
	}
}

// TestARecordThatCanBeReadIsNotPassedBy: a skip that names another topic's life harms
// nothing.
func TestARecordThatCanBeReadIsNotPassedBy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.skips[Record{s.topic("orders"), 0, 0}] = Skip{}
	s.write(creates("orders", 1, 2)...)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("both", r.has("orders", 2))
}

// TestWhatRetentionTookIsAGap: C42 b.
func TestWhatRetentionTookIsAGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.table("other", true, 1)
	s.write(creates("orders", 1, 10)...)
	r := s.reader()
	require.Empty(t, r.start())
	r.until("all", r.has("orders", 10))
	r.stop()
	s.write(creates("orders", 11, 10)...)
	s.forget("orders", 15)
	s.write(creates("other", 1, 1)...)
	r.start()
	defer r.stop()
	r.requireGap("orders", "5 records of topic shop.public.orders were removed by retention before they were read: partition 0 begins at offset 15, read up to 10")
	r.until("the other table", r.has("other", 1))
	require.Len(t, r.saved["public.orders"].changes, 10)
}

// TestATopicWhoseBeginningIsGoneIsAGap: what the connector read first is not there.
func TestATopicWhoseBeginningIsGoneIsAGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 5)...)
	s.forget("orders", 3)
	r := s.reader()
	r.start()
	defer r.stop()
	r.requireGap("orders", "3 records from before were removed by retention and never read")
}

// TestRetentionThatOvertakesTheReadingIsAGap: the offset goes while the worker runs.
func TestRetentionThatOvertakesTheReadingIsAGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 1)...)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("the first", r.has("orders", 1))
	hold := make(chan struct{})
	s.cluster.ControlKey(1, func(_ kmsg.Request) (kmsg.Response, error, bool) { // fetches wait
		s.cluster.KeepControl()
		s.cluster.SleepControl(func() { <-hold })
		return nil, nil, false
	})
	s.write(creates("orders", 2, 4)...)
	s.forget("orders", 4)
	close(hold)
	r.requireGap("orders", "was removed by retention before it was read")
}

// TestATopicThatWasMadeAnewIsAGap: C42 a, while the worker is away and while it runs.
func TestATopicThatWasMadeAnewIsAGap(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprintf("running %t", running), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.table("orders", true, 1)
			s.table("other", true, 1)
			s.write(creates("orders", 1, 3)...)
			r := s.reader()
			require.Empty(t, r.start())
			r.until("all", r.has("orders", 3))
			if !running {
				r.stop()
			}
			_, err := s.admin.DeleteTopics(context.Background(), s.topic("orders"))
			require.NoError(t, err)
			s.create(s.topic("orders"), 1)
			fresh := s.client() // knows nothing of the old topic
			defer fresh.Close()
			for _, e := range creates("orders", 20, 5) {
				require.NoError(t, fresh.ProduceSync(context.Background(), e.record()).FirstErr())
			}
			if !running {
				r.start()
			}
			defer r.stop()
			r.requireGap("orders", "was made anew")
			s.write(creates("other", 1, 1)...)
			r.until("the other table", r.has("other", 1))
			require.Len(t, r.saved["public.orders"].changes, 3, "nothing of the new topic")
		})
	}
}

// TestATopicThatGoesIsAGap: one that was read; one that never was is waited for.
func TestATopicThatGoesIsAGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 3)...)
	r := s.reader()
	require.Empty(t, r.start())
	r.until("all", r.has("orders", 3))
	_, err := s.admin.DeleteTopics(context.Background(), s.topic("orders"))
	require.NoError(t, err)
	r.requireGap("orders", "topic shop.public.orders is gone")
	r.stop()
	r.start()
	r.requireGap("orders", "topic shop.public.orders is gone")
	r.stop()
}

// TestATableWithoutATopicIsWaitedFor: Kafka makes a topic with its first record.
func TestATableWithoutATopicIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.table("late", true, 0)
	s.write(creates("orders", 1, 2)...)
	r := s.reader()
	require.Empty(t, r.start())
	late := r.saved["public.late"]
	r.until("it is known to be empty", func() bool { return late.resume.Snapshot != nil && late.resume.Snapshot.Done })
	require.Empty(t, late.resume.Offsets.TopicID)
	r.stop()
	require.Empty(t, r.start())
	s.create(s.topic("late"), 1)
	s.write(creates("late", 50, 3)...)
	r.until("its changes", r.has("late", 3))
	require.NotEmpty(t, late.resume.Offsets.TopicID)
	require.Empty(t, r.faults)
	r.stop()
}

// TestPartitionsThatAreAddedAreAGap: C43: keys move between partitions.
func TestPartitionsThatAreAddedAreAGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 3)...)
	r := s.reader()
	require.Empty(t, r.start())
	r.until("all", r.has("orders", 3))
	_, err := s.admin.CreatePartitions(context.Background(), 2, s.topic("orders"))
	require.NoError(t, err)
	r.requireGap("orders", "has 3 partitions now and had 1")
	r.stop()
	r.start()
	r.requireGap("orders", "has 3 partitions now and had 1")
	r.stop()
}

// TestTombstonesAndControlRecordsAreNoRows: C27 and C45. A lone tombstone is passed by.
func TestTombstonesAndControlRecordsAreNoRows(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("tb", true, 1)
	s.write(creates("tb", 4, 1)...)
	s.write(
		event{table: "tb", op: "d", key: keyOf(4), before: row(4, ""), lsn: 2005, sequence: 2000, tx: 1, at: 2000},
		event{table: "tb", tombstone: true, key: keyOf(4)},
		event{table: "tb", tombstone: true, key: keyOf(5)},
		event{table: "tb", tombstone: true},
	)
	message := `{"op":"m","source":{"lsn":77,"ts_ms":1772359202000},"message":{"prefix":"app","content":"aGk="}}`
	s.produce(&kgo.Record{Topic: s.topic("tb"), Value: []byte(message)}, &kgo.Record{Topic: s.topic("tb"), Key: text(keyOf(4)), Value: []byte{}})
	for topic, value := range map[string]string{
		"__debezium-heartbeat.shop": `{"ts_ms":1772359201000}`,
		"shop.transaction":          `{"status":"BEGIN","id":"571:53195832"}`, "shop": `{"ddl":"ALTER TABLE t ADD c int"}`,
	} {
		s.create(topic, 1)
		s.produce(&kgo.Record{Topic: topic, Value: []byte(value)})
	}
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	tb := r.saved["public.tb"]
	r.until("the end", func() bool { n, _ := tb.resume.Offsets.Next(0); return n == 7 })
	require.Len(t, tb.changes, 2)
	require.Empty(t, r.faults)
}

// TestEveryCompressionIsRead, and so is what a transaction of the connector took back
// not.
func TestEveryCompressionIsRead(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i, c := range codecs {
		p := s.client(kgo.ProducerBatchCompression(c))
		for _, e := range creates("orders", 1+10*i, 10) {
			p.Produce(context.Background(), e.record(), nil)
		}
		require.NoError(t, p.Flush(context.Background()))
		p.Close()
	}
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", r.has("orders", 10*len(codecs)))
}

// TestWhatATransactionTookBackIsNotRead: a connector with exactly.once.support writes in
// transactions, whose ends have offsets of their own.
func TestWhatATransactionTookBackIsNotRead(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	p := s.client(kgo.TransactionalID("connector"))
	defer p.Close()
	ctx := context.Background()
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		require.NoError(t, p.BeginTransaction())
		for _, e := range creates("orders", 1+10*i, 2) {
			require.NoError(t, p.ProduceSync(ctx, e.record()).FirstErr())
		}
		require.NoError(t, p.EndTransaction(ctx, end))
	}
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	orders := r.saved["public.orders"]
	r.until("the end", func() bool { n, _ := orders.resume.Offsets.Next(0); return n == 9 })
	require.Len(t, orders.changes, 4)
	require.True(t, orders.whole)
}

// TestALargeRecordComes though it is larger than what is fetched at once.
func TestALargeRecordComes(t *testing.T) {
	t.Parallel()
	s := newShop(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "80000000"}))
	s.limits.FetchBytes = 1 << 16
	s.table("orders", true, 1)
	p := s.client(kgo.ProducerBatchMaxBytes(80_000_000), kgo.BrokerMaxWriteBytes(1<<30), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer p.Close()
	large := strings.Repeat("x", 60<<20)
	events := creates("orders", 1, 3)
	events[1].after["body"] = large
	for _, e := range events {
		require.NoError(t, p.ProduceSync(context.Background(), e.record()).FirstErr())
	}
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", r.has("orders", 3))
	require.Len(t, r.saved["public.orders"].changes[1].after, len(large)+len("2,1,,<1>,"))
}

// TestASliceIsBoundedAndEndsWhereATransactionEnds.
func TestASliceIsBoundedAndEndsWhereATransactionEnds(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.limits.BatchRows = 10
	s.table("orders", true, 1)
	var events []event
	for tx := range 20 { // of three changes each
		at := uint64(1000 + 100*tx)
		for i := range 3 {
			id := 1 + 3*tx + i
			events = append(events, event{table: "orders", op: "c", key: keyOf(id), after: row(id, "v"), lsn: at + uint64(i) + 1, sequence: at, tx: at, at: int64(at)})
		}
	}
	for i := range 50 { // and one of fifty
		id := 1000 + i
		events = append(events, event{table: "orders", op: "c", key: keyOf(id), after: row(id, "v"), lsn: uint64(9001 + i), sequence: 9000, tx: 9, at: 9000})
	}
	s.write(events...)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", r.has("orders", len(events)))
	r.until("the end", func() bool { return r.saved["public.orders"].whole })
	n := 0
	for _, b := range r.saved["public.orders"].batches {
		n += len(b.Changes)
		require.LessOrEqual(t, len(b.Changes), 20)
		next := n
		ends := next == len(events) || events[next].sequence != events[next-1].sequence
		require.Equal(t, ends, b.Whole, "after %d changes", n)
		if n <= 60 {
			require.True(t, b.Whole)
		}
	}
}

// TestTheHalvesOfAKeyMoveShareABatch, wherever the topic ends just then.
func TestTheHalvesOfAKeyMoveShareABatch(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.limits.BatchRows = 1
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 2)...)
	d := event{table: "orders", op: "d", key: keyOf(1), before: row(1, ""), newKey: keyOf(7), lsn: 3005, sequence: 3000, tx: 3, at: 3000}
	c := event{table: "orders", op: "c", key: keyOf(7), after: row(7, "__debezium_unavailable_value"), oldKey: keyOf(1), lsn: 3005, sequence: 3000, tx: 3, at: 3000}
	s.write(d, event{table: "orders", tombstone: true, key: keyOf(1)})
	r := s.reader()
	require.Empty(t, r.start())
	orders := r.saved["public.orders"]
	r.until("what is before", r.has("orders", 2))
	for range 3 {
		r.next()
	}
	require.Len(t, orders.changes, 2, "the first half waits for the second")
	r.stop() // and is read again
	require.Empty(t, r.start())
	defer r.stop()
	s.write(c)
	r.until("both", r.has("orders", 4))
	require.Len(t, orders.batches[len(orders.batches)-1].Changes, 2)
	first, second := orders.changes[2], orders.changes[3]
	require.Equal(t, first.key, second.other)
	require.Equal(t, second.key, first.other)
	require.Equal(t, change.Delete, first.op)
	require.Equal(t, change.Create, second.op)
	require.Positive(t, second.position.Compare(first.position))
}

// TestAPoisonedSecondHalfKeepsTheFirst: both are read again together.
func TestAPoisonedSecondHalfKeepsTheFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 2)...)
	s.write(event{table: "orders", op: "d", key: keyOf(1), before: row(1, ""), newKey: keyOf(7), lsn: 3005, sequence: 3000, tx: 3, at: 3000})
	s.produce(&kgo.Record{Topic: s.topic("orders"), Key: text(keyOf(7)), Value: []byte("{")})
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("the fault", r.faulted("orders"))
	orders := r.saved["public.orders"]
	require.Len(t, orders.changes, 2)
	next, _ := orders.resume.Offsets.Next(0)
	require.Equal(t, int64(2), next)
}

// TestANewSnapshotIsANewGeneration: what it does not read again is gone.
func TestANewSnapshotIsANewGeneration(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(
		event{table: "orders", op: "r", key: keyOf(1), after: row(1, "a"), lsn: 100, at: 10, snapshot: "true"},
		event{table: "orders", op: "r", key: keyOf(1), after: row(1, "a"), lsn: 500, at: 50, snapshot: "first"},
		event{table: "orders", op: "r", key: keyOf(2), after: row(2, "b"), lsn: 500, at: 50, snapshot: "last"},
	)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", r.has("orders", 4))
	orders := r.saved["public.orders"]
	require.Equal(t, change.Truncate, orders.changes[1].op)
	require.Equal(t, catalog.Position{Generation: 2}, orders.changes[1].position)
	require.Equal(t, uint32(2), orders.changes[3].position.Generation)
	require.Equal(t, &catalog.SnapshotProgress{Generation: 2, Done: true, Rows: 2, StartedAt: 50}, orders.resume.Snapshot)
}

// TestTheBrokersMayBeAway at the start and between.
func TestTheBrokersMayBeAway(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.limits.Request = 50 * time.Millisecond
	s.write(creates("orders", 1, 2)...)
	s.source.Kafka.Brokers = []string{"127.0.0.1:1"}
	r := s.reader()
	require.Empty(t, r.start())
	for range 3 {
		got := r.next()
		require.Empty(t, got.Batches)
		require.Empty(t, got.Faults)
	}
	status, err := r.source.Status(context.Background())
	require.NoError(t, err)
	require.False(t, status.Active)
	r.stop()
	s.source.Kafka.Brokers = s.cluster.ListenAddrs()
	require.Empty(t, r.start())
	r.until("all", r.has("orders", 2))
	r.stop()
}

// TestTheSourceMayBeAwayAtTheStart: without its columns nothing is read.
func TestTheSourceMayBeAwayAtTheStart(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 2)...)
	cfg := s.config()
	describe, tries := cfg.Describe, 0
	cfg.Describe = func(ctx context.Context, tables []*catalog.Table) (Description, error) {
		if tries++; tries < 4 {
			return Description{}, catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable, "", "away")
		}
		return describe(ctx, tables)
	}
	source := New(cfg)
	faults, err := source.Start(context.Background(), []pipeline.Resume{{Table: s.tables[0]}})
	require.NoError(t, err)
	require.Empty(t, faults)
	n := 0
	for n < 2 {
		got, err := source.Next(context.Background())
		require.NoError(t, err)
		for _, b := range got.Batches {
			n += len(b.Changes)
		}
	}
	require.NoError(t, source.Close(context.Background()))
}

// TestAClientThatIsRefusedEndsTheSource, whatever the mechanism; who is let in reads.
func TestAClientThatIsRefusedEndsTheSource(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []catalog.SASLMechanism{catalog.SASLPlain, catalog.SASLSHA256, catalog.SASLSHA512} {
		t.Run(string(mechanism), func(t *testing.T) {
			t.Parallel()
			s := newShopOf(t, []kgo.Opt{saslOf(t, mechanism, "secret")}, kfake.EnableSASL(), kfake.Superuser(string(mechanism), "app", "secret"))
			s.table("orders", true, 1)
			s.write(creates("orders", 1, 2)...)
			s.source.Kafka.SASL = &catalog.KafkaSASL{Mechanism: mechanism, Username: "app"}
			s.password = "secret"
			r := s.reader()
			require.Empty(t, r.start())
			r.until("all", r.has("orders", 2))
			r.stop()

			s.password = "wrong"
			s.cluster.ControlKey(36, func(req kmsg.Request) (kmsg.Response, error, bool) { // as brokers answer; these close the connection
				s.cluster.KeepControl()
				resp, ok := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				if ok {
					resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
				}
				return resp, nil, ok
			})
			err := s.reader().refusal()
			var e *catalog.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, catalog.CodeKafkaDenied, e.Code)
			require.NotContains(t, err.Error(), "wrong")
		})
	}
}

// refusal is the error that a source ends with.
func (r *reader) refusal() error {
	source := New(r.config())
	_, err := source.Start(context.Background(), []pipeline.Resume{{Table: r.tables[0]}})
	deadline := time.Now().Add(10 * time.Second)
	for err == nil && time.Now().Before(deadline) {
		_, err = source.Next(context.Background())
	}
	require.NoError(r.t, source.Close(context.Background()))
	return err
}

func saslOf(t testing.TB, mechanism catalog.SASLMechanism, password catalog.Secret) kgo.Opt {
	t.Helper()
	auth := scram.Auth{User: "app", Pass: password.Reveal()}
	switch mechanism {
	case catalog.SASLPlain:
	case catalog.SASLSHA256:
		return kgo.SASL(auth.AsSha256Mechanism())
	case catalog.SASLSHA512:
		return kgo.SASL(auth.AsSha512Mechanism())
	}
	return kgo.SASL(plain.Auth{User: auth.User, Pass: auth.Pass}.AsMechanism())
}

// TestProgressIsToldToTheGroup, which nobody reads by.
func TestProgressIsToldToTheGroup(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(creates("orders", 1, 3)...)
	r := s.reader()
	require.Empty(t, r.start())
	r.until("all", r.has("orders", 3))
	r.source.Saved("public.orders", r.saved["public.orders"].resume.Offsets)
	r.stop()
	got, err := s.admin.FetchOffsets(context.Background(), "lakeweir-shop")
	require.NoError(t, err)
	o, ok := got.Lookup(s.topic("orders"), 0)
	require.True(t, ok)
	require.Equal(t, int64(3), o.At)
}

// TestHeartbeatsMakeAnIdleTableFresh, and not before everything was read.
func TestHeartbeatsMakeAnIdleTableFresh(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.source.Heartbeat.Table = catalog.TableName{Schema: "public", Name: "beat"}
	s.columns["public.beat"] = TableDescription{Schema: &catalog.Schema{Columns: []catalog.Column{column("id", "int8"), column("a", "int8")}}}
	s.create(s.topic("beat"), 1)
	beat := func(at uint64) event {
		return event{table: "beat", op: "u", key: keyOf(1), after: map[string]any{"id": 1, "a": 5}, lsn: at + 4, sequence: at, tx: at, at: int64(at)}
	}
	s.write(beat(500))
	s.write(creates("orders", 1, 3)...)
	s.write(beat(5000))
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("the heartbeat counts", func() bool { return r.through == 5004 })
	require.Len(t, r.saved["public.orders"].changes, 3)
	require.Equal(t, int64(5000), r.readAt.UnixMicro())
	s.write(beat(6000))
	r.until("the next one", func() bool { return r.through == 6004 })
	require.Empty(t, r.faults)
}

// TestSeveralPartitionsKeepKeyOrder: changes of a key stay in one partition; the others
// come late and say so.
func TestSeveralPartitionsKeepKeyOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 3)
	events := creates("orders", 1, 60)
	for i := range events {
		events[i].partition = int32(i % 3)
	}
	s.write(events...)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", r.has("orders", 60))
	orders := r.saved["public.orders"]
	at := map[catalog.Position]bool{}
	for _, c := range orders.changes {
		at[c.position] = true
	}
	require.Len(t, at, 60)
	require.Len(t, orders.resume.Offsets.Partitions, 3)
}

// forget removes what is before an offset, as retention would.
func (s *shop) forget(table string, before int64) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(s.topic(table), 0, before, -1)
	_, err := s.admin.DeleteRecords(context.Background(), offsets)
	require.NoError(s.t, err)
}
