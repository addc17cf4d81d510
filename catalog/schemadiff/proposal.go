package schemadiff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// Proposal is what somebody means to do to a table, in words. Columns that it names and
// Columns does not declare are taken to be text.
type Proposal struct {
	Columns []string `yaml:"columns"` // what is there, as SQL declares it
	// Unnumbered says that the capture does not tell attribute numbers.
	Unnumbered bool `yaml:"unnumbered"`

	Add      []string          `yaml:"add"`    // "phone text", as SQL declares it
	Drop     []string          `yaml:"drop"`   // names
	Rename   map[string]string `yaml:"rename"` // old name: new name
	Retype   map[string]string `yaml:"retype"` // name: "integer -> bigint"
	Using    []string          `yaml:"using"`  // the retyped columns that a USING expression converts
	Nullable []string          `yaml:"nullable"`
	NotNull  []string          `yaml:"not_null"`
	Default  map[string]string `yaml:"default"` // name: expression
	Labels   map[string]string `yaml:"labels"`  // name: "new, paid -> new, settled"
	// Send and Unsend name columns that the capture begins and ceases to send; Ungenerate
	// those that are computed no longer.
	Send       []string            `yaml:"send"`
	Unsend     []string            `yaml:"unsend"`
	Ungenerate []string            `yaml:"ungenerate"`
	Content    map[string][]string `yaml:"content"` // new column: what its values look like

	Key         []string `yaml:"key"`      // the new primary key
	Identity    string   `yaml:"identity"` // the new replica identity
	RenameTable string   `yaml:"rename_table"`
	DropTable   bool     `yaml:"drop_table"`
	Replace     bool     `yaml:"replace_table"`
	Attach      []string `yaml:"attach"`
	Detach      []string `yaml:"detach"`
}

// Changes returns the changes that the proposal comes to for a configured table.
func (p *Proposal) Changes(table *catalog.Table) ([]catalog.SchemaChange, error) {
	before, err := p.before(table)
	if err != nil {
		return nil, err
	}
	after, err := p.after(before)
	if err != nil {
		return nil, err
	}
	if p.Unnumbered {
		for _, d := range []*catalog.Definition{before, after} {
			for i := range d.Columns {
				d.Columns[i].Number = 0
			}
		}
	}
	if p.DropTable {
		after = nil
	}
	changes := Diff(table, before, after, Commands{Whole: true, Using: p.Using})
	for i, c := range changes {
		if c.After != nil {
			changes[i].Content = p.Content[c.After.Name]
		}
	}
	return changes, nil
}

// before declares the table as it is taken to be: what Columns say, and what the
// configuration and the proposal name.
func (p *Proposal) before(table *catalog.Table) (*catalog.Definition, error) {
	d := &catalog.Definition{Name: table.Name, OID: 1, Key: table.PrimaryKey, Identity: catalog.Identity{Mode: catalog.IdentityDefault, Columns: table.PrimaryKey}}
	for _, sql := range p.Columns {
		c, err := Declare(sql)
		if err != nil {
			return nil, err
		}
		d.Columns = append(d.Columns, c)
	}
	need := func(name, sql string) error {
		if d.Column(name) != nil {
			return nil
		}
		c, err := Declare(quote(name) + " " + sql)
		d.Columns = append(d.Columns, c)
		return err
	}
	for _, name := range table.PrimaryKey {
		if err := need(name, "bigint not null"); err != nil {
			return nil, err
		}
	}
	for name, types := range sorted(p.Retype) {
		was, _, _ := strings.Cut(types, "->")
		if err := need(name, was); err != nil {
			return nil, err
		}
	}
	for name, labels := range sorted(p.Labels) {
		was, _, _ := strings.Cut(labels, "->")
		if err := need(name, "enum("+was+")"); err != nil {
			return nil, err
		}
	}
	names := slices.Concat(table.TrackColumns, p.Drop, slices.Sorted(maps.Keys(p.Rename)), p.Nullable, p.NotNull, slices.Sorted(maps.Keys(p.Default)), p.Send, p.Unsend, p.Ungenerate)
	for _, name := range names {
		if err := need(name, "text"); err != nil {
			return nil, err
		}
	}
	for i := range d.Columns {
		c := &d.Columns[i]
		c.Number = i + 1
		c.Nullable = c.Nullable && !slices.Contains(table.PrimaryKey, c.Name) || slices.Contains(p.NotNull, c.Name)
		if slices.Contains(p.Nullable, c.Name) {
			c.Nullable = false
		}
		if slices.Contains(p.Send, c.Name) {
			c.Unsent = true
		}
		if slices.Contains(p.Ungenerate, c.Name) {
			c.Generated, c.Unsent = "stored", true
		}
	}
	for _, name := range p.Detach {
		d.Partitions = append(d.Partitions, catalog.Relation{Name: name})
	}
	return d, nil
}

