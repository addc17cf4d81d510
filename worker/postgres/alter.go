package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// shape is what is known of a table's declaration, where the source parks.
type shape struct {
	// governed is what was decided last: alterations are told from it. current is how
	// the table is at the place in the log that was come to, nil when that is not known.
	governed, current *definition
	// decided is up to where the log's alterations were decided: they are in governed,
	// or the lake does without.
	decided place
	// reported is where the newest fault of this kind says that the table was altered.
	reported place
	// told is what the DDL log says since the table's last change.
	told *told
	// heard is the place of the newest entry that was taken.
	heard ddlPlace
	// altered says that the DDL log told of the table since its relation was described.
	altered bool
	// listed are the numbers of the columns that the publication names; nil when it
	// names none. generated says that it sends generated columns.
	listed    []int
	generated bool
}

// ddlPlace is the place of an entry of the DDL log: its own LSN, in its transaction.
type ddlPlace struct{ commit, at catalog.LSN }

func (p ddlPlace) after(o ddlPlace) bool {
	return p.commit > o.commit || p.commit == o.commit && p.at > o.at
}

// told are entries of the DDL log about one table, with no change of it in between: the
// alterations of one transaction count as one.
type told struct {
	definition *definition // the newest; nil when there is none, or the table is gone
	gone       bool
	place      place // of the table's next change, had it come then
	tx         transaction
	plain      bool // every command so far kept the values that it kept
	rewritten  bool
	first      catalog.LSN // of all entries
	entries    []ddlEntry  // as they came, without those that later ones make pointless
}

type ddlEntry struct {
	at    catalog.LSN
	next  uint64 // ordinal
	doc   []byte
	kind  string
	plain bool
}

// logical takes a logical message.
func (s *Source) logical(ctx context.Context, at catalog.LSN, body []byte) error {
	if !s.cfg.Park {
		return nil
	}
	m, err := parseLogical(body)
	if err != nil {
		return err
	}
	if m.prefix != ddlLogPrefix || len(m.content) == 0 || !m.transactional || !s.tx.open {
		return nil
	}
	e, err := parseDDL(m.content)
	if err != nil {
		s.log.WarnContext(ctx, "an entry of the DDL log is passed by: it cannot be read", "source", s.cfg.Source.Name, "at", at.String(), "error", err)
		return nil
	}
	if e.kind == ddlFailed {
		s.log.WarnContext(ctx, "the source could not describe what a command altered; it is seen with the next row", "source", s.cfg.Source.Name, "command", e.command, "at", at.String())
		return nil
	}
	s.watch.altered(e.oid)
	t := s.byOID[e.oid]
	if t == nil || t.stopped || s.tx.commit < t.floor {
		return nil
	}
	if p := (ddlPlace{s.tx.commit, at}); p.after(t.shape.heard) {
		t.shape.heard = p
	} else { // sent again on a new connection
		t.shape.altered = true
		return nil
	}
	entry := ddlEntry{at: at, next: 2 * s.tx.next, doc: m.content, kind: e.kind, plain: e.plain}
	if t.park != nil {
		s.keepEntry(t, e, entry)
		return nil
	}
	t.hear(e, entry, s.tx)
	s.tx.told = true
	return nil
}

// hear notes an entry until the table's next change, or the end of the transaction.
func (t *table) hear(e ddlEvent, entry ddlEntry, tx transaction) {
	n := t.shape.told
	if n == nil {
		n = &told{plain: true, tx: tx, first: entry.at}
		t.shape.told = n
	}
	entry.doc = bytes.Clone(entry.doc)
	n.forget(entry.kind)
	n.entries = append(n.entries, entry)
	n.place = place{tx.commit, entry.next}
	switch e.kind {
	case ddlTable:
		n.definition, n.gone = t.sent(e.definition), false
		n.plain = n.plain && e.plain
		t.shape.altered = true
	case ddlRewrite:
		n.rewritten = true
	case ddlDrop:
		n.definition, n.gone = nil, true
	}
}

