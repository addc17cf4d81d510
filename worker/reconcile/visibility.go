package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// visibility is a transaction snapshot: which transactions it sees as ended.
type visibility struct {
	xmin, xmax uint64
	running    []uint64 // from xmin to xmax, ascending
}

// parseVisibility reads what pg_current_snapshot() prints: xmin:xmax:running.
func parseVisibility(s string) (visibility, error) {
	low, rest, _ := strings.Cut(s, ":")
	high, list, ok := strings.Cut(rest, ":")
	var v visibility
	var err1, err2 error
	v.xmin, err1 = strconv.ParseUint(low, 10, 64)
	v.xmax, err2 = strconv.ParseUint(high, 10, 64)
	if !ok || err1 != nil || err2 != nil || v.xmin > v.xmax {
		return visibility{}, fmt.Errorf("%q is not a transaction snapshot", s)
	}
	if list == "" {
		return v, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		xid, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return visibility{}, fmt.Errorf("%q is not a transaction snapshot", s)
		}
		v.running = append(v.running, xid)
	}
	slices.Sort(v.running)
	return v, nil
}

// sees reports whether the snapshot sees what the transaction did. A transaction
// that was rolled back has no changes to ask for.
func (v *visibility) sees(xid uint64) bool {
	switch {
	case xid < v.xmin:
		return true
	case xid >= v.xmax:
		return false
	}
	_, running := slices.BinarySearch(v.running, xid)
	return !running
}
