package keyindex

import (
	"github.com/zeebo/xxh3"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Memory is an Index in memory. It keeps a 128-bit hash of each key instead of the
// key, so two keys of one table are taken for one with a chance of about
// n²/2^129: one in 10^19 for ten billion keys. It takes 56 bytes a key, plus 5 to
// 11 for the table.
type Memory struct {
	// slots is an open-addressing table: 0 is free, else the number of an entry
	// plus one. Its length is a power of two.
	slots   []uint32
	chunks  [][]slot // entries by number, in chunks that never move
	free    []uint32
	n       int
	entries uint32
}

type slot struct {
	hash       xxh3.Uint128
	row        int64
	commit     catalog.LSN
	ordinal    uint64
	file       int32
	generation uint32
	flags      uint8
}

const (
	flagDeleted = 1 << iota
	flagFromSnapshot

	chunkBits = 12
	chunkSize = 1 << chunkBits
)

// NewMemory returns an empty index.
func NewMemory() *Memory { return &Memory{slots: make([]uint32, 64)} }

// Len returns how many keys there are.
func (m *Memory) Len() int { return m.n }

// Size returns about how many bytes it takes.
func (m *Memory) Size() int64 { return int64(4*len(m.slots)) + int64(len(m.chunks))*chunkSize*56 }

// Find returns the entry of a key.
func (m *Memory) Find(key []byte) (Entry, bool) {
	i := m.probe(xxh3.Hash128(key))
	if m.slots[i] == 0 {
		return Entry{}, false
	}
	s := m.at(m.slots[i] - 1)
	return Entry{
		Place:        change.Place{File: s.file, Row: s.row},
		Position:     catalog.Position{Generation: s.generation, Commit: s.commit, Ordinal: s.ordinal},
		Deleted:      s.flags&flagDeleted != 0,
		FromSnapshot: s.flags&flagFromSnapshot != 0,
	}, true
}

// Put sets the entry of a key. It returns where the row lay whose entry it replaced;
// false when there was none.
func (m *Memory) Put(key []byte, e Entry) (was change.Place, replaced bool) {
	if 4*(m.n+1) > 3*len(m.slots) {
		m.grow()
	}
	h := xxh3.Hash128(key)
	i := m.probe(h)
	if m.slots[i] == 0 {
		m.slots[i] = m.take() + 1
		m.n++
	} else {
		old := m.at(m.slots[i] - 1)
		was, replaced = change.Place{File: old.file, Row: old.row}, true
	}
	s := slot{
		hash: h, file: e.Place.File, row: e.Place.Row,
		generation: e.Position.Generation, commit: e.Position.Commit, ordinal: e.Position.Ordinal,
	}
	if e.Deleted {
		s.flags |= flagDeleted
	}
	if e.FromSnapshot {
		s.flags |= flagFromSnapshot
	}
	*m.at(m.slots[i] - 1) = s
	return was, replaced
}

// Remove forgets a key; one that is not there is ignored.
func (m *Memory) Remove(key []byte) {
	i := m.probe(xxh3.Hash128(key))
	if m.slots[i] == 0 {
		return
	}
	m.free = append(m.free, m.slots[i]-1)
	m.n--
	// Close the gap, so that probing needs no tombstones.
	mask := uint64(len(m.slots) - 1)
	for j := i; ; {
		j = (j + 1) & mask
		if m.slots[j] == 0 {
			break
		}
		home := m.at(m.slots[j]-1).hash.Lo & mask
		if (j-home)&mask >= (j-i)&mask {
			m.slots[i] = m.slots[j]
			i = j
		}
	}
	m.slots[i] = 0
}

// probe returns the slot that holds the hash, or the free one where it belongs.
func (m *Memory) probe(h xxh3.Uint128) uint64 {
	mask := uint64(len(m.slots) - 1)
	for i := h.Lo & mask; ; i = (i + 1) & mask {
		if n := m.slots[i]; n == 0 || m.at(n-1).hash == h {
			return i
		}
	}
}

func (m *Memory) at(n uint32) *slot { return &m.chunks[n>>chunkBits][n&(chunkSize-1)] }

func (m *Memory) take() uint32 {
	if last := len(m.free) - 1; last >= 0 {
		n := m.free[last]
		m.free = m.free[:last]
		return n
	}
	n := m.entries
	m.entries++
	if int(n>>chunkBits) == len(m.chunks) {
		m.chunks = append(m.chunks, make([]slot, chunkSize))
	}
	return n
}

func (m *Memory) grow() {
	old := m.slots
	m.slots = make([]uint32, 2*len(old))
	mask := uint64(len(m.slots) - 1)
	for _, n := range old {
		if n == 0 {
			continue
		}
		i := m.at(n-1).hash.Lo & mask
		for m.slots[i] != 0 {
			i = (i + 1) & mask
		}
		m.slots[i] = n
	}
}

var _ Index = (*Memory)(nil)
