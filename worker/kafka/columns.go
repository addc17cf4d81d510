package kafka

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/debezium"
)

// chooseSchema decides by which columns a table's topic is read: those it was last read
// by, since the topic itself shows where columns come and go, else the source's. A
// column that has another type now does not show in every message; it stops the table.
func chooseSchema(t *table, described TableDescription, found, asked bool) (*catalog.Schema, *catalog.Error) {
	known := t.resume.Schema
	switch {
	case described.Err != nil:
		return nil, catalog.Public(described.Err)
	case !found && known != nil:
		return known, nil
	case !found && asked:
		return nil, catalog.Errorf(catalog.NotFound, catalog.CodeSourceTable, "check its name and that the role may see it", "the source has no table %s", t.name)
	case !found:
		return nil, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "", "the columns of table %s are not known", t.name)
	case known == nil || known.SameShape(described.Schema):
		return described.Schema, nil
	}
	for _, c := range known.Columns {
		if i := described.Schema.Index(c.Name); i >= 0 && !described.Schema.Columns[i].Type.Equal(c.Type) {
			return nil, catalog.Errorf(catalog.Conflict, catalog.CodeSchemaChanged, "decide how the lake's table is to follow the source",
				"column %s is %s now and was %s", c.Name, described.Schema.Columns[i].Source.Name, c.Source.Name)
		}
	}
	return known, nil
}

// decoderConfig reads from the connector's properties how it writes values.
func decoderConfig(c *catalog.Connector) (debezium.Config, *catalog.Error) {
	return debezium.Config{Placeholder: c.Properties["unavailable.value.placeholder"]}, nil
}
