package lake

import (
	"context"
	"errors"
	"slices"

	icecat "github.com/apache/iceberg-go/catalog"

	"github.com/lakeweir/lakeweir/catalog"
)

// TableInfo names a table of the lake.
type TableInfo struct {
	Ident []string      `json:"ident"`
	Table string        `json:"table,omitempty"` // the source table, as catalog.Table.ID prints it; empty when Lakeweir did not make it
	Layer catalog.Layer `json:"layer,omitempty"`
}

// Tables lists every table of the catalog, in order of name. It loads each of them.
func (l *Lake) Tables(ctx context.Context) ([]TableInfo, error) {
	var out []TableInfo
	if err := l.tables(ctx, nil, &out); err != nil {
		return nil, l.unavailable(err, "the lake's tables cannot be listed")
	}
	slices.SortFunc(out, func(a, b TableInfo) int { return slices.Compare(a.Ident, b.Ident) })
	return out, nil
}

func (l *Lake) tables(ctx context.Context, parent []string, out *[]TableInfo) error {
	namespaces, err := l.cat.ListNamespaces(ctx, parent)
	if err != nil {
		return err
	}
	for _, ns := range namespaces {
		if len(ns) != len(parent)+1 {
			continue // some catalogs list deeper ones too
		}
		for ident, err := range l.cat.ListTables(ctx, ns) {
			if err != nil {
				return err
			}
			t, err := l.cat.LoadTable(ctx, ident)
			if errors.Is(err, icecat.ErrNoSuchTable) {
				continue // dropped meanwhile
			}
			if err != nil {
				return err
			}
			*out = append(*out, TableInfo{Ident: ident, Table: t.Properties()[propTable], Layer: catalog.Layer(t.Properties()[propLayer])})
		}
		if err := l.tables(ctx, ns, out); err != nil {
			return err
		}
	}
	return nil
}
