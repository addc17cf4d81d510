package catalog

import "slices"

// TopicOffsets is where the reading of a table's topic stands: what is before is in
// bronze, or holds no change. It stands in the snapshot of bronze that holds the rows,
// so that a crash repeats and skips nothing. It is never changed once it was handed on.
type TopicOffsets struct {
	Topic string `json:"topic"`
	// TopicID is Kafka's own name of the topic, which a topic that is made anew does not
	// have again; empty while the topic does not exist.
	TopicID    string            `json:"topicId,omitempty"`
	Partitions []PartitionOffset `json:"partitions,omitempty"` // ascending
	// Order is what gives the changes from here on their positions, opaque to all but
	// the source.
	Order string `json:"order,omitempty"`
}

// PartitionOffset is where the reading of one partition stands.
type PartitionOffset struct {
	Partition int32 `json:"partition"`
	Next      int64 `json:"next"` // the offset to read next
}

// Equal reports whether both stand at the same place; nil stands nowhere.
func (o *TopicOffsets) Equal(p *TopicOffsets) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.Topic == p.Topic && o.TopicID == p.TopicID && o.Order == p.Order && slices.Equal(o.Partitions, p.Partitions)
}

// Next returns the offset to read next of a partition; false when it is not known.
func (o *TopicOffsets) Next(partition int32) (int64, bool) {
	if o == nil {
		return 0, false
	}
	for _, p := range o.Partitions {
		if p.Partition == partition {
			return p.Next, true
		}
	}
	return 0, false
}
