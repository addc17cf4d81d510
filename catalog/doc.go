// Package catalog is the vocabulary of Lakeweir: sources, tables, columns,
// positions, states and the errors that every part reports.
//
// It holds plain values and the rules on them, imports nothing but the standard
// library, and is imported by everything else. One word per idea:
//
//   - source: a database that is replicated; table: one of its tables.
//   - change: one row event; batch: changes of one table in commit order.
//   - position: where a change stands in the source's commit order; cursor: how
//     far a layer has come, which is a position plus the epoch it belongs to.
//   - layer: bronze (every change), current (SCD1) or history (SCD2).
//   - epoch: one life of a source's log (system id and timeline); generation: one
//     complete reading of a table, counted from 1.
//   - state: where a table is in its life; finding: what a check has found.
package catalog
