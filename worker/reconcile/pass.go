package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// pass compares the keys that a moment allows to compare.
type pass struct {
	*tableRun
	moment  moment
	cut     *cut
	over    *overtaken
	pending map[digest]struct{} // nil: every key
	// lacking are keys whose row in the lake lacks values that were never sent;
	// they are being read again, so they are looked at in the next round.
	lacking map[digest]struct{}
	last    bool
}

// wants reports whether the key is to be compared.
func (p *pass) wants(key digest) bool {
	if p.over.has(key) {
		return false
	}
	if _, lacks := p.lacking[key]; lacks {
		return false
	}
	if p.pending == nil {
		return true
	}
	_, ok := p.pending[key]
	return ok
}

// next returns the keys to look at again.
func (p *pass) next() map[digest]struct{} {
	out := map[digest]struct{}{}
	for key := range p.over.keys {
		if p.pending == nil {
			out[key] = struct{}{}
		} else if _, was := p.pending[key]; was {
			out[key] = struct{}{}
		}
	}
	maps.Copy(out, p.lacking)
	return out
}

func (p *pass) compare(ctx context.Context) error {
	c := newComparison(p.schema.Columns, p.schema.Key)
	err := p.lakeRows(ctx, true, func(key digest, row rowText) error {
		c.addLake(key, row)
		return nil
	})
	if err != nil {
		return err
	}
	unfit := slices.Clone(p.expect.unfit)
	err = p.sourceRows(ctx, func(key digest, row, plain rowText) error {
		c.addSource(key, row)
		p.expect.count(plain)
		return nil
	})
	if err != nil {
		return err
	}
	if rewritten, err := p.source.rewritten(ctx, p.table.Name, p.moment); err != nil || rewritten {
		p.over.all = true // what was read is not what the moment saw
		p.expect.unfit = unfit
		return err
	}
	c.finish()
	p.sumUp(c)
	return p.detail(ctx, c)
}

