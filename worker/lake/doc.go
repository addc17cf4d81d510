// Package lake keeps the bronze, current and history tables of each source table in
// Apache Iceberg, and reads them.
//
// It owns how rows become files, how a commit lands exactly once, and where live
// rows lie. It promises that a layer's rows and its cursor become visible in one
// snapshot (I1), that a lost reply is resolved by reading the table back, that a
// commit is only ever applied to the head it was computed on, and that what other
// writers add to a table survives. The truth is in the snapshots: the key index and
// the row cache are rebuilt from them whenever they do not belong to the head.
//
// What the rows mean is fold's; when to write is pipeline's. No type of Iceberg or
// Arrow leaves the package.
//
// Words: a ledger is what is known of a layer's files at one snapshot; a place is a
// file's number and a row in it; landing is bringing a staged snapshot to be the
// head.
package lake
