package postgres

import (
	"context"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// openTables builds what is read of each table.
func (b *beginning) openTables(ctx context.Context) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	var all []wireColumn
	for i := range b.facts.tables {
		columns, _, _ := b.facts.tables[i].replicated(b.facts.version)
		for _, a := range columns {
			all = append(all, a.wireColumn)
		}
	}
	types, err := readTypes(ctx, b.pool, all)
	if err != nil {
		return err
	}
	definitions, err := b.definitions(ctx)
	if err != nil {
		return err
	}
	have := map[string]tableFacts{}
	typesOf := map[string][]columnType{}
	for i, t := range b.going() {
		columns, _, _ := b.facts.tables[i].replicated(b.facts.version)
		have[t.Name.String()], typesOf[t.Name.String()] = b.facts.tables[i], types[:len(columns)]
		types = types[len(columns):]
	}
	for _, r := range b.resumes {
		name := r.Table.Name.String()
		if f, ok := have[name]; ok {
			if fault := b.open(r, f, typesOf[name], definitions[b.oidOf(r, f)]); fault != nil {
				b.fail(r.Table, catalog.Quarantined, fault)
			}
		}
	}
	return nil
}

// definitions describes the tables that are going, where the source parks.
func (b *beginning) definitions(ctx context.Context) (map[uint32]*definition, error) {
	if !b.cfg.Park {
		return nil, nil //nolint:nilnil // nothing is asked
	}
	b.ddlWhole = b.facts.ddlLog.whole()
	var oids []uint32
	for i, t := range b.going() {
		for _, r := range b.resumes {
			if r.Table == t {
				oids = append(oids, b.oidOf(r, b.facts.tables[i]))
			}
		}
	}
	return readDefinitions(ctx, b.pool, oids)
}

// oidOf is the table's id, also when it was renamed or dropped since it was read.
func (b *beginning) oidOf(r pipeline.Resume, have tableFacts) uint32 {
	if have.oid == 0 && b.known(r) {
		return r.Schema.Definition.OID
	}
	return have.oid
}

// known reports whether the table was read before and can be known again in the log,
// whatever became of it since: then the log tells what.
func (b *beginning) known(r pipeline.Resume) bool {
	return b.cfg.Park && wasRead(r) && r.Schema != nil && r.Schema.Definition != nil && r.Schema.Definition.OID != 0
}

func (b *beginning) open(r pipeline.Resume, have tableFacts, types []columnType, now *definition) *catalog.Error {
	oid := b.oidOf(r, have)
	if oid == 0 {
		return catalog.Errorf(catalog.NotFound, catalog.CodeSourceTable, "make the table or correct its name", "there is no table %s", r.Table.Name)
	}
	schema, err := buildSchema(r.Table, types, have.attributes)
	switch {
	case err == nil:
	case !b.known(r):
		return asError(b.cfg.Source.Name, err)
	default: // a column of the key is gone, of which the log tells
		schema = &catalog.Schema{Key: r.Schema.Key}
	}
	if r.Schema != nil && !b.cfg.Park {
		if difference := shapeDifference(unmasked(r.Schema, schema), schema); difference != "" {
			return schemaChanged(r.Table.ID(), difference)
		}
		schema.Version = r.Schema.Version
	}
	t := &table{cfg: r.Table, name: r.Table.Name.String(), oid: oid, schema: schema, deferred: have.deferred(r.Table.PrimaryKey), generation: 1, lasting: true}
	for _, c := range types {
		t.fields = append(t.fields, c.field)
	}
	columns, _, _ := have.replicated(b.facts.version)
	for _, a := range columns {
		t.wire = append(t.wire, a.wireColumn)
	}
	if !r.Cursor.IsZero() {
		t.last = place{r.Cursor.Position.Commit, r.Cursor.Position.Ordinal}
		t.read = t.last
		t.generation = max(r.Cursor.Position.Generation, 1)
	}
	if b.cfg.Park {
		t.shape.listed, t.shape.generated = have.listed, have.sendsGenerated(b.facts.version)
		if now != nil {
			now = t.sent(now)
		}
		t.govern(r, now)
		if t.park != nil && t.shape.current == now && !b.ddlWhole { // else the stored runs know better
			t.park.current = now
		}
		if t.shape.current != now && t.park == nil {
			t.late, b.anyLate = &lateShape{now}, true
			if !b.ddlWhole {
				t.shape.current = nil // asked for with the next row
			}
		}
	}
	if b.facts.settings["synchronous_standby_names"] != "" {
		t.rereads.waitFor = b.now.Xmax // as in resumeSnapshot
	}
	if err := b.resumeSnapshot(t, r, have); err != nil {
		return asError(b.cfg.Source.Name, err)
	}
	b.order = append(b.order, t)
	b.byName[r.Table.Name] = t
	b.byOID[t.oid] = t
	return nil
}

