package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/catalog/tableconfig"
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
		names := make([]catalog.TableName, len(f.Tables))
		for i := range f.Tables {
			names[i] = f.Tables[i].Name
		}
		return nil, catalog.Errorf(catalog.NotFound, catalog.CodeNoTable, meant(name, names, "lakeweir get tables lists those it knows"), "the registry knows no table %q", name)
	}
	var names []string
	for _, t := range found {
		names = append(names, t.ID())
	}
	return nil, catalog.Errorf(catalog.Invalid, catalog.CodeUsage, "name one of "+strings.Join(names, ", "), "%q is the name of %d tables", name, len(found))
}

// meant is a hint that names the table that was probably meant, else fallback.
func meant(name string, tables []catalog.TableName, fallback string) string {
	words := make([]string, 0, 2*len(tables))
	for _, t := range tables {
		words = append(words, t.Name, t.String())
	}
	if near := tableconfig.Nearest(name[strings.LastIndex(name, "/")+1:], words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return fallback
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
