package torture

import (
	"fmt"
	"strconv"
	"strings"
)

// Create returns the statements that make the table, without rows.
func (t *Table) Create() []string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (id int PRIMARY KEY", t.Name)
	for _, c := range t.Columns {
		fmt.Fprintf(&b, ", %s %s", c.Name, c.SQL)
	}
	if t.Generated != "" {
		fmt.Fprintf(&b, ", %s int GENERATED ALWAYS AS (id * 2) STORED", t.Generated)
	}
	b.WriteString(")")
	out := []string{b.String()}
	if t.Full {
		out = append(out, "ALTER TABLE "+t.Name+" REPLICA IDENTITY FULL")
	}
	return out
}

// value is what a row holds in a column at first (step 0) and after its update
// (step 1).
func (t *Table) value(c Column, row, step int) string {
	return c.Values[(row%(t.Rows/2)+step)%len(c.Values)]
}

// Insert returns the statement that makes a row, numbered from 0.
func (t *Table) Insert(row int) string {
	names, values := []string{"id"}, []string{strconv.Itoa(row)}
	for _, c := range t.Columns {
		names, values = append(names, c.Name), append(values, t.value(c, row, 0))
	}
	return "INSERT INTO " + t.Name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// Update returns the statement that gives a row, in each column, the value after
// the one it has.
func (t *Table) Update(row int) string {
	set := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		set[i] = c.Name + " = " + t.value(c, row, 1)
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE id = %d", t.Name, strings.Join(set, ", "), row)
}

// Texts is a query for every row's columns as the server's output functions print
// them, id first: a cast to text would print some types in another way.
func (t *Table) Texts() string { return t.query(func(c Column) string { return c.Name }) }

// Normals is a query for every row's columns in the form that Normal describes.
func (t *Table) Normals() string { return t.query(Column.Normal) }

// Unfits is a query that says, for every row's columns, whether the value has no
// place in the lake.
func (t *Table) Unfits() string {
	return t.query(func(c Column) string {
		return "coalesce(" + unfit(c.Lake, c.Name) + ", false)"
	})
}

func (t *Table) query(column func(Column) string) string {
	columns := []string{"id"}
	for _, c := range t.Columns {
		columns = append(columns, column(c))
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + t.Name + " ORDER BY id"
}
