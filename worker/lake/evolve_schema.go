package lake

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
)

// evolution computes the columns that a layer is to have from those that it has. Fields
// keep their ids whatever becomes of their names and types, so every file of the table
// stays readable; none is ever taken away.
type evolution struct {
	layer catalog.Layer
	was   *lineage // of the columns as they are
	to    *catalog.Schema
	is    []int // which of was each column of to is, or -1
	last  int   // the highest field id given out
	table string
}

// next returns the schema that the table is to have. It fails with lake.schema when
// Iceberg has no way from the one to the other.
func (e *evolution) next(cur *iceberg.Schema) (*iceberg.Schema, error) {
	e.is = e.was.follow(lineageOf(e.to))
	if err := e.check(); err != nil {
		return nil, err
	}
	all := structColumns(colAfter, e.to)
	fields := slices.Clone(cur.Fields())
	var err error
	if e.layer != catalog.Bronze {
		fields, err = e.evolve(fields, "", all)
	} else {
		for i, f := range fields {
			st, ok := f.Type.(*iceberg.StructType)
			if !ok || !slices.Contains(bronzeStructs, f.Name) {
				continue
			}
			inner, ferr := e.evolve(slices.Clone(st.FieldList), f.Name+".", structColumns(f.Name, e.to))
			if err = ferr; err != nil {
				break
			}
			fields[i].Type = &iceberg.StructType{FieldList: inner}
		}
	}
	if err != nil {
		return nil, err
	}
	var identifiers []int
	for _, f := range fields {
		if f.Required && slices.Contains(cur.IdentifierFieldIDs, f.ID) {
			identifiers = append(identifiers, f.ID)
		}
	}
	return iceberg.NewSchemaWithIdentifiers(0, identifiers, fields...), nil
}

// check refuses what no layer can follow.
func (e *evolution) check() error {
	seen := map[string]bool{}
	for i, c := range e.to.Columns {
		if seen[c.Name] {
			return e.refused("give one of them another name", "there are two columns %q", c.Name)
		}
		seen[c.Name] = true
		if n := e.is[i]; n >= 0 && e.was.Columns[n].Dropped && !c.Dropped {
			return e.another(c.Name)
		}
		if c.Dropped && e.to.IsKey(i) {
			return e.refused("choose another key and have the table read anew", "column %q is part of the key and cannot be dropped", c.Name)
		}
	}
	if len(e.was.Key) != len(e.to.Key) {
		return e.otherKey()
	}
	for n, i := range e.to.Key {
		if e.is[i] < 0 || e.was.Columns[e.is[i]].Name != e.was.Key[n] {
			return e.otherKey()
		}
	}
	return nil
}

func (e *evolution) another(name string) error {
	return e.refused("give the dropped column another name, and have the new one added", "a column %q was dropped, and its values are still there: the new column of that name is another", name)
}

func (e *evolution) otherKey() error {
	var names []string
	for _, i := range e.to.Key {
		names = append(names, e.to.Columns[i].Name)
	}
	return e.refused("have the table read anew under its new key", "its key is (%s), and is to be (%s)", strings.Join(e.was.Key, ", "), strings.Join(names, ", "))
}

// evolve does one list of fields: those at the top, or a struct's.
func (e *evolution) evolve(fields []iceberg.NestedField, path string, columns []int) ([]iceberg.NestedField, error) {
	places := map[string]int{}
	for i, f := range fields {
		places[f.Name] = i
	}
	kept, end := map[int]bool{}, 0
	for _, c := range e.was.Columns {
		if at, ok := places[c.Name]; ok {
			kept[at], end = true, max(end, at+1)
		}
	}
	required := map[int]bool{} // by place: columns that may stay so
	var added []iceberg.NestedField
	for _, col := range columns {
		c := e.to.Columns[col]
		at, found := places[c.Name]
		if n := e.is[col]; n >= 0 {
			if at, found = places[e.was.Columns[n].Name]; !found {
				return nil, e.refused("put the column back, or drop the table to have it read again", "it has no column %q any more", path+e.was.Columns[n].Name)
			}
		} else if kept[at] {
			found = false // it makes room for this one
		}
		if !found {
			id := e.id()
			added = append(added, iceberg.NestedField{ID: id, Name: c.Name, Type: icebergType(c.Type, e.id)})
			continue
		}
		f := &fields[at]
		t, err := promote(f.Type, c.Type)
		if err != nil {
			return nil, e.refused("keep it under another name, and have the changed one added as a new column", "column %q is %s, and Iceberg cannot make that %s", path+f.Name, typeName(f.Type), c.Type)
		}
		f.Name, f.Type = c.Name, t
		kept[at], required[at] = true, e.to.IsKey(col)
	}
	for at := range kept {
		if !required[at] {
			fields[at].Required = false
		}
	}
	fields = slices.Insert(fields, end, added...)
	names := map[string]bool{}
	for _, f := range fields {
		if names[f.Name] && e.was.index(f.Name) >= 0 {
			return nil, e.another(f.Name)
		}
		if names[f.Name] {
			return nil, e.refused("rename or drop that column in the lake", "it already has a column %q, which is none of the source's", path+f.Name)
		}
		names[f.Name] = true
	}
	return fields, nil
}

func (e *evolution) id() int {
	e.last++
	return e.last
}

func (e *evolution) refused(hint, format string, args ...any) error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeLakeSchema, hint, "the lake's table %s cannot follow the source: %s", e.table, fmt.Sprintf(format, args...))
}

// errNoPromotion says that Iceberg cannot read values of the one type as the other.
var errNoPromotion = errors.New("no promotion")

// promote returns a field's type once it holds values of t, keeping ids; the type as it
// is when it holds them already.
func promote(have iceberg.Type, t catalog.Type) (iceberg.Type, error) {
	if typeName(have) == typeName(icebergType(t, func() int { return 0 })) {
		return have, nil
	}
	switch h := have.(type) {
	case iceberg.Int32Type:
		if t.Kind == catalog.Int64 {
			return iceberg.PrimitiveTypes.Int64, nil
		}
	case iceberg.Float32Type:
		if t.Kind == catalog.Float64 {
			return iceberg.PrimitiveTypes.Float64, nil
		}
	case iceberg.DecimalType:
		if t.Kind == catalog.Decimal && t.Scale == h.Scale() && t.Precision >= h.Precision() {
			return iceberg.DecimalTypeOf(t.Precision, t.Scale), nil
		}
	case *iceberg.ListType:
		if t.Kind == catalog.List {
			elem, err := promote(h.Element, *t.Elem)
			return &iceberg.ListType{ElementID: h.ElementID, Element: elem, ElementRequired: h.ElementRequired}, err
		}
	}
	return nil, errNoPromotion
}
