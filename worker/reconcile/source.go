package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// source is one connection to the database, for one transaction at a time.
type source struct {
	name string
	conn *pgconn.PgConn
}

// moment is what a transaction at the source sees.
type moment struct {
	sees change.Visibility
	// lsn is an end of the log by which every transaction that is seen had
	// committed.
	lsn catalog.LSN
	at  time.Time // by the source's clock
	// files are those of the table, as the transaction sees them.
	files string
}

const connectTimeout = 10 * time.Second

// openSource connects with the settings under which the server prints values as
// typemap knows them.
func openSource(ctx context.Context, name string, dsn catalog.Secret) (*source, error) {
	config, err := pgconn.ParseConfig(dsn.Reveal())
	if err != nil { // the parser's text may repeat the password
		return nil, catalog.Errorf(catalog.Invalid, catalog.CodeSourceUnreachable, "write it as postgres://user@host:5432/database", "the connection of source %s cannot be read", name)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, &catalog.Error{
			Kind: catalog.Unavailable, Code: catalog.CodeSourceUnreachable, Err: err,
			Message: fmt.Sprintf("source %s does not answer at %s:%d/%s", name, config.Host, config.Port, config.Database),
			Hint:    "check that the server runs and accepts this user",
		}
	}
	s := &source{name: name, conn: conn}
	var sql strings.Builder
	settings := typemap.SessionSettings()
	settings["client_encoding"] = typemap.ClientEncoding(conn.ParameterStatus("server_encoding"))
	settings["application_name"] = "lakeweir reconcile"
	settings["default_transaction_read_only"] = "on"
	settings["statement_timeout"] = "0"
	settings["idle_in_transaction_session_timeout"] = "0"
	settings["lock_timeout"] = "10s"
	settings["row_security"] = "off" // an error, rather than rows that are not shown
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&sql, "SET %s = '%s';", k, settings[k])
	}
	if err := s.exec(ctx, sql.String()); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *source) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

func (s *source) exec(ctx context.Context, sql string) error {
	_, err := s.conn.Exec(ctx, sql).ReadAll()
	return s.fault(ctx, err)
}

// query returns all rows of a small result as text.
func (s *source) query(ctx context.Context, sql string, args ...string) ([][][]byte, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	r := s.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, s.fault(ctx, r.Err)
}

// begin starts a transaction and returns what it sees of the table.
func (s *source) begin(ctx context.Context, table catalog.TableName) (moment, error) {
	if err := s.exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return moment{}, err
	}
	// The snapshot is taken before the statement runs, and so before the end of the
	// log is asked for.
	rows, err := s.query(ctx, "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_insert_lsn()::text, (extract(epoch from pg_catalog.clock_timestamp()) * 1e6)::int8::text")
	if err != nil {
		return moment{}, err
	}
	var m moment
	if m.files, err = s.files(ctx, table, "c.relfilenode"); err != nil {
		return m, err
	}
	if m.sees, err = change.ParseVisibility(string(rows[0][0])); err != nil {
		return m, err
	}
	if m.lsn, err = catalog.ParseLSN(string(rows[0][1])); err != nil {
		return m, err
	}
	var micros int64
	_, err = fmt.Sscan(string(rows[0][2]), &micros)
	m.at = time.UnixMicro(micros).UTC()
	return m, err
}

// files names the files of a table and of its partitions. As c.relfilenode they are
// those that the transaction sees, as the function's those of now.
func (s *source) files(ctx context.Context, table catalog.TableName, file string) (string, error) {
	rows, err := s.query(ctx, `SELECT pg_catalog.string_agg(c.oid::text || ':' || coalesce(`+file+`, 0)::text, ' ' ORDER BY c.oid) FROM pg_catalog.pg_class c
WHERE c.oid = $1::pg_catalog.regclass OR c.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree($1::pg_catalog.regclass))`, quoteTable(table))
	if err != nil {
		return "", err
	}
	return string(rows[0][0]), nil
}

// rewritten reports whether the table has got other files since the moment. TRUNCATE
// gives it new ones, which are empty for a transaction that began before, whatever the
// table held then; so do changes of columns. Ask after the rows were read: then the
// table is locked against all that.
func (s *source) rewritten(ctx context.Context, table catalog.TableName, m moment) (bool, error) {
	now, err := s.files(ctx, table, "pg_catalog.pg_relation_filenode(c.oid)")
	return now != m.files, err
}

func (s *source) end(ctx context.Context) error { return s.exec(ctx, "ROLLBACK") }

// confirmed returns up to where the slot was told that everything is saved, or 0
// when there is no such slot.
func (s *source) confirmed(ctx context.Context, slot string) (catalog.LSN, error) {
	rows, err := s.query(ctx, "SELECT confirmed_flush_lsn::text FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", slot)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 || rows[0][0] == nil {
		return 0, nil
	}
	return catalog.ParseLSN(string(rows[0][0]))
}

// sourceColumn is a column as the source has it now.
type sourceColumn struct {
	name      string
	typ       catalog.Type
	source    catalog.SourceType
	generated bool
}

