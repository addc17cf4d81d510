package debezium

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

func streamed(sequence, lsn catalog.LSN) Event {
	return Event{Kind: Row, Op: change.Update, Sequence: sequence, HasSequence: true, LSN: lsn, TxID: 1 + uint64(sequence), Run: RunID{1}}
}

func read(s Snapshot, sequence, lsn catalog.LSN) Event {
	return Event{Kind: Row, Op: change.Read, Snapshot: s, Sequence: sequence, HasSequence: true, LSN: lsn, Run: RunID{1}}
}

// placing places events of one partition and fails the test when that fails.
type placing struct {
	t interface {
		require.TestingT
		Helper()
	}
	Order
	offset int64
}

func (p *placing) place(e Event) catalog.Position {
	p.t.Helper()
	at, err := p.Place(&e, 0, p.offset)
	require.NoError(p.t, err)
	p.offset++
	return at
}

func (p *placing) all(events ...Event) []catalog.Position {
	p.t.Helper()
	var out []catalog.Position
	for _, e := range events {
		out = append(out, p.place(e))
	}
	return out
}

func requireRising(t require.TestingT, positions []catalog.Position) {
	for i := 1; i < len(positions); i++ {
		require.Negative(t, positions[i-1].Compare(positions[i]), "%s, then %s", positions[i-1], positions[i])
	}
}

// The topics of a real connector, with incremental reads between its changes, are in the
// order of positions.
func TestRecordedTopicsAreInTheOrderOfPositions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"order_incremental.txt", "order_readonly.txt"} {
		events := orderSamples(t, name)
		require.Greater(t, len(events), 300)
		var order Order
		var positions []catalog.Position
		fell := 0
		for i := range events {
			p, err := order.Place(&events[i].Event, 0, events[i].offset)
			require.NoError(t, err)
			positions = append(positions, p)
			if i > 0 && events[i].LSN < events[i-1].LSN {
				fell++
			}
		}
		requireRising(t, positions)
		t.Logf("%s: %d events; their own LSN fell %d times", name, len(events), fell)
	}
}

// What a real connector read and what it streamed of one key are in the order in which the
// source changed them: what comes later in the topic counts.
func TestRecordedTopicsEndWithTheLastValue(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"order_incremental.txt", "order_readonly.txt"} {
		events := orderSamples(t, name)
		last, at := map[string]catalog.Position{}, map[string]int64{}
		var order Order
		for i := range events {
			p, err := order.Place(&events[i].Event, 0, events[i].offset)
			require.NoError(t, err)
			if k := events[i].key; p.Compare(last[k]) > 0 {
				last[k], at[k] = p, events[i].offset
			}
		}
		for i := range events {
			require.GreaterOrEqual(t, at[events[i].key], events[i].offset)
		}
	}
}

// C36-REPLAY: a connector that was killed sends a range again, from anywhere; each event has
// the position that it had, also where rows of one COPY share an LSN, and new ones go on. So
// it is for the first transaction, whose rest carries a sequence when the connector was
// restarted in its midst, also when a later one has its txId.
func TestC36EventsThatAreSentAgainHaveTheSamePosition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		first := 0 // how many events the first transaction has
		for first < len(log) && log[first].Sequence == 0 {
			first++
		}
		if rapid.Bool().Draw(t, "a txId comes again") {
			second := catalog.LSN(0)
			for i := first; i < len(log); i++ {
				if second == 0 {
					second = log[i].Sequence
				}
				if log[i].Sequence != second {
					log[i].TxID = log[0].TxID
				}
			}
		}
		p := placing{t: t}
		at := map[int]catalog.Position{} // by index in the log
		sent := 0
		for run := byte(1); sent < len(log); run++ {
			// Debezium resumes at a change's LSN, never inside of several that share one.
			from := 0
			if sent > 0 {
				kinds := []int{sent, min(sent, first)} // anywhere, or in the first transaction
				from = rapid.IntRange(0, rapid.SampledFrom(kinds).Draw(t, "where")-1).Draw(t, "from")
				for from > 0 && log[from-1].LSN == log[from].LSN {
					from--
				}
			}
			resumed := catalog.LSN(0) // where, when that was within the first transaction
			if from > 0 && from <= first {
				resumed = log[rapid.IntRange(0, from-1).Draw(t, "noted")].LSN
			}
			to := rapid.IntRange(sent, len(log)).Draw(t, "to")
			if run > 4 {
				to = len(log)
			}
			for i := from; i < to; i++ {
				e := log[i]
				e.Run = RunID{run}
				if i < first {
					e.Sequence = resumed
				}
				commit := p.Commit(&e, 0)
				now := p.place(e)
				require.Equal(t, now.Commit, commit)
				require.Equal(t, commit, p.Newest(0))
				if was, ok := at[i]; ok {
					require.Equal(t, was, now, "event %d in run %d", i, run)
				}
				at[i] = now
				if run%2 == 0 { // what is stored and read back goes on
					var back Order
					b, err := json.Marshal(p.Order)
					require.NoError(t, err)
					require.NoError(t, json.Unmarshal(b, &back))
					p.Order = back
				}
			}
			sent = max(sent, to)
		}
		var positions []catalog.Position
		for i := range log {
			positions = append(positions, at[i])
		}
		requireRising(t, positions)
	})
}

