package postgres

import (
	"errors"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

func isUnfit(err error) bool { return errors.Is(err, typemap.ErrUnfit) }

// transaction is the one whose messages come at present.
type transaction struct {
	open    bool
	commit  catalog.LSN
	time    int64
	xid     uint64
	next    uint64 // index of its next row message
	told    bool   // the DDL log told of a table in it
	changes int    // that it has put up for handing over
}

// decodeRow turns a row message into the changes of one table: one, or two when
// the key moved. The position is of the first.
func (t *table) decodeRow(r *relation, op byte, m rowMessage, first change.Change) *catalog.Error {
	if op != 'I' && t.deferred && !r.covers {
		return t.identityGone(r, first.LSN)
	}
	b := t.into()
	n := b.rows.Len()
	c := first
	c.Before, c.After, c.Other = -1, -1, -1
	var failed error
	if m.oldKind != 0 {
		c.Before = b.rows.Add()
		failed = t.cells(r, b.rows, c.Before, m.old, m.oldKind == 'K')
	}
	if m.hasNew {
		c.After = b.rows.Add()
		failed = errors.Join(failed, t.cells(r, b.rows, c.After, m.new, false))
	}
	if c.After >= 0 && c.Before >= 0 {
		keepUnchanged(b.rows, c.Before, c.After)
	}
	if failed != nil {
		return t.undecodable(b.rows, n, first.LSN, failed)
	}
	switch op {
	case 'I':
		c.Op = change.Create
		return t.add(b, c, c.After)
	case 'D':
		c.Op = change.Delete
		return t.add(b, c, c.Before)
	}
	c.Op = change.Update
	if c.Before < 0 {
		if t.cfg.HasKey() && !r.covers {
			return t.identityGone(r, first.LSN)
		}
		return t.add(b, c, c.After)
	}
	return t.addUpdate(b, c)
}

// addUpdate appends an update that came with an old row, which may be a move.
func (t *table) addUpdate(b *builder, c change.Change) *catalog.Error {
	was, err := b.key(c.Before)
	if err != nil {
		return t.badKey(b.rows, c.Before, c, err)
	}
	is, err := b.key(c.After)
	if err != nil {
		return t.badKey(b.rows, c.After, c, err)
	}
	if string(was) == string(is) {
		c.Key = is
		b.changes = append(b.changes, c)
		return nil
	}
	from, to := c, c
	from.Op, from.Key, from.OtherKey, from.After, from.Other = change.Delete, was, is, -1, c.After
	to.Op, to.Key, to.OtherKey, to.Before, to.Other = change.Create, is, was, -1, c.Before
	to.Position.Ordinal++
	b.changes = append(b.changes, from, to)
	return nil
}

func (t *table) add(b *builder, c change.Change, keyRow int) *catalog.Error {
	key, err := b.key(keyRow)
	if err != nil {
		return t.badKey(b.rows, keyRow, c, err)
	}
	c.Key = key
	b.changes = append(b.changes, c)
	return nil
}

// cells decodes a row. Of an old row that holds the key only, what is not of the
// identity was not sent, whatever the message says of it.
func (t *table) cells(r *relation, rows *change.Rows, row int, from tuple, identityOnly bool) error {
	if from.n != len(r.columns) {
		return fmt.Errorf("%w: a row of %d columns, the table has %d", errMalformed, from.n, len(r.columns))
	}
	c := cursor{b: from.cells}
	var failed error
	for i, col := range r.columns {
		kind, text := c.cell()
		if col < 0 || identityOnly && !r.relationMessage.columns[i].identity {
			continue
		}
		switch kind {
		case 'n':
			rows.SetMark(row, col, change.Null)
		case 'u':
			rows.SetMark(row, col, change.Unavailable)
		case 't':
			if err := t.set(rows, row, col, text); err != nil && failed == nil {
				failed = err
			}
		}
	}
	if !identityOnly {
		for _, col := range r.lacking { // the source has it no more
			rows.SetMark(row, col, change.Null)
		}
	}
	return errors.Join(failed, c.done())
}

// keepUnchanged takes the values that were not sent again from the old row, when
// that has them.
func keepUnchanged(rows *change.Rows, before, after int) {
	for col := range rows.Schema().Columns {
		if rows.Mark(after, col) == change.Unavailable && rows.Mark(before, col) != change.Absent {
			rows.Copy(after, col, rows, before, col)
		}
	}
}

// badKey is the fault of a change whose key cannot be told.
func (t *table) badKey(rows *change.Rows, row int, c change.Change, err error) *catalog.Error {
	var column catalog.Column
	for _, col := range t.schema.Key {
		if !rows.HasValue(row, col) {
			column = t.schema.Columns[col]
			break
		}
	}
	var e *catalog.Error
	switch {
	case errors.Is(err, change.ErrKeyNull):
		e = catalog.Errorf(catalog.Invalid, catalog.CodeKeyNull,
			"choose a primary_key whose columns always have a value, then read the table anew",
			"a change has no value in key column %s", column.Name)
	case errors.Is(err, change.ErrKeyUnfit):
		e = catalog.Errorf(catalog.Invalid, catalog.CodeKeyUnfit,
			"choose a primary_key whose values all fit, then read the table anew; docs/reference/types.md lists what does not fit",
			"a change has a value in key column %s (%s) that the lake's %s cannot hold", column.Name, column.Source.Name, column.Type)
	default:
		e = catalog.Errorf(catalog.Invalid, catalog.CodeKeyMissing, identityFix(t.cfg.Name),
			"a %s does not carry key column %s: the replica identity leaves it out", opWord(c.Op), column.Name)
	}
	e.At = t.at(c.LSN)
	return e
}

func (t *table) identityGone(r *relation, at catalog.LSN) *catalog.Error {
	e := catalog.Errorf(catalog.Invalid, catalog.CodeIdentityChange, identityFix(t.cfg.Name),
		"the replica identity (%s) no longer carries the configured key: a changed key could not be seen", identityWord(r.identity))
	e.At = t.at(at)
	return e
}

func identityFix(n catalog.TableName) string {
	return "ALTER TABLE " + quoteName(n) + " REPLICA IDENTITY FULL, or make primary_key what the identity carries; then read the table anew"
}

func identityWord(identity byte) string {
	switch identity {
	case 'd':
		return "DEFAULT"
	case 'f':
		return "FULL"
	case 'i':
		return "USING INDEX"
	case 'n':
		return "NOTHING"
	}
	return "unknown"
}

func opWord(op change.Op) string {
	switch op {
	case change.Create:
		return "create"
	case change.Update:
		return "update"
	case change.Delete:
		return "delete"
	case change.Read:
		return "read"
	case change.Truncate:
		return "truncate"
	}
	return "change"
}
