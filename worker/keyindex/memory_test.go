package keyindex

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

func TestMemoryIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		index, model := NewMemory(), map[string]Entry{}
		key := rapid.Map(rapid.IntRange(0, 300), func(i int) string { return fmt.Sprint("key ", i) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, e := key.Draw(t, "key"), Entry{
					Place:        change.Place{File: rapid.Int32Min(0).Draw(t, "file"), Row: rapid.Int64Min(0).Draw(t, "row")},
					Position:     catalog.Position{Generation: rapid.Uint32().Draw(t, "generation"), Commit: catalog.LSN(rapid.Uint64().Draw(t, "commit")), Ordinal: rapid.Uint64().Draw(t, "ordinal")},
					Deleted:      rapid.Bool().Draw(t, "deleted"),
					FromSnapshot: rapid.Bool().Draw(t, "from snapshot"),
				}
				index.Put([]byte(k), e)
				model[k] = e
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				index.Remove([]byte(k))
				delete(model, k)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), index.Len())
				for i := range 301 {
					k := fmt.Sprint("key ", i)
					want, ok := model[k]
					got, found := index.Find([]byte(k))
					require.Equal(t, ok, found, k)
					require.Empty(t, cmp.Diff(want, got), k)
				}
			},
		})
	})
}

func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	index := NewMemory()
	key := make([]byte, 8)
	for i := range uint64(n) {
		binary.BigEndian.PutUint64(key, i)
		index.Put(key, Entry{Place: change.Place{Row: int64(i)}})
	}
	b.Run("Find", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			binary.BigEndian.PutUint64(key, uint64(i*7919)%n)
			if _, ok := index.Find(key); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("Put", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			binary.BigEndian.PutUint64(key, uint64(i*7919)%n)
			index.Put(key, Entry{Place: change.Place{Row: int64(i)}})
		}
	})
}
