package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// facts are what a source says of itself, as far as reading it depends on it.
type facts struct {
	version     int // server_version_num
	recovery    bool
	database    string
	role        string
	replicates  bool // the role may
	createsIn   bool // the role may create in the database: publication, heartbeat
	settings    map[string]string
	slots       int
	senders     int
	slot        *slotFacts
	publication *publicationFacts
	ddlLog      ddlLogFacts
	control     []controlFacts // that a connector writes
	unlabelled  []enumFacts    // that a connector stops at
	tables      []tableFacts   // in the order asked for
}

type slotFacts struct {
	plugin, database, walStatus, invalidation string
	active                                    bool
	pid                                       uint32
	confirmed                                 catalog.LSN
}

type publicationFacts struct {
	owned, allTables, viaRoot         bool
	inserts, updates, deletes, truncs bool
}

type tableFacts struct {
	oid        uint32 // 0: there is none of that name
	kind       string // relkind
	permanent  bool
	identity   string // relreplident
	selectable bool
	owned      bool
	secured    bool // row security applies to the role
	estimate   int64
	attributes []attribute
	types      []catalog.SourceType // of the attributes
	indexes    []indexFacts
	published  bool
	filter     string   // the publication's WHERE
	only       []string // the columns it publishes; nil: all that can be
	listed     []int    // the numbers of the columns in the publication's list for it; nil: it has none

	leaves   []leaf // of a partitioned table
	root     string // the partitioned table that it is a partition of; empty when of none
	parents  string // the tables that it inherits from, outside of partitioning; as a list
	children string // the tables that inherit from it
}

// indexFacts is a unique index that a key could rest on.
type indexFacts struct {
	columns           []string
	primary, identity bool
	immediate         bool // not deferrable: an index that is may be no replica identity
	// plain says that the index holds values equal where the columns' types do.
	plain bool
}

var settingNames = []string{
	"wal_level", "max_replication_slots", "max_wal_senders", "wal_sender_timeout", "max_slot_wal_keep_size",
	"idle_replication_slot_timeout", "logical_decoding_work_mem", "synchronous_standby_names",
}

const serverSQL = `SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_database()::text, current_user::text,
 coalesce((SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), false),
 has_database_privilege(current_database(), 'CREATE'),
 (SELECT count(*) FROM pg_replication_slots)::int, (SELECT count(*) FROM pg_stat_replication)::int`

func gather(ctx context.Context, q querier, source *catalog.Source, tables []*catalog.Table) (facts, error) {
	f := facts{settings: map[string]string{}}
	err := q.QueryRow(ctx, serverSQL).Scan(&f.version, &f.recovery, &f.database, &f.role, &f.replicates, &f.createsIn, &f.slots, &f.senders)
	if err != nil {
		return f, err
	}
	rows, err := q.Query(ctx, "SELECT name, setting FROM pg_settings WHERE name = ANY($1)", settingNames)
	if err != nil {
		return f, err
	}
	var name, setting string
	if _, err := pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
		f.settings[name] = setting
		return nil
	}); err != nil {
		return f, err
	}
	if f.slot, err = gatherSlot(ctx, q, source.Slot, f.version); err != nil {
		return f, err
	}
	if f.publication, err = gatherPublication(ctx, q, source.Publication); err != nil {
		return f, err
	}
	if f.ddlLog, err = gatherDDLLog(ctx, q); err != nil {
		return f, err
	}
	if f.control, err = gatherControl(ctx, q, source); err != nil {
		return f, err
	}
	if f.unlabelled, err = gatherUnlabelled(ctx, q, source); err != nil {
		return f, err
	}
	f.tables, err = gatherTables(ctx, q, source, tables, f.version)
	return f, err
}

