package postgres

import (
	"context"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// parking is a table that cannot go on, and what came for it since and was not handed
// over.
type parking struct {
	last    place       // of the newest change that was kept
	current *definition // how the table is declared there; nil when that is not known
	run     *runWriter  // nil when empty
	seq     uint64      // of the newest run that was handed over
	through place       // its last change
	done    uint64      // the newest run of which everything was handed over again
	replay  *replay     // of what was handed over; nil when none is under way
}

// most is how large a run may get before it is handed over while earlier ones are
// replayed; else the small rest would be handed over, and come back, for ever.
func (s *Source) mostWithheld() int {
	replaying := 1
	for _, t := range s.order {
		if t.park != nil && t.park.replay != nil {
			replaying++
		}
	}
	return max(64<<10, s.cfg.Limits.SliceBytes/4/replaying)
}

// parkPending reports whether the table has a run to hand over.
func (s *Source) parkPending(t *table) bool {
	p := t.park
	switch {
	case p == nil || p.run == nil:
		return false
	case p.replay == nil:
		return true
	}
	return !p.replay.rest && len(p.run.buf) >= s.mostWithheld()
}

// startParking keeps what comes for the table from here on.
func (s *Source) startParking(t *table) {
	t.park = &parking{last: t.last, current: t.shape.current}
	n := t.shape.told
	if n == nil {
		return
	}
	t.shape.told = nil
	w := t.writer()
	for _, e := range n.entries {
		w.ddl(&n.tx, e.at, e.next, e.doc)
	}
	t.park.last = w.to
	if s.tx.open && s.tx.commit == n.tx.commit {
		s.tx.changes++
	}
}

// writer is the table's run that is being written.
func (t *table) writer() *runWriter {
	if t.park.run == nil {
		t.park.run = newRunWriter(t.generation)
	}
	return t.park.run
}

// keepEntry keeps an entry of the DDL log.
func (s *Source) keepEntry(t *table, e ddlEvent, entry ddlEntry) {
	switch e.kind {
	case ddlTable:
		t.park.current = t.sent(e.definition)
		t.shape.altered = true
	case ddlDrop:
		t.park.current = nil
	}
	if beforeChange(s.tx.commit, entry.next).before(t.park.last) {
		return // it is in a run that was stored before the source was started
	}
	w := t.writer()
	before := len(w.buf)
	w.ddl(&s.tx, entry.at, entry.next, entry.doc)
	t.park.last = w.to
	s.kept(t, len(w.buf)-before)
}

// keep keeps a message of a parking table, and what describes it. A table that has
// stopped for good keeps nothing. Its error means that the message has to be taken again.
func (s *Source) keep(ctx context.Context, t *table, r *relation, kind byte, p place, at catalog.LSN, body []byte) error {
	if t.park == nil {
		return nil
	}
	if t.inReading(p, s.tx.xid) { // of a table without a key, which is read anew after this
		t.park.last = p
		return nil
	}
	if r.id != t.oid {
		fault, err := s.gapOf(ctx, t, at)
		if err != nil {
			return &againError{err}
		}
		s.raise(t, *fault)
		return nil
	}
	// After a restart the runs that are stored tell how the table is declared here, with
	// what the DDL log tells in them: a replay comes to it.
	if r.definition == nil && (t.park.current != nil || !s.ddlWhole) {
		d, err := s.described(ctx, t, r, t.park.current)
		if err != nil && (ctx.Err() != nil || isConnectionError(err)) {
			return &againError{fmt.Errorf("look up the columns of %s: %w", t.name, err)}
		}
		if err == nil {
			t.park.current = d
		}
	}
	w := t.writer()
	before := len(w.buf)
	w.begin(&s.tx)
	if err := w.describe(r); err != nil {
		return err
	}
	w.change(&s.tx, kind, at, p, body)
	t.park.last = place{p.commit, p.ordinal + 1}
	s.kept(t, len(w.buf)-before)
	return nil
}

// kept counts what waits to be handed over.
func (s *Source) kept(t *table, size int) {
	s.tx.changes++
	if t.park.replay != nil {
		s.count()
		return
	}
	s.rows++
	s.bytes += size
}

// takeRun closes the table's run and returns it.
func (s *Source) takeRun(t *table) pipeline.ParkedRun {
	p, w := t.park, t.park.run
	p.run = nil
	p.seq++
	p.through = w.to
	return pipeline.ParkedRun{
		Table: t.name, Seq: p.seq, Events: w.events, From: t.placeOf(w.from), To: t.placeOf(w.to), Data: w.end(s.goesOn(w.commit)),
	}
}

func (t *table) placeOf(p place) catalog.Place {
	return catalog.Place{Position: catalog.Position{Generation: t.generation, Commit: p.commit, Ordinal: p.ordinal}}
}

// goesOn reports whether more of a transaction may come.
func (s *Source) goesOn(commit catalog.LSN) bool {
	return commit == s.torn || s.tx.open && s.tx.commit == commit
}

// bindParking compares a table with its description, once, where the source parks.
func (s *Source) bindParking(ctx context.Context, t *table, r *relation, p place, at catalog.LSN) (bool, error) {
	if t.park != nil {
		return false, nil
	}
	again := func(err error) (bool, error) {
		_, err = s.unasked(ctx, t, err)
		return false, err
	}
	if fault, err := s.judgeTold(ctx, t); err != nil {
		return again(err)
	} else if fault != nil {
		s.raise(t, *fault)
		return false, nil
	}
	if r.bound {
		return true, nil
	}
	if r.id != t.oid {
		fault, err := s.gapOf(ctx, t, at)
		if err != nil {
			return false, &againError{err}
		}
		s.raise(t, *fault)
		return false, nil
	}
	d, err := s.described(ctx, t, r, t.shape.current)
	if err != nil {
		return again(err)
	}
	fault, err := s.judge(ctx, t, p, d, catalog.ByRelation, nil)
	if err != nil {
		return again(err)
	}
	if fault != nil {
		s.raise(t, *fault)
		return false, nil
	}
	r.bindNumbers(t.schema, d, t.deferred)
	return true, nil
}

// judgeAllTold judges what the DDL log told in the transaction that ends.
func (s *Source) judgeAllTold(ctx context.Context) error {
	for _, t := range s.order {
		if t.shape.told == nil || t.park != nil || t.stopped {
			continue
		}
		if t.shape.told.tx.commit > s.tx.commit { // of a transaction that is sent again
			s.toldYet = true
			continue
		}
		fault, err := s.judgeTold(ctx, t)
		if fault != nil {
			s.raise(t, *fault)
		}
		if _, err := s.unasked(ctx, t, err); err != nil {
			return err
		}
	}
	return nil
}

// unasked decides what it means that the source's catalog could not be asked: that the
// message is taken again, or that the table stops, since nobody may ask.
func (s *Source) unasked(ctx context.Context, t *table, err error) (stopped bool, again error) {
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil || isConnectionError(err):
		return false, &againError{unreachable(s.cfg.Source.Name, fmt.Errorf("look up the columns of %s: %w", t.name, err))}
	}
	s.fault(t, catalog.Quarantined, asError(s.cfg.Source.Name, err))
	return true, nil
}
