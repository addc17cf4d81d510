package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// asker is a source's signal table, and a connector that a test answers for.
type asker struct {
	mu      sync.Mutex
	log     catalog.LSN
	most    int // keys of a signal
	refused []int
	err     error
	there   map[string]bool // keys that the source has
	asked   chan asked      // each signal
}

func (a *asker) Missing(_ context.Context, _ catalog.TableName, _ []string, keys [][]string) ([]bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]bool, len(keys))
	for i, key := range keys {
		out[i] = !a.there[key[0]]
	}
	return out, nil
}

type asked struct {
	name string
	at   catalog.LSN
	keys [][]string
}

func (a *asker) Read(_ context.Context, name string, _ catalog.TableName, columns []string, keys [][]string) (Signalled, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		err := a.err
		a.err = nil
		return Signalled{}, err
	}
	if fmt.Sprint(columns) != "[id]" {
		return Signalled{}, errors.New("other columns")
	}
	a.log += 100
	n := len(keys)
	if a.most > 0 {
		n = min(n, a.most)
	}
	a.asked <- asked{name, a.log, keys[:n]}
	return Signalled{Before: a.log, At: int64(a.log), Keys: n, Refused: a.refused}, nil
}

// signalShop is a shop with one table of rows 1 and 2, a signal table, and a reader that
// has read both.
func signalShop(t *testing.T, partitions int32, change ...func(*shop)) (*shop, *asker, *reader) {
	t.Helper()
	s := newShop(t)
	for _, c := range change {
		c(s)
	}
	a := &asker{log: 1000, asked: make(chan asked, 10)}
	s.signals = a
	s.table("orders", true, partitions)
	s.create(notifications(s.source.Connector), 1)
	s.write(event{table: "orders", op: "r", key: keyOf(1), after: row(1, "a"), lsn: 100, at: 10, snapshot: "first"},
		event{table: "orders", op: "r", key: keyOf(2), after: row(2, "b"), lsn: 100, at: 10, snapshot: "last"},
		event{table: "orders", op: "u", key: keyOf(1), after: row(1, "a1"), lsn: 210, sequence: 200, tx: 3, at: 20})
	r := s.reader()
	require.Empty(t, r.start())
	t.Cleanup(r.stop)
	r.until("the rows", r.has("orders", 3))
	return s, a, r
}

// signalled takes slices until a signal was sent.
func (r *reader) signalled(a *asker) (out asked) {
	r.t.Helper()
	r.until("a signal", func() bool {
		select {
		case out = <-a.asked:
			return true
		default:
			return false
		}
	})
	return out
}

// scanned tells that a connector is through with a signal.
func (s *shop) scanned(name, status string) {
	s.notify(name, scanStarted, nil)
	s.notify(name, scanCompleted, map[string]any{"scanned_collection": "public.orders", "status": status})
}

func (s *shop) notify(name, kind string, data map[string]any) {
	value := text(map[string]any{"id": name, "type": kind, "aggregate_type": "Incremental Snapshot", "additional_data": data})
	s.produce(&kgo.Record{Topic: notifications(s.source.Connector), Value: value})
}

// reads writes what an incremental read brings.
func reads(at catalog.LSN, ids ...int) []event {
	var out []event
	for _, id := range ids {
		out = append(out, event{table: "orders", op: "r", key: keyOf(id), after: row(id, "again"), lsn: uint64(at), sequence: uint64(at), snapshot: "incremental", at: int64(at)})
	}
	return out
}

// answered reports whether a batch names the request.
func (r *reader) answered(id int64) bool {
	return slices.ContainsFunc(r.saved["public.orders"].batches, func(b *change.Batch) bool { return slices.Contains(b.Rereads, id) })
}

