package fold

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Touched names what a layer must look up before a fold: the distinct keys of the
// changes, and for which of them the row image is needed, not just its place.
type Touched struct {
	Keys  [][]byte
	Image []bool
	// All reports that the batch holds a Truncate: every live row must be looked
	// up, with its image where ImageAll says so; Keys and Image then still hold
	// the touched keys.
	All      bool
	ImageAll bool
	// Large allows for images however large they are together.
	Large bool
}

// Stamp is what a layer's row carries beside the source's columns.
type Stamp struct {
	Position   catalog.Position // of the change that made the row what it is
	LSN        catalog.LSN
	CommitTime int64 // microseconds since 1970 UTC, of that change's transaction
}

// CurrentRow is a row of the current layer.
type CurrentRow struct {
	Image        change.Ref
	Stamp        Stamp
	Deleted      bool // soft-deleted
	FromSnapshot bool // read by a snapshot and not changed since
}

// CurrentFound is a row that the current layer holds before the fold.
type CurrentFound struct {
	Key   []byte
	Place change.Place
	Row   CurrentRow // Image is zero when it was not asked for
}

// CurrentResult is what a fold does to the current layer. It is applied whole or
// not at all.
type CurrentResult struct {
	Remove []change.Place
	Write  []CurrentRow
	// Unavailable counts the rows written with a column that was never sent and is
	// NULL until the source has read the row again.
	Unavailable int
}

// Version is a row of the history layer: one interval [From, To) of one key.
type Version struct {
	Image change.Ref
	Stamp Stamp     // of the change that opened it
	From  int64     // microseconds since 1970 UTC
	To    int64     // the same; Open when the version still holds
	Op    change.Op // of the change that opened it
}

// Open is To of a version that still holds: 9999-12-31 00:00:00 UTC, in
// microseconds since 1970.
const Open int64 = 253402214400000000

// VersionFound is a version that the history layer holds before the fold; it is
// open when Row.To is Open. A key may have several.
type VersionFound struct {
	Key   []byte
	Place change.Place
	Row   Version
}

// HistoryResult is what a fold does to the history layer. It is applied whole or
// not at all.
type HistoryResult struct {
	Remove []change.Place
	Write  []Version
}
