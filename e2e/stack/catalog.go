package stack

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lakeweir/lakeweir/e2e/install"
)

// catalogJars is the REST catalog that Iceberg 1.10.1 tests its own clients with.
//
//go:embed catalog.jars
var catalogJars string

// Catalog is an Iceberg REST catalog whose tables lie in the S3 gateway.
type Catalog struct {
	*Process
	URL       string
	Warehouse string // s3://bucket/prefix
}

func newCatalog(ctx context.Context, dir string, s3 *S3, told func(string, ...any)) (*Catalog, error) {
	jars, err := install.Jars(ctx, catalogJars)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "catalog")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, err
	}
	c := &Catalog{URL: "http://" + address(port), Warehouse: "s3://" + s3.Bucket + "/warehouse"}
	properties := s3.Properties()
	properties["warehouse"] = c.Warehouse
	properties["io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
	properties["catalog-impl"] = "org.apache.iceberg.jdbc.JdbcCatalog"
	properties["uri"] = "jdbc:sqlite:" + filepath.Join(folder, "catalog.db") + "?journal_mode=WAL&synchronous=OFF"
	properties["jdbc.schema-version"] = "V1"
	properties["clients"] = "1" // SQLite has one writer
	properties["rest.port"] = strconv.Itoa(port)
	c.Process = &Process{
		Name: "catalog", Log: filepath.Join(dir, "log", "catalog.log"), told: told,
		argv: java("256m", jars, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			// It prints a trace for each table that does not exist yet.
			"-Dorg.slf4j.simpleLogger.log.org.apache.iceberg.rest.RESTCatalogServlet=off", "org.apache.iceberg.rest.RESTCatalogServer"),
		ready: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/v1/namespaces", http.NoBody)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
				return fmt.Errorf("it answers %s", resp.Status)
			}
			return nil
		},
	}
	for name, value := range properties {
		c.env = append(c.env, "CATALOG_"+variable.Replace(strings.ToUpper(name))+"="+value)
	}
	return c, nil
}

// variable writes the name of a property as the server reads it from its
// environment.
var variable = strings.NewReplacer(".", "_", "-", "__")
