package monitor

import (
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// Health is what a person needs to know of a table first. It is the table's state,
// except that following the source is told apart by whether the promise holds and
// whether anybody still answers for it.
type Health string

// The healths: those of following the source, then the states that are their own.
const (
	Fresh        Health = "fresh"        // follows the source within its tier
	Late         Health = "late"         // follows the source, older than its tier promises
	Silent       Health = "silent"       // should follow the source, but no worker answers for it
	Pending      Health = "pending"      // configured; nothing read yet
	Snapshotting Health = "snapshotting" // existing rows are being read
	Quarantined  Health = "quarantined"  // stopped by an error
	Gap          Health = "gap"          // changes are missing: needs a new snapshot
	Paused       Health = "paused"       // stopped by a person
	Retired      Health = "retired"      // no longer replicated
)

// Healths lists all of them, what asks for attention first.
func Healths() []Health {
	return []Health{Gap, Quarantined, Silent, Late, Paused, Snapshotting, Pending, Fresh, Retired}
}

// SilentAfter is how long a worker may be unheard before what it answers for counts as
// unknown. A worker writes about once a second.
const SilentAfter = 15 * time.Second

// Freshness is how old what a table shows may be. It is an upper bound: the age of the
// oldest change that may not be queryable yet. A table without changes is as fresh as
// the place in the source's log that its worker has reached.
type Freshness struct {
	Known bool
	Age   time.Duration // since the time up to which the layers show the source; never negative
	Bound time.Duration // what the tier promises
}

// Within reports whether the promise holds.
func (f Freshness) Within() bool { return f.Known && f.Age <= f.Bound }

// Share is the age as a part of the bound: above 1 the promise is broken. An unknown
// age has share 0.
func (f Freshness) Share() float64 {
	if !f.Known || f.Bound <= 0 {
		return 0
	}
	return float64(f.Age) / float64(f.Bound)
}

func freshness(v *registry.TableView, now time.Time) Freshness {
	f := Freshness{Bound: v.Config.Tier.Bound()}
	if !v.FreshAt.IsZero() {
		// The source's clock may run ahead of the registry's: then it is fresh now.
		f.Known, f.Age = true, max(0, now.Sub(v.FreshAt))
	}
	return f
}

// health judges a table. A stopped table is what stopped it, whoever answers.
func health(v *registry.TableView, f Freshness, worker *registry.Worker, now time.Time) Health {
	switch v.State {
	case catalog.Quarantined:
		return Quarantined
	case catalog.Gap:
		return Gap
	case catalog.Paused:
		return Paused
	case catalog.Retired:
		return Retired
	case catalog.Pending:
		if v.HeardAt.IsZero() { // nobody ever answered for it: it waits for a worker
			return Pending
		}
	case catalog.Snapshotting, catalog.Streaming, catalog.Lagging:
	}
	heard := v.HeardAt
	if worker != nil && worker.SeenAt.After(heard) {
		heard = worker.SeenAt
	}
	switch {
	case now.Sub(heard) > SilentAfter:
		return Silent
	case v.State == catalog.Pending:
		return Pending
	case v.State == catalog.Snapshotting:
		return Snapshotting
	case f.Within():
		return Fresh
	default:
		return Late
	}
}
