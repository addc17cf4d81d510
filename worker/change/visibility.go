package change

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Visibility is a pg_snapshot: which transactions a reader sees as ended. The zero
// value sees none.
type Visibility struct {
	Xmin, Xmax uint64
	Running    []uint64 // from Xmin to below Xmax, ascending
}

// ParseVisibility reads what pg_current_snapshot prints: "100:104:100,102".
func ParseVisibility(s string) (Visibility, error) {
	bad := fmt.Errorf("%q is not a snapshot such as 100:104:100,102", s)
	low, rest, _ := strings.Cut(s, ":")
	high, list, ok := strings.Cut(rest, ":")
	xmin, err1 := strconv.ParseUint(low, 10, 64)
	xmax, err2 := strconv.ParseUint(high, 10, 64)
	if !ok || err1 != nil || err2 != nil || xmin > xmax {
		return Visibility{}, bad
	}
	v := Visibility{Xmin: xmin, Xmax: xmax}
	if list == "" {
		return v, nil
	}
	for x := range strings.SplitSeq(list, ",") {
		xid, err := strconv.ParseUint(x, 10, 64)
		if err != nil {
			return Visibility{}, bad
		}
		v.Running = append(v.Running, xid)
	}
	slices.Sort(v.Running)
	return v, nil
}

// Sees reports whether the transaction had ended for the reader. Of one that was
// rolled back there are no changes to ask for.
func (v *Visibility) Sees(xid uint64) bool {
	if xid >= v.Xmax {
		return false
	}
	if xid < v.Xmin {
		return true
	}
	_, running := slices.BinarySearch(v.Running, xid)
	return !running
}
