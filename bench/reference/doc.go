// Command reference folds the reference workload with Lakeweir and with Spark, from the
// same topics, and says what both took and whether both are right.
//
// It runs a Kafka of its own, with the workload's three topics, and a Postgres of its
// own: the registry, and the source whose columns the worker asks for (its tables are
// empty: what they would hold comes by the topics). Then, one after the other:
//
//   - "lakeweir run", the real program, until bronze has everything; then SIGTERM,
//     before which it folds what is left;
//   - it again, into another lake, killed with SIGKILL once the third batch of the
//     largest table is in bronze, and started again;
//   - the peer of package peer, unless it is left out.
//
// Both are measured as whole process trees by package tree, and their tables are
// compared with the workload's expected rows by package verify. Bronze must hold each
// event once, and tell what hard-deleted orders were worth. It fails when anything
// differs, and writes its figures to -out. Linux only.
package main
