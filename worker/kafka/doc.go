// Package kafka reads one source's changes from the topics that Debezium writes: it
// implements pipeline.Source on franz-go.
//
// Where reading stands is bronze's word, not a consumer group's: each table's topic is
// read from the offsets that stand in bronze's snapshot with the rows (I1), and a
// group only reports progress. It owns what an offset means (what is gone, what was
// made anew), which changes are late, where a transaction ends, and up to where the
// source is known to have been read. What a record says is worker/debezium's.
package kafka
