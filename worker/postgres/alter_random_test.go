package postgres

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// finalCatalog answers how table x is declared once everything was written.
type finalCatalog struct{ doc []byte }

func (c finalCatalog) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	r := &fewRows{}
	switch sql {
	case definitionsSQL:
		r.rows = [][]any{{uint32(1), c.doc}}
	case typeSQL:
		r.rows = [][]any{
			{uint32(23), uint32(0), uint32(0), int32(-1), "int4", "pg_catalog", "b", 0},
			{uint32(25), uint32(0), uint32(0), int32(-1), "text", "pg_catalog", "b", 0},
		}
	case formatSQL:
		for _, oid := range args[0].([]uint32) {
			r.rows = append(r.rows, []any{map[uint32]string{23: "integer", 25: "text"}[oid]})
		}
	}
	return r, nil
}
func (finalCatalog) QueryRow(context.Context, string, ...any) pgx.Row { panic("not asked") }

// fewRows is a result.
type fewRows struct {
	pgx.Rows

	rows [][]any
	at   int
}

func (r *fewRows) Close()                        {}
func (r *fewRows) Err() error                    { return nil }
func (r *fewRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }
func (r *fewRows) Next() bool {
	r.at++
	return r.at <= len(r.rows)
}

func (r *fewRows) Scan(targets ...any) error {
	for i, v := range r.rows[r.at-1] {
		reflect.ValueOf(targets[i]).Elem().Set(reflect.ValueOf(v))
	}
	return nil
}

// altered is a log in which table x is altered, and how it is declared before each frame.
type altered struct {
	wire

	columns map[int]string
	next    int
	shapes  []map[int]string
}

func (w *altered) note() {
	for len(w.shapes) < len(w.frames) {
		w.shapes = append(w.shapes, maps.Clone(w.columns))
	}
}

func (w *altered) names() []string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(w.columns)) {
		out = append(out, w.columns[n])
	}
	return out
}

// alter drops, adds or renames a column.
func (w *altered) alter(rng *rand.Rand) {
	w.next++
	numbers := slices.Sorted(maps.Keys(w.columns))
	n := numbers[rng.IntN(len(numbers))]
	switch k := rng.IntN(3); {
	case k == 0 && n != 1 && len(numbers) > 2:
		delete(w.columns, n)
	case k == 1 && n != 1:
		w.columns[n] = "r" + strconv.Itoa(rng.IntN(4)) + strconv.Itoa(n)
	default:
		w.columns[w.next] = "c" + strconv.Itoa(w.next)
	}
	w.entry(1, "x", w.columns)
}

func newAltered(rng *rand.Rand) *altered {
	w := &altered{columns: map[int]string{1: "id", 2: "v"}, next: 2}
	fresh := false // after an ALTER the server describes the table before its next row
	for range 3 + rng.IntN(10) {
		n := 1 + rng.IntN(6)
		w.tx(3*n+2, func() {
			for range n {
				w.note()
				switch k := rng.IntN(9); {
				case k < 2:
					w.alter(rng)
					fresh = true
				case k == 2:
					w.insert(2, strconv.Itoa(rng.IntN(9)), "y")
				default:
					if fresh {
						w.relation(1, "x", w.names()...)
						fresh = false
						w.note()
					}
					values := []string{strconv.Itoa(rng.IntN(99))}
					for i := range len(w.columns) - 1 {
						values = append(values, string(rune('a'+i))+strconv.Itoa(rng.IntN(9)))
					}
					w.insert(1, values...)
				}
			}
		})
		w.note()
	}
	return w
}

// describes reports whether table x is described anew before its next row.
func (w *altered) describes(from int) bool {
	for _, f := range w.frames[from:] {
		if f.data[0] == 'R' || f.data[0] == 'I' && f.data[4] == 1 {
			return f.data[0] == 'R'
		}
	}
	return false
}

func (w *altered) final(t testing.TB) ([]byte, *definition) {
	t.Helper()
	e := &wire{}
	e.entry(1, "x", w.columns)
	m, err := parseLogical(e.frames[0].data[1:])
	require.NoError(t, err)
	require.True(t, json.Valid(m.content))
	return m.content, textDefinition(t, 1, "x", w.columns)
}

// connect feeds what a server says of the tables on a new connection, and returns where
// it begins.
func (d *dry) connect(w *altered) int {
	at := w.from(d.last.Through)
	if at == len(w.frames) {
		return at
	}
	r := &wire{lsn: w.frames[at].at - 1}
	if !w.describes(at) {
		shape := altered{columns: w.shapes[at]}
		r.relation(1, "x", shape.names()...)
	}
	r.relation(2, "y", "id", "v")
	d.feed(r.frames)
	return at
}

