package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
)

// One of twenty topics gets a record that nobody can read. Its table stops and says
// which record it is and why; the others stay within their tier. Once the record is
// passed by, the table goes on, and lacks nothing else.
func TestPoisonStopsItsTableAlone(t *testing.T) {
	stacktest.Require(t)
	bin := program(t)
	on := stacktest.Start(t, stack.Config{Debezium: true, Lake: true, Postgres: true})
	var tables []string
	files := map[string]string{}
	for i := range 20 {
		tables = append(tables, fmt.Sprintf("t%02d", i+1))
		files["public."+tables[i]+".yaml"] = "table: public." + tables[i] + "\nprimary_key: [id]\nscd: [1]\nsoft_delete: false\nfreshness_tier: 1min\n"
	}
	s := newDebeziumStand(t, bin, on, "", files)
	for _, table := range tables {
		s.exec(fmt.Sprintf("create table %[1]s (id int primary key, v text); insert into %[1]s select i, 'read' from generate_series(1, 100) i", table))
	}
	s.start()
	s.landed(len(tables))
	writer := writeInto(t, s.dsn, tables)
	const broken = "t07"
	s.moved(broken)

	topicName := "shop.public." + broken
	offset := poison(t, on, topicName)
	s.broken = broken
	s.await("the table does not stop", func(views []registry.TableView) bool { return stateOf(views, broken) == catalog.Quarantined })
	requireReason := func(text string) {
		t.Helper()
		for _, word := range []string{"topic " + topicName, "partition 0", fmt.Sprintf("offset %d", offset), "lakeweir skip"} {
			require.Contains(t, text, word)
		}
	}
	status := s.says("status")
	t.Logf("lakeweir status:\n%s", status)
	requireReason(status)
	requireReason(s.says("describe", "table", broken))
	s.othersStayFresh(broken, 3)

	t.Log(s.says("skip", broken, "--offset", strconv.FormatInt(offset, 10), "--reason", "broken on purpose"))
	s.stop()
	s.start()
	s.await("the table does not go on", func(views []registry.TableView) bool { return !stateOf(views, broken).Stopped() })
	s.broken = ""
	t.Logf("%d transactions were written meanwhile", writer.close())
	s.landed(len(tables))
	s.reconciled()
	s.stop()
	require.Contains(t, s.says("describe", "table", broken), "broken on purpose")

	pyIceberg, err := readers.NewPyIceberg(t.Context())
	require.NoError(t, err)
	var names []string
	for _, table := range tables {
		names = append(names, "bronze."+table+"_cdc")
	}
	lake, err := pyIceberg.Read(t.Context(), s.lake, names...)
	require.NoError(t, err)
	for i, table := range tables {
		topic := openTopic(t, on, "shop.public."+table)
		if table == broken {
			topic.broken = offset
		}
		requireTopicOnce(t, topic.whole(), lake[i])
	}
}

// poison puts a record into a topic that is no event, and returns its offset.
func poison(t *testing.T, on *stack.Stack, topic string) int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(on.Kafka.Address))
	require.NoError(t, err)
	defer client.Close()
	record, err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(`{"id":1}`), Value: []byte(`{"payload": {"op": "u", "after": {"id"`)}).First()
	require.NoError(t, err)
	return record.Offset
}

func stateOf(views []registry.TableView, table string) catalog.State {
	i := slices.IndexFunc(views, func(v registry.TableView) bool { return v.Name.Name == table })
	if i < 0 {
		return ""
	}
	return views[i].State
}

// othersStayFresh requires of every table but one that what is committed now comes to
// the lake, several times over, and that its age stays below what its tier promises all
// the while. It prints how old each has been at most.
func (s *stand) othersStayFresh(broken string, times int) {
	s.t.Helper()
	oldest := map[string]time.Duration{}
	for range times {
		want := s.now()
		s.await("other tables wait for the one that has stopped", func(views []registry.TableView) bool {
			all := true
			for i := range views {
				v := &views[i]
				if v.Name.Name == broken {
					continue
				}
				age := time.Since(v.FreshAt)
				require.Less(s.t, age, v.Config.Tier.Bound(), v.Name)
				oldest[v.Name.Name] = max(oldest[v.Name.Name], age)
				all = all && v.BronzeThrough >= want && v.CurrentThrough >= want
			}
			return all
		})
	}
	var text strings.Builder
	for _, table := range slices.Sorted(maps.Keys(oldest)) {
		fmt.Fprintf(&text, " %s %.1f s", table, oldest[table].Seconds())
	}
	s.t.Logf("the %d others were at most so old, of 60 s:%s", len(oldest), text.String())
}

// writing changes tables until it is closed.
type writing struct {
	t      *testing.T
	done   chan struct{}
	cancel context.CancelFunc
	n      int
	err    error
}

// writeInto inserts, updates and deletes a row of each table twice a second, in
// one transaction.
func writeInto(t *testing.T, dsn string, tables []string) *writing {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w := &writing{t: t, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.done)
		defer conn.Close(context.WithoutCancel(ctx))
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var sql strings.Builder
			for _, table := range tables {
				fmt.Fprintf(&sql, "insert into %[1]s values (%[2]d, 'new'); update %[1]s set v = 'changed %[2]d' where id = %[3]d; delete from %[1]s where id = %[4]d;",
					table, 1000+w.n, 1+w.n%100, 1000+w.n-20)
			}
			if _, w.err = conn.PgConn().Exec(context.WithoutCancel(ctx), sql.String()).ReadAll(); w.err != nil {
				return
			}
			w.n++
		}
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	return w
}

// close ends the writing and returns how many transactions there were.
func (w *writing) close() int {
	w.t.Helper()
	w.cancel()
	<-w.done
	require.NoError(w.t, w.err)
	return w.n
}
