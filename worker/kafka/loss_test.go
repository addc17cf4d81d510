package kafka

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
)

// sentBy returns events as a run of the connector's task sends them.
func sentBy(run int, events ...event) []event {
	for i := range events {
		events[i].run = fmt.Sprintf(runs, run)
	}
	return events
}

// copyOf is rows of one COPY on one page.
func copyOf(table string, tx, sequence, lsn uint64, ids ...int) []event {
	var out []event
	for _, id := range ids {
		out = append(out, event{table: table, op: "c", key: keyOf(id), after: row(id, "v"), lsn: lsn, sequence: sequence, tx: tx, at: int64(lsn)})
	}
	return out
}

func firstHalf(from, to int) []event {
	return []event{
		{table: "orders", op: "d", key: keyOf(from), before: row(from, ""), newKey: keyOf(to), lsn: 3005, sequence: 3000, tx: 3, at: 3000},
		{table: "orders", tombstone: true, key: keyOf(from)},
	}
}

// TestAKeyMoveThatLostItsSecondHalfIsAGap: Debezium goes on behind it when its task is
// restarted. Nothing of the move is in the lake, and nobody can pass it by.
func TestAKeyMoveThatLostItsSecondHalfIsAGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 1)
	s.write(sentBy(1, creates("orders", 1, 2)...)...)
	s.write(sentBy(1, firstHalf(1, 7)...)...)
	r := s.reader()
	require.Empty(t, r.start())
	s.write(sentBy(2, event{table: "orders", op: "u", key: keyOf(2), after: row(2, "w"), lsn: 3010, sequence: 3000, tx: 3, at: 3000})...)
	gap := "topic shop.public.orders, partition 0, offset 4: the second half of a key move is missing: the connector's run " +
		"01a228d259677305804a000000000001 ended at lsn 0/BBD, sequence 0/BB8, of transaction 3, in the midst of a key move, and run 01a228d259677305804a000000000002 goes on behind it"
	r.requireGap("orders", gap)
	require.NotContains(t, r.faults["public.orders"].Err.Hint, "lakeweir skip")
	orders := r.saved["public.orders"]
	require.Len(t, orders.changes, 2)
	next, _ := orders.resume.Offsets.Next(0)
	require.Equal(t, int64(2), next, "the first half is not passed")
	r.stop()

	s.skips[Record{s.topic("orders"), 0, 4}] = Skip{By: "ann", Reason: "by hand"}
	r.start()
	r.requireGap("orders", gap)
	r.stop()
	require.Len(t, orders.changes, 2)
	require.Empty(t, s.suspects)
}

// TestAKeyMoveThatComesAgainIsWhole, and so is one whose second half somebody has passed
// by.
func TestAKeyMoveThatComesAgainIsWhole(t *testing.T) {
	t.Parallel()
	c := event{table: "orders", op: "c", key: keyOf(7), after: row(7, "v"), oldKey: keyOf(1), lsn: 3005, sequence: 3000, tx: 3, at: 3000}
	after := event{table: "orders", op: "u", key: keyOf(2), after: row(2, "w"), lsn: 3010, sequence: 3000, tx: 3, at: 3000}
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		s.table("orders", true, 1)
		s.write(sentBy(1, creates("orders", 1, 2)...)...)
		s.write(sentBy(1, firstHalf(1, 7)...)...)
		s.write(sentBy(2, append(firstHalf(1, 7), c, after)...)...)
		r := s.reader()
		require.Empty(t, r.start())
		defer r.stop()
		r.until("all", func() bool {
			n, _ := r.saved["public.orders"].resume.Offsets.Next(0)
			return n == 8
		})
		require.Empty(t, r.faults)
		require.Empty(t, s.suspects)
	})
	t.Run("passed by", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		s.table("orders", true, 1)
		s.write(sentBy(1, creates("orders", 1, 2)...)...)
		s.write(sentBy(1, firstHalf(1, 7)...)...)
		s.produce(&kgo.Record{Topic: s.topic("orders"), Key: text(keyOf(7)), Value: []byte("{")})
		s.skips[Record{s.topic("orders"), 0, 4}] = Skip{By: "ann", Reason: "by hand"}
		s.write(sentBy(2, after)...)
		r := s.reader()
		require.Empty(t, r.start())
		defer r.stop()
		r.until("all", r.has("orders", 4))
		require.Empty(t, r.faults)
	})
}

// TestAHalfInOnePartitionIsNoProofOfALoss: the other lies in another.
func TestAHalfInOnePartitionIsNoProofOfALoss(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.table("orders", true, 2)
	s.write(sentBy(1, creates("orders", 1, 2)...)...)
	s.write(sentBy(1, firstHalf(1, 7)[0])...)
	s.write(sentBy(2, event{table: "orders", op: "u", key: keyOf(2), after: row(2, "w"), lsn: 3010, sequence: 3000, tx: 3, at: 3000})...)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", r.has("orders", 4))
	require.Empty(t, r.faults)
	require.Len(t, s.suspects, 1)
	require.Contains(t, s.suspects[0], "in the midst of a key move")
}

