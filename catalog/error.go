package catalog

import (
	"errors"
	"fmt"
)

// Kind says who can do something about an error. It alone decides the exit
// status and whether a thing is tried again: no caller reads messages.
type Kind int

// The kinds.
const (
	Internal    Kind = iota // a bug: nobody outside can fix it
	Invalid                 // the request, file or data is wrong: its author can fix it
	NotFound                // the thing named does not exist
	Conflict                // it changed since the caller looked: read again, then retry
	Denied                  // a policy or a missing right forbids it: an owner can grant it
	Unavailable             // something we depend on is down: trying again may work
)

// Retryable reports whether the same attempt may succeed later, unchanged.
func (k Kind) Retryable() bool { return k == Unavailable || k == Conflict }

// String returns the kind's word in logs and JSON.
func (k Kind) String() string {
	switch k {
	case Internal:
		return "internal"
	case Invalid:
		return "invalid"
	case NotFound:
		return "not_found"
	case Conflict:
		return "conflict"
	case Denied:
		return "denied"
	case Unavailable:
		return "unavailable"
	}
	return "internal"
}

// Error is a failure that a person or a program outside this process sees.
type Error struct {
	Kind    Kind
	Code    Code
	Message string // what is wrong, in the user's words; never a secret or unmasked PII
	Hint    string // what to do next, as an instruction; may be empty
	At      string // where: "orders.yaml:4:1", or "shop/public.orders at 0/16B3748"; may be empty
	Err     error  // the cause, for the log; may be nil
}

func (e *Error) Error() string {
	if e.At == "" {
		return e.Message
	}
	return e.At + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost Error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Public returns what a user may see of err. An error that is not an Error is a
// bug or a leak in waiting, so its text stays in the log.
func Public(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Code: CodeInternal, Message: "internal error", Hint: "see the log for the cause; please report it", Err: err}
}

// Errorf builds an Error; format and args make its message. A %w among them
// becomes its cause.
func Errorf(kind Kind, code Code, hint, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Code: code, Hint: hint, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Invalidf is the most common Error: input that its author can correct.
func Invalidf(code Code, at, hint, format string, args ...any) *Error {
	e := Errorf(Invalid, code, hint, format, args...)
	e.At = at
	return e
}
