package catalog

// SnapshotProgress is how far the reading of a table's existing rows has come. It
// is committed with the rows it counts, so a crash never repeats or skips a chunk.
type SnapshotProgress struct {
	Generation uint32 `json:"generation"` // from 1
	Done       bool   `json:"done"`
	Rows       int64  `json:"rows"`      // read so far
	Estimate   int64  `json:"estimate"`  // of the whole table, by the source's statistics; 0 when unknown
	Chunks     int    `json:"chunks"`    // read so far
	StartedAt  int64  `json:"startedAt"` // microseconds since 1970 UTC
	// Bound is where the next chunk starts, opaque to all but the source; sealed
	// when the key is masked. Empty before the first chunk.
	Bound string `json:"bound,omitempty"`
	// Keys are rows still to be read again by key, opaque like Bound: their large
	// values were not sent and no chunk will bring them.
	Keys []string `json:"keys,omitempty"`
}
