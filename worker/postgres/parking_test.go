package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// wire writes what a server sends, without a server.
type wire struct {
	lsn    catalog.LSN
	frames []sentFrame
	commit catalog.LSN
	xid    int
}

type sentFrame struct {
	at   catalog.LSN
	data []byte
}

func (w *wire) send(data []byte) {
	w.lsn += 8
	w.frames = append(w.frames, sentFrame{w.lsn, data})
}

func u64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// tx sends a transaction; the commit's LSN is that behind its n messages.
func (w *wire) tx(n int, messages func()) {
	w.xid++
	w.commit = w.lsn + catalog.LSN(8*(n+2))
	w.send(u32(u64(u64([]byte{'B'}, uint64(w.commit)), uint64(w.xid)*1000), 700+w.xid))
	messages()
	for w.lsn < w.commit-8 {
		w.lsn += 8
	}
	w.send(u64(u64(u64([]byte{'C', 0}, uint64(w.commit)), uint64(w.commit+8)), uint64(w.xid)*1000))
	w.lsn += 8
}

// relation describes a table with an int key and text columns.
func (w *wire) relation(id int, name string, columns ...string) {
	b := append(u32([]byte{'R'}, id), "public\x00"+name+"\x00d"...)
	b = u16(b, len(columns))
	for i, c := range columns {
		flag, oid := byte(0), 25
		if i == 0 {
			flag, oid = 1, 23
		}
		b = u32(u32(append(append(b, flag), c+"\x00"...), oid), -1)
	}
	w.send(b)
}

func (w *wire) insert(id int, values ...string) {
	b := u16(append(u32([]byte{'I'}, id), 'N'), len(values))
	for _, v := range values {
		b = textCell(b, v)
	}
	w.send(b)
}

// from is where a server begins that was told that everything before a place is saved.
func (w *wire) from(through catalog.LSN) int {
	for i, f := range w.frames {
		if f.data[0] == 'B' && catalog.LSN(binary.BigEndian.Uint64(f.data[1:])) >= through {
			return i
		}
	}
	return len(w.frames)
}

func (w *wire) truncate(id int) { w.send(u32(append(u32([]byte{'T'}, 1), 0), id)) }

// entry writes the DDL log's entry of a table with an int key and text columns, whose
// numbers are given.
func (w *wire) entry(id int, name string, columns map[int]string) {
	numbers := make([]int, 0, len(columns))
	for n := range columns {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var doc strings.Builder
	fmt.Fprintf(&doc, `{"v":1,"event":"table","oid":%d,"schema":"public","name":%q,"identity":"d","key":["id"],"carries":["id"],"columns":[`, id, name)
	for i, n := range numbers {
		if i > 0 {
			doc.WriteByte(',')
		}
		oid, typ, more := 25, "text", ""
		if n == 1 {
			oid, typ, more = 23, "integer", `,"notnull":true`
		}
		fmt.Fprintf(&doc, `{"n":%d,"name":%q,"type":%q,"oid":%d,"mod":-1%s}`, n, columns[n], typ, oid, more)
	}
	doc.WriteString(`],"types":[{"oid":23,"mod":-1,"name":"int4","schema":"pg_catalog","kind":"b"},{"oid":25,"mod":-1,"name":"text","schema":"pg_catalog","kind":"b"}]}`)
	b := append(u64([]byte{'M', 1}, 0), ddlLogPrefix+"\x00"...)
	w.send(append(u32(b, doc.Len()), doc.String()...))
}

// dry is a source that is fed frames, and what it handed over.
type dry struct {
	t       testing.TB
	s       *Source
	faults  []pipeline.Fault
	runs    []pipeline.ParkedRun
	done    []pipeline.Replayed
	events  map[string][]event
	batch   map[string]catalog.Cursor
	last    pipeline.Slice
	parks   bool
	replays bool
	given   int // runs, in the replay that is under way
}

func textDefinition(t testing.TB, id int, name string, columns map[int]string) *definition {
	t.Helper()
	w := &wire{}
	w.entry(id, name, columns)
	m, err := parseLogical(w.frames[0].data[1:])
	require.NoError(t, err)
	e, err := parseDDL(m.content)
	require.NoError(t, err)
	return e.definition
}

// newDry makes a source that has read tables x and y.
func newDry(t testing.TB, limits Limits) *dry {
	t.Helper()
	d := &dry{t: t, events: map[string][]event{}, batch: map[string]catalog.Cursor{}}
	d.s = New(Config{Source: &catalog.Source{Name: "shop"}, Park: true, Limits: limits})
	d.s.life = t.Context()
	d.s.epoch = catalog.Epoch{System: "1", Timeline: 1}
	for id, name := range map[int]string{1: "x", 2: "y"} {
		d.open(id, name, pipeline.Resume{})
	}
	return d
}

func (d *dry) open(id int, name string, r pipeline.Resume) {
	cfg := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: name}, PrimaryKey: []string{"id"}, Current: true, ApplyTruncates: true}
	def := textDefinition(d.t, id, name, map[int]string{1: "id", 2: "v"})
	tab := &table{cfg: cfg, name: cfg.Name.String(), oid: uint32(id), schema: def.schema(cfg), generation: 1, lasting: true}
	if !r.Cursor.IsZero() {
		tab.last = place{r.Cursor.Position.Commit, r.Cursor.Position.Ordinal}
	}
	tab.govern(r, def)
	d.s.order = append(d.s.order, tab)
	slices.SortFunc(d.s.order, func(a, b *table) int { return int(a.oid) - int(b.oid) })
	d.s.byName[cfg.Name], d.s.byOID[tab.oid] = tab, tab
}

