package catalog

// Relation is a relation at a source that holds rows of a replicated table: the table
// itself, or a leaf of a partitioned one.
type Relation struct {
	OID  uint32 `json:"oid"`
	Name string `json:"name"` // for people; it may have been renamed since
	// File is the relation's file at the server, which TRUNCATE and whatever rewrites
	// the whole relation replace; 0 when unknown.
	File uint32 `json:"file,omitempty"`
}
