package lake

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/worker/change"
)

func TestSmoke(t *testing.T) {
	eachFormat(t, func(t *testing.T, version int) {
		l := open(t, t.TempDir())
		ls := openLayers(t, l, version, ordersTable(), ordersSchema())
		f := newFeed(ordersTable(), ordersSchema())
		f.commit().create(1, "pl", "new", 100, nil)
		f.create(2, "pl", "new", 200, "x")
		ls.save(t, f)
		f.commit().update(1, "pl", "paid", 100, change.Unavailable)
		ls.save(t, f)
		f.commit().remove(2, "pl")
		ls.save(t, f)
		for i := range 60 {
			f.commit().update(1, "pl", fmt.Sprint("s", i), i, "n")
			f.create(100+i, "de", "new", i, "n")
			start := time.Now()
			ls.save(t, f)
			t.Log(time.Since(start))
		}
		_ = require.NoError
	})
}