// TestRowsOfACopyThatMayBeMissingAreTold, once, also when the worker was restarted between
// the connector's runs; the table goes on.
func TestRowsOfACopyThatMayBeMissingAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, beats, after []event
		want                 string
	}{
		"in the midst of the COPY": {
			before: copyOf("orders", 3, 3000, 3005, 1, 2, 3), after: copyOf("orders", 3, 3000, 3010, 7, 8),
			want: "public.orders: topic shop.public.orders, partition 0, offset 3: the connector's run 01a228d259677305804a000000000001 ended at lsn 0/BBD, sequence 0/BB8, of transaction 3, " +
				"with row 3 of those that one COPY has put there, and run 01a228d259677305804a000000000002 goes on behind it",
		},
		"in the first transaction": {
			before: copyOf("orders", 3, 0, 3005, 1, 2, 3), after: copyOf("orders", 3, 3005, 3010, 7, 8),
			want: "ended at lsn 0/BBD, sequence 0/0, of transaction 3, with row 3",
		},
		"comes again": {before: copyOf("orders", 3, 3000, 3005, 1, 2), after: copyOf("orders", 3, 3000, 3005, 1, 2, 3)},
		"comes again, in the first transaction": {
			before: append(copyOf("orders", 3, 0, 3005, 1, 2), copyOf("orders", 3, 0, 3010, 3, 4)...), after: copyOf("orders", 3, 3005, 3010, 3, 4, 5),
		},
		"was whole, as another table shows": {
			before: copyOf("orders", 3, 3000, 3005, 1, 2), beats: copyOf("other", 4, 3100, 3105, 1), after: copyOf("orders", 5, 3200, 3205, 3),
		},
		"another table shows nothing": {
			before: copyOf("orders", 3, 3000, 3005, 1, 2), beats: copyOf("other", 3, 3000, 3006, 1), after: copyOf("orders", 5, 3200, 3205, 3),
			want: "with row 2",
		},
		"single rows": {before: creates("orders", 1, 3), after: creates("orders", 10, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, restart := range []bool{false, true} {
				s := newShop(t)
				s.table("orders", true, 1)
				s.table("other", true, 1)
				s.write(sentBy(1, c.before...)...)
				s.write(sentBy(1, c.beats...)...)
				r := s.reader()
				require.Empty(t, r.start())
				r.until("the first run", r.has("orders", len(c.before)))
				r.until("the other table", r.has("other", len(c.beats)))
				if restart && len(c.beats) == 0 {
					r.stop()
					require.Empty(t, r.start())
				}
				s.write(sentBy(2, c.after...)...)
				s.write(sentBy(2, creates("orders", 1000, 2)...)...)
				offset := int64(len(c.before) + len(c.after) + 2)
				r.until("all", func() bool {
					n, _ := r.saved["public.orders"].resume.Offsets.Next(0)
					return n == offset
				})
				require.Empty(t, r.faults)
				r.stop()
				if c.want == "" {
					require.Empty(t, s.suspects)
					continue
				}
				require.Len(t, s.suspects, 1)
				require.Contains(t, s.suspects[0], c.want)
			}
		})
	}
}

// TestAnInterruptedFirstTransactionIsOne: what is handed over ends where it ends, and not
// where the connector was restarted.
func TestAnInterruptedFirstTransactionIsOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.limits.BatchRows = 2
	s.table("orders", true, 1)
	of := func(sequence uint64, first, n int) []event {
		var out []event
		for i := range n {
			out = append(out, copyOf("orders", 3, sequence, uint64(3000+10*(first+i)), first+i)...)
		}
		return out
	}
	s.write(sentBy(1, of(0, 1, 9)...)...)
	s.write(sentBy(2, of(3040, 5, 10)...)...)
	s.write(sentBy(2, copyOf("orders", 4, 3200, 3150, 20)...)...)
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	r.until("all", func() bool {
		n, _ := r.saved["public.orders"].resume.Offsets.Next(0)
		return n == 20
	})
	orders := r.saved["public.orders"]
	ids := map[string]catalog.Position{}
	highest := catalog.Position{}
	for _, c := range orders.changes {
		was, again := ids[c.key]
		require.Equal(t, again, c.late, "key %x", c.key)
		if again {
			require.Equal(t, was, c.position)
			continue
		}
		require.Positive(t, c.position.Compare(highest))
		ids[c.key], highest = c.position, c.position
	}
	require.Len(t, ids, 15)
	n := 0
	for _, b := range orders.batches {
		n += len(b.Changes)
		require.Equal(t, n >= 19, b.Whole, "after %d changes", n)
	}
	require.Empty(t, s.suspects)
}