// forget drops entries that one of a kind makes pointless, however many a transaction
// has: of each kind the newest tells all, and of commands with a USING one is enough.
func (n *told) forget(kind string) {
	unplain := false
	n.entries = slices.DeleteFunc(n.entries, func(e ddlEntry) bool {
		if e.kind != kind {
			return false
		}
		if kind == ddlTable && !e.plain && !unplain {
			unplain = true
			return false
		}
		return true
	})
}

// sent marks the columns that the publication leaves out.
func (t *table) sent(d *definition) *definition {
	d = d.clone()
	for i := range d.Columns {
		c := &d.Columns[i]
		c.Unsent = c.Generated != "" && (!t.shape.generated || c.Generated == "virtual") || t.shape.listed != nil && !slices.Contains(t.shape.listed, c.Number)
	}
	return d
}

// judgeTold judges what the DDL log told of the table. It returns a fault when the lake
// would have to know, and an error when the source could not be asked.
func (s *Source) judgeTold(ctx context.Context, t *table) (*pipeline.Fault, error) {
	n := t.shape.told
	if n == nil {
		return nil, nil //nolint:nilnil // no fault
	}
	if n.definition == nil && !n.gone { // only rewritten: what of, is told by nothing
		t.shape.told = nil
		return nil, nil //nolint:nilnil // no fault
	}
	fault, err := s.judge(ctx, t, n.place, n.definition, catalog.ByDDLLog, n)
	if err == nil && fault == nil {
		t.shape.told = nil
	}
	return fault, err
}

// judge compares a table with how it is declared from a place on; after is nil when it is
// gone. It returns a fault when that was not decided yet.
func (s *Source) judge(ctx context.Context, t *table, at place, after *definition, by catalog.Means, n *told) (*pipeline.Fault, error) {
	sh := &t.shape
	if by == catalog.ByRows && !at.after(sh.decided) {
		return nil, nil //nolint:nilnil // the log has not come to where they were read
	}
	changes := t.alterations(sh.governed, after, n)
	if by != catalog.ByRows && (!at.after(sh.decided) || !at.after(t.last)) || len(changes) == 0 ||
		after != nil && sh.current != nil && len(t.alterations(sh.current, after, n)) == 0 {
		sh.current = after
		return nil, nil //nolint:nilnil // no fault
	}
	if after != nil && by != catalog.ByRows {
		back, err := s.takenBack(ctx, t, after, changes)
		if err != nil {
			return nil, err
		}
		if back {
			sh.current = after
			return nil, nil //nolint:nilnil // no fault
		}
	}
	if by != catalog.ByRows {
		sh.current = after
	}
	return t.alteration(at, after, changes, by), nil
}

// alteration is the fault of a table that was altered at a place.
func (t *table) alteration(at place, after *definition, changes []catalog.SchemaChange, by catalog.Means) *pipeline.Fault {
	sh := &t.shape
	sh.reported = at
	a := &catalog.Alteration{
		At:     catalog.Place{Position: catalog.Position{Generation: t.generation, Commit: at.commit, Ordinal: at.ordinal}},
		Before: sh.governed.Definition, Changes: changes, FoundBy: by,
	}
	if after != nil {
		a.After = after.Definition
		a.Columns = after.schema(t.cfg)
	}
	e := catalog.Errorf(catalog.Denied, catalog.CodeSchemaChanged, "", "the table was altered: %s", a)
	e.At = t.at(at.commit)
	e.Hint = "lakeweir schema show says what is proposed; approve or reject it there, or undo it at the source"
	return &pipeline.Fault{State: catalog.Quarantined, Err: e, Change: a}
}

