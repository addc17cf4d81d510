package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// visibility is a pg_snapshot: which transactions a reader sees as ended.
type visibility struct {
	xmin, xmax uint64
	running    []uint64 // between xmin and xmax, ascending
}

// parseVisibility reads what pg_current_snapshot prints: "100:104:100,102".
func parseVisibility(s string) (visibility, error) {
	bad := fmt.Errorf("%q is not a snapshot such as 100:104:100,102", s)
	f := strings.Split(s, ":")
	if len(f) != 3 {
		return visibility{}, bad
	}
	xmin, err1 := strconv.ParseUint(f[0], 10, 64)
	xmax, err2 := strconv.ParseUint(f[1], 10, 64)
	if err1 != nil || err2 != nil || xmin > xmax {
		return visibility{}, bad
	}
	v := visibility{xmin: xmin, xmax: xmax}
	if f[2] == "" {
		return v, nil
	}
	for x := range strings.SplitSeq(f[2], ",") {
		xid, err := strconv.ParseUint(x, 10, 64)
		if err != nil {
			return visibility{}, bad
		}
		v.running = append(v.running, xid)
	}
	slices.Sort(v.running)
	return v, nil
}

// sees reports whether the transaction had ended for the reader.
func (v visibility) sees(xid uint64) bool {
	if xid >= v.xmax {
		return false
	}
	if xid < v.xmin {
		return true
	}
	_, running := slices.BinarySearch(v.running, xid)
	return !running
}

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

// hidden reports whether the reader does not see one of the transactions, and
// forgets those that every later reader sees.
func (s *seenXIDs) hidden(v visibility) bool {
	if len(s.tail) > 0 {
		s.sorted = append(s.sorted, s.tail...)
		slices.Sort(s.sorted)
		s.tail = s.tail[:0]
	}
	first, _ := slices.BinarySearch(s.sorted, v.xmin)
	s.sorted = slices.Delete(s.sorted, 0, first)
	if n := len(s.sorted); n == 0 {
		return false
	} else if s.sorted[n-1] >= v.xmax {
		return true
	}
	return slices.ContainsFunc(v.running, func(xid uint64) bool {
		_, found := slices.BinarySearch(s.sorted, xid)
		return found
	})
}