// feed sends frames and takes what is handed over.
func (d *dry) feed(frames []sentFrame) {
	d.t.Helper()
	p := &packet{}
	for _, f := range frames {
		start := len(p.buf)
		p.buf = append(p.buf, f.data...)
		p.messages = append(p.messages, frame{at: f.at, start: start, end: len(p.buf)})
	}
	d.s.packet, d.s.at = p, 0
	for {
		d.step()
		if d.s.packet == nil {
			return
		}
	}
}

// step is Next without waiting.
func (d *dry) step() {
	d.t.Helper()
	d.s.collect()
	d.s.takeReplays()
	require.NoError(d.t, d.s.replayParked(d.t.Context()))
	if !d.s.full() {
		require.NoError(d.t, d.s.decode(d.t.Context()))
	}
	if !d.s.full() && !d.s.ready() && d.s.packet != nil {
		return
	}
	slice, err := d.s.cut()
	require.NoError(d.t, err)
	require.GreaterOrEqual(d.t, slice.Through, d.last.Through)
	d.last = slice
	for _, b := range slice.Batches {
		name := b.Table.Name.Name
		for i := range b.Changes {
			e := toEvent(b, &b.Changes[i])
			if n := len(d.events[name]); n > 0 {
				require.Negative(d.t, d.events[name][n-1].position.Compare(e.position))
			}
			d.events[name] = append(d.events[name], e)
		}
		d.batch[name] = b.End(d.batch[name])
	}
	for _, r := range slice.Replayed {
		d.done = append(d.done, r)
		if r.Live {
			d.runs, d.parks, d.replays = nil, false, false
		}
	}
	for _, f := range slice.Faults {
		d.faults = append(d.faults, f)
		d.parks, d.replays = d.parks || f.Parks, false
	}
	for _, r := range slice.Parked {
		require.Equal(d.t, uint64(len(d.runs)+1), r.Seq)
		d.runs = append(d.runs, r)
	}
}

// replay gives runs back until the table is live, or it faults.
func (d *dry) replay(schema *catalog.Schema, skip ...catalog.Place) {
	d.t.Helper()
	faults := len(d.faults)
	d.begin(schema, skip...)
	for range 1000 {
		d.step()
		if d.give(schema, skip...); len(d.faults) > faults || d.x().park == nil {
			return
		}
	}
	d.t.Fatal("the replay does not end")
}

func (d *dry) begin(schema *catalog.Schema, skip ...catalog.Place) {
	d.done, d.given, d.replays = nil, 0, true
	d.s.Replay("public.x", pipeline.ParkedRun{}, schema, skip)
}

// give gives the next run back, once the one before it was replayed.
func (d *dry) give(schema *catalog.Schema, skip ...catalog.Place) {
	if d.given < len(d.runs) && (d.given == 0 || len(d.done) > 0 && d.done[len(d.done)-1].Seq == uint64(d.given)) {
		d.s.Replay("public.x", d.runs[d.given], schema, skip)
		d.given++
	}
}

func (d *dry) x() *table { return d.s.named("public.x") }

func scripted(events []event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%c %v %s %s %d", e.op, e.after, e.position, e.lsn, e.xid)
	}
	return out
}

