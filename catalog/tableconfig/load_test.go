package tableconfig

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/tableconfigs"
)

// sourceForTables is the source that the table files of testdata belong to.
const sourceForTables = `kind: postgres
connection: ${env:SHOP_DSN}
token_key: ${env:TOKEN_KEY}
defaults: {owner: team-shop}
`

// sample is one file of testdata as a folder that holds it.
type sample struct {
	file   string // of testdata
	format Format
	name   string // in the folder
	text   string
}

func (s sample) folder() fs.FS {
	files := fstest.MapFS{s.name: {Data: []byte(s.text)}}
	if s.format == TableFormat {
		files["source.yaml"] = &fstest.MapFile{Data: []byte(sourceForTables)}
	}
	return files
}

// samples reads testdata/<format>/<pattern>. A table's file is public.orders.yaml
// unless its first line says "# file: …".
func samples(t testing.TB, pattern string) []sample {
	t.Helper()
	var out []sample
	for _, format := range Formats() {
		files, err := filepath.Glob(filepath.Join("testdata", string(format), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			s := sample{file: file, format: format, name: "source.yaml", text: string(text)}
			if format == TableFormat {
				s.name = "public.orders.yaml"
				first, _, _ := strings.Cut(s.text, "\n")
				if name, ok := strings.CutPrefix(first, "# file: "); ok {
					s.name = name
				}
			}
			out = append(out, s)
		}
	}
	return out
}

func TestGoodFilesGiveTheirValues(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t, "*.good.yaml") {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			config, problems := Load(s.folder(), "shop")
			require.NoError(t, problems.Err())
			var got any = config.Sources[0]
			if s.format == TableFormat {
				got = config.Tables[0]
			}
			b, err := json.MarshalIndent(got, "", "  ")
			require.NoError(t, err)
			golden(t, strings.TrimSuffix(s.file, ".yaml")+".want", append(b, '\n'))
		})
	}
}

func TestBadFilesGiveWholeMessages(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t, "*.bad.yaml") {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			config, problems := Load(s.folder(), "shop")
			require.Error(t, problems.Err())
			if s.format == TableFormat {
				require.Empty(t, config.Tables, "a table with a problem is not used")
			}
			golden(t, strings.TrimSuffix(s.file, ".yaml")+".want", []byte(problems.Text()))
		})
	}
}

func TestABrokenFolderIsExplainedWhole(t *testing.T) {
	t.Parallel()
	_, problems := LoadDir("testdata/broken")
	golden(t, "testdata/broken.want.txt", []byte(problems.Text()))
	var annotations strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&annotations, p.GitHub())
	}
	golden(t, "testdata/broken.want.github", []byte(annotations.String()))
}

func TestTheExampleShopIsRight(t *testing.T) {
	t.Parallel()
	config, problems := Load(tableconfigs.Files, "tableconfigs")
	require.NoError(t, problems.Err())
	require.Len(t, config.Sources, 1)
	require.Len(t, config.TablesOf("shop"), 7)
	require.Equal(t, "tableconfigs/shop/source.yaml", config.Source("shop").File)
	one, problems := LoadDir("../../tableconfigs/shop")
	require.NoError(t, problems.Err())
	require.Equal(t, "shop", one.Sources[0].Name, "a source's own folder may be given too")
	require.Len(t, one.Tables, 7)
}

func TestProblemsAreCodedErrors(t *testing.T) {
	t.Parallel()
	require.NoError(t, Problems(nil).Err())
	_, problems := Load(fstest.MapFS{"source.yaml": {Data: []byte("kind: postgres\nconnection: x\nslto: x\n")}}, "tableconfigs/shop")
	var e *catalog.Error
	require.ErrorAs(t, fmt.Errorf("read configuration: %w", problems.Err()), &e)
	require.Equal(t, catalog.CodeConfigUnknownField, e.Code)
	require.Equal(t, "tableconfigs/shop/source.yaml:3:1", e.At)
	require.Equal(t, `did you mean "slot"?`, e.Hint)
}

func TestAnEmptyFolderSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]fstest.MapFS{
		"nothing":        {},
		"no yaml":        {"README.md": {}, "shop/notes.txt": {}},
		"hidden folders": {".git/config.yaml": {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := Load(folder, "tableconfigs")
			require.Len(t, problems, 1)
			require.Equal(t, catalog.CodeConfigFile, problems[0].Code)
			require.Equal(t, "tableconfigs", problems[0].At())
		})
	}
}

