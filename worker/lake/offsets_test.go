package lake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Where the reading of a topic stands is found with the rows that it brought: by another
// process, after other writers' commits, also when they expired every snapshot of ours,
// and when it moved without rows. Bronze says of each change where it stood.
func TestWhereATopicStandsIsFoundWithItsRows(t *testing.T) {
	t.Parallel()
	for _, version := range formats() {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, version)
			src := source(version)
			src.Name, src.Capture = "shop", catalog.Debezium
			src.Connector = &catalog.Connector{TopicPrefix: "pre"}
			table := ordersTable()
			table.Name.Name, table.Current, table.History = "topics", false, false
			reopen := func() pipeline.Bronze {
				w.lake = open(t, w.dir)
				ls, err := w.lake.ForSource(src).Open(t.Context(), table, ordersSchema())
				require.NoError(t, err)
				return ls.Bronze
			}
			f := newFeed(table, ordersSchema())
			b := reopen()
			at := func(next int64) *catalog.TopicOffsets {
				return &catalog.TopicOffsets{Topic: "pre.public.topics", TopicID: "id", Partitions: []catalog.PartitionOffset{{Partition: 2, Next: next}}, Order: `{"x":1}`}
			}
			f.commit().create(1, "pl", "new", 1, nil)
			batch := f.take()
			batch.Changes[0].Partition, batch.Changes[0].Offset = 2, 41
			to := f.state()
			to.Offsets = at(42)
			_, err := b.Append(t.Context(), []*change.Batch{batch}, to)
			require.NoError(t, err)
			is := func(b pipeline.Bronze, next int64) {
				t.Helper()
				st, err := b.State(t.Context())
				require.NoError(t, err)
				require.True(t, at(next).Equal(st.Offsets), "%+v", st.Offsets)
				require.Equal(t, f.end, st.Cursor)
				known, err := w.lake.ForSource(src).BronzeState(t.Context(), table)
				require.NoError(t, err)
				require.True(t, at(next).Equal(known.Offsets))
			}
			is(reopen(), 42)
			e, ident := w.engine(), src.LakeName(table.Name, catalog.Bronze)
			require.NoError(t, e.RewriteManifests(t.Context(), ident))
			b = reopen()
			is(b, 42)
			to.Offsets = at(99) // only tombstones came
			_, err = b.Append(t.Context(), nil, to)
			require.NoError(t, err)
			is(reopen(), 99)
			require.NoError(t, e.Compact(t.Context(), ident))
			is(reopen(), 99)
			require.NoError(t, e.Expire(t.Context(), ident, true))
			is(reopen(), 99)

			v, err := w.lake.View(t.Context(), ident, 0)
			require.NoError(t, err)
			schema, rows, err := v.Scan(t.Context(), ScanOptions{Columns: []string{"_topic", "_topic_partition", "_offset"}})
			require.NoError(t, err)
			require.Len(t, schema.Columns, 3)
			for part, err := range rows {
				require.NoError(t, err)
				require.Equal(t, 1, part.Len())
				require.Equal(t, "pre.public.topics", string(part.Bytes(0, 0)))
				require.Equal(t, int64(2), part.Fixed(0, 1))
				require.Equal(t, int64(41), part.Fixed(0, 2))
			}
		})
	}
}
