// Package fold turns changes into table state: the final row per key (current)
// and the intervals in which each version held (history).
//
// It is pure: given what a layer holds of the touched keys and the changes since,
// it says which rows to remove and which to write. Any split of the changes into
// batches, and any repetition, gives the same rows. It keeps invariants I3 and I10
// and rules 1 to 15 of docs/guarantees.md.
package fold