func TestOneBrokenSourceBlamesNoTableOfIt(t *testing.T) {
	t.Parallel()
	_, problems := Load(fstest.MapFS{
		"source.yaml":        {Data: []byte("kind: [\n")},
		"public.orders.yaml": {Data: []byte("table: public.orders\nprimary_key: [id]\npii: [email]\n")},
	}, "shop")
	require.Len(t, problems, 1, "owner and token_key may well be in the source's file: %v", problems)
}

func TestTwoSourcesMayNotShareLakeTablesOrASlot(t *testing.T) {
	t.Parallel()
	source := []byte("kind: postgres\nconnection: ${env:DSN}\nslot: one\ndefaults: {owner: a}\n")
	table := []byte("table: public.orders\nprimary_key: [id]\n")
	_, problems := Load(fstest.MapFS{
		"eu/source.yaml": {Data: source}, "eu/public.orders.yaml": {Data: table},
		"us/source.yaml": {Data: source}, "us/public.orders.yaml": {Data: table},
	}, "tableconfigs")
	require.Len(t, problems, 2)
	require.Contains(t, problems[0].Text(), "shares connection and slot one with tableconfigs/eu/source.yaml")
	require.Contains(t, problems[1].Text(), "which is the bronze table of eu/public.orders (tableconfigs/eu/public.orders.yaml)")
	require.Contains(t, problems[1].Hint, "namespaces of its own")
}

// TestNoSecretOfTestdataIsShown is what every golden file above must keep to: the
// password in testdata is hunter2.
func TestNoSecretOfTestdataIsShown(t *testing.T) {
	t.Parallel()
	secrets := 0
	for _, s := range samples(t, "*.yaml") {
		if strings.Contains(s.text, "hunter") {
			secrets++
		}
		_, problems := Load(s.folder(), "shop")
		shown := []string{problems.Text(), problems.Error()}
		for _, p := range problems {
			shown = append(shown, p.GitHub(), fmt.Sprint(p.Unwrap()))
		}
		all := strings.Join(shown, "\n")
		require.NotContains(t, all, "hunter", s.file)
		require.NotContains(t, all, "token-key-in-clear", s.file)
	}
	require.Greater(t, secrets, 5)
}

// TestAMountedConfigMapIsRead lays files out as Kubernetes does: links to links.
func TestAMountedConfigMapIsRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	data := filepath.Join(dir, "..2026_01_01")
	require.NoError(t, os.MkdirAll(data, 0o755))
	require.NoError(t, os.Symlink("..2026_01_01", filepath.Join(dir, "..data")))
	for name, text := range map[string]string{"source.yaml": sourceForTables, "public.orders.yaml": "table: public.orders\nprimary_key: [id]\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(data, name), []byte(text), 0o600))
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	for _, root := range []string{dir, filepath.Dir(dir)} {
		config, problems := LoadDir(root)
		require.NoError(t, problems.Err())
		require.Len(t, config.Tables, 1)
		require.Equal(t, "shop/public.orders", config.Tables[0].ID())
	}
}

// TestTheExampleShopNamesColumnsThatItsDatabaseHas reads the demo's DDL as text.
func TestTheExampleShopNamesColumnsThatItsDatabaseHas(t *testing.T) {
	t.Parallel()
	ddl, err := os.ReadFile("../../orchestrator/demo/schema.sql")
	require.NoError(t, err)
	config, problems := Load(tableconfigs.Files, "tableconfigs")
	require.NoError(t, problems.Err())
	for _, table := range config.Tables {
		_, body, found := strings.Cut(string(ddl), "create table "+table.Name.Name+" (\n")
		require.True(t, found, table.Name)
		body, _, _ = strings.Cut(body, "\n);")
		columns := slices.Concat(table.PrimaryKey, table.TrackColumns, table.TrackExcept, slices.Collect(maps.Keys(table.PII)))
		for _, c := range columns {
			require.Regexp(t, `(?m)^ +`+c+` `, body, "%s of %s", c, table.Name)
		}
	}
}
