package reconcile

import (
	"context"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// checkLayers checks the rules that hold within the lake: bronze has no event
// twice, history's intervals are right, and bronze folded anew gives current and
// history.
func (t *tableRun) checkLayers(ctx context.Context, c *cut) error {
	events, wrong, err := checkPositions(ctx, c.bronze, c.bronzeCursor)
	if err != nil {
		return err
	}
	t.result.Checked, t.result.BronzeEvents = true, events
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
	keys, contents := digester{forms: t.forms}, digester{}
	line := newTimeline()
	digests := func(rows *change.Rows, i int) (key, content digest) {
		return keys.key(rows, i, t.schema.Key), contents.key(rows, i, tracked)
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

// maxParts bounds how often bronze is read to be folded anew.
const maxParts = 64

// checkRefold folds bronze from its beginning and compares the rows, with what
// they carry beside the source's columns. What does not fit into memory at once is
// folded in parts.
func (t *tableRun) checkRefold(ctx context.Context, c *cut) error {
	parts := newPartition(1, t.forms)
	for {
		need, err := t.refoldAll(ctx, c, parts)
		if err != nil || need == 0 {
			return err
		}
		if parts = newPartition(max(2*parts.parts, need), t.forms); parts.parts > maxParts {
			t.note("bronze was not folded anew: that takes more than %d times %d MiB of memory", maxParts, t.cfg.RefoldBytes>>20)
			return nil
		}
		for b, err := range t.layers.Bronze.Read(ctx, catalog.Position{}, c.cursor.Position, readRows) {
			if err != nil {
				return err
			}
			parts.learn(b)
		}
	}
}

// refoldAll folds and compares part by part. When a part takes too much memory it
// returns how many parts there should be.
func (t *tableRun) refoldAll(ctx context.Context, c *cut, parts *partition) (need int, err error) {
	found := t.wrong.clone()
	for part := range parts.parts {
		f, used, err := t.refold(ctx, c, parts, part)
		if err != nil {
			return 0, err
		}
		if f == nil {
			t.wrong = found // all of it is done again
			return int(1.5*used*float64(parts.parts)) + 1, nil
		}
		if err := t.compareRefold(ctx, c, f, parts, part); err != nil {
			return 0, err
		}
	}
	t.result.Refolded = true
	return 0, nil
}

// refold folds one part of bronze. When that takes too much memory it returns nil
// and about how many times as much as it may.
func (t *tableRun) refold(ctx context.Context, c *cut, parts *partition, part int) (*refold, float64, error) {
	f := newRefold(t.table, t.forms)
	var last catalog.Position
	var events int64
	for b, err := range t.layers.Bronze.Read(ctx, catalog.Position{}, c.cursor.Position, readRows) {
		if err != nil {
			return nil, 0, err
		}
		events += int64(len(b.Changes))
		for i := range b.Changes {
			if p := b.Changes[i].Position; p.Compare(last) > 0 {
				last = p
			} else if part == 0 {
				t.wrong.add(digest{}, "bronze: an event at %s is read after one at %s", p, last)
			}
		}
		f.apply(parts.take(b, part))
		if !f.fits(t.cfg.RefoldBytes) {
			return nil, float64(f.derived.Size()) / float64(t.cfg.RefoldBytes) * float64(max(t.result.BronzeEvents, events)) / float64(events), nil
		}
	}
	return f, 0, nil
}

// compareRefold compares one part of the layers with what was folded.
func (t *tableRun) compareRefold(ctx context.Context, c *cut, f *refold, parts *partition, part int) error {
	key, n := t.schema.Key, len(t.schema.Columns)
	if f.table.Current {
		folded := folding{what: "current", ledger: newLedger(), parts: parts, part: part, d: digester{forms: t.forms}}
		for _, v := range f.derived.Rows() {
			v = pipeline.Shown(t.layers.Current, v)
			p := v.Stamp.Position
			id := folded.d.key(v.Image.Rows, v.Image.Row, key)
			folded.put(id, folded.content(v.Image.Rows, v.Image.Row, n, []int64{
				bit(v.Deleted), bit(v.FromSnapshot), int64(p.Generation), int64(p.Commit), int64(p.Ordinal),
				int64(v.Stamp.LSN), v.Stamp.CommitTime, v.Stamp.CommitTime,
			}))
			for _, read := range f.reads[id] { // it may have been wrong then, and been put right
				if read.position.Compare(p) > 0 && (!read.gone || v.Deleted) {
					folded.allow(id, folded.content(v.Image.Rows, v.Image.Row, n, append([]int64{bit(v.Deleted)}, read.own()...)))
				}
			}
		}
		folded.reads = f.reads
		own := []string{ownDeleted, ownFromSnapshot, ownGeneration, ownCommitLSN, ownOrdinal, ownLSN, ownUpdatedAt, ownSourceTS}
		if err := t.compareFolded(ctx, c.current, &folded, own, nil); err != nil {
			return err
		}
		for _, v := range f.derived.Rows() {
			if !folded.ledger.met(folded.d.key(v.Image.Rows, v.Image.Row, key)) {
				t.lost(&folded, v.Image)
			}
		}
	}
	if f.table.History {
		folded := folding{what: "history", ledger: newLedger(), parts: parts, part: part, d: digester{forms: t.forms}}
		for _, v := range f.derived.Versions() {
			v = pipeline.Shown(t.layers.History, v)
			id := versionID(&v)
			folded.put(folded.identity(v.Image.Rows, v.Image.Row, key, id), folded.content(v.Image.Rows, v.Image.Row, n, append(id,
				v.To, bit(v.To == fold.Open), int64(v.Stamp.LSN), v.Stamp.CommitTime, int64(v.Op))))
		}
		own := []string{ownValidFrom, ownGeneration, ownCommitLSN, ownOrdinal, ownValidTo, ownIsCurrent, ownLSN, ownSourceTS, ownOp}
		if err := t.compareFolded(ctx, c.history, &folded, own, []int{0, 1, 2, 3}); err != nil {
			return err
		}
		for _, v := range f.derived.Versions() {
			if !folded.ledger.met(folded.identity(v.Image.Rows, v.Image.Row, key, versionID(&v))) {
				t.lost(&folded, v.Image)
			}
		}
	}
	return nil
}

// versionID tells the versions of a key apart.
func versionID(v *fold.Version) []int64 {
	p := v.Stamp.Position
	return []int64{v.From, int64(p.Generation), int64(p.Commit), int64(p.Ordinal)}
}

// lost notes a row that bronze folds to and that the layer does not have; it may be
// the only one that shows the text of its key.
func (t *tableRun) lost(f *folding, image change.Ref) {
	key := f.d.key(image.Rows, image.Row, t.schema.Key)
	t.wrong.add(key, "%s: a row that bronze folds to is not there", f.what)
	if _, noted := t.wrong.keys[key]; noted && t.lostKeys[key] == nil {
		if t.lostKeys == nil {
			t.lostKeys = map[digest][]string{}
		}
		var texts texter
		t.lostKeys[key] = t.keyTexts(texts.of(image.Rows, image.Row, len(t.schema.Columns)))
	}
}

// folding is the rows that a fold gave, as digests.
type folding struct {
	what   string
	ledger *ledger
	parts  *partition
	part   int
	d      digester
	twice  int64
	// allowed are further contents that a row of current may have, and reads what was
	// read again.
	allowed map[digest][]digest
	reads   rereads
}

func (f *folding) allow(id, row digest) {
	if f.allowed == nil {
		f.allowed = map[digest][]digest{}
	}
	f.allowed[id] = append(f.allowed[id], row)
}

func (f *folding) put(id, row digest) {
	if !f.ledger.put(id, row) {
		f.twice++
	}
}

// identity tells versions of one key apart.
func (f *folding) identity(rows *change.Rows, row int, key []int, extra []int64) digest {
	f.d.buf = f.d.buf[:0]
	f.d.keyColumns(rows, row, key)
	for _, v := range extra {
		f.d.number(uint64(v))
	}
	return f.d.sum()
}

// content is the digest of a whole row.
func (f *folding) content(rows *change.Rows, row, n int, own []int64) digest {
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
	d := digester{forms: t.forms}
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
			key := d.key(rows, i, t.schema.Key)
			if f.parts.parts > 1 && f.parts.of(key) != f.part {
				continue
			}
			identity := f.identity(rows, i, t.schema.Key, ids)
			content := f.content(rows, i, n, values)
			switch f.ledger.meet(identity, content) {
			case metEqual:
			case metChanged:
				if !slices.Contains(f.allowed[identity], content) {
					t.wrong.add(key, "%s: a row is not what bronze folds to", f.what)
				}
			case metUnknown:
				if !f.reads.tookAway(identity, values) {
					t.wrong.add(key, "%s: a row stands there that bronze does not fold to", f.what)
				}
			case metTwice:
				t.wrong.add(key, "%s: a row stands there twice", f.what)
			}
		}
	}
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

// names finds the texts of the keys that something was found wrong with: of those that
// are shown, or of all that were noted.
func (t *tableRun) names(ctx context.Context, c *cut) (map[digest][]string, error) {
	out := map[digest][]string{}
	if t.cfg.Keys {
		for key := range t.wrong.keys {
			out[key] = t.lostKeys[key]
		}
	}
	for _, v := range t.wrong.shown {
		if v.key != (digest{}) {
			out[v.key] = t.lostKeys[v.key]
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	key := make([]int, len(t.schema.Key))
	for i := range key {
		key[i] = i
	}
	var texts texter
	d := digester{forms: t.forms}
	for _, view := range []View{c.history, c.current} {
		if view == nil {
			continue
		}
		for rows, err := range view.Rows(ctx, t.table.PrimaryKey) {
			if err != nil {
				return nil, err
			}
			for i := range rows.Len() {
				row := texts.of(rows, i, len(key))
				if id := d.ofKey(row, key); out[id] == nil {
					if _, asked := out[id]; asked {
						out[id] = rowTexts(row, key)
					}
				}
			}
		}
	}
	return out, nil
}
