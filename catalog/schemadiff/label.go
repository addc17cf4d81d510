package schemadiff

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// labels compares the labels of an enum that is the same type before and after. A label
// is the same when it has the same id, else when it has the same name; their order
// means nothing to the lake, which has texts.
func (d *differ) labels(was, now *catalog.ColumnDefinition) {
	same := func(a, b catalog.EnumLabel) bool {
		if a.OID != 0 && b.OID != 0 {
			return a.OID == b.OID
		}
		return a.Name == b.Name
	}
	for _, l := range was.Labels {
		i := slices.IndexFunc(now.Labels, func(o catalog.EnumLabel) bool { return same(l, o) })
		switch {
		case i < 0:
			c := d.change(catalog.EnumLabelRemoved, was, now)
			c.Label = l.Name
			d.add(c)
		case now.Labels[i].Name != l.Name:
			c := d.change(catalog.EnumLabelRenamed, was, now)
			c.Label, c.NewLabel = l.Name, now.Labels[i].Name
			c.Rewrite = catalog.RewriteValues // rows with the label show its new name
			d.add(c)
		}
	}
	for _, l := range now.Labels {
		if !slices.ContainsFunc(was.Labels, func(o catalog.EnumLabel) bool { return same(o, l) }) {
			c := d.change(catalog.EnumLabelAdded, was, now)
			c.Label = l.Name
			d.add(c)
		}
	}
}
