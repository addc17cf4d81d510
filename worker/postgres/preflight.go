package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Preflight looks at a source and its tables and reports everything that stands
// in the way of reading them right, or is worth knowing, each with what to do. It
// changes nothing. The error is a source that could not be asked.
func Preflight(ctx context.Context, cfg Config, tables []*catalog.Table) ([]catalog.Finding, error) {
	cfg = cfg.withDefaults()
	pool, err := openPool(ctx, cfg.DSN, cfg.Source.Name, cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	f, err := gather(ctx, pool, cfg.Source, tables)
	if err != nil {
		return nil, unreachable(cfg.Source.Name, err)
	}
	return judge(cfg.Source, tables, f), nil
}

// findings collects what judge finds.
type findings struct {
	source string
	list   []catalog.Finding
}

// add ends a fix that is SQL as psql wants it; what is to be said beside it is an SQL
// comment, so that the whole can be pasted.
func (f *findings) add(severity catalog.Severity, code catalog.Code, table, fix, format string, args ...any) {
	verb, _, _ := strings.Cut(fix, " ")
	if slices.Contains([]string{"ALTER", "CREATE", "GRANT", "SELECT"}, verb) && !strings.Contains(fix, "-- ") {
		fix += ";"
	}
	f.list = append(f.list, catalog.Finding{
		Severity: severity, Code: code, Source: f.source, Table: table, Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// judge turns facts into findings: the source's first, then each table's.
func judge(source *catalog.Source, tables []*catalog.Table, f facts) []catalog.Finding {
	out := &findings{source: source.Name}
	judgeServer(out, source, f)
	judgeSlot(out, source, f)
	judgePublication(out, source, tables, f)
	judgeControl(out, source, f)
	judgeUnlabelled(out, f)
	if source.Capture == catalog.Direct {
		judgeDDLLog(out, source, f)
	}
	for i, t := range tables {
		judgeTable(out, source, t, f, f.tables[i])
	}
	return out.list
}

func judgeServer(out *findings, source *catalog.Source, f facts) {
	if f.version < 140000 {
		out.add(catalog.Blocks, catalog.CodeSourceLimits, "", "upgrade the server to Postgres 14 or later", "the server is Postgres %d; Lakeweir reads 14 and later", f.version/10000)
	}
	if f.recovery {
		out.add(catalog.Blocks, catalog.CodeSourceLimits, "", "connect to the primary", "the server is a standby: neither slot nor heartbeat can be written there")
	}
	if level := f.settings["wal_level"]; level != "logical" {
		out.add(catalog.Blocks, catalog.CodeSourceWALLevel, "", "ALTER SYSTEM SET wal_level = logical; -- then restart the server", "wal_level is %s, so the log does not hold the rows' changes", level)
	}
	if !f.replicates && !ownRole(source) {
		out.add(catalog.Blocks, catalog.CodeSourceGrant, "", "ALTER ROLE "+quoteIdent(f.role)+" REPLICATION; -- Amazon RDS: GRANT rds_replication TO "+quoteIdent(f.role), "role %s may not replicate", f.role)
	}
	if f.slot == nil && f.slots >= f.number("max_replication_slots") {
		out.add(catalog.Blocks, catalog.CodeSourceLimits, "", fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; -- then restart the server, or drop a slot nobody needs", f.slots+4),
			"all %d replication slots (max_replication_slots) are taken", f.slots)
	}
	if (f.slot == nil || !f.slot.active) && f.senders >= f.number("max_wal_senders") {
		out.add(catalog.Blocks, catalog.CodeSourceLimits, "", fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d; -- then restart the server", f.senders+4),
			"all %d replication connections (max_wal_senders) are taken", f.senders)
	}
	if ms := f.number("wal_sender_timeout"); ms > 0 && ms < 10_000 {
		out.add(catalog.Limits, catalog.CodeSourceLimits, "", "ALTER SYSTEM SET wal_sender_timeout = '60s'; SELECT pg_reload_conf()",
			"wal_sender_timeout is %d ms: a short stall of the network breaks the connection", ms)
	}
	judgeRetention(out, source, f)
}

// judgeRetention looks at what may take the log away from the slot, or keep too
// much of it.
func judgeRetention(out *findings, source *catalog.Source, f facts) {
	keep, known := f.settings["max_slot_wal_keep_size"]
	mib, _ := strconv.ParseInt(keep, 10, 64)
	switch {
	case !known:
	case mib < 0:
		out.add(catalog.Notes, catalog.CodeSourceLimits, "", "ALTER SYSTEM SET max_slot_wal_keep_size = '"+megabytes(source.WALBudget*2)+"'; SELECT pg_reload_conf(); -- if losing the slot is better than a full disk",
			"max_slot_wal_keep_size is unlimited: a slot that is not read can fill the disk")
	case mib<<20 < source.WALBudget:
		out.add(catalog.Limits, catalog.CodeSourceLimits, "", "ALTER SYSTEM SET max_slot_wal_keep_size = '"+megabytes(source.WALBudget*2)+"'; SELECT pg_reload_conf(); -- or lower wal_budget",
			"max_slot_wal_keep_size is %d MB, below the source's WAL budget of %s: the slot may be lost before anybody is warned", mib, megabytes(source.WALBudget))
	}
	if idle := f.number("idle_replication_slot_timeout"); idle > 0 {
		out.add(catalog.Limits, catalog.CodeSourceLimits, "", "ALTER SYSTEM SET idle_replication_slot_timeout = 0; SELECT pg_reload_conf()",
			"idle_replication_slot_timeout is set: a slot that is not read for that long is lost, and every table has to be read anew")
	}
	if kb := f.number("logical_decoding_work_mem"); kb > 0 && kb < 16<<10 {
		out.add(catalog.Notes, catalog.CodeSourceLimits, "", "ALTER SYSTEM SET logical_decoding_work_mem = '64MB'; SELECT pg_reload_conf()",
			"logical_decoding_work_mem is %d kB: larger transactions go through the server's disk", kb)
	}
}

func megabytes(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) + "MB" }

func (f facts) number(setting string) int {
	n, err := strconv.Atoi(f.settings[setting])
	if err != nil {
		return 0
	}
	return n
}

func judgeSlot(out *findings, source *catalog.Source, f facts) {
	name := source.Slot
	create := "SELECT pg_create_logical_replication_slot(" + quoteLiteral(name) + ", 'pgoutput')"
	drop := "SELECT pg_drop_replication_slot(" + quoteLiteral(name) + ")"
	switch {
	case f.slot == nil && source.Capture == catalog.Debezium:
		out.add(catalog.Notes, catalog.CodeSourceSlot, "", "", "slot %s does not exist; the connector makes it", name)
	case f.slot == nil && source.CreateSlot:
		out.add(catalog.Notes, catalog.CodeSourceSlot, "", "", "slot %s does not exist and will be made", name)
	case f.slot == nil:
		out.add(catalog.Blocks, catalog.CodeSourceSlot, "", create, "slot %s does not exist", name)
	case f.slot.plugin != "pgoutput":
		out.add(catalog.Blocks, catalog.CodeSourceSlot, "", "name another slot in source.yaml, or drop this one: "+drop, "slot %s is of plugin %s, not pgoutput", name, orNone(f.slot.plugin))
	case f.slot.database != f.database:
		out.add(catalog.Blocks, catalog.CodeSourceSlot, "", "name another slot in source.yaml", "slot %s is of database %s, not %s", name, f.slot.database, f.database)
	case f.slot.lost():
		out.add(catalog.Blocks, catalog.CodeSourceSlot, "", drop+"; -- then let the tables be read anew", "slot %s is lost (%s): the log it needs is gone", name, f.slot.why())
	case f.slot.walStatus == "unreserved":
		out.add(catalog.Limits, catalog.CodeSourceSlot, "", "ALTER SYSTEM SET max_slot_wal_keep_size = '"+megabytes(source.WALBudget*2)+"'; SELECT pg_reload_conf(); -- at once, then see docs/runbooks/wal-budget.md",
			"slot %s is unreserved: it retains more than max_slot_wal_keep_size, and the server takes its log away at the next checkpoint", name)
	}
}

func (s *slotFacts) lost() bool { return s.walStatus == "lost" || s.invalidation != "" }

func (s *slotFacts) why() string {
	if s.invalidation != "" {
		return s.invalidation
	}
	return "wal_status " + s.walStatus
}

func orNone(s string) string {
	if s == "" {
		return "none (a physical slot)"
	}
	return s
}

func judgePublication(out *findings, source *catalog.Source, tables []*catalog.Table, f facts) {
	p, name := f.publication, quoteIdent(source.Publication)
	if p == nil {
		if source.CreateSlot && f.createsIn {
			out.add(catalog.Notes, catalog.CodeSourcePublication, "", "", "publication %s does not exist and will be made", source.Publication)
			return
		}
		out.add(catalog.Blocks, catalog.CodeSourcePublication, "", createPublicationSQL(source.Publication, tables), "publication %s does not exist", source.Publication)
		return
	}
	var lacks []string
	for _, o := range []struct {
		has  bool
		word string
	}{{p.inserts, "insert"}, {p.updates, "update"}, {p.deletes, "delete"}, {p.truncs, "truncate"}} {
		if !o.has {
			lacks = append(lacks, o.word)
		}
	}
	if len(lacks) > 0 {
		out.add(catalog.Blocks, catalog.CodeSourcePublication, "", "ALTER PUBLICATION "+name+" SET (publish = 'insert, update, delete, truncate')",
			"publication %s leaves out %s: such changes would never reach the lake", source.Publication, strings.Join(lacks, " and "))
	}
}

func createPublicationSQL(publication string, tables []*catalog.Table) string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = quoteName(t.Name)
	}
	return "CREATE PUBLICATION " + quoteIdent(publication) + " FOR TABLE " + strings.Join(names, ", ") + " WITH (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"
}

// replicated returns the columns that the stream carries, and the names of those
// that it does not.
func (t tableFacts) replicated(version int) (columns []attribute, generated, left []string) {
	for _, a := range t.attributes {
		switch {
		case a.generated && (version < 180000 || !slices.Contains(t.only, a.name)):
			generated = append(generated, a.name)
		case t.only != nil && !slices.Contains(t.only, a.name):
			left = append(left, a.name)
		default:
			columns = append(columns, a)
		}
	}
	return columns, generated, left
}
