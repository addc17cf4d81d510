package catalog_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite generated files")

// TestEveryCodeIsDocumented generates docs/reference/errors.md from the comments
// in code.go, with -update, and keeps it up to date.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(`# Error codes

<!-- Generated from catalog/code.go by go test ./catalog -update. Do not edit. -->

Every problem that Lakeweir reports has a code that keeps its meaning for good.
Commands print it first, and as ` + "`code`" + ` with ` + "`-o json`" + `; the registry, the log and the
page show the same.
`)
	seen := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			return true
		}
		for _, spec := range decl.Specs {
			v := spec.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Code" {
				continue
			}
			name := v.Names[0].Name
			code, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.NotEmpty(t, strings.TrimSpace(v.Comment.Text()), "%s has no comment, which is its line in the docs", name)
			require.Empty(t, seen[code], "%s and %s are one code", name, seen[code])
			seen[code] = name
			if v.Doc != nil {
				fmt.Fprintf(&b, "\n## %s\n\n| code | meaning |\n| --- | --- |\n", strings.TrimSuffix(strings.Split(v.Doc.Text(), ":")[0], ".\n"))
			} else if len(seen) == 1 {
				b.WriteString("\n## Anywhere\n\n| code | meaning |\n| --- | --- |\n")
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", code, strings.TrimSpace(v.Comment.Text()))
		}
		return false
	})
	require.Greater(t, len(seen), 20)
	const doc = "../docs/reference/errors.md"
	if *update {
		require.NoError(t, os.WriteFile(doc, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(doc)
	require.NoError(t, err, "run: go test ./catalog -update")
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s is not up to date; run: go test ./catalog -update\n%s", doc, diff)
	}
}
