package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/pipeline"
	"github.com/lakeweir/lakeweir/worker/pipeline/pipelinetest"
)

// shop is brokers with topics of a connector, and what reads them.
type shop struct {
	t        testing.TB
	cluster  *kfake.Cluster
	producer *kgo.Client
	admin    *kadm.Client
	source   *catalog.Source
	tables   []*catalog.Table
	columns  map[string]TableDescription
	skips    map[Record]Skip
	password catalog.Secret
	clients  []kgo.Opt
	signals  Signals // nil: none
	clock    func() time.Time
	notes    *kept    // nil: none
	suspects []string // what was told of rows that may be missing
	limits   Limits
	observer *pipelinetest.Observer // what the registry would know
}

const prefix = "shop"

func newShop(t testing.TB, opts ...kfake.Opt) *shop {
	t.Helper()
	return newShopOf(t, nil, opts...)
}

// newShopOf is newShop with options of the clients that write.
func newShopOf(t testing.TB, clients []kgo.Opt, opts ...kfake.Opt) *shop {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	require.NoError(t, err)
	s := &shop{
		t: t, cluster: cluster, columns: map[string]TableDescription{}, skips: map[Record]Skip{},
		source: &catalog.Source{
			Name: "shop", Kind: catalog.Postgres, Capture: catalog.Debezium, Kafka: &catalog.Kafka{Brokers: cluster.ListenAddrs()},
			Connector: &catalog.Connector{TopicPrefix: prefix, Format: catalog.FormatJSON},
		},
		limits: Limits{NextWait: 50 * time.Millisecond, Settle: time.Millisecond, RetryEvery: 5 * time.Millisecond, CheckEvery: 20 * time.Millisecond, Request: 5 * time.Second},
	}
	s.clients = clients
	s.producer = s.client()
	s.admin = kadm.NewClient(s.producer)
	if c, ok := t.(interface{ Cleanup(func()) }); ok {
		c.Cleanup(s.close)
	}
	return s
}

func (s *shop) close() {
	s.producer.Close()
	s.cluster.Close()
}

func (s *shop) client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MetadataMinAge(10 * time.Millisecond),
	}, append(s.clients, opts...)...)...)
	require.NoError(s.t, err)
	return c
}

// column is one of a text, or of a whole number.
func column(name, base string) catalog.Column {
	src := catalog.SourceType{Name: base, Base: base, OID: map[string]uint32{"int8": 20, "text": 25}[base], Modifier: -1}
	return catalog.Column{Name: name, Source: src, Type: typemap.Postgres(src), Nullable: true}
}

// table adds a table of columns id, a, body and c, keyed by id or by nothing, with a topic of as
// many partitions; of none where it does not exist yet.
func (s *shop) table(name string, keyed bool, partitions int32) *catalog.Table {
	t := &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: name}, ApplyTruncates: true, Tier: catalog.Realtime}
	schema := &catalog.Schema{Columns: []catalog.Column{column("id", "int8"), column("a", "int8"), column("body", "text"), column("c", "int8")}}
	if keyed {
		t.PrimaryKey, t.Current, t.History, schema.Key = []string{"id"}, true, true, []int{0}
	}
	s.tables = append(s.tables, t)
	s.columns[t.Name.String()] = TableDescription{Schema: schema}
	if partitions > 0 {
		s.create(s.topic(name), partitions)
	}
	return t
}

func (s *shop) create(topic string, partitions int32) {
	_, err := s.admin.CreateTopic(context.Background(), partitions, 1, nil, topic)
	require.NoError(s.t, err)
}

func (s *shop) topic(name string) string { return prefix + ".public." + name }

// event is a record as a connector writes it.
type event struct {
	table          string
	op             string
	before, after  map[string]any
	key            any // nil: null
	lsn, sequence  uint64
	tx             uint64
	at             int64 // microseconds
	snapshot       string
	newKey, oldKey any
	run            string
	partition      int32
	tombstone      bool
}

func (e event) record() *kgo.Record {
	r := &kgo.Record{Topic: prefix + ".public." + e.table, Partition: e.partition}
	if e.key != nil {
		r.Key = text(e.key)
	}
	if e.tombstone {
		return r
	}
	source := map[string]any{
		"version": "3.6.1.Final", "connector": "postgresql", "name": prefix, "ts_ms": e.at / 1000, "ts_us": e.at, "ts_ns": e.at * 1000, "snapshot": nil, "db": "shop",
		"schema": "public", "table": e.table, "txId": e.tx, "lsn": e.lsn, "xmin": nil,
	}
	first := any(nil)
	if e.sequence > 0 {
		first = strconv.FormatUint(e.sequence, 10)
	}
	source["sequence"] = string(text([]any{first, strconv.FormatUint(e.lsn, 10)}))
	if e.snapshot != "" {
		source["snapshot"] = e.snapshot
	}
	if e.snapshot == "incremental" {
		source["lsn"], source["txId"] = nil, nil
	}
	value := map[string]any{"before": nil, "after": nil, "source": source, "transaction": nil, "op": e.op, "ts_ms": e.at / 1000, "ts_us": e.at}
	if e.before != nil {
		value["before"] = e.before
	}
	if e.after != nil {
		value["after"] = e.after
	}
	r.Value = text(value)
	if e.run != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "__debezium.context.runId", Value: []byte(e.run)})
	}
	if e.newKey != nil {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "__debezium.newkey", Value: text(e.newKey)})
	}
	if e.oldKey != nil {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "__debezium.oldkey", Value: text(e.oldKey)})
	}
	return r
}