func TestAPoisonedTableParksAloneAndIsReplayed(t *testing.T) {
	t.Parallel()
	w := &wire{}
	w.tx(6, func() {
		w.relation(1, "x", "id", "v")
		w.relation(2, "y", "id", "v")
		w.insert(1, "1", "a")
		w.insert(2, "1", "a")
		w.insert(1, "none", "b") // no number
		w.insert(1, "3", "c")
	})
	w.tx(2, func() {
		w.insert(2, "2", "b")
		w.insert(1, "4", "d")
	})
	d := newDry(t, Limits{})
	d.feed(w.frames)
	require.Len(t, d.faults, 1)
	f := d.faults[0]
	require.Equal(t, "public.x", f.Table)
	require.True(t, f.Parks)
	require.Nil(t, f.Change)
	require.Equal(t, catalog.CodeDecode, f.Err.Code)
	require.Len(t, d.events["x"], 1)
	require.Len(t, d.events["y"], 2)
	require.Len(t, d.runs, 1)
	require.Equal(t, 3, d.runs[0].Events)
	require.Equal(t, uint64(4), d.runs[0].From.Position.Ordinal)

	schema := d.x().schema
	d.replay(schema)
	require.Len(t, d.faults, 2, "the change is as it was")
	d.replay(schema, d.runs[0].From)
	d.step()
	require.Len(t, d.faults, 2)
	require.Equal(t, []pipeline.Replayed{{Table: "public.x", Seq: 1}, {Table: "public.x", Seq: 1, Live: true}}, d.done)
	require.Equal(t, []string{"1|a", "3|c", "4|d"}, rowsOf(d.events["x"]))

	n := len(w.frames)
	w.tx(1, func() { w.insert(1, "5", "e") })
	d.feed(w.frames[n:])
	require.Equal(t, []string{"1|a", "3|c", "4|d", "5|e"}, rowsOf(d.events["x"]))
	require.Empty(t, d.runs)
}

func rowsOf(events []event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		for j, v := range e.after {
			if j > 0 {
				out[i] += "|"
			}
			out[i] += v
		}
	}
	return out
}

func TestAnAlterationParksAtItsPlace(t *testing.T) {
	t.Parallel()
	w := &wire{}
	w.tx(5, func() {
		w.relation(1, "x", "id", "v")
		w.insert(1, "1", "a")
		w.entry(1, "x", map[int]string{1: "id"})
		w.relation(1, "x", "id")
		w.insert(1, "2")
	})
	w.tx(1, func() { w.insert(1, "3") })
	d := newDry(t, Limits{})
	d.feed(w.frames)
	require.Len(t, d.faults, 1)
	f := d.faults[0]
	require.True(t, f.Parks)
	require.NotNil(t, f.Change)
	require.Equal(t, catalog.ByDDLLog, f.Change.FoundBy)
	require.Equal(t, "column v is gone", f.Change.String())
	require.Equal(t, uint64(2), f.Change.At.Position.Ordinal)
	require.Equal(t, 2, d.runs[0].Events)
	require.Equal(t, []string{"1|a"}, rowsOf(d.events["x"]))

	kept := *d.x().schema
	kept.Columns = slices.Clone(kept.Columns)
	kept.Columns[1].Dropped = true
	kept.Definition = f.Change.After
	d.replay(&kept)
	require.Len(t, d.faults, 1)
	require.Equal(t, []string{"1|a", "2|<null>", "3|<null>"}, rowsOf(d.events["x"]))
}

// TestAReleaseWithoutTheAlterationGoesOn is a column that was dropped and brought back: a
// person releases the table as it was.
func TestAReleaseWithoutTheAlterationGoesOn(t *testing.T) {
	t.Parallel()
	w := &wire{}
	w.tx(3, func() {
		w.entry(1, "x", map[int]string{1: "id"})
		w.relation(1, "x", "id")
		w.insert(1, "2")
	})
	w.tx(1, func() { w.insert(1, "3") })
	d := newDry(t, Limits{})
	d.feed(w.frames)
	require.Len(t, d.faults, 1)
	before := d.x().schema
	d.replay(before)
	require.Len(t, d.faults, 1)
	require.Equal(t, []string{"2|<null>", "3|<null>"}, rowsOf(d.events["x"]))
	n := len(w.frames)
	w.tx(3, func() {
		w.entry(1, "x", map[int]string{1: "id", 3: "v"})
		w.relation(1, "x", "id", "v")
		w.insert(1, "4", "b")
	})
	d.feed(w.frames[n:])
	require.Len(t, d.faults, 2, "it is another column")
	require.Equal(t, "column v is gone; column v is new: text", d.faults[1].Change.String())
}

