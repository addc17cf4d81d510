package monitor_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/monitor"
)

// TestTheDocumentedJSONIsTheJSON reads the examples of the docs as what they describe:
// no field that does not exist, and of tables and sources none left out.
func TestTheDocumentedJSONIsTheJSON(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/reference/cli-json.md")
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	require.Len(t, examples, 4)
	for i, into := range []any{&monitor.FleetDocument{}, &monitor.SourcesDocument{}, &monitor.DetailDocument{}, &monitor.SourceDetailDocument{}} {
		d := json.NewDecoder(strings.NewReader(examples[i][1]))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(into), examples[i][1])
		if i >= 2 {
			continue // its table or source is abridged
		}
		again, err := json.Marshal(into)
		require.NoError(t, err)
		require.JSONEq(t, examples[i][1], string(again))
	}
}
