package kafka

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
)

// extent is what a topic has now.
type extent struct {
	missing    bool
	denied     bool   // the client may not see it
	id         string // empty when the brokers give none
	partitions map[int32]span
}

// span is the offsets of a partition: from start to before end.
type span struct{ start, end int64 }

// begin decides where the reading of a table's topic goes on, or why it cannot. A topic
// that was never read is read from its start, and one that does not exist yet is waited
// for (nil): Kafka makes a table's topic when its first record comes.
func begin(t *catalog.Table, topic string, had *catalog.TopicOffsets, now extent) ([]catalog.PartitionOffset, *catalog.Error) {
	began := had != nil && len(had.Partitions) > 0
	switch {
	case now.missing && !began:
		return nil, nil
	case now.missing:
		return nil, gapf(t, "topic %s is gone", topic)
	}
	if began {
		if gap := remade(t, topic, had, now); gap != nil {
			return nil, gap
		}
	}
	var out []catalog.PartitionOffset
	for _, partition := range slices.Sorted(maps.Keys(now.partitions)) {
		s := now.partitions[partition]
		next, known := had.Next(partition)
		switch {
		case !known && s.start > 0:
			return nil, gapf(t, "topic %s begins at offset %d of partition %d: %d records from before were removed by retention and never read", topic, s.start, partition, s.start)
		case !known:
			next = s.start
		case next < s.start:
			return nil, gapf(t, "%d records of topic %s were removed by retention before they were read: partition %d begins at offset %d, read up to %d", s.start-next, topic, partition, s.start, next)
		case next > s.end:
			return nil, gapf(t, "topic %s has lost records that were read: partition %d ends at offset %d, read up to %d", topic, partition, s.end, next)
		}
		out = append(out, catalog.PartitionOffset{Partition: partition, Next: next})
	}
	slices.SortFunc(out, func(a, b catalog.PartitionOffset) int { return cmp.Compare(a.Partition, b.Partition) })
	return out, nil
}

// remade tells whether a topic is still the one that was read.
func remade(t *catalog.Table, topic string, had *catalog.TopicOffsets, now extent) *catalog.Error {
	switch {
	case now.missing:
		return gapf(t, "topic %s is gone", topic)
	case had.TopicID != "" && now.id != "" && had.TopicID != now.id:
		return gapf(t, "topic %s was made anew: what stood in the old one and was not read is lost", topic)
	case len(now.partitions) > len(had.Partitions):
		return gapf(t, "topic %s has %d partitions now and had %d: keys have moved between them, so that their changes may be read out of order", topic, len(now.partitions), len(had.Partitions))
	case len(now.partitions) < len(had.Partitions):
		return gapf(t, "topic %s was made anew: it has %d partitions and had %d", topic, len(now.partitions), len(had.Partitions))
	}
	return nil
}
