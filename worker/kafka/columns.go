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

// Foresee tells what the connector of a source will not send right of a table, before
// anything is read. Nothing is told of a table that the source has not described.
func Foresee(source *catalog.Source, t *catalog.Table, d Description) []catalog.Finding {
	described, found := d.Tables[t.Name.String()]
	if !found || described.Err != nil {
		return nil
	}
	cfg, err := decoderConfig(source.Connector)
	if err != nil {
		return []catalog.Finding{{Severity: catalog.Blocks, Code: err.Code, Source: source.Name, Table: t.Name.String(), Message: err.Message, Fix: err.Hint}}
	}
	return debezium.Foresee(described.with(cfg, t, described.Schema, d.Monetary))
}

// with completes what the connector's properties say by what the source says of a table.
func (d TableDescription) with(cfg debezium.Config, t *catalog.Table, schema *catalog.Schema, monetary string) debezium.Config {
	cfg.Table, cfg.Schema = t, schema
	cfg.FullIdentity, cfg.Ignored, cfg.Monetary = d.FullIdentity, d.Generated, monetary
	return cfg
}

// decoderConfig reads from the connector's properties how it writes values. What is not
// said is as the recommended settings have it.
func decoderConfig(c *catalog.Connector) (debezium.Config, *catalog.Error) {
	out := debezium.Config{Placeholder: c.Properties["unavailable.value.placeholder"]}
	times := map[string]debezium.TimePrecision{
		"": debezium.Microseconds, "microseconds": debezium.Microseconds, "adaptive": debezium.Adaptive,
		"adaptive_time_microseconds": debezium.AdaptiveTime, "connect": debezium.Milliseconds, "nanoseconds": debezium.Nanoseconds,
	}
	binaries := map[string]debezium.BinaryForm{
		"": debezium.Bytes, "bytes": debezium.Bytes, "base64": debezium.Base64, "base64-url-safe": debezium.Base64URL, "hex": debezium.Hex,
	}
	decimals := map[string]debezium.DecimalForm{"": debezium.DecimalString, "string": debezium.DecimalString, "precise": debezium.DecimalPrecise}
	var ok1, ok2, ok3 bool
	out.Time, ok1 = times[c.Properties["time.precision.mode"]]
	out.Binary, ok2 = binaries[c.Properties["binary.handling.mode"]]
	out.Decimal, ok3 = decimals[c.Properties["decimal.handling.mode"]]
	for property, ok := range map[string]bool{"time.precision.mode": ok1, "binary.handling.mode": ok2, "decimal.handling.mode": ok3} {
		if !ok {
			return out, catalog.Errorf(catalog.Invalid, catalog.CodeDecode, "leave it as Lakeweir sets it", "values cannot be read that are written under %s: %s", property, c.Properties[property])
		}
	}
	return out, nil
}
