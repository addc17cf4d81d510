package change_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
)

func TestVisibilityIsReadAsTheServerPrintsIt(t *testing.T) {
	t.Parallel()
	for text, sees := range map[string]map[uint64]bool{
		"100:104:100,102": {99: true, 100: false, 101: true, 102: false, 103: true, 104: false, 1 << 40: false},
		"10:15:12,10":     {9: true, 10: false, 11: true, 12: false, 13: true, 14: true, 15: false, 99: false},
		"7:7:":            {6: true, 7: false, 8: false},
	} {
		v, err := change.ParseVisibility(text)
		require.NoError(t, err, text)
		for xid, want := range sees {
			require.Equal(t, want, v.Sees(xid), "%s %d", text, xid)
		}
	}
	for _, bad := range []string{"", "1", "1:2", "2:1:", "1:2:x", "a:2:", "a:b:c", "1:2:1:", "1:2:1,"} {
		_, err := change.ParseVisibility(bad)
		require.Error(t, err, bad)
	}
}