// lakeRows calls f with the live rows that are to be compared. Collect says that
// this is the first time, when rows that lack values are set aside.
func (p *pass) lakeRows(ctx context.Context, collect bool, f func(key digest, row rowText) error) error {
	view, own, live := p.cut.current, ownDeleted, int64(0)
	if view == nil {
		view, own, live = p.cut.history, ownIsCurrent, 1
	}
	n := len(p.schema.Columns)
	var texts texter
	d := digester{forms: p.forms}
	for rows, err := range view.Rows(ctx, append(columnNames(p.schema), own, ownUnavailable)) {
		if err != nil {
			return err
		}
		for i := range rows.Len() {
			if rows.Fixed(i, n) != live {
				continue
			}
			row := texts.of(rows, i, n)
			key := d.ofKey(row, p.schema.Key)
			if !p.wants(key) {
				continue
			}
			if collect && rows.HasValue(i, n+1) && len(rows.Bytes(i, n+1)) > 0 {
				if !p.last {
					p.lacking[key] = struct{}{}
					continue
				}
				p.lacked++
			}
			if err := f(key, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceRows calls f with the rows that are to be compared, as the lake should
// show them and as they are.
func (p *pass) sourceRows(ctx context.Context, f func(key digest, row, plain rowText) error) error {
	d := digester{forms: p.forms}
	return p.source.rows(ctx, p.table.Name, columnNames(p.schema), func(plain rowText) error {
		row, err := p.expect.of(plain)
		if err != nil {
			return err
		}
		key := d.ofKey(row, p.schema.Key)
		if !p.wants(key) {
			return nil
		}
		return f(key, row, plain)
	})
}

func (p *pass) sumUp(c *comparison) {
	r := p.result
	r.SourceRows += c.source.rows
	r.LakeRows += c.lake.rows
	r.Differing += c.differing()
	for k, n := range c.counts {
		r.Kinds[k] += n
	}
	for i, n := range p.expect.unfit {
		if n > 0 {
			r.Unfit[p.schema.Columns[i].Name] = n
		}
	}
	if p.pending == nil {
		r.Columns = totals(c)
	}
}

func totals(c *comparison) []ColumnTotals {
	out := make([]ColumnTotals, len(c.columns))
	for i := range c.columns {
		s, l := &c.source.totals[i], &c.lake.totals[i]
		out[i] = ColumnTotals{
			Column: c.columns[i].Name, SourceNulls: s.nulls, LakeNulls: l.nulls, SourceSum: s.sum(), LakeSum: l.sum(),
			SourceHash: fmt.Sprintf("%016x", s.hashes), LakeHash: fmt.Sprintf("%016x", l.hashes), Equal: s.equal(l),
		}
	}
	return out
}

// detail reads both sides once more, still at the same moment, for the values of
// some of the keys that differ.
func (p *pass) detail(ctx context.Context, c *comparison) error {
	room := max(p.cfg.Details-len(p.result.Differences), 0)
	if len(c.suspects) == 0 || room == 0 && !p.cfg.Keys {
		return nil
	}
	type sides struct {
		source, lake []rowText
		shown        bool
		key          DifferingKey
	}
	keys := slices.SortedFunc(maps.Keys(c.suspects), digest.compare)
	found := map[digest]*sides{}
	for i, key := range keys {
		if i < room || p.cfg.Keys {
			found[key] = &sides{shown: i < room, key: DifferingKey{Kind: c.suspects[key]}}
		}
	}
	err := p.lakeRows(ctx, false, func(key digest, row rowText) error {
		s := found[key]
		if s == nil {
			return nil
		}
		s.key.Lake = p.keyTexts(row)
		if s.shown && len(s.lake) < 2 {
			s.lake = append(s.lake, copyRow(row))
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.sourceRows(ctx, func(key digest, row, plain rowText) error {
		s := found[key]
		if s == nil {
			return nil
		}
		s.key.Lake, s.key.Source = p.keyTexts(row), p.keyTexts(plain)
		if s.shown && len(s.source) < 2 {
			s.source = append(s.source, copyRow(row))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys[:min(len(keys), room)] {
		s := found[key]
		p.result.Differences = append(p.result.Differences, p.difference(c.suspects[key], s.source, s.lake))
	}
	for _, key := range keys {
		if p.cfg.Keys && len(p.result.Keys) < MaxKeys {
			p.result.Keys = append(p.result.Keys, found[key].key)
		}
	}
	return nil
}

func (p *pass) difference(k Kind, source, lake []rowText) Difference {
	both := append(slices.Clone(source), lake...)
	if len(both) == 0 {
		return Difference{Kind: k, Key: "(not found again)"}
	}
	d := Difference{Kind: k, Key: keyText(p.schema.Columns, p.schema.Key, both[0])}
	switch {
	case k == Duplicate && len(lake) > 1:
		source = lake[1:] // what differs between the two rows of the lake
	case k == Ambiguous && len(source) > 1:
		lake = source[1:]
	case k == Missing || k == Extra:
		return d
	}
	if len(source) == 0 || len(lake) == 0 {
		return d
	}
	for i, col := range p.schema.Columns {
		s, l := source[0][i], lake[0][i]
		if (s == nil) != (l == nil) || !bytes.Equal(s, l) {
			d.Values = append(d.Values, ValuePairs{Column: col.Name, Source: textOf(s), Lake: textOf(l)})
		}
	}
	return d
}

func textOf(b []byte) *string {
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

func copyRow(row rowText) rowText {
	out := make(rowText, len(row))
	for i, text := range row {
		if text != nil {
			out[i] = append([]byte{}, text...)
		}
	}
	return out
}

// keyless compares a table without a key: bronze's events, added up as the moment
// sees them, with the rows that the source has.
func (t *tableRun) keyless(ctx context.Context) error {
	for range t.cfg.Rounds {
		if done, err := t.keylessOnce(ctx); done || err != nil {
			return err
		}
	}
	return catalog.Errorf(catalog.Unavailable, catalog.CodeReconcile, "try again later", "table %s was truncated or rewritten in every round", t.table.ID())
}

// keylessOnce returns false when the table was truncated or rewritten while it was
// read.
func (t *tableRun) keylessOnce(ctx context.Context) (bool, error) {
	m, c, err := t.moment(ctx)
	if err != nil {
		return false, err
	}
	t.result.At, t.result.LSN, t.result.Cursor, t.result.Rounds = m.at, m.lsn.String(), c.cursor.String(), 1
	var lake keyless
	for b, err := range t.layers.Bronze.Read(ctx, catalog.Position{}, c.bronzeCursor, readRows) {
		if err != nil {
			return false, err
		}
		lake.addBatch(&m, b)
	}
	unfit := slices.Clone(t.expect.unfit)
	var source keyless
	var d digester
	err = t.source.rows(ctx, t.table.Name, columnNames(t.schema), func(plain rowText) error {
		row, err := t.expect.of(plain)
		if err != nil {
			return err
		}
		source.add(d.of(row, nil), 1)
		t.expect.count(plain)
		return nil
	})
	if err != nil {
		return false, err
	}
	rewritten, err := t.source.rewritten(ctx, t.table.Name, m)
	if err == nil {
		err = t.source.end(ctx)
	}
	if err != nil || rewritten {
		t.expect.unfit = unfit
		return false, err
	}
	r := t.result
	r.SourceRows, r.LakeRows = source.rows, lake.rows
	for i, n := range t.expect.unfit {
		if n > 0 {
			r.Unfit[t.schema.Columns[i].Name] = n
		}
	}
	switch {
	case source.rows != lake.rows:
		r.Differing = max(source.rows-lake.rows, lake.rows-source.rows)
		r.Kinds[Rows] = r.Differing
	case lake.blind:
		t.note("the table has no key, and not every delete or update carried the whole row: only the number of rows was compared")
	case source.sum != lake.sum:
		r.Differing = 1
		r.Kinds[Rows] = 1
		t.note("the table has no key: it has as many rows as the source, but not the same ones; which ones differ cannot be said")
	}
	if t.cfg.Quick {
		t.tell(nil)
		return true, nil
	}
	events, wrong, err := checkPositions(ctx, c.bronze, c.bronzeCursor)
	if err != nil {
		return false, err
	}
	r.Checked, r.BronzeEvents = true, events
	t.wrong.join(wrong)
	t.tell(nil)
	return true, nil
}
