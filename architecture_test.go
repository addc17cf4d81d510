package lakeweir_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/lakeweir/lakeweir/"

// mayImport says which of our own packages each layer may use: "x" is x alone,
// "x/" is every package below it, and the longest entry that covers a package is
// its layer. A package that no entry covers fails the test, so a new folder starts
// with one line here. What tests import is not looked at: a test may use a real
// database or another layer's suite.
var mayImport = map[string][]string{
	"catalog":                 {},
	"catalog/tableconfig":     {"catalog", "catalog/connectorconfig"},
	"catalog/connectorconfig": {"catalog"},
	"catalog/typemap":         {"catalog"},
	"catalog/schemadiff":      {"catalog", "catalog/typemap"},
	"catalog/registry":        {"catalog", "migrations"},
	"catalog/":                {"catalog"},
	"migrations":              {},
	"policies":                {"catalog"},
	"policies/policytest":     {"catalog", "catalog/schemadiff", "policies"},
	"tableconfigs":            {},

	// The data plane. Siblings speak in change values and the pipeline's interfaces;
	// only worker wires them.
	"worker/change":    {"catalog", "catalog/typemap"},
	"worker/fold":      {"catalog", "worker/change"},
	"worker/fold/":     {"catalog", "worker/change", "worker/fold"},
	"worker/privacy":   {"catalog", "catalog/typemap", "worker/change", "worker/pipeline"},
	"worker/columnar":  {"catalog", "catalog/typemap", "worker/change"},
	"worker/keyindex":  {"catalog", "worker/change"},
	"worker/park":      {"catalog"},
	"worker/pipeline":  {"catalog", "catalog/typemap", "worker/change", "worker/fold"},
	"worker/pipeline/": {"catalog", "worker/change", "worker/fold", "worker/fold/foldtest", "worker/pipeline"},
	"worker/postgres":  {"catalog", "catalog/schemadiff", "catalog/typemap", "worker/change", "worker/pipeline"},
	"worker/debezium":  {"catalog", "catalog/typemap", "worker/change"},
	"worker/kafka":     {"catalog", "catalog/kafkaclient", "catalog/typemap", "worker/change", "worker/debezium", "worker/pipeline"},
	"worker/lake":      {"catalog", "catalog/typemap", "worker/change", "worker/columnar", "worker/fold", "worker/keyindex", "worker/pipeline"},
	"worker/lake/":     {"e2e/readers"}, // test kits
	"worker/reconcile": {"catalog", "catalog/typemap", "worker/change", "worker/fold", "worker/pipeline"},
	"worker":           {"catalog", "catalog/", "worker/"},

	// The control plane. It meets the data plane in the database, never in Go.
	"orchestrator/localpg":         {"catalog"},
	"orchestrator/localpg/":        {"orchestrator/localpg"},
	"orchestrator/demo":            {"catalog", "catalog/", "tableconfigs", "orchestrator/localpg"},
	"orchestrator/monitor":         {"catalog", "catalog/registry", "orchestrator/monitor/"},
	"orchestrator/monitor/":        {"catalog"},
	"orchestrator/dashboard/chart": {},
	"orchestrator/dashboard":       {"catalog", "catalog/registry", "orchestrator/dashboard/", "orchestrator/monitor", "orchestrator/monitor/"},
	"orchestrator/connect":         {"catalog", "catalog/connectorconfig"},
	"orchestrator/connect/":        {},
	"orchestrator/preflight":       {"catalog", "catalog/connectorconfig", "catalog/kafkaclient", "orchestrator/connect"},
	"orchestrator/":                {"catalog", "catalog/", "policies", "orchestrator/"},
	"orchestrator":                 {"catalog", "catalog/", "policies", "migrations", "orchestrator/"},

	"cmd/lakeweir": {"catalog", "catalog/", "migrations", "policies", "policies/", "tableconfigs", "orchestrator", "orchestrator/", "worker", "worker/"},
	"e2e":          {"catalog", "catalog/", "tableconfigs", "orchestrator/localpg", "e2e/"},
	"e2e/":         {"catalog", "catalog/", "tableconfigs", "orchestrator/localpg", "e2e/"},
	"e2e/install":  {},
	"bench":        {"catalog", "catalog/", "worker", "worker/", "orchestrator/localpg", "bench/", "e2e/install", "e2e/readers", "e2e/stack"},
	"bench/":       {"catalog", "catalog/", "worker", "worker/", "orchestrator/localpg", "bench/", "e2e/install", "e2e/readers", "e2e/stack"},
}

