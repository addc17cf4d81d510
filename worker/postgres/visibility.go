package postgres

import (
	"slices"

	"github.com/lakeweir/lakeweir/worker/change"
)

// widenXID completes a 32-bit transaction id by the nearest full one.
func widenXID(near uint64, xid uint32) uint64 {
	return uint64(int64(near) + int64(int32(xid-uint32(near))))
}

// seenXIDs remembers transactions whose changes went out before a chunk was read.
type seenXIDs struct {
	sorted, tail []uint64
}

func (s *seenXIDs) add(xid uint64) {
	if n := len(s.tail); n > 0 && s.tail[n-1] == xid {
		return
	}
	s.tail = append(s.tail, xid)
}

// forget drops what the reader sees: every later reader sees it too.
func (s *seenXIDs) forget(v change.Visibility) {
	unseen := func(xids []uint64) []uint64 {
		return slices.DeleteFunc(xids, v.Sees)
	}
	s.sorted, s.tail = unseen(s.sorted), unseen(s.tail)
}

// hidden reports whether the reader does not see one of the transactions, and
// forgets those that every later reader sees.
func (s *seenXIDs) hidden(v change.Visibility) bool {
	if len(s.tail) > 0 {
		s.sorted = append(s.sorted, s.tail...)
		slices.Sort(s.sorted)
		s.tail = s.tail[:0]
	}
	first, _ := slices.BinarySearch(s.sorted, v.Xmin)
	s.sorted = slices.Delete(s.sorted, 0, first)
	if n := len(s.sorted); n == 0 {
		return false
	} else if s.sorted[n-1] >= v.Xmax {
		return true
	}
	return slices.ContainsFunc(v.Running, func(xid uint64) bool {
		_, found := slices.BinarySearch(s.sorted, xid)
		return found
	})
}
