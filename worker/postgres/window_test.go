package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

var modelSchema = &catalog.Schema{
	Columns: []catalog.Column{
		{Name: "id", Type: catalog.Type{Kind: catalog.Int64}},
		{Name: "v", Type: catalog.Type{Kind: catalog.Int64}},
		{Name: "big", Type: catalog.Type{Kind: catalog.Text}},
	},
	Key: []int{0},
}

type modelRow struct {
	v   int64
	big string
}

// history is a made-up table with transactions that commit in the log at one
// place and are seen by readers at a later one.
type history struct {
	state   map[int64]modelRow // as of the log's end
	seen    map[int64]modelRow // as the chunk sees it
	b       *builder
	lsn     catalog.LSN
	xid     uint64
	unseen  map[uint64]bool
	touched map[int64]bool // rows that an unseen transaction holds locked
	visible bool           // the transaction being made
}

func (h *history) row(id int64, r modelRow, unavailable bool) int {
	row := h.b.rows.Add()
	h.b.rows.SetFixed(row, 0, id)
	h.b.rows.SetFixed(row, 1, r.v)
	if unavailable {
		h.b.rows.SetMark(row, 2, change.Unavailable)
	} else {
		h.b.rows.SetBytes(row, 2, []byte(r.big))
	}
	return row
}

func (h *history) keyRow(id int64) int {
	row := h.b.rows.Add()
	h.b.rows.SetFixed(row, 0, id)
	return row
}

func (h *history) add(op change.Op, ordinal uint64, before, after, other int) {
	c := change.Change{Op: op, Before: before, After: after, Other: other, TxID: h.xid, Position: catalog.Position{Generation: 1, Commit: h.lsn, Ordinal: ordinal}}
	keyed := after
	if keyed < 0 {
		keyed = before
	}
	if keyed >= 0 {
		c.Key, _ = h.b.key(keyed)
	}
	if other >= 0 {
		c.OtherKey, _ = h.b.key(other)
	}
	h.b.changes = append(h.b.changes, c)
}

// transaction makes a random one. Rows that an unseen one has touched are locked
// for it when it is seen.
func (h *history) transaction(t *rapid.T, visible bool) {
	h.lsn += 8 * catalog.LSN(rapid.IntRange(1, 4).Draw(t, "step"))
	h.xid++
	h.visible = visible
	if !visible {
		h.unseen[h.xid] = true
	}
	ids := rapid.SliceOfN(rapid.Int64Range(1, 6), 1, 4).Draw(t, "ids")
	for i, id := range ids {
		to := rapid.Int64Range(1, 6).Draw(t, "to")
		if visible && (h.touched[id] || h.touched[to]) {
			continue
		}
		h.change(rapid.IntRange(0, 9).Draw(t, "op"), uint64(2*i), id, to)
	}
}

func (h *history) change(op int, ordinal uint64, id, to int64) {
	was, exists := h.state[id]
	_, taken := h.state[to]
	set := func(id int64, r modelRow, present bool) {
		for _, state := range []map[int64]modelRow{h.state, h.seen} {
			if present {
				state[id] = r
			} else {
				delete(state, id)
			}
			if !h.visible {
				break // h.seen stays
			}
		}
		if !h.visible {
			h.touched[id] = true
		}
	}
	is := modelRow{v: int64(h.lsn)*100 + int64(ordinal), big: was.big}
	switch {
	case !exists:
		is.big = fmt.Sprint("big", h.lsn, ordinal)
		h.add(change.Create, ordinal, -1, h.row(id, is, false), -1)
		set(id, is, true)
	case op < 4:
		unavailable := op < 3
		if !unavailable {
			is.big = fmt.Sprint("big", h.lsn, ordinal)
		}
		h.add(change.Update, ordinal, -1, h.row(id, is, unavailable), -1)
		set(id, is, true)
	case op < 6 && !taken:
		before, after := h.keyRow(id), h.row(to, is, true)
		h.add(change.Delete, ordinal, before, -1, after)
		h.add(change.Create, ordinal+1, -1, after, before)
		set(id, modelRow{}, false)
		set(to, is, true)
	default:
		h.add(change.Delete, ordinal, h.keyRow(id), -1, -1)
		set(id, modelRow{}, false)
	}
}

