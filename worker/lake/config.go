package lake

import (
	"maps"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Config says where the lake is.
type Config struct {
	// Catalog is "sqlite:///path/catalog.db" (also "sqlite:relative.db"),
	// "postgres://…" for an Iceberg SQL catalog in Postgres, or "http(s)://…" for a
	// REST catalog.
	Catalog string
	// Warehouse is where new tables' files go: "file:///path", a bare path, or
	// "s3://bucket/prefix". With a REST catalog it may be the server's name for a
	// warehouse, or empty.
	Warehouse string
	// Properties are Iceberg's own catalog and file properties: s3.endpoint,
	// s3.region, s3.access-key-id, s3.secret-access-key, token, credential, …
	Properties map[string]string
	// CatalogName is the name of the catalog inside a SQL catalog's tables; readers
	// must use the same. Default lakeweir.
	CatalogName string
	// CacheBytes bounds the rows kept in memory after they were written, over all
	// tables. Default 64 MiB; negative switches the cache off.
	CacheBytes int64
	// WorkBytes bounds what encoding and decoding take at once, over all tables,
	// besides the rows themselves: what is larger waits until it is alone. Default
	// 192 MiB.
	WorkBytes int64
	// ImageBytes bounds the rows that are read from a layer for one fold; a fold that
	// needs more is made in parts. Default 48 MiB.
	ImageBytes int64
	// FindRows is how many rows are found at once for a TRUNCATE; with more, it is made
	// in parts. Default 100,000.
	FindRows int
	// Now is the clock: it gives the day that bronze's rows are ingested on. Default
	// the system's.
	Now func() time.Time
}

// WithDefaults returns the config with its defaults filled in.
func (c Config) WithDefaults() Config {
	if c.CatalogName == "" {
		c.CatalogName = "lakeweir"
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 64 << 20
	}
	if c.FindRows <= 0 {
		c.FindRows = 100_000
	}
	if c.WorkBytes <= 0 {
		c.WorkBytes = 192 << 20
	}
	if c.ImageBytes <= 0 {
		c.ImageBytes = 48 << 20
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // where the clock comes from
	}
	c.Properties = maps.Clone(c.Properties)
	if c.Properties == nil {
		c.Properties = map[string]string{}
	}
	return c
}

// PropertiesFromEnv returns the properties that the usual AWS environment variables
// stand for; getenv is os.Getenv. Credentials are left to the AWS client, which
// reads them itself.
func PropertiesFromEnv(getenv func(string) string) map[string]string {
	props := map[string]string{}
	set := func(property string, variables ...string) {
		for _, v := range variables {
			if value := getenv(v); value != "" {
				props[property] = value
				return
			}
		}
	}
	set("s3.endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	set("s3.region", "AWS_REGION", "AWS_DEFAULT_REGION")
	return props
}

type catalogKind int

const (
	sqliteCatalog catalogKind = iota
	postgresCatalog
	restCatalog
)

// target is a checked Config.
type target struct {
	kind      catalogKind
	path      string // of a SQLite file, absolute
	warehouse string // a URI without trailing slash, a REST warehouse's name, or empty
}

func (c Config) check() (target, error) {
	var t target
	scheme, _, _ := strings.Cut(c.Catalog, ":")
	switch scheme {
	case "sqlite":
		t.kind = sqliteCatalog
		path := strings.TrimPrefix(strings.TrimPrefix(c.Catalog, "sqlite:"), "//")
		if path == "" {
			return t, configError("the catalog names no file", "write it as sqlite:///path/catalog.db")
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return t, catalog.Errorf(catalog.Invalid, catalog.CodeLakeConfig, "write the catalog as sqlite:///path/catalog.db", "the catalog's path cannot be resolved: %w", err)
		}
		t.path = abs
	case "postgres", "postgresql":
		t.kind = postgresCatalog
		if _, err := url.Parse(c.Catalog); err != nil {
			return t, configError("the catalog is not a valid Postgres URL", "write it as postgres://user:${env:PASSWORD}@host/database")
		}
	case "http", "https":
		t.kind = restCatalog
		if u, err := url.Parse(c.Catalog); err != nil || u.Host == "" {
			return t, configError("the catalog is not a valid URL", "write it as https://host/path of an Iceberg REST catalog")
		}
	default:
		return t, configError("the catalog is none of sqlite://, postgres://, http:// and https://",
			"set the catalog to sqlite:///path/catalog.db, a Postgres URL or the URL of an Iceberg REST catalog")
	}
	w, err := warehouse(c.Warehouse, t.kind)
	t.warehouse = w
	return t, err
}

func warehouse(w string, kind catalogKind) (string, error) {
	const hint = "set the warehouse to file:///path, a path, or s3://bucket/prefix"
	scheme, rest, isURI := strings.Cut(w, "://")
	switch {
	case w == "" && kind == restCatalog:
		return "", nil
	case w == "":
		return "", configError("no warehouse is set", hint)
	case isURI && scheme == "file":
		if !strings.HasPrefix(rest, "/") {
			abs, err := filepath.Abs(rest)
			if err != nil {
				return "", configError("the warehouse's path cannot be resolved", hint)
			}
			rest = abs
		}
		return fileURI(rest), nil
	case isURI && (scheme == "s3" || scheme == "s3a"):
		if bucket, _, _ := strings.Cut(rest, "/"); bucket == "" {
			return "", configError("the warehouse names no bucket", hint)
		}
		return strings.TrimRight(w, "/"), nil
	case isURI:
		return "", configError("the warehouse is neither file:// nor s3://", hint)
	case kind == restCatalog && !strings.ContainsAny(w, "/\\"):
		return w, nil // the server's name for it
	}
	abs, err := filepath.Abs(w)
	if err != nil {
		return "", configError("the warehouse's path cannot be resolved", hint)
	}
	return fileURI(abs), nil
}

// fileURI writes an absolute path with three slashes: readers refuse other forms.
func fileURI(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Clean(path))}
	return u.String()
}

// secrets lists the values that must not show in any message.
func (c Config) secrets() []string {
	var out []string
	if u, err := url.Parse(c.Catalog); err == nil && u.User != nil {
		if p, ok := u.User.Password(); ok && p != "" {
			out = append(out, p, url.QueryEscape(p), url.PathEscape(p))
		}
	}
	for k, v := range c.Properties {
		k = strings.ToLower(k)
		for _, word := range []string{"secret", "token", "credential", "password", "access-key"} {
			if strings.Contains(k, word) && v != "" {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

func configError(message, hint string) error {
	return catalog.Errorf(catalog.Invalid, catalog.CodeLakeConfig, hint, "%s", message)
}
