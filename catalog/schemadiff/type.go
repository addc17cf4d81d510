package schemadiff

import (
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// retype adds the change of a column's type, if there is one.
func (d *differ) retype(was, now *catalog.ColumnDefinition) bool {
	class := typeClass(was, now)
	if class == classEqual {
		return false
	}
	c := d.change("", was, now)
	before, after := d.lakeTypes(&c, was, now)
	c.Lake, c.LakeBefore, c.LakeAfter = lakeEffect(before, after), before.String(), after.String()
	switch {
	case class == classWider && (c.Lake == catalog.LakeSame || c.Lake == catalog.LakePromotes):
		c.Kind = catalog.ColumnWidened
	case class == classNarrower:
		c.Kind = catalog.ColumnNarrowed
	default:
		c.Kind = catalog.ColumnRetyped
	}
	switch {
	case slices.Contains(d.ddl.Using, now.Name):
		c.Rewrite = catalog.RewriteValues
	case !sameText(was, now) && c.Lake == catalog.LakeSame && holdsText(after):
		c.Rewrite = catalog.RewriteValues // the lake has the text that the server printed before
	case !d.ddl.Whole:
		c.Rewrite = catalog.RewriteUnknown
	}
	d.add(c)
	return true
}

// lakeTypes are a column's types in the lake before and after. What protects a column is
// text, whatever it protects.
func (*differ) lakeTypes(c *catalog.SchemaChange, was, now *catalog.ColumnDefinition) (before, after catalog.Type) {
	if c.PII != "" {
		return catalog.Type{Kind: catalog.Text}, catalog.Type{Kind: catalog.Text}
	}
	return typemap.Postgres(was.Type), typemap.Postgres(now.Type)
}

// lakeEffect says what a change from one lake type to another asks of the column.
func lakeEffect(before, after catalog.Type) catalog.LakeEffect {
	switch {
	case before.Equal(after):
		return catalog.LakeSame
	case promotes(before, after):
		return catalog.LakePromotes
	case promotes(after, before):
		return catalog.LakeHolds
	}
	return catalog.LakeReplaces
}

// promotes reports whether Iceberg can turn a column of one type into the other and
// keep its field id. A list's element has an id of its own, and is promoted alike.
func promotes(from, to catalog.Type) bool {
	switch {
	case from.Kind == catalog.List && to.Kind == catalog.List:
		return promotes(*from.Elem, *to.Elem)
	case from.Kind == catalog.Int32:
		return to.Kind == catalog.Int64
	case from.Kind == catalog.Float32:
		return to.Kind == catalog.Float64
	case from.Kind == catalog.Decimal && to.Kind == catalog.Decimal:
		return from.Scale == to.Scale && from.Precision < to.Precision
	}
	return false
}

func holdsText(t catalog.Type) bool {
	return t.Kind == catalog.Text || t.Kind == catalog.List && t.Elem.Kind == catalog.Text
}

// class is how the values of two types relate.
type class int

const (
	classEqual    class = iota // the same type, looking through domains and new names of types
	classWider                 // the second holds every value of the first
	classNarrower              // the first holds every value of the second
	classOther
)

func typeClass(was, now *catalog.ColumnDefinition) class {
	switch {
	case sameType(was.Type, now.Type):
		return classEqual
	case wider(was, now):
		return classWider
	case wider(now, was):
		return classNarrower
	}
	return classOther
}

// sameType reports whether both have the same values. Domains are looked through: their
// checks are not ours to keep. A made type is another one when its id is.
func sameType(a, b catalog.SourceType) bool {
	if a.Base != b.Base || a.Modifier != b.Modifier || (a.Elem == nil) != (b.Elem == nil) {
		return false
	}
	if a.Elem != nil {
		return sameType(*a.Elem, *b.Elem) && (a.Dims > 1) == (b.Dims > 1)
	}
	switch a.Base {
	case "enum", "composite", "range", "multirange":
		if a.OID != 0 && b.OID != 0 {
			return a.OID == b.OID
		}
		return a.Name == b.Name
	}
	return true
}
