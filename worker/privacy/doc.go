// Package privacy transforms personal columns before anything of them is stored
// or logged: tokenize replaces a value by a keyed token, redact by a fixed mark.
//
// It owns the transform and its keys, and promises that nothing unmasked is left
// in a batch it has applied to (I7). Which columns are personal is the table's
// configuration; who calls it before saving is pipeline's. NULL stays NULL, and a
// value that was not sent stays unavailable.
package privacy
