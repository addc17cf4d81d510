package main

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/lake"
)

// registryFlag gives cmd the --registry flag; dsn gets its value, which may hold
// ${env:NAME} and ${file:PATH}.
func (app *App) registryFlag(cmd *cobra.Command, dsn *string) {
	cmd.Flags().StringVar(dsn, "registry", app.env("LAKEWEIR_REGISTRY", ""), "connection string of the registry's Postgres (or LAKEWEIR_REGISTRY)")
}

// resolveRegistry returns the registry's connection string with its secrets.
func resolveRegistry(dsn string) (catalog.Secret, error) {
	if dsn == "" {
		return "", catalog.Invalidf(catalog.CodeUsage, "", "give --registry postgres://… or set LAKEWEIR_REGISTRY", "no registry is named")
	}
	return resolveConnection("--registry", dsn)
}

func resolveSecret(what, ref string) (catalog.Secret, error) {
	s, err := catalog.SecretRef(ref).Resolve()
	if err != nil {
		return "", catalog.Invalidf(catalog.CodeConfigReference, what, "set what it refers to, or correct the reference", "%w", err)
	}
	return s, nil
}

// resolveConnection resolves a connection string. An empty one is refused: a driver
// would take it for whatever server is on this machine.
func resolveConnection(what, ref string) (catalog.Secret, error) {
	s, err := resolveSecret(what, ref)
	if err == nil && strings.TrimSpace(s.Reveal()) == "" {
		return "", catalog.Invalidf(catalog.CodeConfigReference, what, "let "+ref+" hold postgres://user@host:5432/database", "%s is empty", ref)
	}
	return s, err
}

// LakeFlags say where the lake is.
type LakeFlags struct {
	Catalog    string
	Warehouse  string
	Properties map[string]string
}

// lakeFlags gives cmd the flags that say where the lake is.
func (app *App) lakeFlags(cmd *cobra.Command, f *LakeFlags) {
	cmd.Flags().StringVar(&f.Catalog, "catalog", app.env("LAKEWEIR_CATALOG", ""), "Iceberg catalog: sqlite:///path/catalog.db, postgres://…, or the http(s) URL of a REST catalog (or LAKEWEIR_CATALOG)")
	cmd.Flags().StringVar(&f.Warehouse, "warehouse", app.env("LAKEWEIR_WAREHOUSE", ""), "where tables' files go: file:///path or s3://bucket/prefix (or LAKEWEIR_WAREHOUSE)")
	cmd.Flags().StringToStringVar(&f.Properties, "lake-property", nil, "a catalog or file property such as s3.endpoint=http://127.0.0.1:9000; may be repeated")
}

// config resolves the secrets in the flags.
func (f LakeFlags) config(app *App) (lake.Config, error) {
	if f.Catalog == "" {
		return lake.Config{}, catalog.Invalidf(catalog.CodeUsage, "", "give --catalog, for example sqlite:///var/lib/lakeweir/catalog.db, and --warehouse", "no lake is named")
	}
	uri, err := resolveSecret("--catalog", f.Catalog)
	if err != nil {
		return lake.Config{}, err
	}
	props := lake.PropertiesFromEnv(func(name string) string { return app.env(name, "") })
	maps.Copy(props, f.Properties)
	for name, value := range props {
		v, err := resolveSecret("--lake-property "+name, value)
		if err != nil {
			return lake.Config{}, err
		}
		props[name] = v.Reveal()
	}
	return lake.Config{Catalog: uri.Reveal(), Warehouse: strings.TrimSpace(f.Warehouse), Properties: props}, nil
}
