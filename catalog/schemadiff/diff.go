package schemadiff

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// Commands is what is known of the DDL between two definitions. The zero value knows
// nothing.
type Commands struct {
	// Whole says that every command was seen, or that the table's file is the same, so
	// that what Using does not name kept its values.
	Whole bool
	// Using names the columns, as they are called after, whose type was changed with a
	// USING expression.
	Using []string
}

// Diff returns the changes that lead from before to after, in an order that depends on
// them alone: the table, its columns in the order of before, new columns, then key,
// identity and partitions. after is nil when the table is gone. The table's
// configuration says which columns are key, tracked and personal.
func Diff(table *catalog.Table, before, after *catalog.Definition, ddl Commands) []catalog.SchemaChange {
	d := &differ{table: table, before: before, after: after, ddl: ddl}
	if before == nil {
		return nil // seen for the first time
	}
	if after == nil {
		d.add(catalog.SchemaChange{Kind: catalog.TableDropped, TableBefore: &before.Name, Rewrite: catalog.RewriteNone})
		return d.changes
	}
	if before.OID != 0 && after.OID != 0 && before.OID != after.OID {
		d.add(catalog.SchemaChange{Kind: catalog.TableReplaced, TableBefore: &before.Name, TableAfter: &after.Name, Rewrite: catalog.RewriteValues})
	}
	if before.Name != after.Name {
		d.add(catalog.SchemaChange{Kind: catalog.TableRenamed, TableBefore: &before.Name, TableAfter: &after.Name, Rewrite: catalog.RewriteNone})
	}
	d.columns()
	d.key()
	d.identity()
	d.partitions()
	return d.changes
}

type differ struct {
	table         *catalog.Table
	before, after *catalog.Definition
	ddl           Commands
	changes       []catalog.SchemaChange
}

func (d *differ) add(c catalog.SchemaChange) { d.changes = append(d.changes, c) }

// columns pairs the columns of both sides and compares each pair.
func (d *differ) columns() {
	paired := make([]bool, len(d.after.Columns))
	var dropped []*catalog.ColumnDefinition
	for i := range d.before.Columns {
		was := &d.before.Columns[i]
		j := d.same(was)
		if j < 0 {
			if !was.Unsent {
				dropped = append(dropped, was)
				d.column(catalog.ColumnDropped, was, nil)
			}
			continue
		}
		paired[j] = true
		d.pair(was, &d.after.Columns[j])
	}
	for j := range d.after.Columns {
		if now := &d.after.Columns[j]; !paired[j] && !now.Unsent {
			d.added(now, dropped)
		}
	}
}

// same returns the index of the column after that is this one, or -1.
func (d *differ) same(was *catalog.ColumnDefinition) int {
	return slices.IndexFunc(d.after.Columns, func(now catalog.ColumnDefinition) bool {
		if was.Number != 0 && now.Number != 0 {
			return was.Number == now.Number
		}
		return was.Name == now.Name
	})
}

func (d *differ) pair(was, now *catalog.ColumnDefinition) {
	if was.Unsent && now.Unsent {
		return // the lake has none, before and after
	}
	if was.Unsent != now.Unsent {
		d.sentOrNot(was, now)
		return
	}
	if was.Name != now.Name {
		d.column(catalog.ColumnRenamed, was, now)
	}
	if !d.retype(was, now) {
		d.labels(was, now)
	}
	switch {
	case was.Nullable && !now.Nullable:
		d.column(catalog.NullabilityTightened, was, now)
	case !was.Nullable && now.Nullable:
		d.column(catalog.NullabilityRelaxed, was, now)
	}
	if !sameDefault(was.Default, now.Default) {
		d.column(catalog.DefaultChanged, was, now)
	}
	if was.Generated != now.Generated {
		d.generated(was, now)
	}
}

// sentOrNot tells of a column that the capture begins or ceases to send. Rows that are
// there have values that were never sent.
func (d *differ) sentOrNot(was, now *catalog.ColumnDefinition) {
	kind := catalog.ColumnAdded
	switch {
	case was.Generated != now.Generated:
		kind = catalog.GeneratedChanged
	case now.Unsent:
		kind = catalog.ColumnDropped
	}
	c := d.change(kind, was, now)
	if was.Unsent {
		c.Rewrite = catalog.RewriteValues
	}
	d.add(c)
}

// generated tells that a column is computed in another way, or no longer.
func (d *differ) generated(was, now *catalog.ColumnDefinition) {
	c := d.change(catalog.GeneratedChanged, was, now)
	if now.Generated != "" { // it is made anew for all rows
		c.Rewrite = catalog.RewriteValues
	}
	d.add(c)
}