// raiseLate stops the tables that had another shape when the source was started than was
// decided, once the log was read up to there and has told of none of it.
func (s *Source) raiseLate() {
	s.anyLate = false
	for _, t := range s.order {
		late := t.late
		if late == nil || t.stopped {
			continue
		}
		if s.through < s.startedAt || s.tx.open || t.park != nil {
			s.anyLate = true
			continue
		}
		t.late = nil
		if changes := t.alterations(t.shape.governed, late.now, nil); len(changes) > 0 && t.shape.current != late.now {
			if late.now != nil {
				t.shape.current = late.now
			}
			s.raise(t, *t.alteration(place{commit: s.through}, late.now, changes, catalog.ByCatalog))
		}
	}
}

// lateShape is how a table was declared when the source was started; now is nil when it
// was gone.
type lateShape struct{ now *definition }

// alterations are the differences that concern the lake; what partitions come and go is
// seen by looking at them.
func (t *table) alterations(before, after *definition, n *told) []catalog.SchemaChange {
	var to *catalog.Definition
	if after != nil {
		to = after.Definition
	}
	changes := schemadiff.Diff(t.cfg, before.Definition, to, schemadiff.Commands{Whole: n != nil && n.plain})
	for i := range changes {
		c := &changes[i]
		if n != nil && n.rewritten && c.Kind == catalog.ColumnAdded && c.After.Default != nil && c.After.Default.Missing == nil {
			c.Rewrite = catalog.RewriteValues // rows that are there got the value with the rewrite
		}
	}
	return changes
}

// takenBack reports whether an alteration was undone since: the source's catalog has the
// governed columns again, by number and type, so that each of them was there all the
// time. A type that was changed and changed back is none of this: the table was
// rewritten, and the log does not tell what became of the values.
func (s *Source) takenBack(ctx context.Context, t *table, after *definition, changes []catalog.SchemaChange) (bool, error) {
	names := true
	for i := range changes {
		switch changes[i].Kind { //nolint:exhaustive // the others leave a trace in the rows or the lake
		case catalog.ColumnAdded, catalog.ColumnRenamed, catalog.TableRenamed:
		case catalog.DefaultChanged, catalog.NullabilityRelaxed, catalog.NullabilityTightened, catalog.IdentityChanged:
			names = false
		default:
			return false, nil
		}
	}
	now, err := s.definitionNow(ctx, t)
	if err != nil || now == nil {
		return false, err
	}
	if now.Name != t.shape.governed.Name || !sameColumns(t.shape.governed, now) || !names && len(t.alterations(t.shape.governed, now, nil)) > 0 {
		return false, nil
	}
	for i := range after.Columns { // what is more than the governed columns came and went
		if n := after.Columns[i].Number; n != 0 && !after.Columns[i].Unsent && t.shape.governed.number(n) == nil && now.number(n) != nil {
			return false, nil
		}
	}
	return true, nil
}

// sameColumns reports whether both send the same columns, by number, name and type.
func sameColumns(a, b *definition) bool {
	sent := func(d *definition) []wireColumn {
		out := make([]wireColumn, 0, len(d.Columns))
		for i, c := range d.Columns {
			if !c.Unsent {
				out = append(out, wireColumn{name: c.Name, oid: d.wire[i].oid, modifier: int32(c.Number)})
			}
		}
		return out
	}
	return slices.Equal(sent(a), sent(b))
}

// number returns the column with an attribute number, or nil.
func (d *definition) number(n int) *catalog.ColumnDefinition {
	if i := slices.IndexFunc(d.Columns, func(c catalog.ColumnDefinition) bool { return c.Number == n }); i >= 0 {
		return &d.Columns[i]
	}
	return nil
}

// definitionNow asks the source how the table is declared now; nil when it is gone. It
// tries for a while, since the stream cannot go on without.
func (s *Source) definitionNow(ctx context.Context, t *table) (*definition, error) {
	var found map[uint32]*definition
	err := s.askCatalog(ctx, func(ctx context.Context) (err error) {
		found, err = readDefinitions(ctx, s.lookups, []uint32{t.oid})
		return err
	})
	if err != nil {
		return nil, err
	}
	if d := found[t.oid]; d != nil {
		return t.sent(d), nil
	}
	return nil, nil //nolint:nilnil // it is gone
}