// sendsGenerated reports whether the stream carries generated columns of the table.
func (t tableFacts) sendsGenerated(version int) bool {
	columns, _, _ := t.replicated(version)
	return slices.ContainsFunc(columns, func(a attribute) bool { return a.generated })
}

// govern starts a table with the schema that was decided last. Where the source has
// another one by now, the log comes to it.
func (t *table) govern(r pipeline.Resume, now *definition) {
	if r.Parked != nil {
		p := r.Parked.Position
		t.park = &parking{last: place{p.Commit, p.Ordinal | 1}, seq: r.Parked.Seq, through: place{p.Commit, p.Ordinal}}
	}
	if r.Schema == nil {
		t.shape.governed, t.shape.current = now, now
		t.schema.Definition = now.Definition
		return
	}
	schema := unmasked(r.Schema, t.schema)
	if schema.Definition == nil && now != nil { // it was recorded before definitions were
		schema.Definition = now.Definition
		if !agrees(schema, now) {
			schema.Definition = definitionOf(t, schema, now).Definition
		}
	}
	fields := t.fields
	t.adopt(schema)
	t.shape.current = t.shape.governed
	if now == nil {
		return
	}
	if sameColumns(t.shape.governed, now) {
		for _, c := range t.liveWire() {
			i := slices.IndexFunc(t.wire, func(w wireColumn) bool { return w.name == c.name })
			if i < 0 { // asked for when rows are read
				t.fields = nil
				break
			}
			t.fields = append(t.fields, fields[i])
		}
	}
	if len(t.alterations(t.shape.governed, now, nil)) == 0 {
		t.shape.current = now
	}
}

// unmasked gives a recorded schema the types that its source types have, since
// masking changes them; and the key of now, when none was recorded.
func unmasked(recorded, now *catalog.Schema) *catalog.Schema {
	out := *recorded
	out.Columns = append([]catalog.Column(nil), recorded.Columns...)
	for i, c := range out.Columns {
		if c.Source.Base != "" {
			out.Columns[i].Type = typemap.Postgres(c.Source)
		}
	}
	if len(out.Key) == 0 {
		out.Key = now.Key
	}
	return &out
}

// resumeSnapshot goes on with the reading of a table's rows, unless it is done.
func (b *beginning) resumeSnapshot(t *table, r pipeline.Resume, have tableFacts) error {
	most := max(b.cfg.Source.Snapshot.ChunkRows, 1)
	snap := &snapshot{limit: most, most: most}
	if r.Snapshot != nil {
		t.generation = max(r.Snapshot.Generation, 1)
		if r.Snapshot.Done {
			return nil
		}
		snap.progress = *r.Snapshot
		snap.progress.Keys = nil
		var err error
		if snap.bound, err = b.unsealKey(t, r.Snapshot.Bound); err != nil {
			return err
		}
		for _, k := range r.Snapshot.Keys {
			texts, err := b.unsealKey(t, k)
			if err != nil {
				return err
			}
			snap.keys = append(snap.keys, texts)
		}
	}
	snap.progress.Generation = t.generation
	snap.progress.Estimate = have.estimate
	t.snap = snap
	started := snap.progress.Chunks > 0
	if !t.cfg.HasKey() && started {
		t.restartKeyless()
		started = false
	}
	switch {
	case !started && !b.newSlot:
		// It may have been published a moment ago: what transactions older than that
		// wrote before is not in the stream.
		snap.waitFor = b.now.Xmax
	case started && b.facts.settings["synchronous_standby_names"] != "":
		// Transactions read before the restart may still be waiting for a standby,
		// unseen by a reader; which they are is no longer known.
		snap.waitFor = b.now.Xmax
	}
	if r.Cursor.IsZero() {
		t.floor = b.end
	}
	return nil
}
