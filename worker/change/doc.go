// Package change holds row changes as plain values: column stores of row images,
// the changes that point into them, and the encoding of keys.
//
// There is no map and no boxed value per row: a batch of one table is a few typed
// slices. It decides nothing and does no I/O; sources fill it, fold and columnar
// read it.
package change
