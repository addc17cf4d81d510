package kafka

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// life is a random database and the log that a connector makes of it.
type life struct {
	*rand.Rand
	log    []event          // as a connector writes it that is never restarted
	rows   map[string][]int // keys of keyed tables
	lsn    uint64
	commit uint64 // the end of the last
	tx     uint64
	texts  int
	open   []*openTx
	bags   map[string]int // rows of tables without a key
	// resumed is where the connector was restarted within the first transaction; 0 for
	// nowhere.
	resumed uint64
}

// openTx is a transaction whose changes were written and that has not committed.
type openTx struct {
	events []event
	keys   map[string]bool // locked
}

const (
	keyedA, keyedB, keyless = "ka", "kb", "bag"
	runs                    = "01a228d2-5967-7305-804a-%012d"
)

func (l *life) next() uint64 { l.lsn += uint64(8 + l.IntN(50)*8); return l.lsn }

// snapshot reads some rows of each table.
func (l *life) snapshot() {
	l.next()
	for _, table := range []string{keyedA, keyedB, keyless} {
		n := l.IntN(4)
		for i := range n {
			e := event{table: table, op: "r", after: row(i+1, l.text()), lsn: l.lsn, at: int64(l.lsn), snapshot: "true"}
			if i == n-1 {
				e.snapshot = "last_in_data_collection"
			}
			if table != keyless {
				e.key = keyOf(i + 1)
				l.rows[table] = append(l.rows[table], i+1)
			} else {
				l.bags[table]++
			}
			l.log = append(l.log, e)
		}
	}
}

func (l *life) text() string { l.texts++; return fmt.Sprintf("t%d", l.texts) }

func (l *life) locked(table string, id int) bool {
	return slices.ContainsFunc(l.open, func(o *openTx) bool { return o.keys[fmt.Sprint(table, id)] })
}

func (l *life) begin() *openTx {
	o := &openTx{keys: map[string]bool{}}
	l.open = append(l.open, o)
	return o
}

// statement writes a change in a transaction.
func (l *life) statement(o *openTx) {
	table := []string{keyedA, keyedA, keyedB, keyless}[l.IntN(4)]
	lock := func(id int) bool {
		name := fmt.Sprint(table, id)
		if o.keys[name] || !l.locked(table, id) {
			o.keys[name] = true
			return true
		}
		return false
	}
	if table == keyless {
		n := 1
		if l.IntN(3) == 0 {
			n += l.IntN(4)
		}
		lsn := l.next()
		for range n { // a COPY: one LSN, also of rows that are the same
			o.events = append(o.events, event{table: table, op: "c", after: row(1, "same"), lsn: lsn})
		}
		return
	}
	ids := l.rows[table]
	pick := func() (int, bool) {
		if len(ids) == 0 {
			return 0, false
		}
		id := ids[l.IntN(len(ids))]
		return id, lock(id)
	}
	switch l.IntN(6) {
	case 0, 1: // insert, or a COPY of several
		lsn := l.next()
		for range 1 + l.IntN(3) {
			id := 1 + l.IntN(12)
			if slices.Contains(l.rows[table], id) || !lock(id) {
				continue
			}
			l.rows[table] = append(l.rows[table], id)
			o.events = append(o.events, event{table: table, op: "c", key: keyOf(id), after: row(id, l.text()), lsn: lsn})
		}
	case 2, 3:
		if id, ok := pick(); ok {
			body := any(l.text())
			if l.IntN(2) == 0 {
				body = "__debezium_unavailable_value"
			}
			o.events = append(o.events, event{table: table, op: "u", key: keyOf(id), after: map[string]any{"id": id, "a": l.IntN(9), "body": body, "c": l.IntN(9)}, lsn: l.next()})
		}
	case 4:
		if id, ok := pick(); ok {
			l.rows[table] = slices.DeleteFunc(slices.Clone(ids), func(x int) bool { return x == id })
			o.events = append(o.events,
				event{table: table, op: "d", key: keyOf(id), before: row(id, ""), lsn: l.next()},
				event{table: table, tombstone: true, key: keyOf(id)})
		}
	case 5:
		id, ok := pick()
		to := 1 + l.IntN(12)
		if ok && !slices.Contains(ids, to) && lock(to) {
			l.rows[table] = append(slices.DeleteFunc(slices.Clone(ids), func(x int) bool { return x == id }), to)
			lsn := l.next()
			after := row(to, "__debezium_unavailable_value")
			o.events = append(o.events,
				event{table: table, op: "d", key: keyOf(id), before: row(id, ""), newKey: keyOf(to), lsn: lsn},
				event{table: table, tombstone: true, key: keyOf(id)},
				event{table: table, op: "c", key: keyOf(to), after: after, oldKey: keyOf(id), lsn: lsn})
		}
	}
}

