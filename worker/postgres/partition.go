package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// PartitionKeeper is told of what the log does not tell: rows that come and go with a
// whole partition.
type PartitionKeeper interface {
	// Attached is told when the rows of partitions that came with some begin to be read.
	Attached(ctx context.Context, table string, partitions []string)
	// Gone brings the lake's table in step with the source after partitions were
	// detached, dropped, truncated or rewritten. It blocks until both were proved equal;
	// a retryable error is tried again, any other stops the table.
	Gone(ctx context.Context, table string, partitions []string) error
}

// leaf is a partition that holds rows itself.
type leaf struct {
	catalog.Relation

	foreign, permanent, selectable bool
	identity                       string
	carries                        []string // the columns of its replica identity; nil: all
}

const leavesSQL = `SELECT r.oid, c.oid, s.nspname::text || '.' || c.relname::text, c.relfilenode, c.relkind = 'f', c.relpersistence = 'p', has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(s.oid, 'USAGE'),
 c.relreplident::text, coalesce((SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])
  WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END), '{}')
FROM unnest($1::oid[]) r(oid) CROSS JOIN LATERAL pg_partition_tree(r.oid::regclass) p JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace s ON s.oid = c.relnamespace
WHERE p.isleaf AND c.relkind <> 'p' ORDER BY r.oid, c.oid`

// gatherLeaves returns the leaves of partitioned tables, by the oid of the root.
func gatherLeaves(ctx context.Context, q querier, roots []uint32) (map[uint32][]leaf, error) {
	out := map[uint32][]leaf{}
	if len(roots) == 0 {
		return out, nil
	}
	rows, err := q.Query(ctx, leavesSQL, roots)
	if err != nil {
		return nil, err
	}
	var root uint32
	var l leaf
	_, err = pgx.ForEachRow(rows, []any{&root, &l.OID, &l.Name, &l.File, &l.foreign, &l.permanent, &l.selectable, &l.identity, &l.carries}, func() error {
		out[root] = append(out[root], l)
		l.carries = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the partitions: %w", err)
	}
	return out, nil
}

// partChange is how the leaves of a table differ from those that were known.
type partChange struct {
	added     []leaf
	gone      []catalog.Relation // no leaves any more
	rewritten []catalog.Relation // as they are now: truncated, or rewritten by VACUUM FULL and its like
}

// comparePartitions compares the leaves of now with those whose rows the lake has.
func comparePartitions(known []catalog.Relation, now []leaf) partChange {
	var c partChange
	before := make(map[uint32]catalog.Relation, len(known))
	for _, r := range known {
		before[r.OID] = r
	}
	for _, l := range now {
		switch r, ok := before[l.OID]; {
		case !ok:
			c.added = append(c.added, l)
		case r.File != l.File:
			c.rewritten = append(c.rewritten, l.Relation)
		}
		delete(before, l.OID)
	}
	for _, r := range known {
		if _, left := before[r.OID]; left {
			c.gone = append(c.gone, r)
		}
	}
	return c
}

// parted is a partitioned table whose leaves are watched.
type parted struct {
	table *catalog.Table
	root  catalog.Relation
	key   []string           // columns
	known []catalog.Relation // leaves whose rows the lake has, as noted
	busy  bool               // something of it is being healed
}

// rememberRelations compares each table's relation with the one that its rows in the
// lake came from, and notes it for tables that are read for the first time.
func (b *beginning) rememberRelations(ctx context.Context) error {
	if b.cfg.TableNotes == nil {
		return nil
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	have := map[string]tableFacts{}
	for i, t := range b.going() {
		have[t.Name.String()] = b.facts.tables[i]
	}
	for _, r := range b.resumes {
		if f, ok := have[r.Table.Name.String()]; ok && f.oid != 0 {
			if err := b.rememberRelation(ctx, r, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *beginning) rememberRelation(ctx context.Context, r pipeline.Resume, f tableFacts) error {
	name := r.Table.Name.String()
	root := catalog.Relation{OID: f.oid, Name: name}
	known, err := b.cfg.TableNotes.ReadRelations(ctx, name)
	if err != nil {
		return fmt.Errorf("read the noted relations of %s: %w", r.Table.ID(), err)
	}
	if len(known) > 0 && known[0].OID != f.oid && wasRead(r) {
		gap := remade()
		gap.At = r.Table.ID()
		return b.gone(ctx, r, gap)
	}
	if len(known) == 0 || !wasRead(r) {
		known = []catalog.Relation{root}
		for _, l := range f.leaves {
			known = append(known, l.Relation)
		}
		if err := b.cfg.TableNotes.WriteRelations(ctx, name, known); err != nil {
			return fmt.Errorf("note the relations of %s: %w", r.Table.ID(), err)
		}
	}
	if f.kind == "p" {
		b.parts = append(b.parts, &parted{table: r.Table, root: root, key: r.Table.PrimaryKey, known: slices.Clone(known[1:])})
	}
	return nil
}
