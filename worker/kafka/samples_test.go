package kafka

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

// recorded are the records of a topic as a real connector wrote them.
func recorded(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	f, err := os.Open("../debezium/testdata/core.jsonl")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	var out []*kgo.Record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var r struct {
			Topic      string
			Headers    map[string]string
			Key, Value json.RawMessage
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		if r.Topic != topic {
			continue
		}
		rec := &kgo.Record{Topic: topic}
		if string(r.Key) != "null" {
			rec.Key = r.Key
		}
		if string(r.Value) != "null" {
			rec.Value = r.Value
		}
		for k, v := range r.Headers {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)})
		}
		out = append(out, rec)
	}
	require.NoError(t, lines.Err())
	return out
}

// TestWhatARealConnectorWroteIsRead: a snapshot, changes, a key move, deletes that carry
// only the key, several changes of one transaction.
func TestWhatARealConnectorWroteIsRead(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	text := column("", "text")
	id := catalog.Column{Name: "id", Source: catalog.SourceType{Name: "integer", Base: "int4", OID: 23, Modifier: -1}}
	id.Type = typemap.Postgres(id.Source)
	schema := &catalog.Schema{Columns: []catalog.Column{id}, Key: []int{0}}
	for _, name := range []string{"name", "email", "note"} {
		text.Name = name
		schema.Columns = append(schema.Columns, text)
	}
	table := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "app", Name: "customers"}, PrimaryKey: []string{"id"}, ApplyTruncates: true}
	s.tables, s.columns = []*catalog.Table{table}, map[string]TableDescription{"app.customers": {Schema: schema}}
	records := recorded(t, "shop.app.customers")
	require.NotEmpty(t, records)
	s.create("shop.app.customers", 1)
	s.produce(records...)
	s.produce(records[3:]...) // and again: a connector that was restarted
	r := s.reader()
	require.Empty(t, r.start())
	defer r.stop()
	customers := r.saved["app.customers"]
	r.until("the end", func() bool { n, _ := customers.resume.Offsets.Next(0); return n == int64(2*len(records)-3) })
	require.Empty(t, r.faults)
	rows := map[string]string{}
	seen := map[catalog.Position]bool{}
	for _, c := range customers.changes {
		if seen[c.position] {
			require.True(t, c.late, "what came before is marked")
			continue
		}
		require.False(t, c.late)
		seen[c.position] = true
		if c.op == change.Delete {
			delete(rows, c.key)
		} else {
			rows[c.key] = c.after
		}
	}
	var shown []string
	for _, row := range rows {
		shown = append(shown, row)
	}
	require.ElementsMatch(t, []string{"1,Ann,ann@x,<1>,", "2,Bob,<1>,n,", "30,Cid,c@x,<1>,", "5,E,e,same tx,"}, shown)
	require.Equal(t, int64(3), customers.resume.Snapshot.Rows)
}
