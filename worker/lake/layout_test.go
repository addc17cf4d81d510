package lake

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Iceberg's own columns of a row, which engines add to what they read: Spark does not
// read a table's column of such a name.
func TestLayersHaveNoColumnOfIcebergsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(bronzeOwn, bronzeTopic, currentOwn, historyOwn) {
		require.NotContains(t, []string{
			"_file", "_pos", "_deleted", "_spec_id", "_partition", "file_path", "pos", "row",
			"_change_type", "_change_ordinal", "_commit_snapshot_id", "_row_id", "_last_updated_sequence_number",
		}, c.name)
	}
}
