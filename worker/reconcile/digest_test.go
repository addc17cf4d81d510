package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

func TestAnEmptyTextIsNotNullForTheFirstDigestEither(t *testing.T) {
	t.Parallel()
	rows := change.NewRows(&catalog.Schema{Columns: []catalog.Column{{Name: "k", Type: catalog.Type{Kind: catalog.Text}}}, Key: []int{0}})
	rows.Add()
	rows.SetBytes(0, 0, nil)
	rows.Add()
	rows.SetMark(1, 0, change.Null)
	var d digester
	first := d.key(rows, 0, []int{0})
	null := d.key(rows, 1, []int{0})
	d.text = []byte("used before")
	require.Equal(t, first, d.key(rows, 0, []int{0}))
	require.NotEqual(t, first, null)
}
