package worker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/lake/laketest"
)

// twoTables is a running worker with tables a and b, and another engine on its lake.
func twoTables(t *testing.T) (*rig, *laketest.Engine, func(table string, layer catalog.Layer) []string) {
	t.Helper()
	r := newRig(t, "", map[string]string{
		"public.a.yaml": "table: public.a\nprimary_key: [id]\nscd: [1, 2]\n",
		"public.b.yaml": "table: public.b\nprimary_key: [id]\nscd: [1, 2]\n",
	})
	r.exec("CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int PRIMARY KEY, v text)")
	r.exec("INSERT INTO a VALUES (1, 'x'); INSERT INTO b VALUES (1, 'x')")
	r.start()
	r.landed()
	for _, v := range []string{"y", "z"} {
		r.exec("UPDATE a SET v = '" + v + "'; INSERT INTO a SELECT max(id) + 1, 'new' FROM a")
		r.landed()
	}
	e, err := laketest.SQLite(strings.TrimPrefix(r.lakeCfg.Catalog, "sqlite://"), "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return r, e, func(table string, layer catalog.Layer) []string {
		return r.source.LakeName(catalog.ParseTableName(table), layer)
	}
}

// Bronze is set back under a running worker, or while none runs. Its table says gap
// and appends nothing, also when it is started anew; the other goes on; the source
// keeps what comes. When bronze is set forward again nothing is missing.
func TestABronzeThatWasRolledBackStopsItsTableAlone(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(map[bool]string{true: "under a running worker", false: "while none runs"}[running], func(t *testing.T) {
			t.Parallel()
			r, e, ident := twoTables(t)
			if !running {
				r.stop()
			}
			was, is, err := e.RollBack(t.Context(), ident("public.a", catalog.Bronze), 1)
			require.NoError(t, err)
			require.NotEqual(t, was, is)
			if !running {
				r.start()
			}
			for range 2 { // and in the next run too
				r.exec("INSERT INTO a SELECT max(id) + 1, 'meanwhile' FROM a; INSERT INTO b SELECT max(id) + 1, 'meanwhile' FROM b")
				r.wait(func(v *registry.TableView) bool { return v.Name.Name != "a" || v.State == catalog.Gap })
				r.landed()
				r.requireCurrentEqualsSource("b")
				require.Equal(t, catalog.CodeGap, r.state("public.a").Fault.Code)
				tbl, err := e.Load(t.Context(), ident("public.a", catalog.Bronze))
				require.NoError(t, err)
				require.Equal(t, is, tbl.CurrentSnapshot().SnapshotID, "nothing is appended")
				r.stop()
				r.start()
			}
			r.stop()
			require.NoError(t, e.SetMain(t.Context(), ident("public.a", catalog.Bronze), was))
			r.start()
			r.wait(func(v *registry.TableView) bool { return v.State == catalog.Streaming })
			r.landed()
			r.requireCurrentEqualsSource("a")
			r.requireBronzeSound("public.a")
			_, bronze := r.rows("public.a", catalog.Bronze)
			require.Len(t, bronze, 1+(1+1)+(2+1)+1+1)
		})
	}
}

// A bronze that was dropped and made again, by the worker itself or by somebody, holds
// less than the layers made of it: a gap. One of those layers that was dropped is made
// anew from bronze.
func TestADroppedTableIsAGapInBronzeAndMadeAnewInSilver(t *testing.T) {
	t.Parallel()
	r, e, ident := twoTables(t)
	r.stop()
	require.NoError(t, e.Drop(t.Context(), ident("public.a", catalog.Bronze)))
	require.NoError(t, e.Drop(t.Context(), ident("public.b", catalog.Current)))
	require.NoError(t, e.Drop(t.Context(), ident("public.b", catalog.History)))
	r.exec("INSERT INTO b VALUES (7, 'seven')")
	for range 2 {
		r.start()
		r.exec("INSERT INTO a SELECT max(id) + 1, 'meanwhile' FROM a")
		r.wait(func(v *registry.TableView) bool { return v.Name.Name != "a" || v.State == catalog.Gap })
		r.landed()
		r.requireCurrentEqualsSource("b")
		_, history := r.rows("public.b", catalog.History)
		require.Len(t, history, 2)
		_, bronze := r.rows("public.a", catalog.Bronze)
		require.Empty(t, bronze, "nothing is appended")
		r.stop()
	}
}

// Current and history that were set back are folded from bronze again, by itself.
func TestSilverThatWasRolledBackCatchesUpFromBronze(t *testing.T) {
	t.Parallel()
	r, e, ident := twoTables(t)
	r.stop()
	for _, layer := range []catalog.Layer{catalog.Current, catalog.History} {
		was, is, err := e.RollBack(t.Context(), ident("public.a", layer), 1)
		require.NoError(t, err)
		require.NotEqual(t, was, is)
	}
	r.start()
	r.landed()
	r.requireCurrentEqualsSource("a")
	_, history := r.rows("public.a", catalog.History)
	require.Len(t, history, 3+2+1, "id 1: x, y, z; id 2: new, z; id 3: new")
}
