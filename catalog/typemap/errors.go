package typemap

import "errors"

// What Decode reports. Both arrive wrapped, with what is wrong but never with the
// value itself, which may be personal.
var (
	// ErrUnfit is a value that is legal at the source and has no place in the lake's
	// type: it becomes NULL, counted and shown.
	ErrUnfit = errors.New("the value has no place in the column's lake type")
	// ErrMalformed is a text that is not of the type at all.
	ErrMalformed = errors.New("the text is not a value of the column's type")
)

func unfit(why string) error     { return &valueError{ErrUnfit, why} }
func malformed(why string) error { return &valueError{ErrMalformed, why} }

// valueError is small and shared, so that a column full of unfit values costs no
// formatting.
type valueError struct {
	kind error
	why  string
}

func (e *valueError) Error() string { return e.kind.Error() + ": " + e.why }
func (e *valueError) Unwrap() error { return e.kind }