// TestMergedChunksFoldToTheTable makes a table, some of whose rows are known
// already, reads a chunk of the others at a random moment, and folds what merge
// makes of it. When every key is asked for again, what was known before may be as
// wrong as it likes.
func TestMergedChunksFoldToTheTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{state: map[int64]modelRow{}, seen: map[int64]modelRow{}, b: newBuilder(modelSchema), lsn: 1000, xid: 10, unseen: map[uint64]bool{}, touched: map[int64]bool{}}
		for _, id := range rapid.SliceOfDistinct(rapid.Int64Range(1, 6), rapid.ID[int64]).Draw(t, "rows") {
			h.state[id] = modelRow{v: id, big: fmt.Sprint("seed", id)}
			h.seen[id] = h.state[id]
		}
		before := rapid.IntRange(0, 6).Draw(t, "before")
		for range before {
			h.transaction(t, rapid.Bool().Draw(t, "visible"))
		}
		c := &chunk{at: h.lsn + 8, rows: change.NewRows(modelSchema), sees: change.Visibility{Xmin: 10, Xmax: h.xid + 1}}
		for xid := range h.unseen {
			c.sees.Running = append(c.sees.Running, xid)
		}
		slices.Sort(c.sees.Running)
		for _, id := range slices.Sorted(maps.Keys(h.seen)) {
			row := c.rows.Add()
			c.rows.SetFixed(row, 0, id)
			c.rows.SetFixed(row, 1, h.seen[id].v)
			c.rows.SetBytes(row, 2, []byte(h.seen[id].big))
			key, err := c.rows.AppendKey(nil, row)
			require.NoError(t, err)
			c.keys = append(c.keys, key)
		}
		s := &stored{}
		if rapid.Bool().Draw(t, "asked again") {
			s.events = wrongRows(t)
			for id := range int64(6) {
				if _, there := h.seen[id+1]; there {
					continue
				}
				row := c.rows.Add()
				c.rows.SetFixed(row, 0, id+1)
				key, err := c.rows.AppendKey(nil, row)
				require.NoError(t, err)
				c.keys = append(c.keys, key)
				c.gone++
			}
		}
		h.lsn = c.at
		h.lsn -= 8 // the next commit may stand at P itself
		for range rapid.IntRange(0, 4).Draw(t, "after") {
			h.transaction(t, false)
		}
		held := len(h.b.changes)
		read := c.rows.Len()
		out, reads := merge(h.b, c, 1, 0)
		require.LessOrEqual(t, reads, read)
		require.Len(t, out.changes, held+reads)

		batch := &change.Batch{Rows: out.rows, Changes: out.changes}
		for i := range out.changes {
			s.events = append(s.events, toEvent(batch, &out.changes[i]))
			if i > 0 {
				require.Negative(t, out.changes[i-1].Position.Compare(out.changes[i].Position))
			}
		}
		want := map[string][]string{}
		for id, r := range h.state {
			want[strconv.FormatInt(id, 10)] = []string{strconv.FormatInt(id, 10), strconv.FormatInt(r.v, 10), r.big}
		}
		require.Equal(t, printed(want), printed(s.folded()))
	})
}

// wrongRows is what a damaged lake holds.
func wrongRows(t *rapid.T) []event {
	b := newBuilder(modelSchema)
	for _, id := range rapid.SliceOfDistinct(rapid.Int64Range(1, 6), rapid.ID[int64]).Draw(t, "wrong") {
		row := b.rows.Add()
		b.rows.SetFixed(row, 0, id)
		b.rows.SetFixed(row, 1, -1)
		b.rows.SetBytes(row, 2, []byte("wrong"))
		key, err := b.key(row)
		require.NoError(t, err)
		b.changes = append(b.changes, change.Change{Op: change.Read, Before: -1, After: row, Other: -1, Key: key})
	}
	var out []event
	for i := range b.changes {
		out = append(out, toEvent(&change.Batch{Rows: b.rows, Changes: b.changes}, &b.changes[i]))
	}
	return out
}