// TestRowsAreReadAgainThroughTheConnector: what it finds comes as a read, and what it does
// not find as a delete at the place of the signal; then the request is answered, once.
func TestRowsAreReadAgainThroughTheConnector(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int32{1, 3} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			t.Parallel()
			s, a, r := signalShop(t, partitions)
			r.source.Reread(pipeline.Reread{ID: 7, Table: "public.orders", Keys: [][]string{{"1"}, {"2"}, {"3"}, {"no number"}, {"1"}}, Remake: true})
			sent := r.signalled(a)
			require.Equal(t, [][]string{{"1"}, {"2"}, {"3"}}, sent.keys, "each key once, and what can be one")
			s.write(event{table: "orders", op: "c", key: keyOf(9), after: row(9, "z"), lsn: 2010, sequence: 2000, tx: 4, at: 2000})
			s.write(reads(2005, 1)...)
			s.scanned("somebody else's", "SUCCEEDED")
			s.scanned(sent.name, "SUCCEEDED")
			r.until("the answer", func() bool { return r.answered(7) })
			orders := r.saved["public.orders"]
			last := map[string]seen{}
			for _, c := range orders.changes[3:] {
				last[fmt.Sprint(c.op, c.before, c.after)] = c
			}
			require.Len(t, orders.changes, 3+4)
			read := last[fmt.Sprint(change.Read, "", "1,1,again,<1>,")]
			require.Equal(t, catalog.LSN(2005), read.position.Commit)
			for _, id := range []string{"2", "3"} {
				gone, ok := last[fmt.Sprint(change.Delete, id+",<0>,<0>,<0>,", "")]
				require.True(t, ok, "key %s: %+v", id, last)
				require.Equal(t, sent.at, gone.position.Commit)
				require.Zero(t, gone.transaction, "it was read, not streamed")
				require.Positive(t, gone.position.Compare(orders.changes[2].position), "above what came before the signal")
				require.Negative(t, gone.position.Compare(last[fmt.Sprint(change.Create, "", "9,1,z,<1>,")].position), "below what came after it")
			}
			require.True(t, orders.batches[len(orders.batches)-1].Remake)
			require.Empty(t, a.asked)
		})
	}
}

// TestAKeyThatChangesMeanwhileIsAskedForAgain, since the change may have come without
// values that were not sent; one that changed before the signal is not.
func TestAKeyThatChangesMeanwhileIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s, a, r := signalShop(t, 1)
	r.source.Reread(pipeline.Reread{ID: 8, Table: "public.orders", Keys: [][]string{{"1"}, {"2"}}})
	sent := r.signalled(a)
	s.write(event{table: "orders", op: "d", key: keyOf(1), before: row(1, ""), lsn: 1050, sequence: 1040, tx: 4, at: 1050}) // from before the signal, read late
	s.write(event{table: "orders", op: "u", key: keyOf(2), after: row(2, "mine"), lsn: 1160, sequence: 1150, tx: 5, at: 1160})
	s.scanned(sent.name, "EMPTY")
	again := r.signalled(a)
	require.Equal(t, [][]string{{"2"}}, again.keys)
	require.False(t, r.answered(8))
	s.write(reads(again.at+1, 2)...)
	s.scanned(again.name, "SUCCEEDED")
	r.until("the answer", func() bool { return r.answered(8) })
	var gone []string
	for _, c := range r.saved["public.orders"].changes {
		if c.op == change.Delete && c.transaction == 0 {
			gone = append(gone, c.before)
		}
	}
	require.Equal(t, []string{"1,<0>,<0>,<0>,"}, gone)
}

// TestATruncateMeanwhileIsAChangeOfEveryKey.
func TestATruncateMeanwhileIsAChangeOfEveryKey(t *testing.T) {
	t.Parallel()
	s, a, r := signalShop(t, 1)
	r.source.Reread(pipeline.Reread{ID: 9, Table: "public.orders", Keys: [][]string{{"2"}}})
	sent := r.signalled(a)
	s.write(event{table: "orders", op: "t", lsn: 1160, sequence: 1150, tx: 5, at: 1160})
	s.scanned(sent.name, "EMPTY")
	again := r.signalled(a)
	require.Equal(t, [][]string{{"2"}}, again.keys)
	s.scanned(again.name, "EMPTY")
	r.until("the answer", func() bool { return r.answered(9) })
}

// TestAConnectorThatDoesNotReadIsAskedAgain: it says so, the source is away, or it says
// nothing. Nothing is concluded from that.
func TestAConnectorThatDoesNotReadIsAskedAgain(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s, a, r := signalShop(t, 1, func(s *shop) {
		s.clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s.limits.SignalWait = 2 * time.Second
	})
	a.err = errors.New("the source is away")
	r.source.Reread(pipeline.Reread{ID: 10, Table: "public.orders", Keys: [][]string{{"5"}}})
	later := func() { ahead.Add(int64(time.Hour)) }
	r.until("the failure", func() bool { return r.source.unreadTimes == 1 })
	later()
	refused := r.signalled(a)
	s.scanned(refused.name, "UNKNOWN_SCHEMA")
	r.until("the refusal", func() bool { return r.source.unreadTimes == 2 })
	later()
	r.signalled(a)
	r.until("the silence", func() bool { return r.source.unreadTimes == 3 })
	require.Len(t, r.saved["public.orders"].changes, 3, "nothing is concluded")
	later()
	s.scanned(r.signalled(a).name, "EMPTY")
	r.until("the answer", func() bool { return r.answered(10) })
	require.Len(t, r.saved["public.orders"].changes, 4)
}

