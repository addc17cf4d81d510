package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
)

func TestCopyLoss(t *testing.T) {
	stacktest.Require(t)
	on := stacktest.Start(t, stack.Config{Debezium: true, Postgres: true})
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCaptured(t, on, "copied", "create table nokey (id int, v text); alter table nokey replica identity full", "insert into nokey values (0, 'first')")
	table := "nokey"
	o := openTopic(t, on, "copied.public."+table)
	require.NoError(t, o.until(time.Minute, func(e []event) bool { return len(e) == 1 }))
	c.exec("insert into nokey values (1, 'second')")
	want := 2
	const rows = 20_000
	kills := 0
	began := time.Now()
	for round := 0; time.Since(began) < 6*time.Minute; round++ {
		from := want
		var lines strings.Builder
		for i := range rows {
			fmt.Fprintf(&lines, "%d\t%s\n", from+i, strings.Repeat("x", 20))
		}
		mark := len(o.events)
		_, err := c.conn.PgConn().CopyFrom(t.Context(), strings.NewReader(lines.String()), "copy "+table+" from stdin")
		require.NoError(t, err)
		want += rows
		var killed []string
		last := fmt.Sprint(want - 1)
		ended := func(e []event) bool { return len(e) > 0 && fmt.Sprint(e[len(e)-1].after["id"]) == last }
		for range 3 {
			mark += 1 + random.IntN(rows/3)
			require.NoError(t, o.until(time.Minute, func(e []event) bool { return len(e) > mark || ended(e) }))
			require.NoError(t, on.Connect.Kill())
			kills++
			killed = append(killed, fmt.Sprint(o.events[len(o.events)-1].place, o.events[len(o.events)-1].after["id"]))
			require.NoError(t, on.Connect.Start(t.Context()))
			require.NoError(t, on.Connect.Running(t.Context(), "copied"))
			mark = len(o.events)
		}
		require.NoError(t, o.until(2*time.Minute, ended))
		ids := distinctIDs(o.events)
		var missing []int
		for i := range want {
			if !ids[fmt.Sprint(i)] {
				missing = append(missing, i)
			}
		}
		t.Logf("round %d: kills so far %d; killed at %v; missing %d: %v", round, kills, killed, len(missing), missing)
		if len(missing) > 0 {
			near := map[string]bool{}
			for _, m := range missing {
				for d := -3; d <= 3; d++ {
					near[fmt.Sprint(m+d)] = true
				}
			}
			for _, e := range o.events {
				if near[fmt.Sprint(e.after["id"])] {
					t.Log(e.offset, e.after["id"], e.place, e.tx, e.headers["__debezium.context.runId"])
				}
			}
			break
		}
	}
	report(t, table, o.events)
	log, _ := os.ReadFile(on.Connect.Log)
	for _, line := range strings.Split(string(log), "\n") {
		if strings.Contains(line, "WalPositionLocator") || strings.Contains(line, "Found previous partition") {
			t.Log(line[:min(len(line), 400)])
		}
	}
}
