package postgres

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// applicationName names our sessions at the server; a walsender of that name on
// our slot is one of ours, left over.
func applicationName(source string) string {
	name := "lakeweir " + source
	return name[:min(len(name), 63)] // the server cuts it there
}

// connConfig returns the settings of every session: those that make the snapshot
// print what the stream prints.
func connConfig(dsn catalog.Secret, source string, timeout time.Duration) (*pgconn.Config, error) {
	c, err := pgconn.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, badDSN(source)
	}
	prepareConfig(c, source, timeout)
	return c, nil
}

func prepareConfig(c *pgconn.Config, source string, timeout time.Duration) {
	maps.Copy(c.RuntimeParams, typemap.SessionSettings())
	c.RuntimeParams["application_name"] = applicationName(source)
	c.ConnectTimeout = timeout
	c.AfterConnect = setEncoding
	c.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6,
	}}).DialContext
}

// setEncoding asks for bytes as they are where the database has no encoding.
func setEncoding(ctx context.Context, conn *pgconn.PgConn) error {
	encoding := typemap.ClientEncoding(conn.ParameterStatus("server_encoding"))
	if encoding == typemap.SessionSettings()["client_encoding"] {
		return nil
	}
	_, err := conn.Exec(ctx, "SET client_encoding = '"+encoding+"'").ReadAll()
	return err
}

// badDSN does not wrap the parser's error, which may quote the connection string.
func badDSN(source string) *catalog.Error {
	return catalog.Errorf(catalog.Invalid, catalog.CodeSourceUnreachable,
		"write it as postgres://user:${env:PGPASSWORD}@host:5432/database",
		"source %s: the connection string cannot be read", source)
}

// openPool returns a pool of ordinary sessions; it connects when first used.
func openPool(ctx context.Context, dsn catalog.Secret, source string, timeout time.Duration, size int) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, badDSN(source)
	}
	prepareConfig(&c.ConnConfig.Config, source, timeout)
	// What we write ourselves is told by the log once it is on disk, and must not
	// wait for a standby.
	c.ConnConfig.RuntimeParams["synchronous_commit"] = "local"
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statements: fewer surprises behind DDL
	c.MaxConns = int32(size)
	c.MaxConnIdleTime = time.Minute
	return pgxpool.NewWithConfig(ctx, c)
}

// replicationConn is a session that can stream, and its read buffer.
type replicationConn struct {
	*pgconn.PgConn
	buffer *bufio.Reader
}

// buffered reports whether more can be read without waiting.
func (c *replicationConn) buffered() bool {
	return c.Frontend().ReadBufferLen() > 0 || c.buffer != nil && c.buffer.Buffered() > 0
}

func connectReplication(ctx context.Context, dsn catalog.Secret, source string, timeout time.Duration) (*replicationConn, error) {
	config, err := connConfig(dsn, source, timeout)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["replication"] = "database"
	conn := &replicationConn{}
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		conn.buffer = bufio.NewReaderSize(r, 256<<10)
		return pgproto3.NewFrontend(conn.buffer, w)
	}
	conn.PgConn, err = pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// SQL states that decide what to do.
const (
	stateLockTimeout     = "55P03"
	stateQueryCanceled   = "57014"
	stateUndefinedColumn = "42703"
	stateUndefinedTable  = "42P01"
	stateDenied          = "42501"
	stateObjectInUse     = "55006"
	stateUndefinedObject = "42704"
	stateNotInState      = "55000" // a slot that lost its WAL
	stateDuplicateObject = "42710"
	stateDuplicateTable  = "42P07"
	stateUniqueViolation = "23505"
)

// sqlState returns the server's error code, or "" when the error is none of its.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// serverMessage is the server's own words, which name objects but no values; for
// any other error its text.
func serverMessage(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Error()
	}
	return err.Error()
}

func unreachable(source string, err error) *catalog.Error {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return e
	}
	e := catalog.Errorf(catalog.Unavailable, catalog.CodeSourceUnreachable,
		"check that the server runs and that this machine and role may connect to it (listen_addresses, pg_hba.conf, password)",
		"source %s: no connection: %s", source, serverMessage(err))
	e.Err = err
	return e
}

func quoteName(n catalog.TableName) string { return pgx.Identifier{n.Schema, n.Name}.Sanitize() }

func quoteIdent(s string) string { return pgx.Identifier{s}.Sanitize() }

func quoteLiteral(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'" // standard_conforming_strings is on
}

// isConnectionError reports whether trying again may help: the connection was
// refused, lost or timed out, or the server is going down or starting.
func isConnectionError(err error) bool {
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || strings.HasPrefix(state, "53")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}