// end commits a transaction: now its changes are in the log.
func (l *life) end(o *openTx) {
	l.open = slices.DeleteFunc(l.open, func(x *openTx) bool { return x == o })
	l.tx++
	commit := l.next()
	for _, e := range o.events {
		e.tx, e.sequence, e.at = l.tx, l.commit, int64(commit)
		l.log = append(l.log, e)
	}
	l.commit = l.next() // where the commit record ends
}

// newLife draws one. With numbered false it is the connector's whole life: no commit
// was seen before the first transaction.
func newLife(seed uint64, steps int, numbered bool) *life {
	l := &life{Rand: rand.New(rand.NewPCG(seed, 1)), rows: map[string][]int{}, bags: map[string]int{}, lsn: 1000}
	l.snapshot()
	if numbered {
		l.commit = l.next()
	}
	for range steps {
		switch {
		case len(l.open) == 0 || len(l.open) < 3 && l.IntN(3) == 0:
			l.begin()
		case l.IntN(4) == 0:
			l.end(l.open[l.IntN(len(l.open))])
		default:
			l.statement(l.open[l.IntN(len(l.open))])
		}
	}
	for len(l.open) > 0 {
		l.end(l.open[0])
	}
	return l
}

// resent is the log as connectors write it that are restarted: ranges come again, in
// whole groups of one LSN, under the name of another run. The rest of a first transaction
// that has no sequence has one, then, which stays: it is stored with the place.
func (l *life) resent(restarts int) []event {
	var out []event
	run, earliest := 0, 1
	add := func(events []event) {
		for _, e := range events {
			if e.snapshot == "" && e.sequence == 0 {
				e.sequence = l.resumed
			}
			e.run = fmt.Sprintf(runs, run)
			out = append(out, e)
		}
	}
	done := 0
	for range restarts {
		end := done + l.IntN(len(l.log)-done+1)
		add(l.log[done:end])
		done = end
		var starts []int // of groups
		for i := max(earliest, done-20); i <= min(done, len(l.log)-1); i++ {
			if e := l.log[i]; e.snapshot == "" && !e.tombstone && e.oldKey == nil && e.lsn != l.log[i-1].lsn {
				starts = append(starts, i)
			}
		}
		if len(starts) == 0 {
			continue
		}
		done = starts[l.IntN(len(starts))]
		run++
		for i := done - 1; i >= 0 && l.resumed == 0 && l.log[done].sequence == 0 && l.log[i].snapshot == ""; i-- {
			l.resumed, earliest = l.log[i].lsn, done // but of a tombstone
		}
	}
	add(l.log[done:])
	return out
}

