package postgres

import (
	"context"

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
			if fault := b.open(r, f, typesOf[name]); fault != nil {
				b.fail(r.Table, catalog.Quarantined, fault)
			}
		}
	}
	return nil
}

func (b *beginning) open(r pipeline.Resume, have tableFacts, types []columnType) *catalog.Error {
	if have.oid == 0 {
		return catalog.Errorf(catalog.NotFound, catalog.CodeSourceTable, "make the table or correct its name", "there is no table %s", r.Table.Name)
	}
	schema, err := buildSchema(r.Table, types, have.attributes)
	if err != nil {
		return asError(b.cfg.Source.Name, err)
	}
	if r.Schema != nil {
		if difference := shapeDifference(unmasked(r.Schema, schema), schema); difference != "" {
			return schemaChanged(r.Table.ID(), difference)
		}
		schema.Version = r.Schema.Version
	}
	t := &table{cfg: r.Table, name: r.Table.Name.String(), oid: have.oid, schema: schema, deferred: have.deferred(r.Table.PrimaryKey), generation: 1, lasting: true}
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
