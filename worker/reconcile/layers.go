package reconcile

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// checkLayers checks the rules that hold within the lake: bronze has no event
// twice, history's intervals are right, and bronze folded anew gives current and
// history.
func (t *tableRun) checkLayers(ctx context.Context, c *cut) error {
	events, wrong, err := checkPositions(ctx, c.bronze, c.bronzeCursor)
	if err != nil {
		return err
	}
	t.result.BronzeEvents = events
	t.wrong.join(wrong)
	if c.history != nil {
		if wrong, err = t.checkTimeline(ctx, c); err != nil {
			return err
		}
		t.wrong.join(wrong)
	}
	if err := t.checkRefold(ctx, c); err != nil {
		return err
	}
	names, err := t.names(ctx, c)
	if err != nil {
		return err
	}
	if t.lacked > 0 {
		t.note("%d rows lack values in the lake that were never sent and have not been read yet", t.lacked)
	}
	t.tell(names)
	return nil
}

func (t *tableRun) checkTimeline(ctx context.Context, c *cut) (violations, error) {
	var tracked []int
	for i, col := range t.schema.Columns {
		if t.table.Tracks(col.Name) {
			tracked = append(tracked, i)
		}
	}
	n := len(t.schema.Columns)
	var d digester
	line := newTimeline()
	digests := func(rows *change.Rows, i int) (key, content digest) {
		return d.key(rows, i, t.schema.Key), d.key(rows, i, tracked)
	}
	if c.current != nil {
		line.compared = true
		for rows, err := range c.current.Rows(ctx, append(columnNames(t.schema), ownDeleted)) {
			if err != nil {
				return violations{}, err
			}
			for i := range rows.Len() {
				if rows.Fixed(i, n) == 0 {
					line.addCurrent(digests(rows, i))
				}
			}
		}
	}
	for rows, err := range c.history.Rows(ctx, append(columnNames(t.schema), ownValidFrom, ownValidTo, ownIsCurrent)) {
		if err != nil {
			return violations{}, err
		}
		for i := range rows.Len() {
			key, content := digests(rows, i)
			line.add(key, rows.Fixed(i, n), rows.Fixed(i, n+1), rows.Fixed(i, n+2) == 1, content)
			t.result.HistoryRows++
		}
	}
	return line.finish(), nil
}

// checkRefold folds bronze from its beginning and compares the rows, with what
// they carry beside the source's columns.
func (t *tableRun) checkRefold(ctx context.Context, c *cut) error {
	f := newRefold(t.table, t.schema)
	for b, err := range t.layers.Bronze.Read(ctx, catalog.Position{}, c.cursor.Position, readRows) {
		if err != nil {
			return err
		}
		for i := range b.Changes {
			if p := b.Changes[i].Position; p.Compare(f.cursor) <= 0 && (i == 0 || p.Compare(b.Changes[i-1].Position) <= 0) {
				t.wrong.add(digest{}, "bronze: events are not read in order at %s", p)
			}
		}
		if err := f.apply(b); err != nil {
			return err
		}
		if f.size() > t.cfg.RefoldBytes {
			t.note("bronze was not folded anew: that takes more than %d MiB of memory", t.cfg.RefoldBytes>>20)
			return nil
		}
	}
	t.result.Refolded = true
	key := t.schema.Key
	if f.current != nil {
		folded := folding{what: "current", ledger: newLedger()}
		f.current.each(func(v *fold.CurrentRow) {
			id := folded.d.key(v.Image.Rows, v.Image.Row, key)
			folded.put(id, folded.current(v.Image.Rows, v.Image.Row, len(t.schema.Columns), []int64{
				bit(v.Deleted), bit(v.FromSnapshot), int64(v.Stamp.Position.Generation), int64(v.Stamp.Position.Commit), int64(v.Stamp.Position.Ordinal),
				int64(v.Stamp.LSN), v.Stamp.CommitTime, v.Stamp.CommitTime,
			}))
		})
		own := []string{ownDeleted, ownFromSnapshot, ownGeneration, ownCommitLSN, ownOrdinal, ownLSN, ownUpdatedAt, ownSourceTS}
		if err := t.compareFolded(ctx, c.current, &folded, own, nil); err != nil {
			return err
		}
	}
	if f.history != nil {
		folded := folding{what: "history", ledger: newLedger()}
		f.history.each(func(v *fold.Version) {
			p := v.Stamp.Position
			extra := []int64{v.From, int64(p.Generation), int64(p.Commit), int64(p.Ordinal)}
			folded.put(folded.identity(v.Image.Rows, v.Image.Row, key, extra), folded.current(v.Image.Rows, v.Image.Row, len(t.schema.Columns), append(extra,
				v.To, bit(v.To == fold.Open), int64(v.Stamp.LSN), v.Stamp.CommitTime, int64(v.Op))))
		})
		own := []string{ownValidFrom, ownGeneration, ownCommitLSN, ownOrdinal, ownValidTo, ownIsCurrent, ownLSN, ownSourceTS, ownOp}
		if err := t.compareFolded(ctx, c.history, &folded, own, []int{0, 1, 2, 3}); err != nil {
			return err
		}
	}
	return nil
}

