package torture

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Row is a row by column, in the form of Normal: a string, nil for NULL, []any for
// a list, map[string]any for a struct.
type Row = map[string]any

// Row decodes a row of Normals.
func (t *Table) Row(cells [][]byte) (Row, error) {
	if len(cells) != len(t.Columns)+1 {
		return nil, fmt.Errorf("table %s: a row of %d columns", t.Name, len(cells))
	}
	row := Row{"id": string(cells[0])}
	for i, c := range t.Columns {
		switch text := cells[i+1]; {
		case text == nil:
			row[c.Name] = nil
		case strings.HasPrefix(c.Lake, "list<"):
			list := []any{}
			if err := json.Unmarshal(text, &list); err != nil {
				return nil, fmt.Errorf("table %s, column %s: %w", t.Name, c.Name, err)
			}
			row[c.Name] = list
		default:
			row[c.Name] = string(text)
		}
	}
	return row, nil
}

// Layers are the rows of a table's layers, in any order.
type Layers struct{ Bronze, Current, History []Row }

// Compare holds the layers of a table, all of whose rows were inserted and then
// updated, against what the source said of its rows after the inserts (first) and
// after the updates (last), each by id. It returns how many values it compared and
// what differs.
func (t *Table) Compare(first, last []Row, lake Layers) (compared int, differences []string) {
	c := comparison{table: t, first: byID(first), last: byID(last)}
	c.count("current", len(last), len(lake.Current))
	for _, got := range lake.Current {
		c.row("current", c.last, got)
	}
	// A row that shows the same before and after has one version: NULL for values of
	// which neither has a place is no change.
	versions := len(last)
	for i := range last {
		if !reflect.DeepEqual(first[i], last[i]) {
			versions++
		}
	}
	c.count("history", versions, len(lake.History))
	for _, got := range lake.History {
		want := c.first
		if got["is_current"] == "true" {
			want = c.last
		}
		c.row("history", want, got)
	}
	c.count("bronze", len(first)+len(last), len(lake.Bronze))
	for _, event := range lake.Bronze {
		after, _ := event["after"].(Row)
		if event["op"] != "u" {
			c.row("bronze "+fmt.Sprint(event["op"]), c.first, after)
			continue
		}
		c.row("bronze u", c.last, after)
		if t.Full {
			before, _ := event["before"].(Row)
			c.row("bronze before u", c.first, before)
		}
	}
	return c.compared, c.differences
}

type comparison struct {
	table       *Table
	first, last map[any]Row
	compared    int
	differences []string
}

func byID(rows []Row) map[any]Row {
	out := map[any]Row{}
	for _, row := range rows {
		out[row["id"]] = row
	}
	return out
}

func (c *comparison) count(where string, want, got int) {
	if want != got {
		c.differences = append(c.differences, fmt.Sprintf("%s of %s has %d rows, not %d", where, c.table.Name, got, want))
	}
}

func (c *comparison) row(where string, wanted map[any]Row, got Row) {
	want, ok := wanted[got["id"]]
	if !ok {
		c.differences = append(c.differences, fmt.Sprintf("%s of %s: no row id=%v at the source", where, c.table.Name, got["id"]))
		return
	}
	for _, column := range c.table.Columns {
		c.compared++
		if s, l := want[column.Name], got[column.Name]; !reflect.DeepEqual(s, l) {
			c.differences = append(c.differences, fmt.Sprintf("%s of %s id=%v, %s %s: source %s, lake %s", where, c.table.Name, got["id"], column.Name, column.SQL, show(s), show(l)))
		}
	}
}

func show(v any) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%.200q", v)
}