// added tells of a new column, and what rows that are there have in it.
func (d *differ) added(now *catalog.ColumnDefinition, dropped []*catalog.ColumnDefinition) {
	c := d.change(catalog.ColumnAdded, nil, now)
	switch {
	case now.Generated != "":
		c.Rewrite = catalog.RewriteValues
	case now.Default == nil || now.Default.Volatility == catalog.Constant || now.Default.Missing != nil:
	default:
		c.Rewrite = catalog.RewriteValues
	}
	for _, was := range dropped {
		if was.Name == now.Name { // the lake has a column of the name, which was kept
			before, after := d.lakeTypes(&c, was, now)
			c.Lake, c.LakeBefore, c.LakeAfter = lakeEffect(before, after), before.String(), after.String()
		}
	}
	if now.Number == 0 {
		for _, was := range dropped {
			if was.Number == 0 && typeClass(was, now) == classEqual {
				c.RenameOf = was.Name
				break
			}
		}
	}
	d.add(c)
}

// column adds a change of a column that rewrites nothing.
func (d *differ) column(kind catalog.SchemaChangeKind, was, now *catalog.ColumnDefinition) {
	d.add(d.change(kind, was, now))
}

// change describes a change of a column with its roles.
func (d *differ) change(kind catalog.SchemaChangeKind, was, now *catalog.ColumnDefinition) catalog.SchemaChange {
	c := catalog.SchemaChange{Kind: kind, Before: was, After: now, Rewrite: catalog.RewriteNone}
	for _, side := range []*catalog.ColumnDefinition{was, now} {
		if side == nil {
			continue
		}
		if c.Column == "" {
			c.Column = side.Name
		}
		c.Key = c.Key || slices.Contains(d.table.PrimaryKey, side.Name)
		c.Tracked = c.Tracked || slices.Contains(d.table.TrackColumns, side.Name)
		if c.PII == "" {
			c.PII = d.table.PII[side.Name]
		}
	}
	c.Key = c.Key || was != nil && slices.Contains(d.before.Key, was.Name)
	if now != nil && (was == nil || was.Name != now.Name || was.Unsent) {
		c.Clash = d.clash(now.Name)
	}
	return c
}

// clash returns what a new name is one with to some reader of the lake.
func (d *differ) clash(name string) string {
	var columns []catalog.Column
	for _, c := range d.after.Columns {
		if !c.Unsent {
			columns = append(columns, catalog.Column{Name: c.Name, Type: typemap.Postgres(c.Type)})
		}
	}
	for _, c := range catalog.Clashes(columns) {
		switch name {
		case c.Column:
			return c.With
		case c.With:
			return c.Column
		}
	}
	return ""
}

func (d *differ) key() {
	if slices.EqualFunc(d.before.Key, d.after.Key, func(was, now string) bool { return d.called(was) == now }) {
		return
	}
	d.add(catalog.SchemaChange{
		Kind: catalog.KeyChanged, Key: true, KeyBefore: d.before.Key, KeyAfter: d.after.Key,
		CarriesKey: d.after.Identity.Carries(d.configuredKey()), Rewrite: catalog.RewriteNone,
	})
}

// called is what a column of before is called after.
func (d *differ) called(name string) string {
	if was := d.before.Column(name); was != nil {
		if j := d.same(was); j >= 0 {
			return d.after.Columns[j].Name
		}
	}
	return name
}

// configuredKey is the configured key under the names after.
func (d *differ) configuredKey() []string {
	out := make([]string, len(d.table.PrimaryKey))
	for i, name := range d.table.PrimaryKey {
		out[i] = d.called(name)
	}
	return out
}

func (d *differ) identity() {
	was, now := d.before.Identity, d.after.Identity
	if was.Mode == "" || now.Mode == "" || was.Mode == now.Mode && was.Mode != catalog.IdentityIndex {
		return // what the default one carries changes with the key, which is told already
	}
	if was.Mode == now.Mode && slices.EqualFunc(was.Columns, now.Columns, func(a, b string) bool { return d.called(a) == b }) {
		return
	}
	d.add(catalog.SchemaChange{
		Kind: catalog.IdentityChanged, IdentityBefore: &was, IdentityAfter: &now,
		CarriesKey: now.Carries(d.configuredKey()), Rewrite: catalog.RewriteNone,
	})
}

func (d *differ) partitions() {
	missing := func(in []catalog.Relation, r catalog.Relation) bool {
		return !slices.ContainsFunc(in, func(o catalog.Relation) bool { return o.OID == r.OID && (o.OID != 0 || o.Name == r.Name) })
	}
	for _, r := range d.before.Partitions {
		if missing(d.after.Partitions, r) {
			d.add(catalog.SchemaChange{Kind: catalog.PartitionDetached, Partition: r.Name, Rewrite: catalog.RewriteNone})
		}
	}
	for _, r := range d.after.Partitions {
		if missing(d.before.Partitions, r) {
			d.add(catalog.SchemaChange{Kind: catalog.PartitionAttached, Partition: r.Name, Rewrite: catalog.RewriteNone})
		}
	}
}

// sameDefault compares what new rows get: NULL when there is no default, or when it says
// so and is kept for what old rows have.
func sameDefault(a, b *catalog.Default) bool {
	constant := func(d *catalog.Default) bool { return d == nil || d.Volatility == catalog.Constant }
	return a.String() == b.String() && (constant(a) && constant(b) || a != nil && b != nil && a.Volatility == b.Volatility)
}
