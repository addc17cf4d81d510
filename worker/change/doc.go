// Package change holds row changes as plain values: column stores of row images,
// the changes that point into them, the encoding of keys, and which transactions a
// reader at the source saw.
//
// There is no map and no boxed value per row: a batch of one table is a few typed
// slices. It decides nothing and does no I/O; sources fill it, fold and columnar
// read it.
package change
