package policytest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOurCasesPass(t *testing.T) {
	t.Parallel()
	results, err := Run(t.Context(), nil, "")
	require.NoError(t, err)
	for _, r := range results {
		if !r.OK {
			t.Errorf("%s: %s: %s: %s", r.At, r.Name, r.Got, r.Want)
		}
	}
	require.GreaterOrEqual(t, len(results), 60)
}
