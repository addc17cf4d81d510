package postgres

import (
	"context"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// check compares a table with how the stream describes it from here on. It
// returns a fault when the lake would have to know of the difference, and an error
// when the source could not be asked.
func (s *Source) check(ctx context.Context, t *table, r *relation, at catalog.LSN) (*pipeline.Fault, error) {
	if r.name != t.cfg.Name {
		return &pipeline.Fault{State: catalog.Quarantined, Err: schemaChanged(t.at(at), "it is now called "+r.name.String())}, nil
	}
	if r.id != t.oid {
		e := remade()
		e.At = t.at(at)
		if err := s.noteGap(ctx, t.name, t.generation, e); err != nil {
			return nil, err
		}
		return &pipeline.Fault{State: catalog.Gap, Err: e}, nil
	}
	if !r.again && sameWire(r.relationMessage.columns, t.wire) {
		return nil, nil
	}
	schema, err := s.describe(ctx, t, r.relationMessage.columns)
	if err != nil && (ctx.Err() != nil || isConnectionError(err)) {
		return nil, err
	}
	if err != nil { // the key's columns are gone, or the catalog may not be read
		return &pipeline.Fault{State: catalog.Quarantined, Err: asError(s.cfg.Source.Name, err)}, nil
	}
	if difference := shapeDifference(t.schema, schema); difference != "" {
		return &pipeline.Fault{State: catalog.Quarantined, Err: schemaChanged(t.at(at), difference)}, nil
	}
	t.wire = r.relationMessage.columns // a varchar grew: the lake has text as before
	return nil, nil
}

func remade() *catalog.Error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeGap, anew,
		"the table was dropped and made again: its rows went without a trace in the log")
}

// describe builds a schema from the stream's columns, asking the catalog for
// their types. It tries for a while, since the stream cannot go on without.
func (s *Source) describe(ctx context.Context, t *table, columns []wireColumn) (*catalog.Schema, error) {
	var err error
	for wait := 100 * time.Millisecond; wait < 10*time.Second; wait *= 2 {
		var schema *catalog.Schema
		if schema, err = s.describeOnce(ctx, t, columns); err == nil || sqlState(err) != "" || !isConnectionError(err) {
			return schema, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
	return nil, err
}

func (s *Source) describeOnce(ctx context.Context, t *table, columns []wireColumn) (*catalog.Schema, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.ConnectTimeout)
	defer cancel()
	attributes, err := readAttributes(ctx, s.lookups, t.oid)
	if err != nil {
		return nil, err
	}
	types, err := readTypes(ctx, s.lookups, columns)
	if err != nil {
		return nil, err
	}
	return buildSchema(t.cfg, types, attributes)
}