// folding is the rows that a fold gave, as digests.
type folding struct {
	what   string
	ledger *ledger
	d      digester
	twice  int64
}

func (f *folding) put(id, row digest) {
	if !f.ledger.put(id, row) {
		f.twice++
	}
}

// identity tells versions of one key apart.
func (f *folding) identity(rows *change.Rows, row int, key []int, extra []int64) digest {
	f.d.buf = f.d.buf[:0]
	for _, col := range key {
		f.d.column(rows, row, col)
	}
	for _, v := range extra {
		f.d.number(uint64(v))
	}
	return f.d.sum()
}

// current is the digest of a whole row.
func (f *folding) current(rows *change.Rows, row, n int, own []int64) digest {
	f.d.buf = f.d.buf[:0]
	for col := range n {
		f.d.column(rows, row, col)
	}
	for _, v := range own {
		f.d.number(uint64(v))
	}
	return f.d.sum()
}

// compareFolded compares a layer with what was folded. Id says which of the own
// columns tell versions of one key apart.
func (t *tableRun) compareFolded(ctx context.Context, view View, f *folding, own []string, id []int) error {
	n := len(t.schema.Columns)
	values, ids := make([]int64, len(own)), make([]int64, len(id))
	var d digester
	for rows, err := range view.Rows(ctx, append(columnNames(t.schema), own...)) {
		if err != nil {
			return err
		}
		columns := rows.Schema().Columns
		for i := range rows.Len() {
			for k := range own {
				values[k] = ownValue(rows, i, n+k, columns[n+k].Type)
			}
			for k, at := range id {
				ids[k] = values[at]
			}
			identity := f.identity(rows, i, t.schema.Key, ids)
			switch f.ledger.meet(identity, f.current(rows, i, n, values)) {
			case metEqual:
			case metChanged:
				t.wrong.add(d.key(rows, i, t.schema.Key), "%s: a row is not what bronze folds to", f.what)
			case metUnknown:
				t.wrong.add(d.key(rows, i, t.schema.Key), "%s: a row stands there that bronze does not fold to", f.what)
			case metTwice:
				t.wrong.add(d.key(rows, i, t.schema.Key), "%s: a row stands there twice", f.what)
			}
		}
	}
	f.ledger.unmet(func(identity digest) {
		key := digest{}
		if len(id) == 0 {
			key = identity
		}
		t.wrong.add(key, "%s: a row that bronze folds to is not there", f.what)
	})
	if f.twice > 0 {
		t.wrong.add(digest{}, "%s: bronze folds to %d rows that stand twice", f.what, f.twice)
	}
	return nil
}

// ownValue is a column of ours as a number; of _op the letter.
func ownValue(rows *change.Rows, row, col int, t catalog.Type) int64 {
	if t.Fixed() {
		return rows.Fixed(row, col)
	}
	if b := rows.Bytes(row, col); len(b) == 1 {
		return int64(b[0])
	}
	return -1
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// names finds the texts of the keys that something was found wrong with.
func (t *tableRun) names(ctx context.Context, c *cut) (map[digest]string, error) {
	out := map[digest]string{}
	for _, v := range t.wrong.shown {
		if v.key != (digest{}) {
			out[v.key] = ""
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	keys := make([]string, len(t.schema.Key))
	columns := make([]catalog.Column, len(keys))
	positions := make([]int, len(keys))
	for i, col := range t.schema.Key {
		keys[i], columns[i], positions[i] = t.schema.Columns[col].Name, t.schema.Columns[col], i
	}
	var texts texter
	var d digester
	for _, view := range []View{c.history, c.current} {
		if view == nil {
			continue
		}
		for rows, err := range view.Rows(ctx, keys) {
			if err != nil {
				return nil, err
			}
			for i := range rows.Len() {
				row := texts.of(rows, i, len(keys))
				if name, asked := out[d.of(row, nil)]; asked && name == "" {
					out[d.of(row, nil)] = keyText(columns, positions, row)
				}
			}
		}
	}
	return out, nil
}
