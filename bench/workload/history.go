package workload

import "iter"

// history notes the versions of orders, of which status and total are tracked.
type history struct {
	versions []version
	current  map[int]int // by order
}

type version struct {
	order         int
	status        string
	total         int64
	from, to, lsn int64
}

func (h *history) open(i int, o *order) {
	if h.current == nil {
		h.current = map[int]int{}
	}
	h.current[i] = len(h.versions)
	h.versions = append(h.versions, version{order: i, status: o.status, total: o.total, from: o.last.millis, lsn: o.last.lsn})
}

func (h *history) close(i int, o *order) { h.versions[h.current[i]].to = o.last.millis }

// Version is a version of an order as history must have it.
type Version struct {
	OrderID    string
	Status     string
	TotalMinor int64
	From, To   int64 // the commits that opened and closed it, in ms; To is 0 while it holds
	LSN        int64 // of the change that opened it
}

// Versions yields the versions of orders that history must have when it tracks status
// and total_minor, in the order in which they began.
func (o *Outcome) Versions() iter.Seq[Version] {
	return func(yield func(Version) bool) {
		for _, v := range o.life.history.versions {
			id := string(o.life.orders[v.order].key(nil))
			if !yield(Version{OrderID: id, Status: v.status, TotalMinor: v.total, From: v.from, To: v.to, LSN: v.lsn}) {
				return
			}
		}
	}
}
