// Package registry keeps, in Postgres, what is configured and what was seen of it:
// configs and column schemas with versions, the state of each table and the events
// of its life, batches, slots, workers and comparisons; schema changes with what was
// decided on them, quarantines, and which files hold what was parked.
//
// It promises that no call blocks for more than a few seconds, that what it stores
// holds no connection string or row value, and no key but those of quarantines
// (Quarantine.Key), and that a table which files stopped naming is never forgotten.
// Nothing in it is needed to find out what the lake holds: the truth about rows and
// cursors is in the lake. The exceptions are the note of what a slot was told it may
// forget (Slot), and what was parked in place of being in the lake (NoteParked). Judging
// what the facts mean is orchestrator/monitor's, deciding on changes orchestrator/govern's;
// those who wait for each other's words Listen.
package registry
