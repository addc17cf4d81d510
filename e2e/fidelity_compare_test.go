package e2e

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/torture"
)

// pairing holds a layer of a table in one lake against the same in the other. For a
// torture table it knows what the source printed.
type pairing struct {
	layer, table string
	key          []string
	torture      *torture.Table
	first, last  map[string][]*string
}

// name is the lake's table.
func (p *pairing) name() string {
	if p.layer == "history" {
		return p.table + "_history"
	}
	return p.table
}

// verdict is what comparing has found.
type verdict struct {
	rows, same, destroyed int
	unlisted              []string
	used                  map[*destroyed]int
	stale                 []string // values of an entry that are the same in both lakes, or other than it says
}

func newVerdict() *verdict { return &verdict{used: map[*destroyed]int{}} }

// require fails unless the lakes differ in what is listed, and in nothing else.
func (v *verdict) require(t *testing.T) {
	t.Helper()
	for i := range destroys {
		e := &destroys[i]
		t.Logf("%5d × %s, %s: %s", v.used[e], e.types, e.values, e.becomes)
		if v.used[e] == 0 {
			v.stale = append(v.stale, fmt.Sprintf("nothing is left of: %s, %s", e.types, e.values))
		}
	}
	require.Empty(t, v.unlisted[:min(len(v.unlisted), 40)], "%d values differ that are not listed", len(v.unlisted))
	require.Empty(t, v.stale[:min(len(v.stale), 40)], "%d listed values do not differ as listed", len(v.stale))
}

// compare pairs the rows: by key and, in history, by their order within it.
func (p *pairing) compare(v *verdict, direct, debezium []map[string]any) {
	a, b := p.byKey(direct), p.byKey(debezium)
	for key, versions := range a {
		others := b[key]
		delete(b, key)
		if len(versions) != len(others) {
			v.unlisted = append(v.unlisted, fmt.Sprintf("%s of %s, key %s: %d and %d rows: %s and %s", p.layer, p.table, key, len(versions), len(others), show(versions), show(others)))
			continue
		}
		for i := range versions {
			p.row(v, key, versions[i], others[i])
		}
	}
	for key, rows := range b {
		v.unlisted = append(v.unlisted, fmt.Sprintf("%s of %s, key %s: only Debezium's lake has it: %s", p.layer, p.table, key, show(rows)))
	}
}

func (p *pairing) byKey(rows []map[string]any) map[string][]map[string]any {
	out := map[string][]map[string]any{}
	for _, row := range rows {
		var key []string
		for _, c := range p.key {
			key = append(key, fmt.Sprint(row[c]))
		}
		name := strings.Join(key, "/")
		out[name] = append(out[name], row)
	}
	for _, versions := range out {
		slices.SortFunc(versions, func(a, b map[string]any) int {
			for _, c := range []string{"valid_to", "_generation", "_commit_lsn", "_ordinal"} {
				if n := number(a[c]).Cmp(number(b[c])); n != 0 {
					return n
				}
			}
			return 0
		})
	}
	return out
}

func number(v any) *big.Int {
	n, _ := new(big.Int).SetString(fmt.Sprint(v), 10)
	if n == nil {
		return new(big.Int)
	}
	return n
}

func (p *pairing) row(v *verdict, key string, direct, debezium map[string]any) {
	v.rows++
	var absent []any // columns whose value Debezium makes out not to have been sent
	for _, column := range slices.Sorted(maps.Keys(direct)) {
		if !isPromised(direct, column) {
			continue
		}
		a, b := direct[column], debezium[column]
		cell := p.cell(column, direct)
		var entry *destroyed
		if cell != nil {
			cell.direct = a
			entry = entryOf(cell)
		}
		if entry != nil && entry.absent && cell.made {
			absent = append(absent, column)
		}
		where := func() string {
			text := fmt.Sprintf("%s of %s, key %s, %s: direct %s, Debezium %s", p.layer, p.table, key, column, show(a), show(b))
			if cell != nil {
				text += fmt.Sprintf(" (%s %c, %s, source %s)", cell.column.SQL, cell.column.Kind, cell.came(), show(cell.text))
			}
			return text
		}
		switch {
		case entry == nil && reflect.DeepEqual(a, b):
			v.same++
		case entry == nil:
			v.unlisted = append(v.unlisted, where())
		case reflect.DeepEqual(a, b):
			v.stale = append(v.stale, where()+" is the same, but listed: "+entry.types+", "+entry.values)
		case !reflect.DeepEqual(b, entry.makes(cell)):
			v.stale = append(v.stale, where()+", not "+show(entry.makes(cell)))
		default:
			v.used[entry]++
			v.destroyed++
		}
	}
	have, _ := direct[unavailableColumns].([]any)
	got, _ := debezium[unavailableColumns].([]any)
	if want := names(have, absent); !slices.Equal(names(got), want) {
		v.unlisted = append(v.unlisted, fmt.Sprintf("%s of %s, key %s, %s: %v, not %v", p.layer, p.table, key, unavailableColumns, names(got), want))
	}
}

func names(lists ...[]any) []string {
	var out []string
	for _, v := range slices.Concat(lists...) {
		out = append(out, fmt.Sprint(v))
	}
	slices.Sort(out)
	return out
}

// value is a value of a torture table, as it came to a capture.
type value struct {
	column torture.Column
	text   *string // that the source prints; nil: NULL
	made   bool    // by an insert; else there was the row's first version
	before *string // what the source printed of that
	read   bool    // by the snapshot; else streamed
	direct any     // that direct capture has in the lake
}

func (c *value) came() string {
	if c.read {
		return "read"
	}
	return "streamed"
}

// cell is the value that a row of a torture table has in a column of the source's; nil
// for others.
func (p *pairing) cell(column string, row map[string]any) *value {
	if p.torture == nil {
		return nil
	}
	i := slices.IndexFunc(p.torture.Columns, func(c torture.Column) bool { return c.Name == column })
	if i < 0 {
		return nil
	}
	id := fmt.Sprint(row["id"])
	c := &value{column: p.torture.Columns[i], read: isRead(row)}
	if p.layer == "history" && row["is_current"] != "true" {
		c.text, c.made = p.first[id][i], true
	} else {
		c.text, c.before = p.last[id][i], p.first[id][i]
	}
	return c
}