// TestKeysThatDoNotFitIntoASignalComeWithTheNext, and those that the source does not take
// are passed by.
func TestKeysThatDoNotFitIntoASignalComeWithTheNext(t *testing.T) {
	t.Parallel()
	s, a, r := signalShop(t, 1)
	a.most, a.refused = 2, []int{0}
	r.source.Reread(pipeline.Reread{ID: 11, Table: "public.orders", Keys: [][]string{{"11"}, {"12"}, {"13"}, {"14"}}})
	first := r.signalled(a)
	require.Equal(t, [][]string{{"11"}, {"12"}}, first.keys)
	s.scanned(first.name, "EMPTY")
	a.mu.Lock()
	a.refused = nil
	a.mu.Unlock()
	second := r.signalled(a)
	require.ElementsMatch(t, [][]string{{"13"}, {"14"}}, second.keys)
	s.scanned(second.name, "EMPTY")
	r.until("the answer", func() bool { return r.answered(11) })
	require.Len(t, r.saved["public.orders"].changes, 3+3, "12, 13 and 14 are gone; of 11 nothing is said")
}

// TestRequestsThatCannotBeAnsweredLeaveTheTopicAlone.
func TestRequestsThatCannotBeAnsweredLeaveTheTopicAlone(t *testing.T) {
	t.Parallel()
	_, a, r := signalShop(t, 1)
	r.source.Reread(pipeline.Reread{ID: 12, Table: "public.nothing", Keys: [][]string{{"1"}}})
	r.source.Reread(pipeline.Reread{ID: 13, Table: "public.orders", Keys: [][]string{{"tok_1"}}, Masked: true})
	r.source.Reread(pipeline.Reread{ID: 14, Table: "public.orders", Keys: [][]string{{"no number"}, {"1", "2"}, {}}})
	r.until("what no row can have", func() bool { return r.answered(14) })
	require.False(t, r.answered(12))
	require.False(t, r.answered(13))
	require.Empty(t, a.asked)
	require.Len(t, r.saved["public.orders"].changes, 3)
}

// TestTheEndOfAnotherReadingIsNoAnswer: a connector that was reading something when the
// signal came tells of that under the signal's name. When it is through, it is asked again;
// what is told under the name of a newer signal is of ours still.
func TestTheEndOfAnotherReadingIsNoAnswer(t *testing.T) {
	t.Parallel()
	s, a, r := signalShop(t, 1)
	r.source.Reread(pipeline.Reread{ID: 15, Table: "public.orders", Keys: [][]string{{"5"}}})
	sent := r.signalled(a)
	of := func(table string) map[string]any {
		return map[string]any{"scanned_collection": table, "status": scanSucceeded}
	}
	s.notify(sent.name, scanCompleted, of("public.orders")) // which was begun by somebody else
	s.notify(sent.name, scanCompleted, of("public.orders")) // which may be ours
	s.notify(sent.name, scanAllDone, nil)
	again := r.signalled(a)
	require.Len(t, r.saved["public.orders"].changes, 3, "nothing is concluded")
	s.notify(again.name, scanStarted, nil)
	s.notify("somebody's", scanCompleted, of("public.other"))
	s.notify("somebody's", scanCompleted, of("public.orders"))
	r.until("the answer", func() bool { return r.answered(15) })
}

// TestWhatTheSourceHasIsNotGone though the connector does not find it.
func TestWhatTheSourceHasIsNotGone(t *testing.T) {
	t.Parallel()
	s, a, r := signalShop(t, 1)
	a.there = map[string]bool{"5": true}
	r.source.Reread(pipeline.Reread{ID: 16, Table: "public.orders", Keys: [][]string{{"5"}, {"6"}}})
	s.scanned(r.signalled(a).name, scanEmpty)
	again := r.signalled(a)
	require.Equal(t, [][]string{{"5"}}, again.keys)
	require.Len(t, r.saved["public.orders"].changes, 4, "6 alone is gone")
	require.False(t, r.answered(16))
	s.write(reads(again.at+1, 5)...)
	s.scanned(again.name, scanSucceeded)
	r.until("the answer", func() bool { return r.answered(16) })
}
