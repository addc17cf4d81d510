package reconcile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

type upper struct{}

func (upper) Append(dst []byte, p catalog.Protection, text []byte) ([]byte, error) {
	if p != catalog.Tokenize {
		return nil, errors.New("unknown")
	}
	return fmt.Appendf(dst, "<%s>", text), nil
}

func TestTheLakeIsExpectedToShowMaskedTextAndNullForWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	kind := func(k catalog.ValueKind) catalog.Type { return catalog.Type{Kind: k} }
	table := &catalog.Table{PII: map[string]catalog.Protection{"email": catalog.Tokenize, "born": catalog.Tokenize}}
	e := newExpectation(table, []sourceColumn{
		{name: "id", typ: kind(catalog.Int64)},
		{name: "email", typ: kind(catalog.Text)},
		{name: "born", typ: kind(catalog.Date)},
		{name: "at", typ: kind(catalog.Timestamp)},
		{name: "note", typ: kind(catalog.Text)},
	}, upper{})
	text := func(words ...string) rowText {
		var r rowText
		for _, w := range words {
			if w == "NULL" {
				r = append(r, nil)
			} else {
				r = append(r, []byte(w))
			}
		}
		return r
	}
	cases := []struct{ source, want rowText }{
		{text("1", "a@b", "2000-01-01", "2026-01-01 00:00:00", "x"), text("1", "<a@b>", "<2000-01-01>", "2026-01-01 00:00:00", "x")},
		{text("2", "NULL", "infinity", "-infinity", "\xff"), text("2", "NULL", "NULL", "NULL", "NULL")},
		{text("3", "", "NULL", "not a time", ""), text("3", "<>", "NULL", "not a time", "")}, // what is malformed shows as a difference
	}
	for _, c := range cases {
		got, err := e.of(c.source)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		e.count(c.source)
	}
	require.Equal(t, []int64{0, 0, 1, 1, 1}, e.unfit)
}

// Keys that a chain of moves connects are in one part, whatever their number.
func TestMovedKeysStayTogether(t *testing.T) {
	t.Parallel()
	schema := &catalog.Schema{Columns: []catalog.Column{{Name: "id", Type: catalog.Type{Kind: catalog.Int64}}}, Key: []int{0}}
	rapid.Check(t, func(t *rapid.T) {
		parts := newPartition(rapid.IntRange(1, 16).Draw(t, "parts"), nil)
		b := &change.Batch{Rows: change.NewRows(schema)}
		add := func(id int64) int {
			row := b.Rows.Add()
			b.Rows.SetFixed(row, 0, id)
			return row
		}
		connected := map[int64]int64{} // a plain, slow union
		root := func(id int64) int64 {
			for connected[id] != 0 {
				id = connected[id]
			}
			return id
		}
		for range rapid.IntRange(0, 40).Draw(t, "moves") {
			from, to := rapid.Int64Range(1, 30).Draw(t, "from"), rapid.Int64Range(1, 30).Draw(t, "to")
			b.Changes = append(b.Changes, change.Change{Op: change.Create, Before: -1, After: add(to), Other: add(from), Key: []byte{1}, OtherKey: []byte{2}})
			if f, g := root(from), root(to); f != g {
				connected[f] = g
			}
		}
		parts.learn(b)
		var d digester
		part := map[int64]int{}
		for id := int64(1); id <= 30; id++ {
			p := parts.of(d.key(b.Rows, add(id), schema.Key))
			if p < 0 || p >= parts.parts {
				t.Fatalf("part %d of %d", p, parts.parts)
			}
			if other, known := part[root(id)]; known && other != p {
				t.Fatalf("key %d is in part %d, a key it moved to or from in part %d", id, p, other)
			}
			part[root(id)] = p
		}
		taken := 0
		for i := range parts.parts {
			taken += len(parts.take(b, i).Changes)
		}
		if taken != len(b.Changes) {
			t.Fatalf("%d of %d changes were dealt out", taken, len(b.Changes))
		}
	})
}

// Bronze of a table without a key adds up to its rows, in whatever order they were.
func TestKeylessEventsAddUpToTheRows(t *testing.T) {
	t.Parallel()
	schema := &catalog.Schema{Columns: []catalog.Column{{Name: "v", Type: catalog.Type{Kind: catalog.Text}}, {Name: "n", Type: catalog.Type{Kind: catalog.Int32}}}}
	rapid.Check(t, func(t *rapid.T) {
		b := &change.Batch{Rows: change.NewRows(schema)}
		type row struct {
			v string
			n int64
		}
		add := func(r row) int {
			at := b.Rows.Add()
			b.Rows.SetBytes(at, 0, []byte(r.v))
			b.Rows.SetFixed(at, 1, r.n)
			return at
		}
		draw := func() row {
			return row{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "v"), rapid.Int64Range(0, 2).Draw(t, "n")}
		}
		var live []row
		m := moment{sees: change.Visibility{Xmin: 1 << 60, Xmax: 1 << 60}, lsn: 1 << 60}
		for i := range rapid.IntRange(0, 40).Draw(t, "events") {
			c := change.Change{Before: -1, After: -1, Other: -1, TxID: uint64(i)}
			switch op := rapid.SampledFrom([]change.Op{change.Create, change.Create, change.Read, change.Update, change.Delete, change.Truncate}).Draw(t, "op"); {
			case op == change.Create || op == change.Read:
				r := draw()
				c.Op, c.After = op, add(r)
				live = append(live, r)
			case op == change.Truncate:
				c.Op, live = op, nil
			case len(live) > 0:
				at := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				c.Op, c.Before = op, add(live[at])
				if op == change.Update {
					live[at] = draw()
					c.After = add(live[at])
					if rapid.Bool().Draw(t, "unsent") { // v did not change and was not sent
						live[at].v = string(b.Rows.Bytes(c.Before, 0))
						b.Rows.SetMark(c.After, 0, change.Unavailable)
					}
				} else {
					live = append(live[:at], live[at+1:]...)
				}
			default:
				continue
			}
			b.Changes = append(b.Changes, c)
		}
		var lake, source keyless
		lake.addBatch(&m, b)
		var d digester
		for _, r := range live {
			source.add(d.of(rowText{[]byte(r.v), fmt.Append(nil, r.n)}, nil), 1)
		}
		if lake.rows != source.rows || lake.sum != source.sum || lake.blind {
			t.Fatalf("bronze adds up to %d rows %v, the source to %d rows %v", lake.rows, lake.sum, source.rows, source.sum)
		}
	})
}
