package main

import (
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// only leaves one source and its tables in the fleet; false when there is no such source.
func only(f *registry.Fleet, source string) bool {
	f.Sources = slices.DeleteFunc(f.Sources, func(s registry.SourceView) bool { return s.Name != source })
	f.Tables = slices.DeleteFunc(f.Tables, func(t registry.TableView) bool { return t.Source != source })
	return len(f.Sources) > 0
}

// findTable returns the one table that name means: shop/public.orders, public.orders or
// orders.
func findTable(f *registry.Fleet, name string) (*registry.TableView, error) {
	var found []*registry.TableView
	for i := range f.Tables {
		t := &f.Tables[i]
		if t.ID() == name {
			return t, nil
		}
		if t.Name.String() == name || t.Name.Name == name {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, "lakeweir get tables lists those it knows", "the registry knows no table %q", name)
	}
	var names []string
	for _, t := range found {
		names = append(names, t.ID())
	}
	return nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "name one of "+strings.Join(names, ", "), "%q is the name of %d tables", name, len(found))
}

func noSuchSource(name string) error {
	return catalog.Errorf(catalog.NotFound, catalog.CodeNoSource, "lakeweir get sources lists those it knows", "the registry knows no source %q", name)
}

func lsnText(l catalog.LSN) string {
	if l == 0 {
		return "–"
	}
	return l.String()
}
