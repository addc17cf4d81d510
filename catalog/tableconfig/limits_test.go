package tableconfig

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// TestHugeFilesAreRefusedQuickly feeds what would take the YAML parser minutes or
// its whole stack.
func TestHugeFilesAreRefusedQuickly(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lines":             "a: |\n" + strings.Repeat("\n", 100_000),
		"keys":              strings.Repeat("a:\n", 40_000),
		"bytes":             strings.Repeat("x", 1<<20),
		"brackets":          strings.Repeat("[", 100_000),
		"braces":            strings.Repeat("{a: ", 10_000),
		"brackets in lines": strings.Repeat("- [\n", 1_000),
		"dashes":            strings.Repeat("- ", 50_000),
		"indentation":       strings.Repeat(" ", 1_000) + "a: b",
		"not text":          "a: \xff",
		"zero":              "a: \x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			_, problems := Load(fstest.MapFS{"source.yaml": {Data: []byte(text)}}, "shop")
			require.Len(t, problems, 1)
			require.Equal(t, catalog.CodeConfigSyntax, problems[0].Code)
			require.Less(t, time.Since(started), 5*time.Second)
		})
	}
}
