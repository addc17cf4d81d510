package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// message takes one pgoutput message. Its error ends the whole source; what
// concerns a table becomes a fault of that table.
func (s *Source) message(ctx context.Context, at catalog.LSN, data []byte) error {
	body := data[1:]
	before := s.tx.next
	var err error
	switch data[0] {
	case 'B':
		err = s.begin(body)
	case 'C':
		err = s.commit(ctx, body)
	case 'R':
		err = s.relation(ctx, at, body)
	case 'I', 'U', 'D':
		err = s.rowMessage(ctx, data[0], at, body)
	case 'T':
		err = s.truncate(ctx, at, body)
	case 'M':
		err = s.logical(ctx, at, body)
	case 'Y', 'O': // a type's name, an origin: nothing to us
	default:
		err = fmt.Errorf("%w: of kind %q", errMalformed, data[0])
	}
	if again, ok := errors.AsType[*againError](err); ok {
		s.tx.next = before
		if ctx.Err() != nil {
			return again
		}
		return &againError{unreachable(s.cfg.Source.Name, again.err)}
	}
	if err != nil {
		e := catalog.Errorf(catalog.Internal, catalog.CodeDecode, "please report the server's version and this message",
			"source %s: the stream cannot be read: %w", s.cfg.Source.Name, err)
		e.At = s.cfg.Source.Name + " at " + at.String()
		return e
	}
	return nil
}

func (s *Source) begin(body []byte) error {
	m, err := parseBegin(body)
	if err != nil {
		return err
	}
	s.nearXID = max(s.nearXID, widenXID(s.nearXID, m.xid))
	s.tx = transaction{open: true, commit: m.commit, time: m.time, xid: widenXID(s.nearXID, m.xid)}
	return nil
}

func (s *Source) commit(ctx context.Context, body []byte) error {
	m, err := parseCommit(body)
	if err != nil {
		return err
	}
	if s.tx.told || s.toldYet {
		s.toldYet = false
		if err := s.judgeAllTold(ctx); err != nil {
			return err
		}
	}
	if s.tx.commit >= s.torn {
		s.torn = 0
	}
	s.tx = transaction{}
	s.reached(m.end)
	s.ends.add(m.end, time.UnixMicro(m.time))
	return nil
}

// step counts a row message and returns its place; false for one outside a
// transaction.
func (s *Source) step() (place, error) {
	if !s.tx.open {
		return place{}, fmt.Errorf("%w: a row outside a transaction", errMalformed)
	}
	p := place{commit: s.tx.commit, ordinal: 2 * s.tx.next}
	s.tx.next++
	return p, nil
}

// takes reports whether a table's change at the place is to be handed over.
func (s *Source) takes(t *table, p place) bool {
	if t.stopped {
		return false
	}
	if t.window == nil || p.commit < t.floor {
		t.seen.add(s.tx.xid)
	}
	if !p.after(t.last) || t.park != nil && !p.after(t.park.last) {
		return false // sent again after a restart
	}
	if p.commit < t.floor || t.inReading(p, s.tx.xid) {
		if t.park != nil {
			t.park.last = p
		} else {
			t.last = p
		}
		return false
	}
	return true
}

// inReading reports whether the reading of a table without a key, still to come or
// to be placed, holds what a change did.
func (t *table) inReading(p place, xid uint64) bool {
	switch {
	case t.cfg.HasKey() || t.snap == nil || t.snap.progress.Done:
		return false
	case t.window == nil:
		return true
	}
	c := t.window.result
	return c != nil && !t.window.streaming && p.commit < c.at && c.sees.Sees(xid)
}

func (s *Source) rowMessage(ctx context.Context, op byte, at catalog.LSN, body []byte) error {
	p, err := s.step()
	if err != nil {
		return err
	}
	if len(body) < 4 {
		return errMalformed
	}
	c := cursor{b: body}
	r := s.relations[c.u32()]
	if r == nil {
		return fmt.Errorf("%w: a row of a table that was not described", errMalformed)
	}
	t := r.table
	if t == nil || !s.takes(t, p) {
		return nil
	}
	if bound, err := s.bind(ctx, t, r, p, at); err != nil {
		return err
	} else if bound && t.park == nil {
		before := len(t.into().changes)
		fault := t.decodeMessage(r, op, body, s.tx.change(t.generation, p, at))
		if fault == nil {
			s.added(t, p, len(t.into().changes)-before, len(body))
			return nil
		}
		s.fault(t, catalog.Quarantined, fault)
	}
	return s.keep(ctx, t, r, op, p, at, body)
}

