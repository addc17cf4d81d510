// Package pipeline runs one source: it reads changes, saves them to bronze, folds
// them into current and history, and keeps every table's trouble to itself.
//
// It declares the interfaces it needs of a source, a lake and an observer, and
// owns the order of things: bronze before the layers (I9), a layer's cursor with
// its rows (I1), a stopped table beside running ones (I8). What a change means is
// fold's; how rows are stored is lake's; how a source is read is the source's.
package pipeline
