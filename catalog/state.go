package catalog

// State is where a table is in its life; the same words in the registry, JSON,
// metrics and pages.
type State string

// The states, in the order of a table's life.
const (
	Pending      State = "pending"      // configured; nothing read yet
	Snapshotting State = "snapshotting" // existing rows are being read, changes are captured meanwhile
	Streaming    State = "streaming"    // follows the source
	Lagging      State = "lagging"      // follows the source, later than its tier promises
	Quarantined  State = "quarantined"  // stopped by an error; nothing is lost
	Gap          State = "gap"          // changes are missing between lake and source: needs a new snapshot
	Paused       State = "paused"       // stopped by a person
	Retired      State = "retired"      // no longer replicated
)

// Stopped reports whether a table in this state neither captures nor folds.
func (s State) Stopped() bool {
	switch s {
	case Quarantined, Gap, Paused, Retired:
		return true
	case Pending, Snapshotting, Streaming, Lagging:
		return false
	}
	return true
}

// Layer is one of the three lake tables that a source table becomes.
type Layer string

// The layers.
const (
	Bronze  Layer = "bronze"  // every change, append only
	Current Layer = "current" // SCD1: what is true now
	History Layer = "history" // SCD2: what was true when
)
