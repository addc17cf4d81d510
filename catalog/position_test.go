package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestAnLSNIsReadAsItIsPrinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]catalog.LSN{"0/0": 0, "16/B374D848": 0x16_B374_D848, "FFFFFFFF/FFFFFFFF": 1<<64 - 1} {
		got, err := catalog.ParseLSN(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, bad := range []string{"", "x", "1", "1/", "/1", "1/2/3", "-1/0", "100000000/0"} {
		_, err := catalog.ParseLSN(bad)
		require.Error(t, err, bad)
	}
}
