package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lakeweir/lakeweir/catalog"
)

// sourceName is what the source calls a column of the lake.
func (t *table) sourceName(col int) string {
	c := &t.schema.Columns[col]
	if g := t.shape.governed; g != nil && c.Number != 0 && !c.Dropped {
		if is := g.number(c.Number); is != nil {
			return is.Name
		}
	}
	return c.Name
}

// spread puts the values of a result at the columns of the schema: those that the source
// has no more are NULL.
func (t *table) spread(values [][]byte) [][]byte {
	if len(values) >= len(t.schema.Columns) {
		return values
	}
	out := make([][]byte, len(t.schema.Columns))
	n := 0
	for i := range t.schema.Columns {
		if !t.schema.Columns[i].Dropped && n < len(values) {
			out[i] = values[n]
			n++
		}
	}
	return out
}

// liveWire is what is asked of the source's columns, in the order of a result.
func (t *table) liveWire() []wireColumn {
	var out []wireColumn
	for i, c := range t.schema.Columns {
		if !c.Dropped {
			out = append(out, wireColumn{name: t.sourceName(i), oid: c.Source.OID, modifier: c.Source.Modifier})
		}
	}
	return out
}

// sameNumbers compares the columns' numbers with those of the schema, in the reader's
// transaction, which keeps them as they are: a name alone may be another column's. It
// also finds out how results describe the columns, where that is not known.
func (r *reader) sameNumbers(ctx context.Context, conn *pgconn.PgConn) error {
	t := r.table
	if !r.source.cfg.Park {
		return nil
	}
	result := conn.ExecParams(ctx, "SELECT attname::text, attnum::text FROM pg_attribute WHERE attrelid = $1::text::oid AND attnum > 0 AND NOT attisdropped",
		[][]byte{fmt.Append(nil, t.oid)}, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	numbers := make(map[string]string, len(result.Rows))
	for _, row := range result.Rows {
		numbers[string(row[0])] = string(row[1])
	}
	for i, c := range t.schema.Columns {
		name := t.sourceName(i)
		if number, is := numbers[name]; !c.Dropped && c.Number != 0 && (!is || number != strconv.Itoa(c.Number)) {
			return fmt.Errorf("%w: column %s", errFields, name)
		}
	}
	if t.fields == nil {
		types, err := readTypes(ctx, r.source.pool, t.liveWire())
		if err != nil {
			return err
		}
		for _, typ := range types {
			t.fields = append(t.fields, typ.field)
		}
	}
	return nil
}

// asSeen adds to an error of reading rows how the table is declared, when it is not as it
// was.
func (r *reader) asSeen(ctx context.Context, err error) error {
	state := sqlState(err)
	if !r.source.cfg.Park || !errors.Is(err, errFields) && !slices.Contains([]string{stateUndefinedColumn, stateUndefinedTable}, state) {
		return err
	}
	found, asked := readDefinitions(ctx, r.source.pool, []uint32{r.table.oid})
	if asked != nil {
		return asked
	}
	seen := &shapeError{err: err}
	if d := found[r.table.oid]; d != nil {
		seen.now = r.table.sent(d)
	}
	return seen
}

// shapeSeen is what a reader found that could not read the table as it is in the lake; true when
// the table stopped. Where the log tells of each alteration, it soon comes to this one.
func (s *Source) shapeSeen(ctx context.Context, t *table, seen *shapeError, failures int) bool {
	if s.ddlWhole && failures < chunkFailures {
		return false
	}
	at := place{commit: s.through}
	if s.tx.open {
		at = place{s.tx.commit, 2 * s.tx.next}
	}
	if fault, err := s.judge(ctx, t, at, seen.now, catalog.ByRows, nil); err == nil && fault != nil {
		s.raise(t, *fault)
		return true
	}
	return false
}