func gatherSlot(ctx context.Context, q querier, name string, version int) (*slotFacts, error) {
	reason := "''"
	if version >= 170000 {
		reason = "coalesce(invalidation_reason, '')"
	}
	var s slotFacts
	var confirmed string
	err := q.QueryRow(ctx, "SELECT coalesce(plugin, '')::text, coalesce(database, '')::text, coalesce(wal_status, ''), "+reason+
		", active, coalesce(active_pid, 0), coalesce(confirmed_flush_lsn::text, '0/0') FROM pg_replication_slots WHERE slot_name = $1", name).
		Scan(&s.plugin, &s.database, &s.walStatus, &s.invalidation, &s.active, &s.pid, &confirmed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.confirmed, err = catalog.ParseLSN(confirmed)
	return &s, err
}

func gatherPublication(ctx context.Context, q querier, name string) (*publicationFacts, error) {
	var p publicationFacts
	err := q.QueryRow(ctx, `SELECT pg_has_role(pubowner, 'USAGE'), puballtables, pubviaroot, pubinsert, pubupdate, pubdelete, pubtruncate
FROM pg_publication WHERE pubname = $1`, name).Scan(&p.owned, &p.allTables, &p.viaRoot, &p.inserts, &p.updates, &p.deletes, &p.truncs)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

// isPublished reports whether the publication has the table.
func isPublished(ctx context.Context, q querier, publication string, t catalog.TableName) (in bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_publication_tables WHERE pubname = $1 AND schemaname = $2 AND tablename = $3)`,
		publication, t.Schema, t.Name).Scan(&in)
	return in, err
}

const tablesSQL = `SELECT u.n::int, c.oid, c.relkind::text, c.relpersistence = 'p', c.relreplident::text,
 has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(s.oid, 'USAGE'), pg_has_role(c.relowner, 'USAGE'), row_security_active(c.oid), greatest(c.reltuples, 0)::bigint
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(s, t, n)
JOIN pg_namespace s ON s.nspname = u.s JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = u.t`

// indexesSQL lists unique indexes. One with an operator class or a collation of its
// own may tell values apart that the column's type holds equal.
const indexesSQL = `SELECT i.indrelid, i.indisprimary, i.indisreplident, i.indimmediate,
 bool_and((o.opcdefault OR o.opcname LIKE '%\_pattern\_ops') AND coalesce(i.indcollation[n] = a.attcollation OR l.collisdeterministic, true)
  AND (b.typname <> 'citext' OR o.opcintype = b.oid)), array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_index i CROSS JOIN LATERAL generate_series(0, i.indnkeyatts - 1) n
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n] JOIN pg_opclass o ON o.oid = i.indclass[n]
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE i.indrelid = ANY($1::oid[]) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indrelid, i.indisprimary, i.indisreplident, i.indimmediate ORDER BY i.indisprimary DESC, i.indexrelid`

func gatherTables(ctx context.Context, q querier, source *catalog.Source, tables []*catalog.Table, version int) ([]tableFacts, error) {
	out := make([]tableFacts, len(tables))
	schemas, names := make([]string, len(tables)), make([]string, len(tables))
	for i, t := range tables {
		schemas[i], names[i] = t.Name.Schema, t.Name.Name
	}
	rows, err := q.Query(ctx, tablesSQL, schemas, names)
	if err != nil {
		return nil, err
	}
	var n int
	var t tableFacts
	byOID := map[uint32]*tableFacts{}
	var oids []uint32
	if _, err := pgx.ForEachRow(rows, []any{&n, &t.oid, &t.kind, &t.permanent, &t.identity, &t.selectable, &t.owned, &t.secured, &t.estimate}, func() error {
		out[n-1] = t
		byOID[t.oid] = &out[n-1]
		oids = append(oids, t.oid)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("look at the tables: %w", err)
	}
	if err := gatherAttributes(ctx, q, oids, byOID); err != nil {
		return nil, err
	}
	rows, err = q.Query(ctx, indexesSQL, oids)
	if err != nil {
		return nil, err
	}
	var oid uint32
	var index indexFacts
	if _, err := pgx.ForEachRow(rows, []any{&oid, &index.primary, &index.identity, &index.immediate, &index.plain, &index.columns}, func() error {
		byOID[oid].indexes = append(byOID[oid].indexes, index)
		index.columns = nil
		return nil
	}); err != nil {
		return nil, fmt.Errorf("look at the tables' indexes: %w", err)
	}
	if err := gatherFamilies(ctx, q, oids, byOID); err != nil {
		return nil, err
	}
	return out, gatherPublished(ctx, q, source.Publication, tables, out, version)
}

const familySQL = `SELECT c.oid, coalesce((SELECT a.relid::regclass::text FROM pg_partition_ancestors(c.oid::regclass) WITH ORDINALITY a(relid, n) WHERE c.relispartition ORDER BY n DESC LIMIT 1), ''),
 coalesce((SELECT string_agg(i.inhparent::regclass::text, ', ') FROM pg_inherits i WHERE i.inhrelid = c.oid AND NOT c.relispartition), ''),
 coalesce((SELECT string_agg(i.inhrelid::regclass::text, ', ') FROM pg_inherits i WHERE i.inhparent = c.oid AND c.relkind <> 'p'), '')
FROM pg_class c WHERE c.oid = ANY($1::oid[])`

// gatherFamilies says what is part of what: leaves of partitioned tables, roots of
// partitions, and who inherits from whom.
func gatherFamilies(ctx context.Context, q querier, oids []uint32, byOID map[uint32]*tableFacts) error {
	rows, err := q.Query(ctx, familySQL, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var root, parents, children string
	var roots []uint32
	if _, err := pgx.ForEachRow(rows, []any{&oid, &root, &parents, &children}, func() error {
		t := byOID[oid]
		t.root, t.parents, t.children = root, parents, children
		if t.kind == "p" {
			roots = append(roots, oid)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look at what the tables are part of: %w", err)
	}
	leaves, err := gatherLeaves(ctx, q, roots)
	for root, of := range leaves {
		byOID[root].leaves = of
	}
	return err
}

func gatherAttributes(ctx context.Context, q querier, oids []uint32, byOID map[uint32]*tableFacts) error {
	rows, err := q.Query(ctx, attributesSQL, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var a attribute
	var wire []wireColumn
	var tables []*tableFacts
	if _, err = pgx.ForEachRow(rows, append([]any{&oid}, a.targets()...), func() error {
		byOID[oid].attributes = append(byOID[oid].attributes, a)
		wire, tables = append(wire, a.wireColumn), append(tables, byOID[oid])
		return nil
	}); err != nil {
		return err
	}
	types, err := readTypes(ctx, q, wire)
	if err != nil {
		return err
	}
	for i, t := range types {
		tables[i].types = append(tables[i].types, t.source)
	}
	return nil
}

// gatherPublished says which tables the publication holds, and what of them.
func gatherPublished(ctx context.Context, q querier, publication string, tables []*catalog.Table, out []tableFacts, version int) error {
	extra := "NULL::text[], ''"
	if version >= 150000 {
		extra = "attnames::text[], coalesce(rowfilter, '')"
	}
	rows, err := q.Query(ctx, "SELECT schemaname::text, tablename::text, "+extra+" FROM pg_publication_tables WHERE pubname = $1", publication)
	if err != nil {
		return err
	}
	at := map[catalog.TableName]int{}
	for i, t := range tables {
		at[t.Name] = i
	}
	var name catalog.TableName
	var only []string
	var filter string
	_, err = pgx.ForEachRow(rows, []any{&name.Schema, &name.Name, &only, &filter}, func() error {
		if i, ours := at[name]; ours {
			out[i].published, out[i].only, out[i].filter = true, only, filter
		}
		only = nil
		return nil
	})
	if err != nil || version < 150000 {
		return err
	}
	rows, err = q.Query(ctx, `SELECT r.prrelid, r.prattrs::int2[]::int[] FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = $1 AND r.prattrs IS NOT NULL`, publication)
	if err != nil {
		return err
	}
	byOID := map[uint32]*tableFacts{}
	for i := range out {
		byOID[out[i].oid] = &out[i]
	}
	var oid uint32
	var listed []int
	_, err = pgx.ForEachRow(rows, []any{&oid, &listed}, func() error {
		if t := byOID[oid]; t != nil {
			t.listed = listed
		}
		listed = nil
		return nil
	})
	return err
}