// after does what is proposed.
func (p *Proposal) after(before *catalog.Definition) (*catalog.Definition, error) {
	d := *before
	d.Columns, d.Partitions = slices.Clone(before.Columns), nil
	for name, types := range sorted(p.Retype) {
		c := d.Column(name)
		_, now, ok := strings.Cut(types, "->")
		if !ok {
			now = types
		}
		var err error
		if c.Type, err = typemap.Declared(now, strings.Contains(now, ".")); err != nil {
			return nil, err
		}
	}
	for name, labels := range sorted(p.Labels) {
		_, now, ok := strings.Cut(labels, "->")
		if !ok {
			return nil, fmt.Errorf("%q is no change of labels such as \"new, paid -> new, settled\"", labels)
		}
		relabel(before.Column(name), d.Column(name), now)
	}
	for i := range d.Columns {
		c := &d.Columns[i]
		switch {
		case slices.Contains(p.Nullable, c.Name):
			c.Nullable = true
		case slices.Contains(p.NotNull, c.Name):
			c.Nullable = false
		}
		if e, ok := p.Default[c.Name]; ok {
			c.Default = &catalog.Default{Expression: e, Volatility: volatility(e)}
		}
		c.Unsent = c.Unsent && !slices.Contains(p.Send, c.Name) && !slices.Contains(p.Ungenerate, c.Name) || slices.Contains(p.Unsend, c.Name)
		if slices.Contains(p.Ungenerate, c.Name) {
			c.Generated = ""
		}
		if now, ok := p.Rename[c.Name]; ok {
			c.Name = now
		}
	}
	d.Columns = slices.DeleteFunc(d.Columns, func(c catalog.ColumnDefinition) bool { return slices.Contains(p.Drop, c.Name) })
	for i, sql := range p.Add {
		c, err := Declare(sql)
		if err != nil {
			return nil, err
		}
		c.Number = len(before.Columns) + i + 1
		d.Columns = append(d.Columns, c)
	}
	d.Key = renamed(before.Key, p.Rename)
	d.Identity.Columns = renamed(before.Identity.Columns, p.Rename)
	if p.Key != nil {
		d.Key, d.Identity.Columns = p.Key, p.Key
	}
	if p.Identity != "" {
		d.Identity = catalog.Identity{Mode: catalog.IdentityMode(p.Identity)}
		if d.Identity.Mode == catalog.IdentityDefault || d.Identity.Mode == catalog.IdentityFull {
			d.Identity.Columns = d.Key
		}
	}
	if p.RenameTable != "" {
		d.Name = catalog.ParseTableName(p.RenameTable)
	}
	if p.Replace {
		d.OID++
	}
	for _, name := range p.Attach {
		d.Partitions = append(d.Partitions, catalog.Relation{Name: name})
	}
	return &d, nil
}

// relabel gives a column other labels. Where as many come as go, they are renamed.
func relabel(was, now *catalog.ColumnDefinition, labels string) {
	was.Labels, now.Labels = slices.Clone(was.Labels), nil
	for i := range was.Labels {
		was.Labels[i].OID = uint32(i + 1)
	}
	names := strings.Split(labels, ",")
	for i, name := range names {
		l := catalog.EnumLabel{OID: uint32(len(was.Labels) + i + 1), Name: strings.TrimSpace(name)}
		if j := slices.IndexFunc(was.Labels, func(o catalog.EnumLabel) bool { return o.Name == l.Name }); j >= 0 {
			l.OID = was.Labels[j].OID
		} else if len(names) == len(was.Labels) {
			l.OID = was.Labels[i].OID
		}
		now.Labels = append(now.Labels, l)
	}
}

func renamed(names []string, to map[string]string) []string {
	out := slices.Clone(names)
	for i, n := range out {
		if now, ok := to[n]; ok {
			out[i] = now
		}
	}
	return out
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// sorted iterates a map by its keys.
func sorted(m map[string]string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
