package postgres

import (
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

func judgeTable(out *findings, source *catalog.Source, t *catalog.Table, f facts, have tableFacts) {
	name := t.Name.String()
	switch {
	case have.oid == 0:
		out.add(catalog.Blocks, catalog.CodeSourceTable, name, "correct the name in the table's file, or make the table", "there is no table %s in database %s", name, f.database)
		return
	case have.kind == "v" || have.kind == "m" || have.kind == "f":
		out.add(catalog.Blocks, catalog.CodeSourceTable, name, "configure the tables it shows", "%s is a %s, whose changes are not in the log", name, kindWord(have.kind))
		return
	case have.kind == "p":
		judgePartitioned(out, source, name, f)
		judgeLeaves(out, t, have)
	case have.kind != "r":
		out.add(catalog.Blocks, catalog.CodeSourceTable, name, "configure a table", "%s is no table", name)
		return
	}
	if !have.permanent {
		out.add(catalog.Blocks, catalog.CodeSourceTable, name, "ALTER TABLE "+quoteName(t.Name)+" SET LOGGED", "%s is unlogged or temporary: its changes are not in the log", name)
		return
	}
	if !have.selectable {
		out.add(catalog.Blocks, catalog.CodeSourceGrant, name, "GRANT USAGE ON SCHEMA "+quoteIdent(t.Name.Schema)+" TO "+quoteIdent(f.role)+"; GRANT SELECT ON "+quoteName(t.Name)+" TO "+quoteIdent(f.role),
			"role %s may not read %s", f.role, name)
	}
	if have.secured {
		out.add(catalog.Blocks, catalog.CodeSourceGrant, name, "ALTER ROLE "+quoteIdent(f.role)+" BYPASSRLS", "row security hides rows of %s from role %s", name, f.role)
	}
	judgeFamily(out, name, have)
	judgeMembership(out, source, t, f, have)
	judgeColumns(out, t, f, have)
	judgeKey(out, t, f, have)
}

func judgePartitioned(out *findings, source *catalog.Source, name string, f facts) {
	if f.publication != nil && !f.publication.viaRoot {
		out.add(catalog.Blocks, catalog.CodeSourcePublication, name, "ALTER PUBLICATION "+quoteIdent(source.Publication)+" SET (publish_via_partition_root = true)",
			"%s is partitioned and the publication sends its changes under the names of the partitions", name)
		return
	}
	if source.Capture == catalog.Debezium {
		out.add(catalog.Limits, catalog.CodeSourceTable, name, "run lakeweir reconcile after partitions were attached, detached, dropped or truncated",
			"%s is partitioned: rows that come or go with a whole partition are not in the log, and the connector does not tell of them", name)
		return
	}
	out.add(catalog.Notes, catalog.CodeSourceTable, name, "",
		"%s is partitioned: rows that come or go with a whole partition are not in the log; they are found by looking, at the heartbeat's pace", name)
}

func kindWord(kind string) string {
	switch kind {
	case "v":
		return "view"
	case "m":
		return "materialized view"
	}
	return "foreign table"
}

func judgeMembership(out *findings, source *catalog.Source, t *catalog.Table, f facts, have tableFacts) {
	if f.publication == nil || have.kind == "p" && !f.publication.viaRoot { // said already
		return
	}
	name := t.Name.String()
	add := "ALTER PUBLICATION " + quoteIdent(source.Publication) + " ADD TABLE " + quoteName(t.Name)
	switch {
	case !have.published && source.CreateSlot && f.publication.owned && have.owned:
		out.add(catalog.Notes, catalog.CodeSourcePublication, name, "", "%s is not in publication %s and will be added", name, source.Publication)
	case !have.published:
		out.add(catalog.Blocks, catalog.CodeSourcePublication, name, add, "%s is not in publication %s: its changes are not sent"+silently(source), name, source.Publication)
	case have.filter != "":
		out.add(catalog.Blocks, catalog.CodeSourcePublication, name, "ALTER PUBLICATION "+quoteIdent(source.Publication)+" DROP TABLE "+quoteName(t.Name)+"; "+add,
			"publication %s sends only some rows of %s (it has a WHERE)", source.Publication, name)
	}
}

// silently is what makes a table that is not published worse with a connector.
func silently(source *catalog.Source) string {
	if source.Capture == catalog.Debezium {
		return ", while the connector is RUNNING and says nothing"
	}
	return ""
}

func judgeColumns(out *findings, t *catalog.Table, f facts, have tableFacts) {
	name := t.Name.String()
	columns, generated, left := have.replicated(f.version)
	if len(generated) > 0 {
		fix := "compute it where the lake is read"
		if f.version >= 180000 {
			fix += ", or let the publication send it: SET (publish_generated_columns = stored)"
		}
		out.add(catalog.Limits, catalog.CodeSourceGenerated, name, fix, "%s of %s is generated and not replicated: the lake's table does not have it", strings.Join(generated, ", "), name)
	}
	if len(generated) > 0 && f.version >= 180000 && have.identity == "f" {
		severity, when := catalog.Blocks, "once it is published, the server will refuse to update and delete its rows"
		if have.published {
			severity, when = catalog.Limits, "the server refuses to update and delete its rows"
		}
		out.add(severity, catalog.CodeSourceIdentity, name, "ALTER TABLE "+quoteName(t.Name)+" REPLICA IDENTITY DEFAULT; -- or, for stored columns, let the publication send them: SET (publish_generated_columns = stored)",
			"the replica identity of %s is FULL, and its generated %s is not published: %s", name, strings.Join(generated, ", "), when)
	}
	if len(left) > 0 {
		out.add(catalog.Notes, catalog.CodeSourcePublication, name, "", "the publication leaves %s of %s out: the lake's table does not have it", strings.Join(left, ", "), name)
	}
	has := func(column string) bool {
		return slices.ContainsFunc(columns, func(a attribute) bool { return a.name == column })
	}
	check := func(field, column string) {
		if has(column) {
			return
		}
		why := "does not exist"
		if slices.Contains(generated, column) {
			why = "is generated and not replicated"
		} else if slices.Contains(left, column) {
			why = "is left out by the publication"
		}
		out.add(catalog.Blocks, catalog.CodeSourceColumn, name, "correct "+field+" in the table's file; "+name+" has "+columnNames(columns), "%s names column %s of %s, which %s", field, column, name, why)
	}
	for _, c := range t.PrimaryKey {
		check("primary_key", c)
	}
	for _, c := range t.TrackColumns {
		check("track_history_columns", c)
	}
	for _, c := range t.TrackExcept {
		check("track_history_except_columns", c)
	}
	for _, c := range sortedKeys(t.PII) {
		check("pii", c)
	}
	judgeColumnNames(out, name, columns, have)
}

// judgeColumnNames refuses names that are one to some reader of the lake.
func judgeColumnNames(out *findings, name string, columns []attribute, have tableFacts) {
	const fix = "rename the column at the source, or leave it out of the publication's column list"
	named := make([]catalog.Column, len(columns))
	for i, a := range columns {
		named[i] = catalog.Column{Name: a.name, Type: typemap.Postgres(have.typeOf(a.name))}
	}
	for _, c := range catalog.Clashes(named) {
		switch c.Kind {
		case catalog.ClashReserved:
			out.add(catalog.Blocks, catalog.CodeSourceColumn, name, fix, "column %s of %s has a name that the lake's table needs for itself", c.Column, name)
		case catalog.ClashCase:
			out.add(catalog.Blocks, catalog.CodeSourceColumn, name, fix, "columns %s and %s of %s differ in case alone: readers of the lake that do not look at case take them for one", c.With, c.Column, name)
		case catalog.ClashElement:
			out.add(catalog.Blocks, catalog.CodeSourceColumn, name, fix, "column %s of %s is called as the elements of column %s are in Iceberg", c.Column, name, c.With)
		}
	}
}

func sortedKeys(m map[string]catalog.Protection) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func columnNames(columns []attribute) string {
	names := make([]string, len(columns))
	for i, a := range columns {
		names[i] = a.name
	}
	return strings.Join(names, ", ")
}

func judgeKeyless(out *findings, t *catalog.Table, have tableFacts) {
	name := t.Name.String()
	if t.Current || t.History {
		out.add(catalog.Limits, catalog.CodeSourceNoKey, name, "set primary_key, or scd: [] to say that bronze is enough", "%s has no key: current and history are refused, bronze is kept", name)
	} else {
		out.add(catalog.Notes, catalog.CodeSourceNoKey, name, "", "%s has no key: bronze only", name)
	}
	switch primary := have.primaryKey(); {
	case have.identity == "n" || have.identity == "d" && primary == nil:
		severity, when := catalog.Blocks, "once it is published, the server will refuse to update and delete its rows"
		if have.published {
			severity, when = catalog.Limits, "the server refuses to update and delete its rows"
		}
		out.add(severity, catalog.CodeSourceIdentity, name, "ALTER TABLE "+quoteName(t.Name)+" REPLICA IDENTITY FULL", "%s has no replica identity: %s", name, when)
	case have.identity != "f":
		out.add(catalog.Notes, catalog.CodeSourceIdentity, name, "ALTER TABLE "+quoteName(t.Name)+" REPLICA IDENTITY FULL; -- if bronze shall show whole rows before a change", "updates and deletes of %s carry the key's columns only", name)
	}
}

func containsAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(list, w) })
}

func quoteIdents(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteIdent(n)
	}
	return strings.Join(quoted, ", ")
}