func text(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func row(id int, body any) map[string]any {
	return map[string]any{"id": id, "a": 1, "body": body, "c": nil}
}

func keyOf(id int) map[string]any { return map[string]any{"id": id} }

func (s *shop) write(events ...event) {
	records := make([]*kgo.Record, len(events))
	for i, e := range events {
		records[i] = e.record()
	}
	s.produce(records...)
}

func (s *shop) produce(records ...*kgo.Record) {
	require.NoError(s.t, s.producer.ProduceSync(context.Background(), records...).FirstErr())
}

func (s *shop) config() Config {
	cfg := Config{
		Source: s.source, Limits: s.limits, Skips: s.skips, Password: s.password, Signals: s.signals, Clock: s.clock,
		Describe: func(_ context.Context, tables []*catalog.Table) (Description, error) {
			d := Description{Epoch: catalog.Epoch{System: "77", Timeline: 1}, Tables: map[string]TableDescription{}}
			for _, t := range tables {
				if c, ok := s.columns[t.Name.String()]; ok {
					d.Tables[t.Name.String()] = c
				}
			}
			return d, nil
		},
	}
	cfg.Suspected = func(table string, at Record, l *debezium.Loss) {
		s.suspects = append(s.suspects, fmt.Sprintf("%s: %s: %s", table, at, l))
	}
	if s.notes != nil {
		cfg.Notes = s.notes
	}
	if os.Getenv("KAFKA_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return cfg
}

// reader is a run over the shop's topics with what it has saved so far.
type reader struct {
	*shop
	source  *Source
	saved   map[string]*store
	faults  map[string]pipeline.Fault
	through catalog.LSN
	readAt  time.Time
}

// store is what bronze would hold of a table.
type store struct {
	changes []seen
	resume  pipeline.Resume
	batches []*change.Batch
	whole   bool
}

// seen is a change as texts.
type seen struct {
	op          change.Op
	key, other  string
	before      string
	after       string
	late        bool
	position    catalog.Position
	offset      int64
	partition   int32
	transaction uint64
}

func (s *shop) reader() *reader {
	return &reader{shop: s, saved: map[string]*store{}}
}

// start begins with what was saved, and returns the faults.
func (r *reader) start() []pipeline.Fault {
	r.source = New(r.config())
	r.faults, r.through = map[string]pipeline.Fault{}, 0
	var resumes []pipeline.Resume
	for _, t := range r.tables {
		st := r.saved[t.Name.String()]
		if st == nil {
			st = &store{}
			r.saved[t.Name.String()] = st
		}
		st.resume.Table = t
		resumes = append(resumes, st.resume)
	}
	faults, err := r.source.Start(context.Background(), resumes)
	require.NoError(r.t, err)
	for _, f := range faults {
		r.faults[f.Table] = f
	}
	return faults
}

func (r *reader) stop() { require.NoError(r.t, r.source.Close(context.Background())) }

// next takes a slice and saves it.
func (r *reader) next() pipeline.Slice {
	s, err := r.source.Next(context.Background())
	require.NoError(r.t, err)
	for _, b := range s.Batches {
		st := r.saved[b.Table.Name.String()]
		for i := range b.Changes {
			c := &b.Changes[i]
			st.changes = append(st.changes, seen{
				c.Op, string(c.Key), string(c.OtherKey), rowText(b.Rows, c.Before), rowText(b.Rows, c.After), c.Late, c.Position, c.Offset, c.Partition, c.TxID,
			})
			if !c.Late {
				require.Positive(r.t, c.Position.Compare(st.resume.Cursor.Position), "in order")
				st.resume.Cursor = catalog.Cursor{Epoch: b.Epoch, Position: c.Position}
			}
		}
		if b.Snapshot != nil {
			st.resume.Snapshot = b.Snapshot
		}
		require.NotNil(r.t, b.Offsets)
		st.resume.Offsets, st.resume.Schema, st.whole = b.Offsets, b.Rows.Schema(), b.Whole
		st.batches = append(st.batches, b)
	}
	for _, f := range s.Faults {
		r.faults[f.Table] = f
	}
	require.GreaterOrEqual(r.t, s.Through, r.through)
	r.through = s.Through
	if !s.ReadAt.IsZero() {
		r.readAt = s.ReadAt
	}
	return s
}

func rowText(rows *change.Rows, n int) string {
	if n < 0 {
		return ""
	}
	out := ""
	for col, c := range rows.Schema().Columns {
		switch {
		case !rows.HasValue(n, col):
			out += fmt.Sprintf("<%d>,", rows.Mark(n, col))
		case c.Type.Fixed():
			out += fmt.Sprintf("%d,", rows.Fixed(n, col))
		default:
			out += string(rows.Bytes(n, col)) + ","
		}
	}
	return out
}

// until takes slices until something holds.
func (r *reader) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			require.FailNow(r.t, "waited in vain for: "+what)
		}
		r.next()
	}
}

// has reports whether so many changes of a table were handed over.
func (r *reader) has(table string, n int) func() bool {
	return func() bool { return len(r.saved["public."+table].changes) >= n }
}