// described finds how the table is declared where the stream describes the relation.
func (s *Source) described(ctx context.Context, t *table, r *relation, base *definition) (*definition, error) {
	if r.definition != nil {
		return r.definition, nil
	}
	altered := t.shape.altered
	if base != nil && base.Name == r.name && base.describes(r.relationMessage.columns) && base.Identity.Mode == identityMode(string(r.identity)) && (!r.again || altered) {
		t.shape.altered = false
		r.definition = base
		return base, nil
	}
	d, err := s.madeUp(ctx, t, r, base)
	if err != nil {
		return nil, err
	}
	t.shape.altered = false
	r.definition = d
	return d, nil
}

// madeUp makes a definition of a relation message and of what the catalog says now, which
// may be later.
func (s *Source) madeUp(ctx context.Context, t *table, r *relation, base *definition) (*definition, error) {
	now, err := s.definitionNow(ctx, t)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = t.shape.governed
	}
	if now == nil {
		now = base
	}
	columns := r.relationMessage.columns
	var types []columnType
	if err := s.askCatalog(ctx, func(ctx context.Context) (err error) {
		types, err = readTypes(ctx, s.lookups, columns)
		return err
	}); err != nil {
		return nil, err
	}
	d := &definition{Definition: &catalog.Definition{Name: r.name, OID: r.id, Key: now.Key, Identity: catalog.Identity{Mode: identityMode(string(r.identity))}}, wire: columns}
	for i, c := range columns {
		d.Columns = append(d.Columns, columnThen(c, types[i], base, now))
		if c.identity && r.identity != 'f' {
			d.Identity.Columns = append(d.Identity.Columns, c.name)
		}
	}
	if r.identity == 'f' {
		d.Identity.Columns = now.Identity.Columns
	}
	if s.ddlWhole { // the log tells of what a relation message does not carry, at its own place
		d.Key = base.Key
		if d.Identity.Mode == base.Identity.Mode && r.identity != 'i' {
			d.Identity.Columns = base.Identity.Columns
		}
	}
	t.countBack(d, now)
	for i, c := range base.Columns {
		if c.Unsent && now.number(c.Number) != nil && d.number(c.Number) == nil {
			d.Columns, d.wire = append(d.Columns, c), append(slices.Clone(d.wire), base.wire[i])
		}
	}
	for i, c := range now.Columns {
		if c.Generated != "" && d.number(c.Number) == nil && base.number(c.Number) == nil {
			c.Unsent = true
			d.Columns, d.wire = append(d.Columns, c), append(slices.Clone(d.wire), now.wire[i])
		}
	}
	if s.ddlWhole {
		s.leaveToLog(d, base)
	}
	if t.shape.listed != nil { // the publication's list is what the relation message has
		t.shape.listed = nil
		for i := range d.Columns {
			if !d.Columns[i].Unsent {
				t.shape.listed = append(t.shape.listed, d.Columns[i].Number)
			}
		}
	}
	return d, nil
}

// columnThen is a column of a relation message. Its number is the one that its name has
// now or, if nothing has that name any more, the one that it had.
func columnThen(c wireColumn, typ columnType, base, now *definition) catalog.ColumnDefinition {
	out := catalog.ColumnDefinition{Name: c.name, Type: typ.source, Nullable: true}
	if is := now.Column(c.name); is != nil {
		number := is.Number
		out = *is
		out.Unsent = false
		if j := slices.IndexFunc(now.wire, func(w wireColumn) bool { return w.name == c.name }); j < 0 || !now.wire[j].sameType(c) {
			out.Type, out.Labels = typ.source, nil
			out.Type.Dims = max(out.Type.Dims, is.Type.Dims)
			if was := base.number(number); was != nil && was.Type.OID == c.oid {
				out.Labels = was.Labels
			}
		}
		return out
	}
	if was := base.Column(c.name); was != nil && !was.Unsent && was.Type.OID == c.oid {
		out = *was
		out.Type = typ.source
		out.Type.Dims = max(out.Type.Dims, was.Type.Dims)
	}
	return out
}

