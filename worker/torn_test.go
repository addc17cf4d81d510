package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// A source hands a large transaction over in parts. Nothing may wait for a part that
// never comes: when a part ends with the transaction's last row, or when all that
// follows is of another table.
func TestALargeTransactionIsSavedWhereverItsPartsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{
		"public.account.yaml": accountFile,
		"public.ledger.yaml":  "table: public.ledger\nprimary_key: [id]\nscd: [1]\n",
	})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	r.exec("CREATE TABLE ledger (id int PRIMARY KEY)")
	r.start()
	r.landed()
	const parts = 100_000 // twice the source's slice: a transaction is split here
	r.exec("INSERT INTO account SELECT g, 'exactly' FROM generate_series(1, 100000) g")
	r.landed()
	r.exec("BEGIN; INSERT INTO account SELECT g, 'first' FROM generate_series(100001, 200000) g; INSERT INTO ledger SELECT g FROM generate_series(1, 7) g; COMMIT")
	r.landed()
	_, accounts := r.rows("public.account", catalog.Current)
	_, ledger := r.rows("public.ledger", catalog.Current)
	require.Len(t, accounts, 2*parts)
	require.Len(t, ledger, 7)
}
