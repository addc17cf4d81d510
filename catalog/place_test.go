package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

func TestAPlaceIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	position := catalog.Position{Generation: 2, Commit: 0x16_B374_D848, Ordinal: 1<<64 - 1}
	offsets := &catalog.TopicOffsets{Topic: "shop.public.orders", TopicID: "x", Order: "o", Partitions: []catalog.PartitionOffset{{Partition: 0, Next: 4711}, {Partition: 3}}}
	for text, p := range map[string]catalog.Place{
		"":                                     {},
		"g2 16/B374D848 #18446744073709551615": {Position: position},
		"shop.public.orders 0:4711 3:0":        {Offsets: offsets},
	} {
		doc, err := json.Marshal(p)
		require.NoError(t, err)
		var got catalog.Place
		require.NoError(t, json.Unmarshal(doc, &got))
		require.True(t, p.Equal(got), "%s", doc)
		require.Equal(t, p, got)
		require.Equal(t, text, got.String())
		require.Equal(t, text == "", got.IsZero())
	}
	both := catalog.Place{Position: position, Offsets: offsets}
	require.Equal(t, position.String(), both.String())
	require.False(t, both.Equal(catalog.Place{Position: position}))
	var p catalog.Place
	require.Error(t, json.Unmarshal([]byte(`{"position":"16/B374D848"}`), &p))
}

func TestAPositionIsReadAsItIsPrinted(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "g1", "g1 0/1", "1 0/1 #1", "g1 0/1 1", "g4294967296 0/1 #1", "g1 0/1 #-1", "g1 0/1 #1 x"} {
		_, err := catalog.ParsePosition(bad)
		require.Error(t, err, bad)
		_, err = catalog.ParseCursor("7312345678901234567.1 " + bad)
		require.Error(t, err, bad)
	}
	c := catalog.Cursor{Epoch: catalog.Epoch{System: "7312345678901234567", Timeline: 3}, Position: catalog.Position{Generation: 1, Commit: 7, Ordinal: 4}}
	got, err := catalog.ParseCursor(c.String())
	require.NoError(t, err)
	require.Equal(t, c, got)
}