// decodeMessage turns a row message into changes.
func (t *table) decodeMessage(r *relation, op byte, body []byte, first change.Change) *catalog.Error {
	m, err := parseRow(op, body)
	if err != nil {
		return t.undecodable(change.NewRows(t.schema), -1, first.LSN, err)
	}
	return t.decodeRow(r, op, m, first)
}

// change is a change of the transaction at a place, before its message is read.
func (tx *transaction) change(generation uint32, p place, at catalog.LSN) change.Change {
	return change.Change{
		Before: -1, After: -1, Other: -1,
		Position: catalog.Position{Generation: generation, Commit: p.commit, Ordinal: p.ordinal},
		LSN:      at, TxID: tx.xid, CommitTime: tx.time,
	}
}

// added notes that a table has got the changes of a message.
func (s *Source) added(t *table, p place, changes, size int) {
	t.last = place{p.commit, p.ordinal + 1}
	s.tx.changes++
	w := t.window
	switch {
	case w == nil:
		s.rows += changes
		s.bytes += size + change.Weight*changes
	case s.tooMuch(w.held) && t.cfg.HasKey():
		// The chunk takes too long for what happens meanwhile: a smaller one, later.
		s.closeWindow(t)
		s.windowTooLong(t, w)
		s.count()
	case s.blocks(t):
		s.blocked = true
	}
}

func (s *Source) truncate(ctx context.Context, at catalog.LSN, body []byte) error {
	p, err := s.step()
	if err != nil {
		return err
	}
	ids, err := parseTruncate(body)
	if err != nil {
		return err
	}
	for _, id := range ids {
		r := s.relations[id]
		if r == nil {
			return fmt.Errorf("%w: a TRUNCATE of a table that was not described", errMalformed)
		}
		t := r.table
		if t == nil || !s.takes(t, p) {
			continue
		}
		if bound, err := s.bind(ctx, t, r, p, at); err != nil {
			return err
		} else if bound && t.park == nil {
			fault := t.truncate(s.tx.change(t.generation, p, at))
			if fault == nil {
				s.added(t, p, 1, 0)
				continue
			}
			s.fault(t, catalog.Quarantined, fault)
		}
		if err := s.keep(ctx, t, r, recordTruncate, p, at, binary.BigEndian.AppendUint32(nil, id)); err != nil {
			return err
		}
	}
	return nil
}

// truncate takes a TRUNCATE of the table.
func (t *table) truncate(c change.Change) *catalog.Error {
	if !t.cfg.ApplyTruncates {
		e := catalog.Errorf(catalog.Denied, catalog.CodeTruncate,
			"set apply_truncates: true to let it empty the lake's tables too, then release the table",
			"the table was truncated and its configuration says apply_truncates: false")
		e.At = t.at(c.LSN)
		return e
	}
	c.Op = change.Truncate
	b := t.into()
	b.changes = append(b.changes, c)
	return nil
}

// relation takes a description of a table, which comes before its first change on
// a connection and after each ALTER.
func (s *Source) relation(ctx context.Context, at catalog.LSN, body []byte) error {
	m, err := parseRelation(body)
	if err != nil {
		return err
	}
	r := &relation{relationMessage: m, again: s.relations[m.id] != nil}
	s.relations[m.id] = r
	t := s.byOID[m.id]
	if t == nil {
		t = s.byName[m.name]
	}
	if t == nil || t.stopped {
		return nil
	}
	r.table = t
	if s.cfg.Park { // it is bound with the change that it comes before
		r.body = bytes.Clone(body)
		return nil
	}
	if s.tx.commit >= t.floor { // else it may be how the table was before its reading began
		_, err = s.bind(ctx, t, r, place{}, at)
	}
	return err
}

// bind compares a table with its description, once; false when that stopped it, or it
// parks. Its error means that the message, whose place is p, has to be taken again.
func (s *Source) bind(ctx context.Context, t *table, r *relation, p place, at catalog.LSN) (bool, error) {
	if s.cfg.Park {
		return s.bindParking(ctx, t, r, p, at)
	}
	if r.bound {
		return true, nil
	}
	fault, err := s.check(ctx, t, r, at)
	if err != nil {
		return false, &againError{fmt.Errorf("look up the columns of %s: %w", t.name, err)}
	}
	if fault != nil {
		s.fault(t, fault.State, fault.Err)
		return false, nil
	}
	r.bind(t.schema, t.deferred)
	return true, nil
}

// againError is a message that could not be taken yet.
type againError struct{ err error }

func (e *againError) Error() string { return e.err.Error() }
func (e *againError) Unwrap() error { return e.err }
