package connectorconfig

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

var update = flag.Bool("update", false, "rewrite golden and generated files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run: go test ./catalog/connectorconfig -update")
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not up to date; run: go test ./catalog/connectorconfig -update\n%s", file, diff)
	}
}

func someTables() []*catalog.Table {
	return []*catalog.Table{table("public", "orders"), table("my,s", "a.b $x")}
}

func TestRenderings(t *testing.T) {
	t.Setenv("SHOP_DSN", "postgres://cdc:p%40ss@db:6543/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem")
	for name, change := range map[string]func(*catalog.Source){
		"least": func(s *catalog.Source) { s.Connection = "postgres://cdc:${env:PGPASSWORD}@db.example.com/shop" },
		"whole": func(s *catalog.Source) {
			s.Connection = "${env:SHOP_DSN}"
			s.Heartbeat.Interval = 0
			s.Connector = &catalog.Connector{
				Name: "shop-cdc", TopicPrefix: "prod.shop", Format: catalog.FormatAvro, SchemaRegistry: "http://registry:8081",
				Properties:  map[string]string{"max.batch.size": "4096", "slot.failover": "true", "decimal.handling.mode": "precise", "not.known": "x"},
				SignalTable: catalog.TableName{Schema: "lakeweir", Name: "signals"},
			}
		},
		"json": func(s *catalog.Source) {
			s.Connection, s.Connector.Format = "host=db port=1234 user=cdc password='${file:/run/secrets/pw}' dbname=shop", catalog.FormatJSON
		},
	} {
		source := debezium()
		change(source)
		c, err := Render(source, someTables())
		require.NoError(t, err)
		golden(t, "testdata/"+name+".json", c.JSON())
		require.True(t, json.Valid(c.JSON()))
		notes, err := json.MarshalIndent(c.Notes, "", "  ")
		require.NoError(t, err)
		golden(t, "testdata/"+name+".notes.json", append(notes, '\n'))
	}
}

func TestSecretsAreResolvedOnlyToSend(t *testing.T) {
	t.Setenv("SHOP_DSN", "postgres://cdc:p%40ss@db:6543/shop")
	t.Setenv("PGPASSWORD", "hunter2%")
	t.Setenv("REGISTRY", "registry:8081")
	for connection, want := range map[catalog.SecretRef]string{
		"${env:SHOP_DSN}": "p@ss",
		"host=db user=cdc password=${env:PGPASSWORD}": "hunter2%",
	} {
		source := debezium()
		source.Connection = connection
		source.Connector.Format, source.Connector.SchemaRegistry = catalog.FormatAvro, "http://${env:REGISTRY}"
		source.Connector.Properties = map[string]string{"producer.override.sasl.jaas.config": `x password="${env:PGPASSWORD}";`}
		c, err := Render(source, someTables())
		require.NoError(t, err)
		require.NotContains(t, string(c.JSON()), "hunter2")
		require.NotContains(t, string(c.JSON()), "p@ss")
		sent, err := c.Resolve()
		require.NoError(t, err)
		require.Equal(t, want, sent["database.password"])
		require.Equal(t, "http://registry:8081", sent["value.converter.schema.registry.url"])
		require.Equal(t, `x password="hunter2%";`, sent["producer.override.sasl.jaas.config"])
		require.Len(t, sent, len(c.Properties))
		for name, value := range sent {
			if !IsSecret(name) && setting(name) != nil && setting(name).Key != "connector.schema_registry" {
				require.Equal(t, c.Properties[name], value, name)
			}
		}
	}
}

func TestPropertiesGoOverTheConnection(t *testing.T) {
	t.Setenv("SHOP_DSN", "postgres://cdc:secret@db/shop")
	t.Setenv("CDC_PASSWORD", "other")
	source := debezium()
	source.Connection = "${env:SHOP_DSN}"
	source.Connector.Properties = map[string]string{"database.hostname": "db.internal", "database.password": "${env:CDC_PASSWORD}"}
	c, err := Render(source, someTables())
	require.NoError(t, err)
	require.Equal(t, "${env:CDC_PASSWORD}", c.Properties["database.password"])
	require.Empty(t, c.Notes)
	sent, err := c.Resolve()
	require.NoError(t, err)
	require.Equal(t, "other", sent["database.password"])
	require.Equal(t, "db.internal", sent["database.hostname"])
	require.Equal(t, "shop", sent["database.dbname"])
}

func TestWhatCannotBeResolvedIsNamedAndNotShown(t *testing.T) {
	t.Setenv("BROKEN", "postgres://cdc:hunter2@db:x%zz/shop?%zz")
	for connection, want := range map[catalog.SecretRef]string{
		"${env:NOWHERE_SET}": "environment variable NOWHERE_SET is not set",
		"${env:BROKEN}":      "the connection cannot be told to a connector",
	} {
		source := debezium()
		source.Connection = connection
		_, err := Render(source, someTables())
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
		require.Equal(t, catalog.Invalid, catalog.KindOf(err))
	}
}

func TestConnectionsAreTakenApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]endpoint{
		"postgres://u@h/d":                            {host: "h", port: "5432", user: "u", database: "d"},
		"postgresql://u:${env:P}@[::1]:99/d?a=b":      {host: "::1", port: "99", user: "u", password: "${env:P}", database: "d"},
		"postgres://${env:U}:${env:P}@${env:H}":       {host: "${env:H}", port: "5432", user: "${env:U}", password: "${env:P}", database: "${env:U}"},
		"postgres://u@h?sslmode=require&dbname=d":     {host: "h", port: "5432", user: "u", database: "d", sslMode: "require"},
		"postgres:///d?host=h&user=u&password=a%26":   {host: "h", port: "5432", user: "u", password: "a&", database: "d"},
		`host = h user='u 1' password='a\'b' dbname=`: {host: "h", port: "5432", user: "u 1", password: "a'b", database: "u 1"},
	} {
		got, err := splitConnection(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "nonsense", "host=h", "user=u", "host='h user=u", "postgres://u@a,b/d", "host=/tmp user=u", "postgres://u@[::1/d", "postgres://%zz@h/d"} {
		_, err := splitConnection(text)
		require.Error(t, err, text)
	}
}

func FuzzConnectionsNeverPanicNorShow(f *testing.F) {
	f.Add("postgres://u:secretsecret@h/d")
	f.Add("host=h user=u password='secretsecret")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := splitConnection(text); err != nil && len(text) > 20 {
			require.NotContains(t, err.Error(), text)
		}
	})
}
