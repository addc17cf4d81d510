package debezium

import (
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// absent are the elements of arrays that Debezium never sends.
var absent = map[string]bool{"interval": true, "name": true, "money": true, "xml": true, "point": true, "refcursor": true, "varbit": true}

// structs are the types, of extensions, whose values come as structs or lists.
var structs = map[string]bool{"geometry": true, "geography": true, "vector": true, "halfvec": true, "sparsevec": true}

// Foresee tells from the columns' types alone which of them Debezium will not send
// right, or not at all, and what would stop it. What only a value shows is not told.
func Foresee(cfg Config) []catalog.Finding {
	f := foresight{cfg: &cfg, columns: newPlan(&cfg).columns}
	f.tell(catalog.Blocks, func(c *column) bool { return absent[elemBase(c)] },
		"%s of %s never comes, whatever the connector's settings: the table would stop with its first record", f.leaveOut)
	f.tell(catalog.Blocks, func(c *column) bool { _, name, _ := cutLast(c.source.Base, "."); return structs[name] },
		"%s of %s comes as a struct or a list, which cannot be read: the table would stop with its first record", f.leaveOut)
	f.tell(catalog.Blocks, func(c *column) bool { return c.source.Base == "refcursor" },
		"a value in %s of %s keeps the connector's snapshot from ending, that of every table, while it says RUNNING: its driver asks for the rows of the cursor", f.leaveOut)
	f.tell(catalog.Blocks, (*column).isVector,
		"the values in %s of %s are lost on the way, and an empty one stops the connector", f.leaveOut)
	f.tell(catalog.Limits, f.speechless,
		"an update that leaves a large value in %s of %s as it is sends NULL, as if that were the value: the table stops with the first update of such a row, or of one with NULL there", f.identity)
	f.tell(catalog.Limits, f.lost,
		"%s of %s will be NULL, and counted: what comes of it does not tell its value", f.retype)
	f.tell(catalog.Limits, func(c *column) bool { return c.family == familyTimeTZ },
		"a value in %s of %s whose offset has seconds, such as 12:00:00-08:30:15, stops the connector, and with it every table", f.check("extract(timezone FROM %s)::int %% 60 = 0"))
	f.tell(catalog.Notes, func(c *column) bool { return c.family == familyInterval },
		"an interval of more than 2,147,483,647 hours in %s of %s fails the connector's snapshot, and with it every table", f.check("abs(extract(hour FROM %s)) <= 2147483647"))
	f.tell(catalog.Notes, func(c *column) bool {
		return c.source.Base == "composite" || c.elem != nil && c.elem.source.Base == "composite"
	}, "instants in %s of %s come in the time zone of Connect's Java, which nobody behind it can tell", func([]string) string {
		return "run Connect with KAFKA_OPTS=-Duser.timezone=UTC"
	})
	return f.list
}

// foresight collects what is foreseen of a table.
type foresight struct {
	cfg     *Config
	columns []column
	list    []catalog.Finding
}

// tell adds one finding for the columns of which something holds; message takes them and
// the table.
func (f *foresight) tell(severity catalog.Severity, holds func(*column) bool, message string, fix func(columns []string) string) {
	var names, shown []string
	for i := range f.columns {
		if c := &f.columns[i]; holds(c) {
			names, shown = append(names, c.name), append(shown, c.name+" ("+c.source.Name+")")
		}
	}
	if len(names) == 0 {
		return
	}
	f.list = append(f.list, catalog.Finding{
		Severity: severity, Code: catalog.CodeSourceDebezium, Source: f.cfg.Table.Source, Table: f.cfg.Table.Name.String(),
		Message: fmt.Sprintf(message, strings.Join(shown, ", "), f.cfg.Table.Name), Fix: fix(names),
	})
}

// speechless reports a column that nobody can read when a large value did not change.
func (f *foresight) speechless(c *column) bool {
	i := f.cfg.Schema.Index(c.name)
	return !f.cfg.FullIdentity && f.cfg.Schema.Columns[i].Nullable && c.isMute() && !absent[elemBase(c)]
}

// lost reports a column whose values never come right.
func (f *foresight) lost(c *column) bool {
	switch {
	case c.family == familyVarbit, c.family == familyTimeTZ:
		return true
	case c.family == familyMoney:
		return monetaryOf(f.cfg.Monetary) == monetaryUnknown
	case c.elem == nil:
		return false
	}
	i := f.cfg.Schema.Index(c.name)
	return f.cfg.Schema.Columns[i].Source.Dims > 1 || c.elem.family == familyTime && c.elem.precision > 3
}

// elemBase is the type of an array's elements; empty for what is none, and for one of
// domains, which comes another way.
func elemBase(c *column) string {
	if c.elem == nil || c.elem.domain {
		return ""
	}
	return c.elem.source.Base
}

func (f *foresight) table() string {
	return quoted(f.cfg.Table.Name.Schema) + "." + quoted(f.cfg.Table.Name.Name)
}

func (f *foresight) leaveOut([]string) string {
	return "leave it out of the publication's column list, give it another type, or capture the source directly (capture: direct)"
}

func (f *foresight) retype([]string) string {
	return "give it another type, or capture the source directly (capture: direct); docs/debezium-values.md says what is lost"
}

func (f *foresight) identity([]string) string {
	fix := "ALTER TABLE " + f.table() + " REPLICA IDENTITY FULL"
	if f.cfg.Binary != Bytes {
		fix += "; -- or, for types that come as bytes, leave binary.handling.mode at bytes"
		return fix
	}
	return fix + ";"
}

// check has the source refuse what would stop the connector; condition takes a column.
func (f *foresight) check(condition string) func(columns []string) string {
	return func(columns []string) string {
		conditions := make([]string, len(columns))
		for i, c := range columns {
			conditions[i] = fmt.Sprintf(condition, quoted(c))
		}
		return "ALTER TABLE " + f.table() + " ADD CHECK (" + strings.Join(conditions, " AND ") + "); -- so that none can come"
	}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
