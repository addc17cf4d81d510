package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// request says which rows a chunk shall hold.
type request struct {
	bound   []string   // rows behind this key; nil: from the start
	keys    [][]string // instead: the rows of these keys
	limit   int
	waitFor uint64 // read nothing while an older transaction runs
	keyless bool   // read the whole table, in pieces
	again   bool   // keys were asked for: say of each that is not there that it is not
	masked  bool   // these keys are as the lake shows them
	each    int    // bytes of a row of the chunk before, or 0
}

// reader reads one chunk, or a table without a key, in one transaction. Its table
// is a copy: it runs beside the decoder.
type reader struct {
	source  *Source
	table   *table
	request request
	results chan<- *chunk
}

// run sends at least one chunk, of which the last may be an error, unless the
// context ends.
func (r *reader) run(ctx context.Context) {
	if err := r.read(ctx); err != nil && ctx.Err() == nil {
		r.send(ctx, &chunk{err: r.asSeen(ctx, err)})
	}
}

func (r *reader) send(ctx context.Context, c *chunk) {
	select {
	case r.results <- c:
		select {
		case r.source.arrived <- struct{}{}:
		default:
		}
	case <-ctx.Done():
	}
}

func (r *reader) read(ctx context.Context) error {
	pooled, err := r.source.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	conn := pooled.Conn().PgConn()
	if err := r.transaction(ctx, conn); err != nil {
		if !conn.IsClosed() {
			_, _ = conn.Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll()
		}
		return err
	}
	return nil
}

func (r *reader) transaction(ctx context.Context, conn *pgconn.PgConn) error {
	limits := r.source.cfg.Limits
	// The lock comes before the snapshot is taken: TRUNCATE and a rewriting ALTER
	// TABLE would make the table look empty to an older snapshot.
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = "+strconv.FormatInt(limits.LockTimeout.Milliseconds(), 10)+
		"; SET LOCAL statement_timeout = "+strconv.FormatInt(limits.StatementTimeout.Milliseconds(), 10)+
		"; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL row_security = off; LOCK TABLE "+quoteName(r.table.cfg.Name)+" IN ACCESS SHARE MODE").ReadAll(); err != nil {
		return err
	}
	head, err := chunkHead(ctx, conn)
	if err != nil {
		return err
	}
	if err := r.sameNumbers(ctx, conn); err != nil {
		return err
	}
	if head.sees.Xmin < r.request.waitFor { // the source looks at xmin and tries later
		_, err := conn.Exec(ctx, "ROLLBACK").ReadAll()
		head.rows = change.NewRows(r.table.schema)
		r.send(ctx, &head)
		return err
	}
	read := r.declared
	if r.request.again {
		read = r.again
	}
	c, err := read(ctx, conn, head)
	if err != nil {
		return err
	}
	// The message makes the server write the log out beyond P at once, and moves
	// the place of the next chunk.
	if _, err := conn.Exec(ctx, "COMMIT; SELECT pg_logical_emit_message(true, 'lakeweir', '')").ReadAll(); err != nil && sqlState(err) == "" {
		return err
	}
	r.send(ctx, c)
	return nil
}

// declared reads what is requested through a cursor.
func (r *reader) declared(ctx context.Context, conn *pgconn.PgConn, head chunk) (*chunk, error) {
	sql, params := r.query(quoteName(r.table.cfg.Name))
	if err := conn.ExecParams(ctx, "DECLARE chunk NO SCROLL CURSOR FOR "+sql, params, nil, nil, nil).Read().Err; err != nil {
		return nil, err
	}
	return r.pieces(ctx, conn, head)
}

