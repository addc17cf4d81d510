package postgres

import (
	"context"
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

var _ pipeline.Parker = (*Source)(nil)

// replay is the decoding of a table's parked changes.
type replay struct {
	skip map[place]bool // changes to be passed by, by the places of their messages
	next uint64         // the run to be given next; 0: any
	runs []pipeline.ParkedRun
	done uint64     // the newest run of which everything was decoded
	at   *runReader // of runs[0], or of the rest; nil: not begun
	rest bool       // at reads what was not handed over
	rels map[uint32]*relation
	torn catalog.LSN // the transaction of which more follows in the next run; 0: none
	size int         // bytes of the rest, as at has them
}

// replayRequest is a call of Replay.
type replayRequest struct {
	table  string
	run    pipeline.ParkedRun
	schema *catalog.Schema
	skip   []catalog.Place
}

// Replay implements pipeline.Parker.
func (s *Source) Replay(table string, run pipeline.ParkedRun, schema *catalog.Schema, skip []catalog.Place) {
	s.asked.mu.Lock()
	s.asked.replays = append(s.asked.replays, replayRequest{table, run, schema, skip})
	s.asked.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// takeReplays takes up what Replay was called with.
func (s *Source) takeReplays() {
	s.asked.mu.Lock()
	requests := s.asked.replays
	s.asked.replays = nil
	s.asked.mu.Unlock()
	var later []replayRequest
	waits := map[string]bool{}
	for _, q := range requests {
		t := s.named(q.table)
		switch {
		case t == nil:
		case waits[q.table] || q.run.Seq == 0 && t.batch != nil: // which is of the schema of before
			waits[q.table] = true
			later = append(later, q)
		case t.park == nil: // it is live, and has it all
			s.replayed = append(s.replayed, pipeline.Replayed{Table: q.table, Seq: q.run.Seq, Live: true})
		case q.run.Seq == 0:
			s.beginReplay(t, q)
		case t.park.replay == nil: // it failed meanwhile
		default:
			s.giveRun(t, q.run)
		}
	}
	if len(later) > 0 {
		s.asked.mu.Lock()
		s.asked.replays = append(later, s.asked.replays...)
		s.asked.mu.Unlock()
	}
}

func (s *Source) named(name string) *table {
	for _, t := range s.order {
		if t.name == name && !t.stopped {
			return t
		}
	}
	return nil
}

// beginReplay puts the table under the schema that was decided.
func (s *Source) beginReplay(t *table, q replayRequest) {
	r := &replay{skip: map[place]bool{}, rels: map[uint32]*relation{}, done: t.park.done}
	for _, p := range q.skip {
		r.skip[place{p.Position.Commit, p.Position.Ordinal &^ 1}] = true
	}
	t.park.replay = r
	t.shape.told = nil                  // what an earlier replay had come to
	if !t.last.before(t.park.through) { // bronze had everything that was handed over
		r.done = t.park.seq
	}
	if q.schema != nil {
		t.adopt(unmasked(q.schema, t.schema))
	}
	if t.shape.reported.after(t.shape.decided) {
		t.shape.decided = t.shape.reported
	}
	s.count()
}

// before reports whether p is before o.
func (p place) before(o place) bool { return o.after(p) }

// adopt makes a schema the governed one.
func (t *table) adopt(schema *catalog.Schema) {
	sh := &t.shape
	before := sh.governed
	t.schema = schema
	t.fields = nil // asked for when rows are read
	switch {
	case schema.Definition != nil:
		d := *schema.Definition
		sh.governed = &definition{Definition: &d, wire: wireOf(&d)}
	case sh.current != nil && agrees(schema, sh.current):
		sh.governed = sh.current
	case before == nil || !agrees(schema, before):
		sh.governed = definitionOf(t, schema, before)
	}
	if at := (place{schema.At.Position.Commit, schema.At.Position.Ordinal}); at.after(sh.decided) {
		sh.decided = at
	}
	var queue []*reread
	for _, q := range t.rereads.queue {
		if len(q.keys) > 0 && len(q.keys[0]) == len(schema.Key) {
			queue = append(queue, q)
			continue
		}
		t.rereads.finished = append(t.rereads.finished, q.id)
	}
	t.rereads.queue = queue
}

// agrees reports whether the lake's columns are those that a definition sends, whatever
// they are called in the lake.
func agrees(schema *catalog.Schema, d *definition) bool {
	live := 0
	for _, c := range schema.Columns {
		if c.Dropped {
			continue
		}
		live++
		is := d.number(c.Number)
		if c.Number == 0 {
			is = d.Column(c.Name)
		}
		if is == nil || is.Unsent || is.Type.OID != c.Source.OID || is.Type.Modifier != c.Source.Modifier {
			return false
		}
	}
	for i := range d.Columns {
		if !d.Columns[i].Unsent {
			live--
		}
	}
	return live == 0
}

// definitionOf makes a definition of a schema that came without one. What a schema does
// not say of its columns, and of the table, is taken from another definition.
func definitionOf(t *table, schema *catalog.Schema, like *definition) *definition {
	d := &catalog.Definition{Name: t.cfg.Name, OID: t.oid, Key: t.cfg.PrimaryKey}
	if like != nil {
		d.Key, d.Identity = like.Key, like.Identity
	}
	has := map[int]bool{}
	for _, c := range schema.Columns {
		if c.Dropped {
			continue
		}
		has[c.Number] = true
		column := catalog.ColumnDefinition{Name: c.Name, Number: c.Number, Type: c.Source, Nullable: c.Nullable}
		if like != nil && c.Number != 0 {
			if is := like.number(c.Number); is != nil {
				column.Default, column.Generated, column.Labels = is.Default, is.Generated, is.Labels
			}
		}
		d.Columns = append(d.Columns, column)
	}
	if like != nil {
		for _, c := range like.Columns {
			if c.Unsent && !has[c.Number] {
				d.Columns = append(d.Columns, c)
			}
		}
	}
	return &definition{Definition: d, wire: wireOf(d)}
}

func (s *Source) giveRun(t *table, run pipeline.ParkedRun) {
	r := t.park.replay
	if r.next != 0 && run.Seq != r.next {
		e := catalog.Errorf(catalog.Internal, catalog.CodeInternal, "please report it", "run %d of parked changes was given back where %d is next", run.Seq, r.next)
		s.fault(t, catalog.Quarantined, e)
		return
	}
	if r.next == 0 { // and all behind it follow, also what was replayed before
		r.done = min(r.done, run.Seq-1)
	}
	r.next = run.Seq + 1
	r.runs = append(r.runs, run)
}

// replayParked decodes parked changes until the slice is full, or there is nothing more.
func (s *Source) replayParked(ctx context.Context) error {
	for _, t := range s.order {
		for t.park != nil && t.park.replay != nil && !s.full() {
			more, err := s.replayOne(ctx, t)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

// replayOne takes one record; false when there is none for now.
func (s *Source) replayOne(ctx context.Context, t *table) (more bool, err error) {
	r := t.park.replay
	if r.at == nil {
		if opened, err := s.openNext(ctx, t); !opened || err != nil || r.at == nil { // at nil: the table is live, or it failed
			return opened, err
		}
	}
	if r.at.atEnd() {
		return s.runEnded(ctx, t)
	}
	back := *r.at
	rec, err := r.at.next()
	if err != nil {
		e := catalog.Errorf(catalog.Internal, catalog.CodeDecode, "the run stays stored; please report it", "parked changes cannot be read: %w", err)
		e.At = t.cfg.ID()
		s.fault(t, catalog.Quarantined, e)
		return true, nil
	}
	if err := s.replayRecord(ctx, t, rec); err != nil {
		*r.at = back
		return false, err
	}
	return true, nil
}

// openNext opens the next run, or the rest, or has the table go live when there is none.
// It returns false when a run has to be given first.
func (s *Source) openNext(ctx context.Context, t *table) (bool, error) {
	p, r := t.park, t.park.replay
	switch {
	case len(r.runs) > 0:
		at, err := openRun(r.runs[0].Data)
		if err != nil {
			e := catalog.Errorf(catalog.Internal, catalog.CodeDecode, "the run stays stored; please report it", "parked changes cannot be read: %w", err)
			e.At = t.cfg.ID()
			s.fault(t, catalog.Quarantined, e)
			return true, nil
		}
		r.at = at
	case r.done < p.seq:
		return false, nil
	case p.run == nil:
		if n := t.shape.told; n != nil && s.through > n.tx.commit { // its transaction ended meanwhile
			if failed, err := s.replayTold(ctx, t); failed || err != nil {
				return err == nil, err
			}
		}
		s.goLive(t)
	default:
		at, err := openRun(p.run.buf)
		if err != nil { // we wrote it ourselves
			s.fault(t, catalog.Quarantined, asError(s.cfg.Source.Name, err))
			return true, nil
		}
		r.at, r.rest, r.size = at, true, len(p.run.buf)
	}
	if r.at != nil {
		clear(r.rels)
	}
	return true, nil
}

// runEnded is the end of a run, or of the rest.
func (s *Source) runEnded(ctx context.Context, t *table) (bool, error) {
	p, r := t.park, t.park.replay
	if r.rest && len(p.run.buf) > r.size { // more came
		r.at.b, r.size = p.run.buf[r.size:], len(p.run.buf)
		return true, nil
	}
	if !r.rest && !r.at.ended {
		e := catalog.Errorf(catalog.Internal, catalog.CodeDecode, "the run stays stored; please report it", "parked changes cannot be read: the run was cut off")
		e.At = t.cfg.ID()
		s.fault(t, catalog.Quarantined, e)
		return true, nil
	}
	open := r.at.open
	if r.rest {
		open = s.goesOn(p.run.commit)
	}
	if !open {
		if failed, err := s.replayTold(ctx, t); failed || err != nil {
			return err == nil, err
		}
	}
	r.torn = 0
	if open {
		r.torn = r.at.tx.commit
	}
	r.at = nil
	if r.rest {
		p.run = nil
		s.goLive(t)
		return true, nil
	}
	r.done = r.runs[0].Seq
	p.done = max(p.done, r.done)
	s.replayed = append(s.replayed, pipeline.Replayed{Table: t.name, Seq: r.runs[0].Seq})
	r.runs = r.runs[1:]
	return true, nil
}

// replayTold judges what the DDL log told before the next record; true when that was a
// fault.
func (s *Source) replayTold(ctx context.Context, t *table) (failed bool, err error) {
	fault, err := s.judgeTold(ctx, t)
	if fault != nil {
		s.raise(t, *fault)
		return true, nil
	}
	return s.unasked(ctx, t, err)
}

func (s *Source) replayRecord(ctx context.Context, t *table, rec record) error {
	r := t.park.replay
	switch rec.kind {
	case recordBegin:
		if n := t.shape.told; n == nil || n.tx.commit == r.at.tx.commit { // it goes on in this run
			return nil
		}
		_, err := s.replayTold(ctx, t)
		return err
	case recordRelation:
		rec.relation.table = t
		r.rels[rec.relation.id] = rec.relation
		return nil
	case recordDDL:
		if e, err := parseDDL(rec.body); err == nil && e.kind != ddlFailed { // others are passed by, as when they come
			t.hear(e, ddlEntry{rec.at, rec.ordinal, rec.body, e.kind, e.plain}, r.at.tx)
		}
		return nil
	case recordEnd:
		return nil
	}
	return s.replayChange(ctx, t, rec)
}

// replayChange decodes a change just as the stream's, at the place that it had there.
func (s *Source) replayChange(ctx context.Context, t *table, rec record) error {
	r := t.park.replay
	if failed, err := s.replayTold(ctx, t); failed || err != nil {
		return err
	}
	p := place{r.at.tx.commit, rec.ordinal}
	id := rec.truncates
	if rec.kind != recordTruncate {
		c := cursor{b: rec.body}
		id = c.u32()
	}
	rel := r.rels[id]
	if rel == nil {
		s.fault(t, catalog.Quarantined, t.undecodable(nil, -1, rec.at, fmt.Errorf("%w: a change of a table that was not described", errMalformed)))
		return nil
	}
	if !rel.bound {
		if failed, err := s.bindReplayed(ctx, t, rel, p); failed || err != nil {
			return err
		}
	}
	t.seen.add(r.at.tx.xid)
	if !p.after(t.last) {
		return nil // it was handed over before
	}
	if r.skip[p] {
		s.log.WarnContext(ctx, "a parked change is passed by", "table", t.cfg.ID(), "at", p.commit.String(), "ordinal", p.ordinal)
		t.last = place{p.commit, p.ordinal + 1}
		return nil
	}
	before := len(t.into().changes)
	first := r.at.tx.change(r.at.generation, p, rec.at)
	var fault *catalog.Error
	if rec.kind == recordTruncate {
		fault = t.truncate(first)
	} else {
		fault = t.decodeMessage(rel, rec.kind, rec.body, first)
	}
	if fault != nil {
		s.fault(t, catalog.Quarantined, fault)
		return nil
	}
	t.last = place{p.commit, p.ordinal + 1}
	n := len(t.batch.changes) - before
	s.rows += n
	s.bytes += len(rec.body) + change.Weight*n
	return nil
}

// bindReplayed compares the table with a relation of a run; true when that is a fault.
func (s *Source) bindReplayed(ctx context.Context, t *table, rel *relation, p place) (failed bool, err error) {
	d := rel.definition
	if d == nil { // nobody could be asked when it came
		if d, err = s.described(ctx, t, rel, t.shape.current); err != nil {
			return s.unasked(ctx, t, err)
		}
	}
	fault, err := s.judge(ctx, t, p, d, catalog.ByRelation, nil)
	if err != nil {
		return s.unasked(ctx, t, err)
	}
	if fault != nil {
		s.raise(t, *fault)
		return true, nil
	}
	rel.bindNumbers(t.schema, d, t.deferred)
	return false, nil
}

// replaysMore reports whether more of a transaction may be in what is replayed next.
func (t *table) replaysMore(commit catalog.LSN) bool {
	if t.park == nil || t.park.replay == nil {
		return false
	}
	r := t.park.replay
	return r.torn == commit || r.at != nil && r.at.tx.commit == commit
}

// goLive reads the table as any other from here on.
func (s *Source) goLive(t *table) {
	p := t.park
	if p.last.after(t.last) {
		t.last = p.last
	}
	t.park = nil
	for _, r := range s.relations {
		if r.table == t {
			r.bound = false
		}
	}
	if t.shape.told != nil {
		s.toldYet = true // its transaction goes on
	}
	s.replayed = append(s.replayed, pipeline.Replayed{Table: t.name, Seq: p.seq, Live: true})
	s.count()
}