// What a restart leaves of the first transaction belongs to it, and what has its txId and
// cannot be of it does not.
func TestTheFirstTransactionStaysOneWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	of := func(tx uint64, run byte, sequence, lsn catalog.LSN) Event {
		e := streamed(sequence, lsn)
		e.TxID, e.Run = tx, RunID{run}
		return e
	}
	p := placing{t: t}
	sent := p.all(of(7, 1, 0, 1000), of(7, 1, 0, 1010), of(7, 1, 0, 1010), of(7, 1, 0, 1020))
	require.Equal(t, sent[1:], p.all(of(7, 2, 1000, 1010), of(7, 2, 1000, 1010), of(7, 2, 1000, 1020)), "sent again")
	sent = append(sent, p.place(of(7, 2, 1000, 1030)))
	later := p.all(of(8, 2, 1050, 1040), of(7, 2, 1090, 1060))
	requireRising(t, append(slices.Clone(sent), later...))
	require.Equal(t, catalog.LSN(1090), later[1].Commit, "another transaction of that txId")
	require.Equal(t, sent[3:], p.all(of(7, 3, 1010, 1020), of(7, 3, 1010, 1030)), "sent again after its end")
	require.Equal(t, later, p.all(of(8, 3, 1050, 1040), of(7, 3, 1090, 1060)))
	require.Equal(t, sent, p.all(of(7, 4, 0, 1000), of(7, 4, 0, 1010), of(7, 4, 0, 1010), of(7, 4, 0, 1020), of(7, 4, 0, 1030)))

	p.place(read(Initial, 0, 2000)) // the table is read anew
	require.Equal(t, catalog.Position{Generation: 2, Commit: 1990}, func() catalog.Position {
		at := p.place(of(7, 5, 1990, 2010))
		at.Ordinal = 0
		return at
	}())
}

// drawLog draws what a connector streams: transactions in the order of their commits,
// whose changes lie anywhere before them in the log, also between each other's.
func drawLog(t *rapid.T) []Event {
	var out []Event
	var sequence catalog.LSN
	commit := catalog.LSN(rapid.Uint64Range(1<<20, 1<<40).Draw(t, "start"))
	for n := range rapid.IntRange(1, 8).Draw(t, "transactions") {
		lsn := commit
		if back := catalog.LSN(rapid.Uint64Range(0, 1<<19).Draw(t, "began before")); back < lsn {
			lsn -= back
		}
		for range rapid.IntRange(1, 4).Draw(t, "statements") {
			lsn += catalog.LSN(rapid.Uint64Range(1, 500).Draw(t, "step"))
			for range rapid.SampledFrom([]int{1, 1, 2, 5}).Draw(t, "rows of a statement") {
				e := streamed(sequence, lsn)
				e.TxID = 700 + uint64(n)
				out = append(out, e)
			}
		}
		commit = max(commit, lsn) + catalog.LSN(rapid.Uint64Range(1, 500).Draw(t, "to commit"))
		sequence = commit
	}
	return out
}

