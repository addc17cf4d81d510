package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// A stopped table holds the slot, but not the proof of the others; that it has
// stopped itself is said at once.
func TestTablesAreProvedEqualWhileAnotherIsStopped(t *testing.T) {
	t.Parallel()
	file := "\nprimary_key: [id]\nscd: [1, 2]\ntrack_history_columns: [v]\nfreshness_tier: realtime\n"
	r := newRig(t, "", map[string]string{"public.broken.yaml": "table: public.broken" + file, "public.sound.yaml": "table: public.sound" + file})
	for _, table := range []string{"broken", "sound"} {
		r.exec("CREATE TABLE " + table + " (id int PRIMARY KEY, v text, w text)")
		r.exec("INSERT INTO " + table + " SELECT g, 'v', 'w' FROM generate_series(1, 50) g")
	}
	r.start()
	r.landed()
	r.exec("ALTER TABLE broken DROP COLUMN w")
	r.exec("UPDATE broken SET v = 'x'")
	r.wait(func(v *registry.TableView) bool { return v.Name.Name != "broken" || v.State == catalog.Quarantined })
	r.exec("UPDATE sound SET v = 'y' WHERE id > 10")
	all, err := worker.Compare(t.Context(), worker.CompareConfig{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey,
		Lake: r.lakeCfg, Registry: r.registry, Options: reconcile.Config{Wait: time.Minute}, Logger: testLogger(t),
	})
	require.NoError(t, err)
	for _, c := range all {
		if c.Table.Name.Name == "broken" {
			require.ErrorContains(t, c.Err, "table shop/public.broken has stopped: schema.changed")
			continue
		}
		require.NoError(t, c.Err)
		require.True(t, c.Result.Equal(), c.Result.Text())
		require.EqualValues(t, 50, c.Result.LakeRows)
	}
}