// TestColumnsThatSwapTheirNamesAreToldByNumber decodes them into their own columns.
func TestColumnsThatSwapTheirNamesAreToldByNumber(t *testing.T) {
	t.Parallel()
	d := newDry(t, Limits{})
	tab := d.x()
	swapped := textDefinition(t, 1, "x", map[int]string{1: "id", 2: "b", 3: "a"})
	tab.schema = textDefinition(t, 1, "x", map[int]string{1: "id", 2: "a", 3: "b"}).schema(tab.cfg)
	r := &relation{relationMessage: relationMessage{columns: swapped.wire}}
	r.bindNumbers(tab.schema, swapped, false)
	require.Equal(t, []int{0, 1, 2}, r.columns)
}

// TestParkedAndReplayedEqualsUninterrupted runs a random log through a source that parks,
// is replayed, loses its connection and starts again at random, and compares with one
// that is never disturbed.
func TestParkedAndReplayedEqualsUninterrupted(t *testing.T) {
	t.Parallel()
	for range 300 {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { parkAtRandom(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func parkAtRandom(t *testing.T, rng *rand.Rand) {
	t.Helper()
	w := &wire{}
	for i := range 3 + rng.IntN(12) {
		n := 1 + rng.IntN(6)
		w.tx(n+2, func() {
			if i == 0 { // a server describes tables once
				w.relation(1, "x", "id", "v")
				w.relation(2, "y", "id", "v")
			}
			for range n {
				switch k := rng.IntN(12); {
				case k == 0:
					w.truncate(1)
				case k == 1: // nothing that concerns the lake
					w.entry(1, "x", map[int]string{1: "id", 2: "v"})
				case k < 5:
					w.insert(2, strconv.Itoa(rng.IntN(9)), "y")
				default:
					w.insert(1, strconv.Itoa(rng.IntN(99)), "x")
				}
			}
		})
	}
	calm := newDry(t, Limits{})
	calm.feed(w.frames)
	require.Empty(t, calm.faults)

	limits := Limits{SliceRows: 1 + rng.IntN(6), SliceBytes: 1 << (6 + rng.IntN(14))}
	d := newDry(t, limits)
	stop := catalog.Errorf(catalog.Invalid, catalog.CodeDecode, "", "no more")
	for at := 0; at < len(w.frames) || d.parks || d.x().park != nil; {
		switch k := rng.IntN(40); {
		case (k == 0 || k == 39) && d.x().park == nil && at < len(w.frames):
			d.s.fault(d.x(), catalog.Quarantined, stop)
		case !d.replays && d.parks && (k == 1 || at == len(w.frames)):
			d.begin(d.x().schema)
		case k == 2 && at < len(w.frames): // the connection is lost
			d.s.packet = nil
			d.s.restarted()
			at = d.reconnected(w)
		case k == 3 && at < len(w.frames): // the process starts again, from what was saved
			d = d.again()
			at = d.reconnected(w)
		case k < 25 && at < len(w.frames):
			n := min(1+rng.IntN(4), len(w.frames)-at)
			d.feed(w.frames[at : at+n])
			at += n
		default:
			d.step()
		}
		if d.replays {
			d.give(d.x().schema)
		}
	}
	d.step()
	require.Equal(t, scripted(calm.events["x"]), scripted(d.events["x"]))
	require.Equal(t, scripted(calm.events["y"]), scripted(d.events["y"]))
}

// reconnected returns where the server begins, which describes tables again.
func (d *dry) reconnected(w *wire) int {
	at := w.from(d.last.Through)
	if at > 0 {
		d.feed(w.frames[1:3])
	}
	return at
}

// again starts another source from what was handed over.
func (d *dry) again() *dry {
	d.t.Helper()
	n := newDry(d.t, d.s.cfg.Limits)
	n.events, n.batch, n.last = d.events, d.batch, d.last
	n.s.handedTo = d.last.Through
	n.s.through = d.last.Through
	for _, name := range []string{"x", "y"} {
		t := n.s.named("public." + name)
		c := d.batch[name]
		t.last = place{c.Position.Commit, c.Position.Ordinal}
	}
	if d.parks {
		n.parks, n.runs = true, d.runs
		p := &pipeline.ParkedThrough{Seq: uint64(len(d.runs))}
		if len(d.runs) > 0 {
			p.Place = d.runs[len(d.runs)-1].To
		} else {
			p.Position = d.batch["x"].Position
		}
		def := textDefinition(d.t, 1, "x", map[int]string{1: "id", 2: "v"})
		n.x().govern(pipeline.Resume{Schema: n.x().schema, Parked: p}, def)
		n.x().park.current = def
	}
	return n
}

func TestRunsAreReadBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	data := sampleRun(t)
	r, err := openRun(data)
	require.NoError(t, err)
	require.Equal(t, uint32(3), r.generation)
	var kinds []byte
	for !r.atEnd() {
		rec, err := r.next()
		require.NoError(t, err)
		kinds = append(kinds, rec.kind)
	}
	require.Equal(t, "BRILTE", string(kinds))
	require.True(t, r.ended && r.open)
	for n := range data { // no beginning of a run is a run
		r, err := openRun(data[:n])
		for err == nil && !r.atEnd() {
			_, err = r.next()
		}
		require.True(t, err != nil || !r.ended, "cut off after %d bytes", n)
	}
}

func sampleRun(t testing.TB) []byte {
	t.Helper()
	w := &wire{}
	w.relation(1, "x", "id", "v")
	m, err := parseRelation(w.frames[0].data[1:])
	require.NoError(t, err)
	rel := &relation{relationMessage: m, body: w.frames[0].data[1:], definition: textDefinition(t, 1, "x", map[int]string{1: "id", 2: "v"})}
	w.insert(1, "1", "a")
	run := newRunWriter(3)
	tx := &transaction{commit: 100, xid: 7, time: 5}
	run.begin(tx)
	require.NoError(t, run.describe(rel))
	run.change(tx, 'I', 90, place{100, 2}, w.frames[1].data[1:])
	run.ddl(tx, 91, 4, []byte("{}"))
	run.change(tx, recordTruncate, 92, place{100, 4}, u32(nil, 1))
	return run.end(true)
}

// FuzzRuns replays what anybody may have stored: it is decoded, or refused.
func FuzzRuns(f *testing.F) {
	f.Add(sampleRun(f))
	f.Add([]byte(runMagic + "\x01\x01"))
	f.Add([]byte(runMagic + "\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newDry(t, Limits{})
		nobody := &pipeline.ParkedThrough{Seq: 1}
		nobody.Position = catalog.Position{Generation: 1, Commit: 1 << 60}
		d.x().govern(pipeline.Resume{Schema: d.x().schema, Parked: nobody}, textDefinition(t, 1, "x", map[int]string{1: "id", 2: "v"}))
		d.s.lookups = noCatalog{}
		d.s.Replay("public.x", pipeline.ParkedRun{}, d.x().schema, nil)
		d.s.Replay("public.x", pipeline.ParkedRun{Table: "public.x", Seq: 1, Data: data}, d.x().schema, nil)
		for range 2 {
			d.step()
		}
		parked := d.x().park != nil
		require.Equal(t, parked, len(d.faults) == 1, "it is live, or says why not")
		for _, e := range d.events["x"] {
			require.True(t, e.op == change.Truncate || e.key != "")
		}
	})
}

func FuzzDDLEntries(f *testing.F) {
	w := &wire{}
	w.entry(1, "x", map[int]string{1: "id", 2: "v"})
	f.Add(w.frames[0].data[1:])
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 'l', 0, 0, 0, 0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseLogical(data)
		if err != nil {
			return
		}
		e, err := parseDDL(m.content)
		if err != nil || e.definition == nil {
			return
		}
		require.Len(t, e.definition.wire, len(e.definition.Columns))
		cfg := &catalog.Table{Name: e.definition.Name, PrimaryKey: []string{"id"}}
		schema := e.definition.schema(cfg)
		r := &relation{relationMessage: relationMessage{columns: e.definition.wire}}
		r.bindNumbers(schema, e.definition, false)
		require.Len(t, r.columns, len(schema.Columns))
	})
}

// noCatalog is a source whose catalog nobody may read.
type noCatalog struct{}

func (noCatalog) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return nil, &pgconn.PgError{Code: stateDenied, Message: "permission denied"}
}
func (noCatalog) QueryRow(context.Context, string, ...any) pgx.Row { panic("not asked") }