// goOn is another source that goes on from what was handed over.
func (d *dry) goOn(w *altered, schema *catalog.Schema) *dry {
	d.t.Helper()
	n := newDry(d.t, d.s.cfg.Limits)
	n.events, n.batch, n.last = d.events, d.batch, d.last
	n.faults, n.parks = d.faults, d.parks
	n.s.handedTo, n.s.through = d.last.Through, d.last.Through
	doc, now := w.final(d.t)
	n.s.lookups, n.s.ddlWhole, n.s.startedAt = finalCatalog{doc}, true, w.lsn
	for _, name := range []string{"x", "y"} {
		t, c := n.s.named("public."+name), d.batch[name]
		t.last = place{c.Position.Commit, c.Position.Ordinal}
	}
	r := pipeline.Resume{Schema: schema}
	if d.parks {
		n.runs = d.runs
		r.Parked = &pipeline.ParkedThrough{Seq: uint64(len(d.runs))}
		if len(d.runs) > 0 {
			r.Parked.Place = d.runs[len(d.runs)-1].To
		} else {
			r.Parked.Position = d.batch["x"].Position
		}
	}
	x := n.x()
	x.govern(r, now)
	if x.shape.current != now && x.park == nil {
		x.late, n.s.anyLate = &lateShape{now}, true
	}
	return n
}

// TestAlterationsThroughRestartsEqualThoseWithout alters a table among its rows at random,
// and follows it through crashes, lost connections and verdicts that take their time.
func TestAlterationsThroughRestartsEqualThoseWithout(t *testing.T) {
	t.Parallel()
	for range 300 {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { alterAtRandom(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

func alterAtRandom(t *testing.T, rng *rand.Rand) {
	t.Helper()
	w := newAltered(rng)
	run := func(limits Limits, disturb func(d *dry, at int) (*dry, int, bool)) (*dry, *catalog.Schema, []string) {
		d := newDry(t, limits)
		first := d.x().schema
		d = d.goOn(w, first)
		schema := first
		var told []string
		at := d.connect(w)
		for at < len(w.frames) || d.parks || d.x().park != nil {
			n, to, did := disturb(d, at)
			switch {
			case did:
				if n != d {
					d = n.goOn(w, schema)
					to = d.connect(w)
				}
				at = to
			case d.parks && !d.replays:
				a := d.faults[len(d.faults)-1].Change
				require.NotNil(t, a, "%v", d.faults[len(d.faults)-1].Err)
				if line := a.At.String() + " " + a.String(); len(told) == 0 || told[len(told)-1] != line {
					told = append(told, line)
				}
				if a.At.Position.Compare(schema.At.Position) > 0 {
					schema = follow(schema, a)
				}
				d.begin(schema)
			case at < len(w.frames) && !d.replays:
				n := min(1+rng.IntN(4), len(w.frames)-at)
				d.feed(w.frames[at : at+n])
				at += n
			default:
				d.step()
			}
			if d.replays {
				d.give(schema)
			}
		}
		d.step()
		return d, schema, told
	}
	calm, want, told := run(Limits{}, func(d *dry, at int) (*dry, int, bool) { return d, at, false })
	limits := Limits{SliceRows: 1 + rng.IntN(6), SliceBytes: 1 << (6 + rng.IntN(14))}
	d, got, again := run(limits, func(d *dry, at int) (*dry, int, bool) {
		switch k := rng.IntN(30); {
		case k == 0 && at < len(w.frames):
			d.s.packet = nil
			d.s.restarted()
			return d, d.connect(w), true
		case k == 1 && at < len(w.frames):
			return &dry{t: d.t, s: d.s, events: d.events, batch: d.batch, last: d.last, faults: d.faults, parks: d.parks, runs: d.runs}, at, true
		case k < 12 && at < len(w.frames): // no verdict yet
			n := min(1+rng.IntN(4), len(w.frames)-at)
			d.feed(w.frames[at : at+n])
			return d, at + n, true
		}
		return d, at, false
	})
	require.Equal(t, told, again)
	require.Equal(t, scripted(calm.events["x"]), scripted(d.events["x"]))
	require.Equal(t, scripted(calm.events["y"]), scripted(d.events["y"]))
	require.Equal(t, want.Columns, got.Columns)
}
