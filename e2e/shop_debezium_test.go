package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// The shop is replicated by Debezium and Kafka into a REST catalog whose files are on
// S3. The program is killed again and again, and beside it Connect three times, which
// then sends events again, and Kafka once. Then source and lake are equal, others read
// the lake, and bronze has every event of the topics once, as it was sent first.
func TestShopThroughDebeziumSurvivesSIGKILL(t *testing.T) {
	stacktest.Require(t)
	bin := program(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	on := stacktest.Start(t, stack.Config{Debezium: true, Lake: true, Postgres: true})
	s := newDebeziumStand(t, bin, on, "", shopFiles())
	require.NoError(t, demo.Setup(t.Context(), s.dsn, 300))

	s.start()
	s.landed(len(demo.Tables()))
	s.kill()
	shop := openShop(t, s.dsn, 100, seed)
	kills := 4
	if os.Getenv("LAKEWEIR_E2E_LONG") != "" {
		kills = 20
	}
	others := []*stack.Process{on.Connect.Process, on.Connect.Process, on.Kafka.Process, on.Connect.Process}
	for kill := range kills {
		s.start()
		s.moved("orders")
		if every := kills / len(others); kill%every == 0 {
			require.NoError(t, others[kill/every].Restart(t.Context()))
			if random.IntN(2) == 0 {
				s.moved("orders")
			}
		}
		s.killSoon(random)
	}
	s.start()
	s.moved("orders")
	changes := shop.close()
	t.Logf("%d kills; %d changes in %d transactions", kills, changes.Changes(), changes.Transactions)
	s.landed(len(demo.Tables()))
	s.reconciled()
	s.stop()
	lake := requireShopAgrees(t, s, changes)

	ran, sentAgain := 0, 0
	for _, table := range demo.Tables() {
		events := openTopic(t, on, "shop.public."+table).whole()
		sentAgain += requireTopicOnce(t, events, lake["bronze."+table+"_cdc"])
		ran = max(ran, runs(events))
	}
	t.Logf("the connector ran %d times and sent %d events again", ran, sentAgain)
	require.GreaterOrEqual(t, ran, 4)
	require.Positive(t, sentAgain, "the connector was to send events again")
}

// requireTopicOnce requires that bronze has each event of its topic once, the initial
// reads too, at the offset where it was sent first. It returns how many were sent again.
func requireTopicOnce(t *testing.T, events []event, bronze readers.Table) (again int) {
	t.Helper()
	got := map[int64]string{}
	for _, row := range bronze.Rows {
		offset, err := strconv.ParseInt(row["_offset"].(string), 10, 64)
		require.NoError(t, err)
		require.Empty(t, got[offset], "%s: offset %d stands twice", bronze.Name, offset)
		got[offset] = row["op"].(string)
	}
	sent := count(events, func(e event) bool { return !e.tombstone })
	want := distinct(events)
	for offset, op := range want {
		require.Equal(t, op, got[offset], "%s: the event at offset %d", bronze.Name, offset)
	}
	require.Len(t, got, len(want), "%s: the topic has %d events", bronze.Name, sent)
	read := count(events, func(e event) bool { return e.op == "r" })
	t.Logf("%s: each of %d reads and %d streamed events once; %d were sent again", bronze.Name, read, len(want)-read, sent-len(want))
	return sent - len(want)
}
