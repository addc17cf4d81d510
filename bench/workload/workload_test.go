package workload_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/bench/workload"
)

// digest hashes each topic's records, a line each.
type digest map[string]hash.Hash

func (d digest) add(r workload.Record) error {
	h := d[r.Table]
	if h == nil {
		h = sha256.New()
		d[r.Table] = h
	}
	for _, part := range [][]byte{[]byte(`{"k":`), r.Key, []byte(`,"v":`), r.Value, []byte("}\n")} {
		h.Write(part)
	}
	return nil
}

func (d digest) sums() map[string]string {
	out := map[string]string{}
	for table, h := range d {
		out[table] = hex.EncodeToString(h.Sum(nil))
	}
	return out
}

// The reference workload never changes, or figures could not be compared.
func TestTheReferenceIsWhatItAlwaysWas(t *testing.T) {
	t.Parallel()
	if os.Getenv("LAKEWEIR_BENCH") == "" {
		t.Skip("2.5 million events; LAKEWEIR_BENCH is not set")
	}
	d := digest{}
	o, err := workload.Make(workload.Reference(), d.add)
	require.NoError(t, err)
	require.Equal(t, map[string]map[string]int64{
		"orders":   {"r": 41_745, "c": 140_453, "u": 135_333, "d": 4_837},
		"payments": {"r": 477_022, "c": 1_543_217, "u": 140_170},
		"refunds":  {"r": 11_460, "c": 52_320},
	}, o.Events)
	live := map[string]int{}
	for _, table := range workload.Tables() {
		live[table] = o.Live(table)
	}
	require.Equal(t, map[string]int{"orders": 177_361, "payments": 2_020_239, "refunds": 63_780}, live)
	versions := 0
	for range o.Versions() {
		versions++
	}
	require.Equal(t, 314_650, versions)
	require.Equal(t, map[string]string{
		"orders":   "681cd06c26f1caf63d292ace5df533dc9f08a353f62cf5c799c95d26c0de65ce",
		"payments": "11e7d34ca371dc08b1c0461dab573a59746dd9eed6ab88afc8130562c49240ae",
		"refunds":  "18552f7778c04e42302abb05ee3b7b8c5d5522b5c0bda0587f22fefaebbc6e2c",
	}, d.sums())
	require.Equal(t, map[string]int64{"EUR": 61_529_725, "GBP": 36_854_097, "SEK": 11_738_784, "USD": 11_516_960}, o.DeletedWorth)
}

func TestASmallWorkloadIsWhatItAlwaysWas(t *testing.T) {
	t.Parallel()
	d := digest{}
	o, err := workload.Make(workload.Config{Scale: 0.02, Seed: 42}, d.add)
	require.NoError(t, err)
	require.Equal(t, []int{3547, 40_404, 1275}, []int{o.Live(workload.Orders), o.Live(workload.Payments), o.Live(workload.Refunds)})
	require.Equal(t, map[string]string{
		"orders":   "c21b15f3e8c2ff6abc37b568fec53054dc28af4fedded07de54b75250c150a8a",
		"payments": "e00eb27ce2095f4886d72c256599612e58bcc356f6013a68261c82ff72b6f752",
		"refunds":  "1696b2292efbe14f283c3d14c8223d1b204d6f0171b574f84b372376fac61305",
	}, d.sums())
}

// What the events fold to, key by key, is what the outcome says; the deleted orders'
// worth stands in their before images.
func TestEventsFoldToTheOutcome(t *testing.T) {
	t.Parallel()
	rows, worth := map[string]map[string]string{}, map[string]int64{}
	for _, table := range workload.Tables() {
		rows[table] = map[string]string{}
	}
	o, err := workload.Make(workload.Config{Scale: 0.01, Seed: 7}, func(r workload.Record) error {
		var v struct{ Before, After json.RawMessage }
		if err := json.Unmarshal(r.Value, &v); err != nil {
			return err
		}
		if r.Op != 'd' {
			rows[r.Table][string(r.Key)] = string(v.After)
			return nil
		}
		delete(rows[r.Table], string(r.Key))
		var before struct {
			Currency string
			Total    int64 `json:"total_minor"`
		}
		err := json.Unmarshal(v.Before, &before)
		worth[before.Currency] += before.Total
		return err
	})
	require.NoError(t, err)
	require.Equal(t, worth, o.DeletedWorth)
	for _, table := range workload.Tables() {
		require.Len(t, rows[table], o.Live(table))
		want := map[string]bool{}
		for _, row := range rows[table] {
			want[row] = true
		}
		for row := range o.Rows(table) {
			require.True(t, want[string(row.JSON)], "%s: %s", table, row.JSON)
		}
	}
}

func TestAnErrorOfTheReceiverEndsIt(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	n := 0
	_, err := workload.Make(workload.Config{Scale: 0.01, Seed: 7}, func(workload.Record) error {
		if n++; n == 5000 {
			return full
		}
		return nil
	})
	require.ErrorIs(t, err, full)
	require.Equal(t, 5000, n)
}
