// Package laketest troubles a lake in tests: another engine that works on the same
// tables, a REST catalog whose answers a test decides, and a warehouse whose writes
// and reads fail, are slow or end half-way.
//
// It owns the trouble and nothing of the lake: what it does to a table, it does
// through iceberg-go as any other program would. It promises that trouble comes at
// the n-th operation, so that a test can choose it by a seed.
package laketest
