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
	"github.com/lakeweir/lakeweir/worker/fold"
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
	ordinal uint64         // of its next message
	full    bool           // old rows come whole, and rows may share a key inside a transaction
	truth   map[int]string // by row image, the large value that it has, sent or not
	unsent  map[int]bool   // the images that came without it
}

func (h *history) row(id int64, r modelRow, unavailable bool) int {
	row := h.b.rows.Add()
	h.b.rows.SetFixed(row, 0, id)
	h.b.rows.SetFixed(row, 1, r.v)
	h.truth[row] = r.big
	if unavailable && !h.full {
		h.b.rows.SetMark(row, 2, change.Unavailable)
		h.unsent[row] = true
	} else {
		h.b.rows.SetBytes(row, 2, []byte(r.big))
	}
	return row
}

// oldRow is the old image of a row: its key, or the whole.
func (h *history) oldRow(id int64, r modelRow) int {
	if h.full {
		return h.row(id, r, false)
	}
	row := h.b.rows.Add()
	h.b.rows.SetFixed(row, 0, id)
	return row
}

func (h *history) add(op change.Op, before, after, other int) {
	c := change.Change{Op: op, Before: before, After: after, Other: other, TxID: h.xid, Position: catalog.Position{Generation: 1, Commit: h.lsn, Ordinal: h.ordinal}}
	h.ordinal++
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
	h.visible, h.ordinal = visible, 0
	if !visible {
		h.unseen[h.xid] = true
	}
	ids := rapid.SliceOfN(rapid.Int64Range(1, 6), 1, 4).Draw(t, "ids")
	for _, id := range ids {
		to := rapid.Int64Range(1, 6).Draw(t, "to")
		if visible && (h.touched[id] || h.touched[to]) {
			continue
		}
		h.ordinal += h.ordinal & 1
		if h.full && rapid.IntRange(0, 3).Draw(t, "permute") == 0 {
			h.permute(rapid.Permutation([]int64{1, 2, 3, 4, 5, 6}).Draw(t, "keys"), rapid.IntRange(2, 4).Draw(t, "rows moved"))
			continue
		}
		h.change(rapid.IntRange(0, 9).Draw(t, "op"), id, to)
	}
}

// permute moves the first rows of those keys round, each to the key of the next,
// and changes each once where it has come to.
func (h *history) permute(keys []int64, n int) {
	keys = slices.DeleteFunc(keys, func(id int64) bool {
		_, there := h.state[id]
		return !there || h.visible && h.touched[id]
	})
	keys = keys[:min(n, len(keys))]
	if len(keys) < 2 {
		return
	}
	moved := map[int64]modelRow{}
	for i, id := range keys {
		to := keys[(i+1)%len(keys)]
		was := h.state[id]
		before, after := h.oldRow(id, was), h.row(to, was, true)
		h.add(change.Delete, before, -1, after)
		h.add(change.Create, -1, after, before)
		is := modelRow{v: was.v + 1000, big: was.big}
		h.add(change.Update, h.oldRow(to, was), h.row(to, is, true), -1)
		h.ordinal += h.ordinal & 1
		moved[to] = is
	}
	for id, r := range moved {
		h.state[id] = r
		if h.visible {
			h.seen[id] = r
		} else {
			h.touched[id] = true
		}
	}
}

func (h *history) change(op int, id, to int64) {
	ordinal := h.ordinal
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
		h.add(change.Create, -1, h.row(id, is, false), -1)
		set(id, is, true)
	case op < 4:
		unavailable := op < 3
		if !unavailable {
			is.big = fmt.Sprint("big", h.lsn, ordinal)
		}
		before := -1
		if h.full {
			before = h.oldRow(id, was)
		}
		h.add(change.Update, before, h.row(id, is, unavailable), -1)
		set(id, is, true)
	case op < 6 && !taken:
		before, after := h.oldRow(id, was), h.row(to, is, true)
		h.add(change.Delete, before, -1, after)
		h.add(change.Create, -1, after, before)
		set(id, modelRow{}, false)
		set(to, is, true)
	default:
		h.add(change.Delete, h.oldRow(id, was), -1, -1)
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
		h := &history{state: map[int64]modelRow{}, seen: map[int64]modelRow{}, b: newBuilder(modelSchema), lsn: 1000, xid: 10, unseen: map[uint64]bool{}, touched: map[int64]bool{}, truth: map[int]string{}, unsent: map[int]bool{}, full: rapid.Bool().Draw(t, "full")}
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
		again := rapid.Bool().Draw(t, "asked again")
		if again {
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
		if !h.full {
			require.Equal(t, printed(want), printed(s.folded()))
		}
		if !again {
			result := fold.Current(&catalog.Table{}, catalog.Position{}, []*change.Batch{batch}, nil)
			got := map[string][]string{}
			for _, w := range result.Write {
				row := texts(w.Image.Rows, w.Image.Row)
				got[row[0]] = row
			}
			require.Equal(t, printed(want), printed(got))
			requireFilledBack(t, h, c, out, read)
		}
	})
}

// requireFilledBack holds the large values of merged changes against the truth: none
// is another, and none is missing that the chunk has read, unless a later change
// that the chunk has seen sent another.
func requireFilledBack(t *rapid.T, h *history, c *chunk, out *builder, offset int) {
	known := map[string]bool{} // keys that the chunk read
	for _, key := range c.keys {
		known[string(key)] = true
	}
	read := map[string]bool{} // and whose row is handed over, so that a fold gives them their values
	for i := range out.changes {
		if ch := &out.changes[i]; ch.Op == change.Read {
			read[string(ch.Key)] = true
		}
	}
	lacks := map[string]bool{} // the row at the key, as seen by the chunk, has a change without its value
	for i := range out.changes {
		ch := &out.changes[i]
		if ch.After >= offset && out.rows.HasValue(ch.After, 2) {
			require.Equal(t, h.truth[ch.After-offset], string(out.rows.Bytes(ch.After, 2)))
		}
		if !c.sees.Sees(ch.TxID) || ch.Position.Commit >= c.at || ch.Op == change.Read {
			continue
		}
		switch {
		case ch.After < 0 || out.rows.HasValue(ch.After, 2) && !h.unsent[ch.After-offset]:
			lacks[string(ch.Key)] = false
		default:
			lacks[string(ch.Key)] = lacks[string(ch.Key)] || !out.rows.HasValue(ch.After, 2)
		}
	}
	for key, lacking := range lacks {
		require.False(t, lacking && known[key] && !read[key], "a change of an overtaken row lacks a value that was read")
	}
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
