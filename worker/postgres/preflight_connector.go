package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// controlFacts are what is known of a table that a connector writes.
type controlFacts struct {
	name            catalog.TableName
	exists          bool
	inserts, others bool // the role may insert; and select and update (heartbeat) or delete (signals)
	published       bool
}

const controlSQL = `SELECT c.oid IS NOT NULL,
 coalesce(has_schema_privilege(s.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT'), false),
 coalesce(has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, $1), false),
 EXISTS (SELECT FROM pg_publication_tables WHERE pubname = $2 AND schemaname = $3 AND tablename = $4)
FROM (VALUES (1)) v LEFT JOIN pg_namespace s ON s.nspname = $3 LEFT JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = $4`

// gatherControl looks at the tables that the source's connector writes.
func gatherControl(ctx context.Context, q querier, source *catalog.Source) ([]controlFacts, error) {
	if source.Connector == nil {
		return nil, nil
	}
	var out []controlFacts
	for _, t := range controlTables(source) {
		right := "UPDATE"
		if t == source.Connector.SignalTable {
			right = "DELETE"
		}
		f := controlFacts{name: t}
		err := q.QueryRow(ctx, controlSQL, right, source.Publication, t.Schema, t.Name).Scan(&f.exists, &f.inserts, &f.others, &f.published)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// judgeControl says what keeps a connector from its heartbeat and its signals. Where it
// connects as a role of its own, what that may do is not known.
func judgeControl(out *findings, source *catalog.Source, f facts) {
	for _, c := range f.control {
		what, sql, rights := "heartbeat table", "CREATE TABLE "+quoteName(c.name)+" (source text PRIMARY KEY, beat_at timestamptz NOT NULL, beats bigint NOT NULL)", "SELECT, INSERT, UPDATE"
		costs := "the slot does not move on while the tables are quiet, and nothing proves that they are"
		if c.name == source.Connector.SignalTable {
			what, sql, rights = "signal table", signalTableSQL(c.name), "SELECT, INSERT, DELETE"
			costs = "no table can be read again while others stream"
		}
		switch {
		case !c.exists && source.CreateSlot && f.createsIn:
			out.add(catalog.Notes, catalog.CodeSourceTable, "", "", "%s %s does not exist and will be made", what, c.name)
			continue
		case !c.exists:
			out.add(catalog.Limits, catalog.CodeSourceTable, "", sql, "%s %s does not exist: %s", what, c.name, costs)
			continue
		case (!c.inserts || !c.others) && !ownRole(source):
			out.add(catalog.Limits, catalog.CodeSourceGrant, "", "GRANT USAGE ON SCHEMA "+quoteIdent(c.name.Schema)+" TO "+quoteIdent(f.role)+"; GRANT "+rights+" ON "+quoteName(c.name)+" TO "+quoteIdent(f.role),
				"role %s may not write %s %s: %s", f.role, what, c.name, costs)
		}
		if !c.published && f.publication != nil {
			if source.CreateSlot && f.publication.owned {
				out.add(catalog.Notes, catalog.CodeSourcePublication, "", "", "%s %s is not in publication %s and will be added", what, c.name, source.Publication)
			} else {
				out.add(catalog.Limits, catalog.CodeSourcePublication, "", addToPublication(source, c.name), "%s %s is not in publication %s: what is written to it is not sent", what, c.name, source.Publication)
			}
		}
	}
}

// ownRole reports whether the connector connects as another role than the worker, whose
// rights are not seen here.
func ownRole(source *catalog.Source) bool {
	return source.Connector != nil && source.Connector.Properties["database.user"] != ""
}

// enumFacts are an enum that Debezium finds no labels of.
type enumFacts struct {
	name   string // as SQL
	domain bool   // over one that has some
}

// unlabelledSQL lists what Debezium takes for an enum, by its category, and has no labels.
// It reads the types of the whole database, whether a table has them or not.
const unlabelledSQL = `SELECT format_type(t.oid, NULL), t.typtype = 'd' FROM pg_type t JOIN pg_namespace s ON s.oid = t.typnamespace
WHERE t.typcategory = 'E' AND s.nspname <> 'pg_toast' AND NOT EXISTS (SELECT FROM pg_enum e WHERE e.enumtypid = t.oid) ORDER BY 1`

func gatherUnlabelled(ctx context.Context, q querier, source *catalog.Source) ([]enumFacts, error) {
	if source.Connector == nil {
		return nil, nil
	}
	rows, err := q.Query(ctx, unlabelledSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f enumFacts, err error) {
		err = row.Scan(&f.name, &f.domain)
		return f, err
	})
}

func judgeUnlabelled(out *findings, f facts) {
	for _, e := range f.unlabelled {
		what, fix := "an enum without labels", "ALTER TYPE "+e.name+" ADD VALUE 'unused'; -- or DROP TYPE "+e.name
		if e.domain {
			what, fix = "a domain over an enum", "use the enum itself in its place, then DROP DOMAIN "+e.name
		}
		out.add(catalog.Blocks, catalog.CodeSourceDebezium, "", fix,
			"%s is %s: with one in the database, in use or not, the connector does not start (NullPointerException in TypeRegistry)", e.name, what)
	}
}
