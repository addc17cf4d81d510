// Package peer runs the reference workload with what a data engineer would write by
// hand: Spark Structured Streaming and MERGE in foreachBatch, on Iceberg tables. It is
// set as well as could be found: a larger heap, the parallel collector, and three times
// as many read partitions as cores.
package peer