// C32-POSITION-COMPARE: positions are numbers: one with more digits is later.
func TestC32PositionsAreComparedAsNumbers(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	requireRising(t, p.all(streamed(9, 23), streamed(9, 123), streamed(10, 4), streamed(999999, 900), streamed(1000000, 5)))
}

// C33-SNAPSHOT-TIME: the log's order decides between what was read and what was streamed,
// whatever the clock says.
func TestC33TheLogDecidesNotTheClock(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	before := p.place(streamed(400, 410))
	reading := read(Incremental, 450, 450)
	reading.CommitTime = 1772359230000000
	r := p.place(reading)
	after := streamed(499, 500)
	after.CommitTime = 1772359225000000
	requireRising(t, []catalog.Position{before, r, p.place(after)})

	none := read(Incremental, 0, 450)
	none.HasSequence = false
	_, err := p.Place(&none, 0, 99)
	require.Equal(t, catalog.CodeDecode, catalog.Public(err).Code)
	require.Contains(t, err.Error(), "without source.sequence")
}

// A read that stands at an older place of the log than changes that came before it, as
// after a restart, ranks below them.
func TestAnOldReadUndoesNothing(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	early, late := p.place(streamed(400, 410)), p.place(streamed(500, 510))
	old := p.place(read(Incremental, 450, 450))
	requireRising(t, []catalog.Position{early, old, late})
}

// A transaction that was under way while a chunk was read comes after it, with a lower LSN
// of its own, and wins.
func TestATransactionUnderWayWinsOverTheRead(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	p.place(streamed(400, 410))
	requireRising(t, []catalog.Position{
		p.place(read(Incremental, 500, 500)), // saw the row before the change
		p.place(streamed(500, 405)),          // began long ago, is the first to commit since
		p.place(read(Incremental, 600, 600)),
		p.place(streamed(650, 300)), // committed later still
	})
}

func TestInitialReadsRankBelowEveryChangeOfTheirGeneration(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	positions := p.all(read(Initial, 0, 1000), read(Initial, 0, 1000), read(InitialLast, 0, 1000),
		streamed(0, 950), streamed(0, 1010), read(Incremental, 0, 1011), streamed(1020, 990))
	require.Equal(t, uint32(1), positions[6].Generation)
	require.Negative(t, positions[5].Compare(positions[4]), "before any commit was seen, the change under way wins")
	requireRising(t, slices.Delete(positions, 5, 6))
}

func TestANewInitialSnapshotIsAGeneration(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]Event{
		"after its end":       {read(Initial, 0, 1000), read(InitialLast, 0, 1000), read(Initial, 0, 1000)},
		"after changes":       {read(Initial, 0, 1000), streamed(1001, 1002), read(Initial, 0, 1000)},
		"at another place":    {read(Initial, 0, 1000), read(Initial, 0, 1010)},
		"with nothing before": {streamed(900, 901), read(Initial, 0, 1010)},
		"after a read":        {read(Initial, 0, 1000), read(Incremental, 1001, 1002), read(Initial, 0, 1000)},
	} {
		p := placing{t: t}
		positions := p.all(events...)
		requireRising(t, positions)
		require.Equal(t, uint32(2), positions[len(positions)-1].Generation, name)
		require.Equal(t, uint32(2), p.place(streamed(1011, 1012)).Generation, name)
	}
	p := placing{t: t}
	p.all(read(Initial, 0, 1000))
	back := read(Initial, 0, 900)
	_, err := p.Place(&back, 0, 5)
	require.Equal(t, catalog.CodeGap, catalog.Public(err).Code, "the log went back")
}

// A connector that somebody made anew, with nothing read, has no commit before its first
// change: what it says cannot be put in order with what its predecessor said.
func TestAConnectorThatStartsFromNothingIsAGap(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	positions := p.all(streamed(0, 1000), streamed(0, 1010), streamed(1020, 1030))
	require.Equal(t, positions[:2], p.all(streamed(0, 1000), streamed(0, 1010)), "sent again")
	for _, e := range []Event{streamed(0, 2000), read(Incremental, 0, 2000)} {
		_, err := p.Place(&e, 0, 9)
		require.Equal(t, catalog.CodeGap, catalog.Public(err).Code)
	}
	p.place(read(Initial, 0, 1500))
	p.place(streamed(0, 2000))
}

