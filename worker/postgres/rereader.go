package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/worker/change"
)

// again reads the asked keys: the rows that are there and, unless some were left out
// for want of room, a row with the key alone for each key that is not.
func (r *reader) again(ctx context.Context, conn *pgconn.PgConn, head chunk) (*chunk, error) {
	if r.request.masked {
		return r.againMasked(ctx, conn, head)
	}
	keys, encoded, others := r.encode(r.request.keys)
	c, err := r.byKey(ctx, conn, head, keys)
	if err != nil {
		return nil, err
	}
	c.impossible = others
	there := make(map[string]int, len(c.keys))
	for row, key := range c.keys {
		there[string(key)] = row
	}
	for i, key := range keys {
		if row, ok := there[string(encoded[i])]; ok {
			c.asked[row] = keyName(key)
		} else if c.last {
			row, _ := r.keyRow(c.rows, key)
			c.asked[row] = keyName(key)
			c.keys = append(c.keys, encoded[i])
			c.gone++
		}
	}
	return c, nil
}

// encode encodes keys, each once. Others are the names of those that are another's
// key, or that are none: no row of the source can have them, and none of the lake
// can be found by them.
func (r *reader) encode(asked [][]string) (keys [][]string, encoded [][]byte, others []string) {
	b := newBuilder(r.table.schema)
	names := map[string]string{}
	for _, key := range asked {
		row, ok := r.keyRow(b.rows, key)
		if !ok {
			others = append(others, keyName(key))
			continue
		}
		k, err := b.key(row)
		if err != nil {
			others = append(others, keyName(key))
			continue
		}
		if name, twice := names[string(k)]; twice {
			if name != keyName(key) {
				others = append(others, keyName(key))
			}
			continue
		}
		names[string(k)] = keyName(key)
		keys, encoded = append(keys, key), append(encoded, k)
	}
	return keys, encoded, others
}

// keyRow adds a row with the key alone; false when a text is none of its type.
func (r *reader) keyRow(rows *change.Rows, key []string) (int, bool) {
	row := rows.Add()
	for i, col := range r.table.schema.Key {
		if err := r.table.set(rows, row, col, []byte(key[i])); err != nil || !rows.HasValue(row, col) {
			return row, false
		}
	}
	return row, true
}

// byKey reads the rows of some keys. What the server does not take for a value of
// the column's type, such as an enum's label that is no more, no row can have.
func (r *reader) byKey(ctx context.Context, conn *pgconn.PgConn, head chunk, keys [][]string) (*chunk, error) {
	read := func(keys [][]string) (*chunk, error) {
		if len(keys) == 0 {
			c := r.fresh(head)
			c.last = true
			return c, nil
		}
		r.request.keys = keys
		return r.declared(ctx, conn, head)
	}
	if _, err := conn.Exec(ctx, "SAVEPOINT asked").ReadAll(); err != nil {
		return nil, err
	}
	c, err := read(keys)
	if isBadText(err) {
		if keys, err = r.takenByServer(ctx, conn, keys); err == nil {
			c, err = read(keys)
		}
	}
	if err != nil {
		return nil, err
	}
	c.asked = map[int]string{}
	return c, nil
}

// isBadText reports an error of class 22, data exception.
func isBadText(err error) bool { return strings.HasPrefix(sqlState(err), "22") }

// takenByServer returns the keys that the server takes for values.
func (r *reader) takenByServer(ctx context.Context, conn *pgconn.PgConn, keys [][]string) ([][]string, error) {
	if _, err := conn.Exec(ctx, "ROLLBACK TO asked").ReadAll(); err != nil || len(keys) == 0 {
		return nil, err
	}
	r.request.keys = keys
	sql, params := r.query(quoteName(r.table.cfg.Name))
	err := conn.ExecParams(ctx, sql+" LIMIT 0", params, nil, nil, nil).Read().Err
	switch {
	case err == nil:
		return keys, nil
	case !isBadText(err):
		return nil, err
	case len(keys) == 1:
		return nil, r.rollback(ctx, conn)
	}
	half := len(keys) / 2
	some, err := r.takenByServer(ctx, conn, keys[:half:half])
	if err != nil {
		return nil, err
	}
	more, err := r.takenByServer(ctx, conn, keys[half:])
	return append(some, more...), err
}

func (r *reader) rollback(ctx context.Context, conn *pgconn.PgConn) error {
	_, err := conn.Exec(ctx, "ROLLBACK TO asked").ReadAll()
	return err
}

// againMasked finds the rows of keys that are known only as the lake shows them, by
// masking the key of each row of the table. Those that are not found are rows that
// are gone.
func (r *reader) againMasked(ctx context.Context, conn *pgconn.PgConn, head chunk) (*chunk, error) {
	wanted := make(map[string]bool, len(r.request.keys))
	for _, key := range r.request.keys {
		wanted[keyName(key)] = true
	}
	masked := r.request.keys
	found, err := r.unmask(ctx, conn, wanted)
	if err != nil {
		return nil, err
	}
	keys := make([][]string, 0, len(found))
	for _, name := range masked {
		if key, ok := found[keyName(name)]; ok {
			keys = append(keys, key)
		}
	}
	c, err := r.byKey(ctx, conn, head, keys)
	if err != nil {
		return nil, err
	}
	schema := r.table.schema
	for row := range c.rows.Len() {
		texts, err := r.source.maskKey(r.table.cfg, schema, keyTexts(c.rows, row))
		if err != nil {
			return nil, err
		}
		c.asked[row] = keyName(texts)
	}
	c.masked = map[int][]string{}
	for _, key := range masked {
		if _, there := found[keyName(key)]; there {
			continue
		}
		row := c.rows.Add()
		ok := true
		for i, col := range schema.Key {
			if r.table.cfg.PII[schema.Columns[col].Name] == "" {
				err := r.table.set(c.rows, row, col, []byte(key[i]))
				ok = ok && err == nil && c.rows.HasValue(row, col)
			}
		}
		// The key is encoded when it is masked; until then it equals no other.
		c.keys = append(c.keys, []byte("\xffmasked\x00"+strconv.Itoa(row)))
		c.gone++
		c.masked[row], c.asked[row] = key, keyName(key)
		if !ok {
			c.impossible = append(c.impossible, keyName(key))
			if c.dropped == nil {
				c.dropped = map[int]bool{}
			}
			c.dropped[row] = true
		}
	}
	return c, nil
}

// unmask looks through the keys of the whole table for those that mask to a wanted
// one, by name.
func (r *reader) unmask(ctx context.Context, conn *pgconn.PgConn, wanted map[string]bool) (map[string][]string, error) {
	schema := r.table.schema
	columns := make([]string, len(schema.Key))
	for i, col := range schema.Key {
		columns[i] = quoteIdent(r.table.sourceName(col))
	}
	out := map[string][]string{}
	result := conn.ExecParams(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+quoteName(r.table.cfg.Name), nil, nil, nil, nil)
	texts := make([]string, len(columns))
	var failed error
	for failed == nil && result.NextRow() {
		for i, v := range result.Values() {
			texts[i] = string(v)
		}
		var masked []string
		if masked, failed = r.source.maskKey(r.table.cfg, schema, texts); failed == nil && wanted[keyName(masked)] {
			out[keyName(masked)] = append([]string(nil), texts...)
		}
	}
	if _, err := result.Close(); err != nil {
		return nil, err
	}
	return out, failed
}
