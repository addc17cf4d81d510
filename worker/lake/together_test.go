package lake

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Many tables of many workers share a catalog.
func TestTablesAreSavedBesideEachOther(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(t *testing.T, dir string) Config{
		"sqlite": func(_ *testing.T, dir string) Config {
			return Config{Catalog: "sqlite://" + dir + "/catalog.db", Warehouse: dir + "/warehouse"}
		},
		"postgres": func(t *testing.T, dir string) Config { //nolint:thelper // makes a config
			return Config{Catalog: localpgtest.Database(t), Warehouse: dir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, t.TempDir())
			const workers, tables, commits = 2, 3, 6
			var mu sync.Mutex
			var errs []error
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() { // as a process of its own would
					l, err := Open(t.Context(), cfg, nil)
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						errs = append(errs, err)
						return
					}
					defer l.Close()
					var inner sync.WaitGroup
					for n := range tables {
						inner.Go(func() {
							table := ordersTable()
							table.Name.Name = fmt.Sprintf("orders_%d_%d", w, n)
							if err := saveSome(t, l, table, commits); err != nil {
								mu.Lock()
								defer mu.Unlock()
								errs = append(errs, err)
							}
						})
					}
					inner.Wait()
				})
			}
			wg.Wait()
			require.NoError(t, errors.Join(errs...))
			l, err := Open(t.Context(), cfg, nil)
			require.NoError(t, err)
			defer l.Close()
			all, err := l.Tables(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 3*workers*tables)
		})
	}
}

func saveSome(t *testing.T, l *Lake, table *catalog.Table, commits int) error {
	t.Helper()
	ls, err := l.ForSource(source(3)).Open(t.Context(), table, ordersSchema())
	if err != nil {
		return err
	}
	all := &layers{Layers: ls, table: table, schema: ordersSchema()}
	f := newFeed(table, ordersSchema())
	for i := range commits {
		f.commit().create(i, "pl", "new", i, nil)
		f.update(0, "pl", "s", i, nil)
		b := f.take()
		if _, err := ls.Bronze.Append(t.Context(), []*change.Batch{b}, f.state()); err != nil {
			return err
		}
		if err := errors.Join(all.foldCurrent(t.Context(), b, f.state()), all.foldHistory(t.Context(), b, f.state())); err != nil {
			return err
		}
	}
	st, err := ls.Current.State(t.Context())
	if err == nil && st.Cursor != f.end {
		err = fmt.Errorf("%s stands at %s, not %s", table.Name, st.Cursor, f.end)
	}
	return err
}