func TestWhatDoesNotFitIntoAPositionIsRefused(t *testing.T) {
	t.Parallel()
	refused := func(o *Order, e Event, partition int32, offset int64) {
		t.Helper()
		before := o.Clone()
		_, err := o.Place(&e, partition, offset)
		require.Equal(t, catalog.CodeDecode, catalog.Public(err).Code)
		require.Equal(t, before, *o, "a refused change leaves no trace")
	}
	var o Order
	refused(&o, streamed(1, 2), 64, 0)
	refused(&o, streamed(1, 2), -1, 0)
	refused(&o, streamed(1, 2), 0, -1)
	refused(&o, read(Initial, 0, 2), 0, 1<<56)
	refused(&o, streamed(1<<46, 1), 0, 0)
	refused(&o, streamed(2, 1<<46), 0, 0)
	var early Order
	first := streamed(0, 1<<46-1)
	_, err := early.Place(&first, 0, 0)
	require.NoError(t, err)
	refused(&early, streamed(0, 1<<46), 0, 1)
	for i := range samePlaces {
		e := streamed(5, 7)
		_, err := o.Place(&e, 0, int64(i))
		require.NoError(t, err)
	}
	refused(&o, streamed(5, 7), 0, 2000)
}

// The log of a large and busy source is long before a connector begins to read it.
func TestTheFirstTransactionOfALongLogHasAPlace(t *testing.T) {
	t.Parallel()
	p := placing{t: t}
	const far = catalog.LSN(1) << 60
	requireRising(t, p.all(read(Initial, 0, far), streamed(0, far+100), streamed(0, far+200), streamed(far+300, far+300)))
}

// C43-MORE-PARTITIONS: whatever way partitions come between each other, the order of
// positions is that of the commits, and no two changes share one.
func TestC43PartitionsMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		lanes := make([][]int, 4)
		for i := range log {
			lane := rapid.IntRange(0, len(lanes)-1).Draw(t, "lane")
			lanes[lane] = append(lanes[lane], i)
		}
		placeAll := func(seed uint64) []catalog.Position {
			random := rand.New(rand.NewPCG(seed, 1))
			var o Order
			out := make([]catalog.Position, len(log))
			next := make([]int, len(lanes))
			for range log {
				lane := random.IntN(len(lanes))
				for next[lane] == len(lanes[lane]) {
					lane = (lane + 1) % len(lanes)
				}
				i := lanes[lane][next[lane]]
				at, err := o.Place(&log[i], int32(lane), int64(next[lane]))
				require.NoError(t, err)
				out[i] = at
				next[lane]++
			}
			return out
		}
		a, b := placeAll(1), placeAll(2)
		require.Equal(t, a, b)
		seen := map[catalog.Position]bool{}
		for i, at := range a {
			require.False(t, seen[at], "two changes at %s", at)
			seen[at] = true
			if i > 0 && log[i].LSN != log[i-1].LSN {
				require.Negative(t, a[i-1].Compare(at))
			}
		}
	})
}

// A partition that is behind still sends reads of the snapshot before.
func TestAPartitionThatIsBehindStartsNoGeneration(t *testing.T) {
	t.Parallel()
	var o Order
	var got []uint32
	for i, e := range []struct {
		partition int32
		event     Event
	}{
		{0, read(Initial, 0, 1000)}, {0, read(Initial, 0, 2000)}, {1, read(Initial, 0, 1000)}, {1, read(Initial, 0, 2000)}, {1, streamed(2001, 2002)}, {0, streamed(2001, 2003)},
	} {
		p, err := o.Place(&e.event, e.partition, int64(i))
		require.NoError(t, err)
		got = append(got, p.Generation)
	}
	require.Equal(t, []uint32{1, 2, 1, 2, 2, 2}, got)
}
