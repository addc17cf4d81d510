package lake

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/big"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/lake/icetest"
)

// pyRows reads a table by PyIceberg; asked are options of testdata/read.py.
func pyRows(t *testing.T, bin, dir string, ident []string, asked ...string) []map[string]any {
	t.Helper()
	args := append([]string{
		filepath.Join("testdata", "read.py"),
		"sqlite:///" + filepath.Join(dir, "catalog.db"), "lakeweir", "file://" + filepath.Join(dir, "warehouse"), ident[0], ident[1],
	}, asked...)
	cmd := exec.CommandContext(t.Context(), bin, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	require.NoError(t, cmd.Run(), stderr.String())
	var rows []map[string]any
	dec := json.NewDecoder(&out)
	for dec.More() {
		row := map[string]any{}
		require.NoError(t, dec.Decode(&row))
		rows = append(rows, row)
	}
	return rows
}

// canon writes a cell as testdata/read.py does.
func canon(t catalog.Type, rows *change.Rows, row, col int) any {
	if !rows.HasValue(row, col) {
		return nil
	}
	if t.Fixed() {
		return canonFixed(t, rows.Fixed(row, col))
	}
	return canonBytes(t, rows.Bytes(row, col))
}

func canonFixed(t catalog.Type, v int64) any {
	switch t.Kind { //nolint:exhaustive // the others are the integer underneath
	case catalog.Bool:
		return v != 0
	case catalog.Float32:
		return fmt.Sprintf("%08x", uint32(v))
	case catalog.Float64:
		return fmt.Sprintf("%016x", uint64(v))
	}
	return strconv.FormatInt(v, 10)
}

func canonBytes(t catalog.Type, v []byte) any {
	switch t.Kind { //nolint:exhaustive // the others are bytes
	case catalog.Text:
		return string(v)
	case catalog.Decimal:
		n := new(big.Int).SetBytes(v)
		if v[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		return n.String()
	case catalog.List:
		out := []any{}
		typemap.EachElem(v, t.Elem.Fixed(), func(null bool, fixed int64, b []byte) {
			switch {
			case null:
				out = append(out, nil)
			case t.Elem.Fixed():
				out = append(out, canonFixed(*t.Elem, fixed))
			default:
				out = append(out, canonBytes(*t.Elem, b))
			}
		})
		return out
	}
	return hex.EncodeToString(v)
}

func canonRow(s *catalog.Schema, rows *change.Rows, row int) map[string]any {
	out := map[string]any{}
	for col, c := range s.Columns {
		out[c.Name] = canon(c.Type, rows, row, col)
	}
	return out
}

func only(row map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for _, n := range names {
		out[n] = row[n]
	}
	return out
}

func TestPyIcebergReadsEveryLayerAndTypeExactly(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			bin := icetest.Python(t)
			dir, table, schema := t.TempDir(), everythingTable(), everythingSchema()
			l := open(t, dir)
			ls := openLayers(t, l, version, table, schema)
			f := newFeed(table, schema)
			values := everythingRows()
			for i, cells := range values {
				f.commit()
				if i%2 == 0 {
					f.read(cells...)
				} else {
					f.create(cells...)
				}
				ls.save(t, f)
			}
			// Each row takes on the values of the next, so that every value is written by an
			// update too and every first version is deleted from its file.
			for i, cells := range values {
				next := append([]any{cells[0]}, values[(i+1)%len(values)][1:]...)
				f.commit().update(next...)
			}
			ls.save(t, f)
			f.commit().remove(values[2][0])
			ls.save(t, f)

			want := change.NewRows(schema)
			f.batch.Rows = want
			keyOf := func(row int) string { return canon(schema.Columns[0].Type, want, row, 0).(string) }
			first, last := map[string]map[string]any{}, map[string]map[string]any{}
			for i, cells := range values {
				r := f.row(cells...)
				first[keyOf(r)] = canonRow(schema, want, r)
				r = f.row(append([]any{cells[0]}, values[(i+1)%len(values)][1:]...)...)
				last[keyOf(r)] = canonRow(schema, want, r)
			}
			deleted := canon(schema.Columns[0].Type, want, 4, 0).(string)
			columns := names(schema)

			src := source(version)
			current := pyRows(t, bin, dir, src.LakeName(table.Name, catalog.Current))
			require.Len(t, current, len(values))
			for _, row := range current {
				id := row["id"].(string)
				require.Empty(t, cmp.Diff(last[id], only(row, columns...)), "current %s", id)
				require.Equal(t, id == deleted, row[colIsDeleted], "is_deleted of %s", id)
				require.Equal(t, row[colUpdatedAt], row[colSourceTS])
			}

			history := pyRows(t, bin, dir, src.LakeName(table.Name, catalog.History))
			require.Len(t, history, 2*len(values))
			for _, row := range history {
				id := row["id"].(string)
				want := first[id]
				if row[colHistoryOp] == "u" {
					want = last[id]
				}
				require.Empty(t, cmp.Diff(want, only(row, columns...)), "history %s %s", id, row[colHistoryOp])
				open := row[colHistoryOp] == "u" && id != deleted
				require.Equal(t, open, row[colIsCurrent])
				require.Equal(t, open, row[colValidTo] == strconv.FormatInt(fold.Open, 10))
			}

			bronze := pyRows(t, bin, dir, src.LakeName(table.Name, catalog.Bronze))
			require.Len(t, bronze, 2*len(values)+1)
			ops := map[string]int{}
			for _, row := range bronze {
				op := row[colOp].(string)
				ops[op]++
				key := row[colKey].(map[string]any)["id"].(string)
				require.Nil(t, row[colOtherKey])
				require.Equal(t, op == "r", row[colSnapshot])
				switch op {
				case "r", "c":
					require.Nil(t, row[colBefore])
					require.Empty(t, cmp.Diff(first[key], row[colAfter]), "bronze %s", key)
				case "u":
					require.Empty(t, cmp.Diff(last[key], row[colAfter]), "bronze %s", key)
				case "d":
					require.Equal(t, deleted, key)
					require.Nil(t, row[colAfter])
					require.Equal(t, key, row[colBefore].(map[string]any)["id"])
					require.Equal(t, false, row[colBeforeComplete])
				}
			}
			require.Equal(t, map[string]int{"r": 2, "c": 2, "u": 4, "d": 1}, ops)
		})
	}
}