// firstAsOne prints the positions of the first transaction alike. In a table of which
// nothing had come before the connector was restarted, it is placed where that was.
func (l *life) firstAsOne(text string) string {
	places := "0/1"
	if l.resumed > 0 {
		places += "|" + catalog.LSN(l.resumed).String()
	}
	lines := strings.Split(regexp.MustCompile(` (`+places+`) #[0-9]+`).ReplaceAllString(text, " first"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// outcome is what a lake shows in the end.
type outcome struct {
	current, history, bronze map[string]string
}

func shown(t testing.TB, lake *pipelinetest.Lake, tables []*catalog.Table) outcome {
	t.Helper()
	o := outcome{map[string]string{}, map[string]string{}, map[string]string{}}
	for _, table := range tables {
		m := lake.Table(table.Name.String())
		o.current[table.Name.Name] = m.Layers.CurrentText()
		o.history[table.Name.Name] = m.Layers.HistoryText()
		require.Empty(t, m.Layers.HistoryProblems())
		var lines []string
		at := map[catalog.Position]bool{}
		for _, b := range m.Bronze {
			for _, c := range b.Changes {
				require.False(t, at[c.Position], "%s stands twice in bronze", c.Position)
				at[c.Position] = true
				image := ""
				if c.After >= 0 {
					image = foldtest.RowText(change.Ref{Rows: b.Rows, Row: c.After})
				}
				p := c.Position
				if p.Commit == 0 { // what was read is placed by its offset
					p.Ordinal = 0
				}
				lines = append(lines, fmt.Sprintf("%s %c %x %x %s", p, c.Op, c.Key, c.OtherKey, image))
			}
		}
		slices.Sort(lines)
		o.bronze[table.Name.Name] = strings.Join(lines, "\n")
	}
	return o
}

// idle tells when a source has handed over all that its topics hold.
type idle struct {
	*Source
	want map[string]int64 // by topic
	done chan struct{}
	over bool
}

func (i *idle) Next(ctx context.Context) (pipeline.Slice, error) {
	s, err := i.Source.Next(ctx)
	if err == nil && !i.over && len(s.Batches) == 0 {
		ready := true
		for topic, n := range i.want {
			t := i.byTopic[topic]
			read := int64(0)
			if t != nil {
				for _, p := range t.parts {
					read += p.next
				}
			}
			ready = ready && (n == 0 || read >= n && (t.build == nil || t.half != nil)) // the half of a key move waits
		}
		if ready {
			i.over = true
			close(i.done)
		}
	}
	return s, err
}

// runAll runs pipelines over the topics until one has saved everything.
func runAll(t testing.TB, s *shop, lake *pipelinetest.Lake, written map[string]int64, limits pipeline.Limits) {
	t.Helper()
	if s.observer == nil {
		s.observer = pipelinetest.NewObserver()
	}
	for try := 0; ; try++ {
		require.Less(t, try, 100)
		lake.Revive()
		source := &idle{Source: New(s.config()), want: written, done: make(chan struct{})}
		p := pipeline.New(pipeline.Config{Source: s.source, Tables: s.tables, Reader: source, Lake: lake, Observer: s.observer, Limits: limits, Logger: s.config().Logger})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		select {
		case <-source.done:
			cancel()
			require.NoError(t, <-done)
			select {
			case <-lake.Died():
			default:
				return
			}
		case <-lake.Died():
			cancel()
			<-done
		case err := <-done:
			cancel()
			require.NoError(t, err)
			require.FailNow(t, "the pipeline hangs")
		}
	}
}

func (s *shop) three() {
	s.table(keyedA, true, 1)
	s.table(keyedB, true, 1)
	s.table(keyless, false, 1)
}

// TestWhateverIsSentAgainChangesNoLayer holds random lives, written by a connector that
// is restarted and sends ranges again, and read by workers that die at any commit,
// against the same lives written and read once.
func TestWhateverIsSentAgainChangesNoLayer(t *testing.T) {
	t.Parallel()
	const cases = 40
	start := uint64(time.Now().UnixNano())
	for n := range uint64(cases) {
		seed := start + n
		l := newLife(seed, 30+rand.New(rand.NewPCG(seed, 2)).IntN(60), seed%3 == 0)
		plain, again := newShop(t), newShop(t)
		plain.three()
		again.three()
		limits := pipeline.Limits{SaveEvery: time.Nanosecond, ReportEvery: time.Millisecond, DrainWithin: 10 * time.Second}
		counts := func(events []event) map[string]int64 {
			out := map[string]int64{}
			for _, e := range events {
				out[prefix+".public."+e.table]++
			}
			return out
		}
		once := pipelinetest.NewLake()
		plain.write(l.log...)
		runAll(t, plain, once, counts(l.log), limits)

		r := rand.New(rand.NewPCG(seed, 3))
		twice := pipelinetest.NewLake()
		outcomes := make(chan pipelinetest.Outcome, 8)
		for range r.IntN(8) {
			outcomes <- []pipelinetest.Outcome{pipelinetest.Lands, pipelinetest.Crash, pipelinetest.Dies, pipelinetest.Unknown}[r.IntN(4)]
		}
		twice.Outcome = func(_ string, layer catalog.Layer) pipelinetest.Outcome {
			select {
			case o := <-outcomes:
				if o == pipelinetest.Unknown && layer != catalog.Bronze {
					return pipelinetest.Lands // it would be tried again later than this test waits
				}
				return o
			default:
				return pipelinetest.Lands
			}
		}
		limits.BatchRows = []int{1, 3, 250_000}[r.IntN(3)]
		again.limits.BatchRows = []int{1, 2, 5, 50_000}[r.IntN(4)]
		log := l.resent(r.IntN(5))
		written := counts(log)
		if r.IntN(2) == 0 {
			again.write(log...)
			runAll(t, again, twice, written, limits)
		} else { // while it is read
			half := len(log) / 2
			again.write(log[:half]...)
			runAll(t, again, twice, counts(log[:half]), limits)
			again.write(log[half:]...)
			runAll(t, again, twice, written, limits)
		}
		for len(outcomes) > 0 {
			<-outcomes
		}
		runAll(t, again, twice, written, limits) // what waited to be tried again is made up
		want, got := shown(t, once, plain.tables), shown(t, twice, again.tables)
		for _, table := range slices.Sorted(maps.Keys(want.bronze)) {
			require.Equal(t, l.firstAsOne(want.bronze[table]), l.firstAsOne(got.bronze[table]), "bronze of %s, seed %d", table, seed)
			require.Equal(t, want.current[table], got.current[table], "current of %s, seed %d", table, seed)
			require.Equal(t, l.firstAsOne(want.history[table]), l.firstAsOne(got.history[table]), "history of %s, seed %d", table, seed)
		}
		var live []string
		for _, id := range l.rows[keyedA] {
			live = append(live, strconv.Itoa(id))
		}
		var have []string
		for line := range strings.SplitSeq(want.current[keyedA], "\n") {
			if id, _, ok := strings.Cut(line, " "); ok {
				have = append(have, id)
			}
		}
		require.ElementsMatch(t, live, have, "seed %d", seed)
		plain.close()
		again.close()
	}
}

// TestSeveralPartitionsShowTheSameInTheEnd holds topics of several partitions, with
// ranges that are sent again, against one that was written once to one partition.
func TestSeveralPartitionsShowTheSameInTheEnd(t *testing.T) {
	t.Parallel()
	const cases = 15
	start := uint64(time.Now().UnixNano())
	for n := range uint64(cases) {
		seed := start + n
		l := newLife(seed, 40, true)
		plain, several := newShop(t), newShop(t)
		limits := pipeline.Limits{SaveEvery: time.Nanosecond, ReportEvery: time.Millisecond, DrainWithin: 10 * time.Second}
		plain.table(keyedA, true, 1)
		several.table(keyedA, true, 3)
		of := func(events []event, partitions int) []event {
			var out []event
			for _, e := range events {
				if e.table != keyedA {
					continue
				}
				id, ok := e.key.(map[string]any)["id"].(int)
				require.True(t, ok)
				e.partition = int32(id % partitions)
				out = append(out, e)
			}
			return out
		}
		once, spread := pipelinetest.NewLake(), pipelinetest.NewLake()
		log := of(l.log, 1)
		plain.write(log...)
		runAll(t, plain, once, map[string]int64{plain.topic(keyedA): int64(len(log))}, limits)
		again := of(l.resent(3), 3)
		half := len(again) / 2
		several.write(again[:half]...)
		runAll(t, several, spread, map[string]int64{several.topic(keyedA): int64(half)}, limits)
		several.write(again[half:]...)
		runAll(t, several, spread, map[string]int64{several.topic(keyedA): int64(len(again))}, limits)
		want, got := shown(t, once, plain.tables), shown(t, spread, several.tables)
		place := regexp.MustCompile(` #[0-9]+`) // it names the partition
		require.Equal(t, want.current[keyedA], got.current[keyedA], "seed %d", seed)
		require.Equal(t, place.ReplaceAllString(want.history[keyedA], ""), place.ReplaceAllString(got.history[keyedA], ""), "seed %d", seed)
		require.Len(t, strings.Split(got.bronze[keyedA], "\n"), len(strings.Split(want.bronze[keyedA], "\n")), "seed %d", seed)
		plain.close()
		several.close()
	}
}
