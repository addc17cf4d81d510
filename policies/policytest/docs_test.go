package policytest

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/policies"
)

// TestTheDocumentedExamplesWork runs the policies and cases of docs/policies.md as they
// stand there.
func TestTheDocumentedExamplesWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/policies.md")
	require.NoError(t, err)
	files := fstest.MapFS{}
	for i, block := range regexp.MustCompile("(?s)```(rego|yaml)\n(.*?)```").FindAllSubmatch(text, -1) {
		name := fmt.Sprintf("%d.rego", i)
		if string(block[1]) == "yaml" {
			name = fmt.Sprintf("%d_cases.yaml", i)
		}
		files[name] = &fstest.MapFile{Data: block[2]}
	}
	require.Len(t, files, 3)
	require.Empty(t, policies.Load(files, "docs").Check())
	results, err := Run(t.Context(), files, "docs")
	require.NoError(t, err)
	theirs := 0
	for _, r := range results {
		if !r.Ours {
			theirs++
			require.True(t, r.OK, "%s: %s", r.Name, r.Want)
		}
	}
	require.Equal(t, 4, theirs)
}