// onlyIn names the packages that may import a library, so that it can be replaced
// by changing those alone. A library of a folder is named by its path, and covers
// what is below it.
var onlyIn = map[string][]string{
	"github.com/apache/iceberg-go":               {"worker/lake"},
	"github.com/jackc/pglogrepl":                 {"worker/postgres"},
	"github.com/goccy/go-yaml":                   {"catalog/tableconfig", "policies/policytest", "cmd/lakeweir"}, // the last prints YAML
	"github.com/open-policy-agent/opa":           {"policies"},
	"github.com/invopop/jsonschema":              {"catalog/tableconfig"},
	"github.com/pressly/goose/v3":                {"migrations"},
	"github.com/spf13/cobra":                     {"cmd/lakeweir"},
	"github.com/a-h/templ":                       {"orchestrator/dashboard"},
	"github.com/twmb/franz-go":                   {"catalog/kafkaclient", "worker/kafka", "orchestrator/preflight", "bench", "e2e"},
	"github.com/fergusstrange/embedded-postgres": {"orchestrator/localpg"},
}

func TestImportsFollowTheLayers(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		layer, ok := layerOf(p.ImportPath)
		if !ok {
			t.Errorf("%s is in no layer: add it to mayImport", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			name, ours := strings.CutPrefix(imp, module)
			if ours && !slices.ContainsFunc(mayImport[layer], func(allowed string) bool { return covers(allowed, name) }) {
				t.Errorf("%s imports %s: layer %q may import only %q", p.ImportPath, imp, layer, mayImport[layer])
			}
		}
	}
}

// TestControlPlaneAndDataPlaneMeetOnlyInTheDatabase holds whatever the table above
// comes to say.
func TestControlPlaneAndDataPlaneMeetOnlyInTheDatabase(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			other := strings.TrimPrefix(imp, module)
			if (within("worker", name) && within("orchestrator", other)) || (within("orchestrator", name) && within("worker", other)) {
				t.Errorf("%s imports %s: put the shared words in catalog", name, other)
			}
		}
	}
}

func TestLibrariesStayInOnePackage(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			for library, owners := range onlyIn {
				if within(library, imp) && !slices.ContainsFunc(owners, func(o string) bool { return within(o, name) }) {
					t.Errorf("%s imports %s, which only %q may", name, imp, owners)
				}
			}
			if name == "catalog" && strings.Contains(strings.Split(imp, "/")[0], ".") {
				t.Errorf("catalog imports %s: it may use the standard library alone", imp)
			}
		}
	}
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// covers reports whether a table entry names pkg.
func covers(entry, pkg string) bool {
	if strings.HasSuffix(entry, "/") {
		return strings.HasPrefix(pkg, entry)
	}
	return pkg == entry
}

// within reports whether pkg is root or below it.
func within(root, pkg string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func layerOf(path string) (layer string, ok bool) {
	name := strings.TrimPrefix(path, module)
	for entry := range mayImport {
		if covers(entry, name) && len(entry) > len(layer) {
			layer, ok = entry, true
		}
	}
	return layer, ok
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	dependOnEveryFile(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-tags=e2e", "-json=ImportPath,Doc,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			if len(packages) < 10 {
				t.Fatalf("go list found %d packages only", len(packages))
			}
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath+"/" != module && len(p.GoFiles) > 0 { // the root and folders of tests alone are no layer
			packages = append(packages, p)
		}
	}
}

// dependOnEveryFile makes go test's cache notice changes anywhere in the module:
// what go list reads is not this process's doing.
func dependOnEveryFile(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // a file that has just gone
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, _ = os.Stat(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