const selectColumns = `
WITH RECURSIVE c AS (
	SELECT attnum, attname, atttypid, atttypmod, attndims, attgenerated <> '' AS generated FROM pg_catalog.pg_attribute
	WHERE attrelid = $1::pg_catalog.regclass AND attnum > 0 AND NOT attisdropped
), looked AS ( -- through domains, and into arrays
	SELECT attnum, 0 AS depth, atttypid AS type, atttypmod AS modifier, attndims::int AS dims FROM c
	UNION ALL
	SELECT l.attnum, l.depth + 1,
		CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE e.oid END,
		CASE WHEN t.typtype = 'd' AND l.modifier = -1 THEN t.typtypmod ELSE l.modifier END,
		CASE WHEN t.typtype = 'd' THEN greatest(t.typndims, l.dims) ELSE 0 END
	FROM looked l JOIN pg_catalog.pg_type t ON t.oid = l.type LEFT JOIN pg_catalog.pg_type e ON e.typarray = t.oid AND e.typdelim = ','
	WHERE t.typtype = 'd' OR e.oid IS NOT NULL
)
SELECT c.attname::text, c.generated::text, t.typname::text, l.modifier::text,
	CASE WHEN t.typtype = 'd' THEN 'domain' WHEN EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray = t.oid AND e.typdelim = ',') THEN 'array'
		WHEN t.typtype = 'e' THEN 'enum' WHEN t.typtype = 'c' THEN 'composite'
		WHEN t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace THEN 'made' ELSE 'base' END, l.dims::text
FROM c JOIN looked l USING (attnum) JOIN pg_catalog.pg_type t ON t.oid = l.type
ORDER BY c.attnum, l.depth`

// columns returns the columns of a table.
func (s *source) columns(ctx context.Context, name catalog.TableName) ([]sourceColumn, error) {
	rows, err := s.query(ctx, selectColumns, quoteTable(name))
	if err != nil {
		return nil, err
	}
	var out []sourceColumn
	var chain []catalog.SourceType
	for i, row := range rows {
		t := catalog.SourceType{Base: string(row[2])}
		if _, err := fmt.Sscan(string(row[3])+" "+string(row[5]), &t.Modifier, &t.Dims); err != nil {
			return nil, fmt.Errorf("read the columns of %s: %w", name, err)
		}
		switch kind := string(row[4]); kind {
		case "array", "enum", "composite", "made":
			t.Base = kind
			chain = append(chain, t)
		case "base":
			chain = append(chain, t)
		}
		if i+1 < len(rows) && string(rows[i+1][0]) == string(row[0]) {
			continue
		}
		out = append(out, sourceColumn{name: string(row[0]), generated: string(row[1]) == "true", typ: typemap.Postgres(nest(chain)), source: nest(chain)})
		chain = nil
	}
	if len(out) == 0 {
		return nil, catalog.Errorf(catalog.NotFound, catalog.CodeSourceTable, "check its name and that the role may see it", "source %s has no table %s", s.name, name)
	}
	return out, nil
}

// nest puts each type into the array before it.
func nest(chain []catalog.SourceType) catalog.SourceType {
	if len(chain) == 0 {
		return catalog.SourceType{}
	}
	t := chain[0]
	if t.Base == "array" && len(chain) > 1 {
		elem := nest(chain[1:])
		t.Elem = &elem
	}
	return t
}

// rows calls f with the text of each row; it is valid until f returns. It stops
// at f's first error.
func (s *source) rows(ctx context.Context, table catalog.TableName, columns []string, f func(rowText) error) error {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quoteName(c)
	}
	r := s.conn.ExecParams(ctx, "SELECT "+strings.Join(quoted, ", ")+" FROM "+quoteTable(table), nil, nil, nil, nil)
	for r.NextRow() {
		if err := f(r.Values()); err != nil {
			_, _ = r.Close()
			return err
		}
	}
	_, err := r.Close()
	return s.fault(ctx, err)
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteTable(t catalog.TableName) string { return quoteName(t.Schema) + "." + quoteName(t.Name) }

// fault turns what the server answered into what a person sees. The server's own
// details may show values, so only its message is passed on, and that of a
// missing right or table.
func (s *source) fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out := &catalog.Error{Kind: catalog.Unavailable, Code: catalog.CodeSourceUnreachable, Err: err, Message: "source " + s.name + " broke off", Hint: "try again; the server's log says why"}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "42501":
			out.Kind, out.Code, out.Hint = catalog.Denied, catalog.CodeSourceGrant, "grant SELECT on the table to the source's role; with row security also BYPASSRLS"
			out.Message = "source " + s.name + " refuses: " + e.Message
		case "42P01", "3F000":
			out.Kind, out.Code, out.Hint = catalog.NotFound, catalog.CodeSourceTable, "check its name"
			out.Message = "source " + s.name + ": " + e.Message
		default:
			out.Message += " with " + e.Code
		}
	}
	return out
}
