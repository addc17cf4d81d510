package kafka

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// table is one table and its topic. From began on, it belongs to Next; what is before
// is written before that, or says whose it is.
type table struct {
	cfg    *catalog.Table
	name   string
	topic  string
	resume pipeline.Resume
	// heartbeat marks the table that heartbeats are written to: it is read for its
	// events' places alone.
	heartbeat bool
	missing   int         // how often in a row the topic was not there; the keeper's
	stopped   atomic.Bool // nothing of it is handed over any more
	placed    bool        // it was found out where its reading begins; the keeper's
	// expected says that Next was told of a table whose topic does not exist yet; the
	// keeper's.
	expected bool
	known    *extent // of a topic that is being read; the keeper's

	began    bool
	id       string // the topic's
	schema   *catalog.Schema
	epoch    catalog.Epoch
	decoder  *debezium.Decoder
	order    debezium.Order
	high     catalog.Position // the highest position handed over
	parts    map[int32]*partition
	snapshot *catalog.SnapshotProgress // as of the newest change, or nil
	build    *builder
	half     *half
	reading  *reading  // a signal for rows of it that is under way
	readAt   time.Time // when the newest record came
}

// partition is one partition of a table's topic.
type partition struct {
	number int32
	next   int64       // the offset to read next
	atEnd  bool        // next was the partition's end when it was last looked at
	commit catalog.LSN // of the newest streamed change's position; 0 before one
}

// half is the first half of a key move whose second has not come.
type half struct {
	change    int // in the builder
	partition *partition
	offset    int64  // of the first half
	order     string // before it
}

// several reports whether the topic has more than one partition.
func (t *table) several() bool { return len(t.parts) > 1 }

// atEnd reports whether every partition was read to its end.
func (t *table) atEnd() bool {
	for _, p := range t.parts {
		if !p.atEnd {
			return false
		}
	}
	return true
}

// offsets says where the reading stands, everything read so far included.
func (t *table) offsets() (*catalog.TopicOffsets, error) {
	order, err := t.orderText()
	if err != nil {
		return nil, err
	}
	o := &catalog.TopicOffsets{Topic: t.topic, TopicID: t.id, Order: order, Partitions: make([]catalog.PartitionOffset, 0, len(t.parts))}
	for n := int32(0); len(o.Partitions) < len(t.parts); n++ {
		if p := t.parts[n]; p != nil {
			o.Partitions = append(o.Partitions, catalog.PartitionOffset{Partition: n, Next: p.next})
		}
	}
	return o, nil
}

func (t *table) orderText() (string, error) {
	b, err := json.Marshal(&t.order)
	if err != nil {
		return "", fmt.Errorf("write the order of %s: %w", t.cfg.ID(), err)
	}
	return string(b), nil
}

// into returns the builder for the table's next change.
func (t *table) into() *builder {
	if t.build == nil {
		t.build = newBuilder(t.schema)
	}
	return t.build
}

// seal hands over what was collected; nil when there is nothing. whole says that it ends
// where a transaction ends.
func (t *table) seal(whole bool) (*change.Batch, error) {
	b := t.build
	if b == nil || !b.moved {
		return nil, nil
	}
	offsets, err := t.offsets()
	if err != nil {
		return nil, err
	}
	out := &change.Batch{Table: t.cfg, Rows: b.rows, Changes: b.changes, Epoch: t.epoch, Offsets: offsets, Whole: whole, Rereads: b.rereads, Remake: b.remake}
	t.high = b.inOrder(t.several(), t.high)
	if b.told {
		s := *t.snapshot
		out.Snapshot = &s
	}
	t.build, t.half = nil, nil
	return out, nil
}

// dropHalf takes back the first half of a key move whose second is not to be had: both
// are read again together.
func (t *table) dropHalf() error {
	h := t.half
	if h == nil || t.several() || h.change != len(t.build.changes)-1 {
		return nil
	}
	var order debezium.Order
	if err := json.Unmarshal([]byte(h.order), &order); err != nil {
		return fmt.Errorf("read the order of %s: %w", t.cfg.ID(), err)
	}
	t.build.changes = t.build.changes[:h.change]
	t.order, h.partition.next, t.half = order, h.offset, nil
	return nil
}

// passed is how far the commits of a partition had come: what the source may not
// forget begins there.
func (t *table) passed(p *partition) catalog.LSN {
	if p != nil && p.commit > 0 {
		return p.commit
	}
	return max(t.high.Commit, 1)
}
