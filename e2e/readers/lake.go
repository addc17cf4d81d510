package readers

import (
	"encoding/json"
	"maps"
)

// Lake is where the tables are: a REST catalog, or an SQL catalog in an SQLite file.
type Lake struct {
	File string // of an SQL catalog
	Name string // the catalog's name in it; with a REST catalog any name will do
	REST string // the URL of a REST catalog; empty for an SQL one
	// Properties are Iceberg's own for the files of a REST catalog: s3.endpoint, …
	Properties map[string]string
}

// pyIceberg is how PyIceberg is told of the lake.
func (l Lake) pyIceberg() string {
	if l.REST == "" {
		return encode(nil, map[string]string{"type": "sql", "uri": "sqlite:///" + l.File})
	}
	return encode(l.Properties, map[string]string{"type": "rest", "uri": l.REST})
}

// spark is how Spark is told of the lake.
func (l Lake) spark() string {
	if l.REST == "" {
		return encode(nil, map[string]string{
			"type": "jdbc", "uri": "jdbc:sqlite:" + l.File, "jdbc.schema-version": "V1", "warehouse": "file:/unused",
		})
	}
	return encode(l.Properties, map[string]string{"type": "rest", "uri": l.REST, "io-impl": "org.apache.iceberg.aws.s3.S3FileIO"})
}

func encode(parts ...map[string]string) string {
	all := map[string]string{}
	for _, m := range parts {
		maps.Copy(all, m)
	}
	text, _ := json.Marshal(all) // strings can always be encoded
	return string(text)
}
