// Package typemap is the one table that says what each source type is in the
// lake, and turns the text a database prints into values and back.
//
// It is pure. Exact or nothing: a value that its column's type cannot hold is
// ErrUnfit, never something near it.
package typemap