// chunkHead takes the transaction's snapshot and the place in the log.
func chunkHead(ctx context.Context, conn *pgconn.PgConn) (chunk, error) {
	result := conn.ExecParams(ctx, "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text",
		nil, nil, nil, nil).Read()
	if result.Err != nil {
		return chunk{}, result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 3 {
		return chunk{}, errors.New("the server did not describe the snapshot")
	}
	row := result.Rows[0]
	sees, err1 := change.ParseVisibility(string(row[0]))
	at, err2 := catalog.ParseLSN(string(row[1]))
	when, err3 := strconv.ParseInt(string(row[2]), 10, 64)
	return chunk{sees: sees, at: at, time: when}, errors.Join(err1, err2, err3)
}

// query is the SELECT of the requested rows, all values as text.
func (r *reader) query(name string) (string, [][]byte) {
	schema := r.table.schema
	columns := make([]string, len(schema.Columns))
	live := make([]string, 0, len(columns))
	for i := range schema.Columns {
		columns[i] = quoteIdent(r.table.sourceName(i))
		if !schema.Columns[i].Dropped {
			live = append(live, columns[i])
		}
	}
	var sql strings.Builder
	sql.WriteString("SELECT " + strings.Join(live, ", ") + " FROM " + name)
	if r.request.keyless {
		return sql.String(), nil
	}
	key := make([]string, len(schema.Key))
	for i, col := range schema.Key {
		key[i] = columns[col]
	}
	tuple := "(" + strings.Join(key, ", ") + ")"
	var params [][]byte
	placeholders := func(texts []string) string {
		out := make([]string, len(texts))
		for i, t := range texts {
			params = append(params, []byte(t))
			out[i] = "$" + strconv.Itoa(len(params))
		}
		return "(" + strings.Join(out, ", ") + ")"
	}
	switch {
	case r.request.keys != nil:
		wanted := make([]string, len(r.request.keys))
		for i, k := range r.request.keys {
			wanted[i] = placeholders(k)
		}
		sql.WriteString(" WHERE " + tuple + " IN (" + strings.Join(wanted, ", ") + ")")
	case r.request.bound != nil:
		sql.WriteString(" WHERE " + tuple + " > " + placeholders(r.request.bound))
	}
	sql.WriteString(" ORDER BY " + strings.Join(key, ", "))
	if r.request.keys == nil {
		sql.WriteString(" LIMIT " + strconv.Itoa(r.request.limit))
	}
	return sql.String(), params
}

// pieces fetches the rows. A table without a key is sent in pieces, all but the
// last from here; a chunk by key is cut short when it grows too big.
func (r *reader) pieces(ctx context.Context, conn *pgconn.PgConn, head chunk) (*chunk, error) {
	most := r.source.cfg.Limits.ChunkBytes
	c := r.fresh(head)
	n := 200
	if r.request.again {
		n = 20
	}
	if r.request.each > 0 {
		n = min(n, fetchRows(most, r.request.each))
	}
	for {
		f := fetching{chunk: c, head: head}
		if err := r.fetch(ctx, conn, &f, n); err != nil {
			return nil, err
		}
		c = f.chunk
		if f.got < n {
			c.last = !f.cut && (r.request.keyless || r.request.keys != nil || c.rows.Len() < r.request.limit)
			return c, nil
		}
		full := c.bytes >= most
		if f.cut || full && !r.request.keyless && (r.request.keys == nil || r.request.again) {
			return c, nil
		}
		if r.request.keyless && (c.bytes >= most || c.rows.Len() >= r.request.limit) {
			r.send(ctx, c)
			c = r.fresh(head)
		}
		n = fetchRows(most, f.wire/f.got)
	}
}

// fetchRows is how many rows of a size are fetched at once.
func fetchRows(most, each int) int { return min(max(most/4/max(each, 1), 1), 2000) }

// fetching is the state of one fetch.
type fetching struct {
	chunk *chunk
	head  chunk
	got   int  // rows that came
	wire  int  // their size as text
	cut   bool // the chunk was full: the rows that came after are for the next one
}

func (r *reader) fresh(head chunk) *chunk {
	c := head
	c.rows = change.NewRows(r.table.schema)
	return &c
}

// fetch decodes the next rows into the chunk. Of rows that turn out too large, a
// chunk by key keeps what it has room for, and what else was asked for is read
// again; a table without a key is sent on in between.
func (r *reader) fetch(ctx context.Context, conn *pgconn.PgConn, f *fetching, n int) error {
	most := r.source.cfg.Limits.ChunkBytes
	result := conn.ExecParams(ctx, "FETCH "+strconv.Itoa(n)+" FROM chunk", nil, nil, nil, nil)
	err := r.sameFields(result.FieldDescriptions())
	b := builder{rows: f.chunk.rows}
	for err == nil && result.NextRow() {
		f.got++
		c := f.chunk
		full := c.bytes >= most && c.rows.Len() > 0
		switch {
		case full && !r.request.keyless && r.request.keys == nil:
			f.cut = true
			continue
		case full && r.request.keyless:
			r.send(ctx, c)
			f.chunk = r.fresh(f.head)
			c, b = f.chunk, builder{rows: f.chunk.rows}
		}
		var bytes int
		bytes, err = r.row(&b, c, result.Values())
		f.wire += bytes
		c.bytes += bytes
	}
	if _, closeErr := result.Close(); closeErr != nil {
		return closeErr
	}
	return err
}

func (r *reader) row(b *builder, c *chunk, values [][]byte) (int, error) {
	row := c.rows.Add()
	size := 0
	var failed error
	values = r.table.spread(values)
	for col, v := range values {
		if v == nil {
			c.rows.SetMark(row, col, change.Null)
			continue
		}
		size += len(v)
		if err := r.table.set(c.rows, row, col, v); err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return size, r.table.undecodable(c.rows, row, c.at, failed)
	}
	key, err := b.key(row)
	if err != nil {
		return size, r.table.badKey(c.rows, row, change.Change{Op: change.Read, LSN: c.at}, err)
	}
	c.keys = append(c.keys, key)
	if !r.request.keyless {
		if c.bound == nil {
			c.bound = make([]string, len(r.table.schema.Key))
		}
		for i, col := range r.table.schema.Key {
			c.bound[i] = string(values[col])
		}
	}
	return size, nil
}

// errFields is a table whose columns are not those that reading began with.
var errFields = errors.New("the table's columns changed while it was read")

func (r *reader) sameFields(fields []pgconn.FieldDescription) error {
	if len(fields) != len(r.table.fields) {
		return nil // the statement failed; Close tells
	}
	for i, f := range fields {
		if w := r.table.fields[i]; f.DataTypeOID != w.oid || f.TypeModifier != w.modifier {
			return fmt.Errorf("%w: column %s", errFields, f.Name)
		}
	}
	return nil
}

// asFault returns the fault that a failed chunk is, if waiting cannot help.
func asFault(t *table, err error) (*catalog.Error, bool) {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		return e, true
	}
	switch state := sqlState(err); {
	case errors.Is(err, errFields) || state == stateUndefinedColumn || state == stateUndefinedTable:
		return schemaChanged(t.cfg.ID(), "seen while its rows were read: "+serverMessage(err)), true
	case state == stateDenied:
		return catalog.Errorf(catalog.Denied, catalog.CodeSourceGrant,
			"GRANT SELECT ON "+quoteName(t.cfg.Name)+" TO the role of the connection; with row security the role also needs BYPASSRLS",
			"table %s cannot be read: %s", t.name, serverMessage(err)), true
	}
	return nil, false
}