func TestPyIcebergReadsAwkwardNames(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			bin := icetest.Python(t)
			dir, table := t.TempDir(), ordersTable()
			table.Name.Name = `Order Items.2 "x" y%`
			l := open(t, dir)
			ls := openLayers(t, l, version, table, ordersSchema())
			f := newFeed(table, ordersSchema())
			f.commit().create(1, "pl", "new", 100, nil)
			f.create(2, "pl", "new", 200, "x")
			ls.save(t, f)
			f.commit().move([]any{1, "pl"}, []any{1, "de", "moved", 100, "y"})
			ls.save(t, f)
			rows := pyRows(t, bin, dir, source(version).LakeName(table.Name, catalog.Current))
			require.Len(t, rows, 2)
			for _, row := range rows {
				got := only(row, "order id", "shop.code", "status", "amount", `no"te`)
				switch row["order id"] {
				case "1":
					require.Empty(t, cmp.Diff(map[string]any{"order id": "1", "shop.code": "de", "status": "moved", "amount": "100", `no"te`: "y"}, got))
				default:
					require.Empty(t, cmp.Diff(map[string]any{"order id": "2", "shop.code": "pl", "status": "new", "amount": "200", `no"te`: "x"}, got))
				}
			}
			require.Len(t, pyRows(t, bin, dir, source(version).LakeName(table.Name, catalog.History)), 3)
			require.Len(t, pyRows(t, bin, dir, source(version).LakeName(table.Name, catalog.Bronze)), 4)
			_ = filepath.WalkDir(filepath.Join(dir, "warehouse"), func(path string, _ fs.DirEntry, _ error) error {
				require.NotContains(t, path, "%")
				return nil
			})
		})
	}
}

func names(s *catalog.Schema) []string {
	var out []string
	for _, c := range s.Columns {
		out = append(out, c.Name)
	}
	return out
}

// A process that opens the catalog twice keeps its hold on it: another process that
// comes and goes is not the last user, and leaves the catalog's log alone.
func TestACatalogThatIsOpenedTwiceIsNotTakenFromUnderUs(t *testing.T) {
	t.Parallel()
	bin := icetest.Python(t)
	dir := t.TempDir()
	first := open(t, dir)
	layers := openLayers(t, first, 2, ordersTable(), ordersSchema())
	f := newFeed(ordersTable(), ordersSchema())
	for n := range 5 {
		second := open(t, dir)
		require.NoError(t, second.Close())
		f.commit().create(n, "zh", "new", int64(100), nil)
		layers.save(t, f)
		out, err := exec.CommandContext(t.Context(), bin, "-c", "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.execute('create table if not exists other (v int)')\nc.execute('insert into other values (1)')\nc.commit()\nc.close()",
			filepath.Join(dir, "catalog.db")).CombinedOutput()
		require.NoError(t, err, string(out))
		require.FileExists(t, filepath.Join(dir, "catalog.db-wal"), "the catalog's log was removed while we use it")
		_, err = layers.Current.State(t.Context())
		require.NoError(t, err)
	}
}
