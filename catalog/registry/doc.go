// Package registry keeps, in Postgres, what is configured and what was seen of it:
// configs and column schemas with versions, the state of each table and the events
// of its life, batches, slots, workers and comparisons.
//
// It promises that no call blocks for more than a few seconds, that what it stores
// holds no connection string, key or row value, and that a table which files stopped
// naming is never forgotten. Nothing in it is needed to find out what the lake holds:
// the truth about rows and cursors is in the lake. The one exception is the note of
// what a slot was told it may forget (Slot). Judging what the facts mean is
// orchestrator/monitor's.
package registry