// countBack gives the columns of a shape that was taken back since their numbers; those
// that came and went have none.
func (t *table) countBack(d, now *definition) {
	attributes := make([]attribute, len(now.Columns))
	for i, c := range now.Columns {
		attributes[i] = attribute{wireColumn: now.wire[i], number: c.Number, notNull: !c.Nullable}
	}
	lake, then := t.shape.governed.schema(t.cfg), d.schema(t.cfg)
	if !sameColumns(t.shape.governed, now) || !undone(lake, then, attributes) {
		return
	}
	for i := range d.Columns {
		d.Columns[i].Number = 0
		if i < len(lake.Columns) {
			d.Columns[i].Number = lake.Columns[i].Number
		}
	}
}

// leaveToLog takes from base what the DDL log tells at its own place, and a relation
// message does not carry.
func (s *Source) leaveToLog(d, base *definition) {
	for i := range d.Columns {
		c := &d.Columns[i]
		if was := base.number(c.Number); was != nil && c.Number != 0 {
			c.Nullable, c.Default, c.Generated = was.Nullable, was.Default, was.Generated
			if was.Type.OID == c.Type.OID {
				c.Labels = was.Labels
			}
		}
	}
}

// bindNumbers maps the relation's columns to the schema's by attribute number, and by
// name where there is none.
func (r *relation) bindNumbers(schema *catalog.Schema, d *definition, deferred bool) {
	r.bound = true
	r.columns = make([]int, 0, len(r.relationMessage.columns))
	carried, n := 0, 0
	given := make([]bool, len(schema.Columns))
	for i := range d.Columns {
		if d.Columns[i].Unsent || n == len(r.relationMessage.columns) {
			continue
		}
		c := r.relationMessage.columns[n]
		n++
		col := governedColumn(schema, d.Columns[i].Number, c.name)
		r.columns = append(r.columns, col)
		if col < 0 {
			continue
		}
		given[col] = true
		if c.identity && schema.IsKey(col) {
			carried++
		}
	}
	r.lacking = nil
	for col, has := range given {
		if !has {
			r.lacking = append(r.lacking, col)
		}
	}
	r.covers = r.identity == 'f' || r.identity != 'n' && carried == len(schema.Key) && !deferred
}

// governedColumn finds the lake's column of one of the source's, or returns -1.
func governedColumn(schema *catalog.Schema, number int, name string) int {
	if number != 0 {
		if i := slices.IndexFunc(schema.Columns, func(c catalog.Column) bool { return !c.Dropped && c.Number == number }); i >= 0 {
			return i
		}
	}
	return slices.IndexFunc(schema.Columns, func(c catalog.Column) bool {
		return !c.Dropped && c.Name == name && (c.Number == 0 || number == 0)
	})
}

// gapOf is the gap of a table that the relation shows to be another one, noted.
func (s *Source) gapOf(ctx context.Context, t *table, at catalog.LSN) (*pipeline.Fault, error) {
	e := remade()
	e.At = t.at(at)
	if err := s.noteGap(ctx, t.name, t.generation, e); err != nil {
		return nil, err
	}
	return &pipeline.Fault{State: catalog.Gap, Err: e}, nil
}

// shapeError is what a reader of rows found the table to be instead.
type shapeError struct {
	err error
	now *definition // nil: it is gone
}

func (e *shapeError) Error() string { return e.err.Error() }
func (e *shapeError) Unwrap() error { return e.err }

func asShapeError(err error) *shapeError {
	if e, ok := errors.AsType[*shapeError](err); ok {
		return e
	}
	return nil
}
