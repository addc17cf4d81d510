package postgres

import (
	"context"
	_ "embed" // the log's SQL
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// The DDL log is event triggers at the source that write the definition of each altered
// table into the WAL, as a logical message in the transaction of the command. It tells
// where a change takes effect, and what relation messages do not carry.
const (
	ddlLogVersion = 1
	ddlLogSchema  = "lakeweir_ddl"
	ddlLogPrefix  = "lakeweir" // of its messages; empty ones are of others
	ddlLogComment = "lakeweir ddl log "
)

var (
	//go:embed ddllog/definitions.sql
	definitionsSQL string
	//go:embed ddllog/install.sql
	installSQL string
	//go:embed ddllog/remove.sql
	removeSQL string
)

// DDLLogSQL is the script that installs the DDL log; it may be run again.
func DDLLogSQL() string { return ddlLogScript(installSQL) }

// DDLLogRemovalSQL is the script that removes it.
func DDLLogRemovalSQL() string { return ddlLogScript(removeSQL) }

func ddlLogScript(script string) string {
	var settings strings.Builder
	all := typemap.SessionSettings()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "client_encoding" { // a function may not set it, and what it writes has the database's
			settings.WriteString("\n  SET " + name + " = " + quoteLiteral(all[name]))
		}
	}
	_, definitions, _ := strings.Cut(definitionsSQL, "\n")
	return strings.NewReplacer("{{version}}", strconv.Itoa(ddlLogVersion), "{{schema}}", ddlLogSchema, "{{prefix}}", ddlLogPrefix,
		"{{settings}}", settings.String(), "{{definitions}}", strings.TrimSpace(definitions)).Replace(script)
}

// ddlLogFacts is what a source has of the DDL log.
type ddlLogFacts struct {
	version int // 0: it is not installed
	enabled bool
}

// whole reports whether the log tells of every command.
func (f ddlLogFacts) whole() bool { return f.version == ddlLogVersion && f.enabled }

const ddlLogSQL = `SELECT evtname::text, evtenabled::text, coalesce(obj_description(oid, 'pg_event_trigger'), '')
FROM pg_event_trigger WHERE evtname IN ('lakeweir_ddl_end', 'lakeweir_ddl_drop', 'lakeweir_ddl_rewrite')`

func gatherDDLLog(ctx context.Context, q querier) (ddlLogFacts, error) {
	var f ddlLogFacts
	rows, err := q.Query(ctx, ddlLogSQL)
	if err != nil {
		return f, err
	}
	found := 0
	enabled := true
	var name, how, comment string
	_, err = pgx.ForEachRow(rows, []any{&name, &how, &comment}, func() error {
		found++
		enabled = enabled && (how == "O" || how == "A")
		if version, ok := strings.CutPrefix(comment, ddlLogComment); ok {
			f.version, _ = strconv.Atoi(version) // another's comment: not ours
		}
		return nil
	})
	f.enabled = enabled && found == 3
	return f, err
}

// PrepareDDLLog installs the DDL log at a source, or brings it up to date.
func PrepareDDLLog(ctx context.Context, cfg Config) error {
	return runDDLLogScript(ctx, cfg, DDLLogSQL(), "lakeweir source prepare --print prints what a superuser may run: CREATE EVENT TRIGGER takes one (Amazon RDS: a member of rds_superuser)")
}

// RemoveDDLLog removes it; what is not there is nothing to do.
func RemoveDDLLog(ctx context.Context, cfg Config) error {
	return runDDLLogScript(ctx, cfg, DDLLogRemovalSQL(), "lakeweir source prepare --remove --print prints what the role that installed it may run")
}

func runDDLLogScript(ctx context.Context, cfg Config, script, hint string) error {
	cfg = cfg.withDefaults()
	pool, err := openPool(ctx, cfg.DSN, cfg.Source.Name, cfg.Limits.ConnectTimeout, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		_, err := conn.Conn().PgConn().Exec(ctx, script).ReadAll()
		return err
	})
	switch {
	case err == nil:
		return nil
	case sqlState(err) == stateDenied:
		e := catalog.Errorf(catalog.Denied, catalog.CodeSourceGrant, hint, "source %s: the role of the connection may not: %s", cfg.Source.Name, serverMessage(err))
		e.Err = err
		return e
	}
	return asError(cfg.Source.Name, err)
}

// judgeDDLLog says whether the log is there, and what is seen late without it.
func judgeDDLLog(out *findings, source *catalog.Source, f facts) {
	const without = "a schema change is seen with the table's next row instead of at its own place, and a changed default, NOT NULL, enum label or key later still (docs/schema-changes.md)"
	folder := "SOURCE"
	if source.File != "" {
		folder = path.Dir(source.File)
	}
	fix := "run lakeweir source prepare " + folder + ", or let a superuser run what it prints with --print"
	switch {
	case f.ddlLog.version == 0:
		out.add(catalog.Notes, catalog.CodeSourceDDLLog, "", fix, "the DDL log is not installed: %s", without)
	case f.ddlLog.version > ddlLogVersion:
		out.add(catalog.Limits, catalog.CodeSourceDDLLog, "", "upgrade Lakeweir", "the DDL log is of version %d, this program reads %d: %s", f.ddlLog.version, ddlLogVersion, without)
	case f.ddlLog.version < ddlLogVersion:
		out.add(catalog.Limits, catalog.CodeSourceDDLLog, "", fix, "the DDL log is of version %d, this program wants %d: %s", f.ddlLog.version, ddlLogVersion, without)
	case !f.ddlLog.enabled:
		out.add(catalog.Limits, catalog.CodeSourceDDLLog, "", fix, "the DDL log's event triggers are disabled, or some are gone: %s", without)
	}
}

// readDefinitions describes tables as they are now, by their oids; those that are gone
// are left out.
func readDefinitions(ctx context.Context, q querier, oids []uint32) (map[uint32]*definition, error) {
	rows, err := q.Query(ctx, definitionsSQL, oids)
	if err != nil {
		return nil, err
	}
	out := make(map[uint32]*definition, len(oids))
	var oid uint32
	var doc []byte
	_, err = pgx.ForEachRow(rows, []any{&oid, &doc}, func() error {
		e, err := parseDDL(doc)
		if err != nil {
			return err
		}
		out[oid] = e.definition
		return nil
	})
	return out, err
}
